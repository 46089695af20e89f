package sim

import (
	"slices"
	"strings"
	"testing"
)

// Shrink takes away the faults that a broken story does not need, and tells what is left of it: it breaks the same promise. Where the
// story breaks without any fault, none is left.
func Shrink(t *testing.T, begin Begin, broken Story) Story {
	needed, promise := broken.Faults, promised(broken.Broken[0])
	slices.Sort(needed)
	for most := len(needed); most > 0; most /= 2 {
		for at := 0; at < len(needed); {
			fewer := slices.Delete(slices.Clone(needed), at, min(at+most, len(needed)))
			if story := Tell(t, begin, broken.Seed, fewer, false); slices.ContainsFunc(story.Broken, func(b string) bool { return promised(b) == promise }) {
				needed = story.Faults // some of the others may not happen any more
				slices.Sort(needed)
				continue
			}
			at += most
		}
	}
	if needed == nil {
		needed = []string{} // nothing goes wrong, and not everything
	}
	return Tell(t, begin, broken.Seed, needed, true)
}

// promised is the promise that a story breaks, as in "I2".
func promised(broken string) string {
	promise, _, _ := strings.Cut(broken, ":")
	return promise
}
