package storage

// Write is one business write of a transaction. The core does not look into it; it only asks what a failed condition
// means. Package dynamo wraps the SDK's Put, Update, Delete and ConditionCheck as Writes; an application may emit its own
// domain writes instead and give the store a translator.
type Write interface {
	// IfConditionFails is idem.Reject, idem.Retry, or the zero Failure for a write without a condition.
	IfConditionFails() Failure
}

// Failure is what a failed condition of a [Write] means. The zero value declares that the write has no condition. If the
// write fails nevertheless, the request ends with an error and nothing is stored.
type Failure struct {
	retry    bool
	status   int
	response func() Response
}

// Rejecting is the failure that answers with a response of this status, which is stored. The response is made only if the
// condition fails.
func Rejecting(status int, response func() Response) Failure {
	return Failure{status: status, response: response}
}

// Retrying is the failure that makes the handler run again.
func Retrying() Failure { return Failure{retry: true} }

// Retries says whether the failure is a lost optimistic lock.
func (f Failure) Retries() bool { return f.retry }

// Rejects returns the status of the business answer, and whether the failure is one.
func (f Failure) Rejects() (status int, ok bool) { return f.status, f.status != 0 }

// Response makes the business answer of a failure that is one.
func (f Failure) Response() Response { return f.response() }
