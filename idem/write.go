package idem

import (
	"fmt"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Reject declares a business answer: the problem, stored and replayed like any result. Its status must be 4xx.
func Reject(p Problem) Failure { return storage.Rejecting(p.Status, p.Response) }

// Retry declares a lost optimistic lock: the handler runs again, within the lease.
func Retry() Failure { return storage.Retrying() }

// RejectedError lets a handler answer with a stored 4xx by returning it as its error; nothing it wrote is committed. A
// wrapped handler has answered by it: it is stored whatever the policy stores of other answers, unless Operation.ReleaseOn
// has its status. With any other status it is a [*HandlerError], and nothing is stored.
type RejectedError struct {
	// Problem is the answer, with a status from 400 to 499.
	Problem Problem
}

// stands says that the rejection is an answer to the client.
func (e *RejectedError) stands() bool { return e.Problem.Status >= 400 && e.Problem.Status <= 499 }

// Error implements error.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("idem: rejected: %d %s", e.Problem.Status, e.Problem.Code)
}
