package idemctl

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// part is a command of the command line as completions and the manual page show it.
type part struct {
	// path is the command's words after idemctl; none for idemctl itself.
	path []string
	help string
	// words are the commands below it, flags those that it takes, its parents' too, and args its arguments.
	words []word
	flags []*kong.Flag
	args  []*kong.Positional
}

// word is something that may be typed, and what it is.
type word struct{ text, help string }

// parts are idemctl and all its commands, parents first.
func parts(app *kong.Application) []part { return under(app.Node, nil, nil) }

func under(node *kong.Node, path []string, inherited []*kong.Flag) []part {
	own := slices.Clone(inherited)
	for _, f := range node.Flags {
		if !f.Hidden {
			own = append(own, f)
		}
	}
	self := part{path: path, help: node.Help, flags: own, args: node.Positional}
	if node.Argument != nil || node.Hidden {
		return nil
	}
	var below []part
	for _, child := range node.Children {
		if child.Hidden {
			continue
		}
		self.words = append(self.words, word{child.Name, child.Help})
		below = append(below, under(child, append(slices.Clone(path), child.Name), own)...)
	}
	if node.DefaultCmd != nil { // `refuse-before` takes what `refuse-before show` takes
		for _, f := range node.DefaultCmd.Flags {
			if !slices.Contains(self.flags, f) {
				self.flags = append(self.flags, f)
			}
		}
	}
	return append([]part{self}, below...)
}

// values are what a flag or an argument may be, where that is fixed.
func values(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return slices.Sorted(slices.Values(v.EnumSlice()))
}

// isFile says whether a flag names a file or a folder.
func isFile(f *kong.Flag) bool { return strings.HasPrefix(f.Tag.Type, "existing") }
