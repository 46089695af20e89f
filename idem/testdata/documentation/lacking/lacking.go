// This package says little. It lacks the rest, as finding H16 says:
//
//	Code is no prose. Nor does it count. However much there is.
package lacking

// Config has fields. The reference is broken over two lines: see ADR
// 0007.
type Config struct {
	Bare int
	// Width is in pixels.
	Width  int
	Height int

	// Apart is above a blank line, and names Below.
	Apart int

	Below int
	// Private is as internal/clock has it.
	Private int
	// Decided is as docs/adr/0009 says.
	Decided int
	// Designed is as docs/design.md says.
	Designed int
	// Promised is as docs/semantics.md says, which is for users.
	Promised int
	// Owner is whoever has it.
	Owner int
}

// Doer has a method.
type Doer interface {
	Do()
}

type Undocumented struct{}

const Bare = 1

// New calls restOf, which nobody sees.
func New() { restOf() }

func (Config) Method() {}

func restOf() {}
