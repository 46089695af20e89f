package function

import (
	"errors"
	"strconv"

	"github.com/idem-go/idem-aws/idem/canonical"
)

// JSONPointer makes a key of the values that JSON pointers (RFC 6901) name in the input: "/detail/id". The empty pointer
// names the whole input, for inputs that are a key themselves.
func JSONPointer(pointers ...string) Key { return Expressions(pointer, pointers...) }

func pointer(expression string) (Expression, error) {
	tokens, ok := canonical.PointerTokens(expression)
	if !ok {
		return nil, errors.New("must be a JSON pointer (RFC 6901)")
	}
	return func(document any) (any, error) {
		for _, token := range tokens {
			document = step(document, token)
		}
		return document, nil
	}, nil
}

// step goes one reference token down (RFC 6901 section 4); nil where there is nothing.
func step(value any, token string) any {
	switch value := value.(type) {
	case map[string]any:
		return value[token]
	case []any:
		// An index has no leading zeros; "-" is the element after the last, which there never is.
		if i, err := strconv.Atoi(token); err == nil && strconv.Itoa(i) == token && i >= 0 && i < len(value) {
			return value[i]
		}
	}
	return nil
}
