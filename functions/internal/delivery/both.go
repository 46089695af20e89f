package delivery

import (
	"errors"
	"sync"
)

// Both does two jobs side by side, so that neither waits for the other's end, and returns what went wrong in either.
func Both(one, other func() error) error {
	var (
		jobs     sync.WaitGroup
		failures [2]error
	)
	jobs.Go(func() { failures[0] = one() })
	jobs.Go(func() { failures[1] = other() })
	jobs.Wait()
	return errors.Join(failures[:]...)
}
