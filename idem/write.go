package idem

import "fmt"

// Write is one business write of a transaction. It is opaque to the core, except that it declares what a failed
// condition means. Package dynamo wraps the SDK's Put, Update, Delete and ConditionCheck as Writes; an application may
// emit its own domain writes instead and give the store a translator.
type Write interface {
	// IfConditionFails is [Reject], [Retry], or the zero Failure for a write without a condition.
	IfConditionFails() Failure
}

// Failure is what a failed condition of a [Write] means. The zero value declares that the write has no condition; should
// it fail all the same, the request ends with an error and nothing is stored.
type Failure struct {
	retry   bool
	problem Problem
}

// Reject declares a business answer: the problem, stored and replayed like any result. Its status must be 4xx.
func Reject(p Problem) Failure { return Failure{problem: p} }

// Retry declares a lost optimistic lock: the handler reads again and runs again, within the lease.
func Retry() Failure { return Failure{retry: true} }

// Retries says whether the failure is a lost optimistic lock.
func (f Failure) Retries() bool { return f.retry }

// Rejects returns the business answer, and whether the failure is one.
func (f Failure) Rejects() (Problem, bool) { return f.problem, f.problem.Status != 0 }

// RejectedError lets a handler answer with a stored 4xx by returning it as its error; nothing it wrote is committed.
type RejectedError struct{ Problem Problem }

// Error implements error.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("idem: rejected: %d %s", e.Problem.Status, e.Problem.Code)
}
