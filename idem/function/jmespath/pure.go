package jmespath

import (
	"maps"
	"slices"

	"github.com/jmespath-community/go-jmespath"
	"github.com/jmespath-community/go-jmespath/pkg/functions"
)

// pure holds the library's functions, but for what would make a key depend on more than the input: those for the members
// of an object take them by the order of their names, and none sorts an array of the input in place.
var pure = append(onCopies(functions.GetDefaultFunctions()),
	ofMembers("keys", func(name string, _ any) any { return name }),
	ofMembers("values", func(_ string, value any) any { return value }),
	ofMembers("items", func(name string, value any) any { return []any{name, value} }),
)

func onCopies(entries []jmespath.FunctionEntry) []jmespath.FunctionEntry {
	for i, entry := range entries {
		entries[i].Handler = func(arguments []any) (any, error) {
			for n, argument := range arguments {
				if array, ok := argument.([]any); ok {
					arguments[n] = slices.Clone(array)
				}
			}
			return entry.Handler(arguments)
		}
	}
	return entries
}

func ofMembers(function string, pick func(name string, value any) any) jmespath.FunctionEntry {
	return jmespath.FunctionEntry{
		Name:      function,
		Arguments: []jmespath.ArgSpec{{Types: []jmespath.JpType{jmespath.JpObject}}},
		Handler: func(arguments []any) (any, error) {
			object := arguments[0].(map[string]any) // by Arguments
			picked := make([]any, 0, len(object))
			for _, name := range slices.Sorted(maps.Keys(object)) {
				picked = append(picked, pick(name, object[name]))
			}
			return picked, nil
		},
	}
}
