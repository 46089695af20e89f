// Package complete has what a reader needs. It stands for a package that the checker accepts. Its Example is beside it.
//
//	c := complete.Config{}
package complete

import "time"

// Default is a constant of its own.
const Default = time.Second

// The colours share one comment.
const (
	Red  = "red"
	Blue = "blue"
)

// Config has fields of every sort. The word inner is its own field, which leaseUntil is not.
type Config struct {
	// Patience is how long to wait. Default 1 s.
	Patience time.Duration
	// Width and Height are in pixels.
	Width  int
	Height int
	Depth  int // Depth is in pixels too.
	time.Time
	inner int
}

// Doer has a method.
type Doer interface {
	// Do does it, and returns restOf, what is left.
	Do() (restOf int)
}

// restOf is no word of English.
func restOf() int { return Config{}.inner }

// New takes restOf, its own parameter.
func New(restOf int) Config { return Config{inner: restOf} }

// Zero has nothing inside.
func Zero() Config { return New(restOf()) }
