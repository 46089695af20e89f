package faultproxy

import (
	"fmt"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/internal/refusal"
)

// Fault is what the proxy does to a request.
type Fault string

// The faults. The first group forwards nothing, the second forwards and spoils the answer, the third forwards later or
// less.
const (
	// Refuse closes the connection; nothing is forwarded.
	Refuse Fault = "refuse"
	// Refuse500 answers InternalServerError; nothing is forwarded.
	Refuse500 Fault = "refuse_500"
	// Refuse503 answers 503 ServiceUnavailable; nothing is forwarded.
	Refuse503 Fault = "refuse_503"
	// Conflict answers TransactionConflictException, and TransactionCanceledException to a transaction. It matches only
	// PutItem, UpdateItem, DeleteItem, TransactWriteItems and TransactGetItems: nothing else can meet a conflict. With the
	// code ReplicatedWriteConflict it matches only the first three.
	Conflict Fault = "conflict"
	// Throttle answers the exception in Code.
	Throttle Fault = "throttle"
	// InProgress answers TransactionInProgressException: an earlier request under the token is still under way. It matches
	// only TransactWriteItems, as does Mismatch.
	InProgress Fault = "in_progress"
	// Mismatch answers IdempotentParameterMismatchException: the token was used for another payload.
	Mismatch Fault = "mismatch"
	// Expired answers ExpiredTokenException, or the exception in Code: the credentials were good once.
	Expired Fault = "expired"

	// DropReply forwards, waits for the answer, and closes the connection instead of passing it on.
	DropReply Fault = "drop_reply"
	// CutReply forwards, passes on half of the answer's body, and closes the connection.
	CutReply Fault = "cut_reply"
	// Fail500 forwards, and answers InternalServerError whatever DynamoDB did.
	Fail500 Fault = "fail_500"
	// Fail503 forwards, and answers 503 ServiceUnavailable whatever DynamoDB did.
	Fail503 Fault = "fail_503"
	// DelayReply forwards, and passes the answer on after the delay.
	DelayReply Fault = "delay_reply"

	// Late closes the connection at once and forwards after the delay; without a delay, at the next release.
	Late Fault = "late"
	// DelayRequest waits for the delay, then forwards and answers.
	DelayRequest Fault = "delay"
	// Pause holds the request until the next release, then forwards and answers.
	Pause Fault = "pause"
	// Partial forwards the first half of a batch, and answers that the rest was not processed. It matches only BatchGetItem
	// and BatchWriteItem with at least two keys or items: DynamoDB never leaves a whole batch unprocessed. The request's
	// signature does not cover what is forwarded, which emulators don't check.
	Partial Fault = "partial"

	// down is what the log says of a request that met the proxy while it was down; no rule has it.
	down Fault = "down"
)

var faults = []Fault{
	Refuse, Refuse500, Refuse503, Conflict, Throttle, InProgress, Mismatch, Expired,
	DropReply, CutReply, Fail500, Fail503, DelayReply,
	Late, DelayRequest, Pause, Partial,
}

// The code of Conflict that is not its default, TransactionConflictException: an item of a global table with strong consistency
// is being written in another Region.
const ReplicatedWriteConflict = refusal.ReplicatedConflict

// The code of Expired that is not its default, ExpiredTokenException.
const ExpiredToken = refusal.ExpiredTokenShort

// Codes of Throttle.
const (
	// ProvisionedThroughputExceeded is the default.
	ProvisionedThroughputExceeded = refusal.ThroughputExceeded
	// Throttling is the control-plane's and the on-demand table's word for it.
	Throttling = refusal.Throttling
	// RequestLimitExceeded is the account's own limit.
	RequestLimitExceeded = refusal.RequestLimitExceeded
	// TransactionCanceled cancels a transaction with the reason in Reason. A rule with it matches transactions only.
	TransactionCanceled = refusal.TransactionCanceled
)

// Reasons of Throttle with the code TransactionCanceled.
const (
	// ReasonThrottling is the default.
	ReasonThrottling = refusal.ReasonThrottling
	// ReasonThroughput is the reason on a table with provisioned capacity.
	ReasonThroughput = refusal.ReasonThroughput
)

// EveryItem as Item gives each item of a transaction the reason.
const EveryItem = -1

// delayMillisMax bounds a delay to a day.
const delayMillisMax = 24 * 60 * 60 * 1000

// Step is a fault and what it needs to know.
type Step struct {
	Fault Fault `json:"fault"`
	// DelayMillis is the delay of DelayRequest, DelayReply and Late, in milliseconds, at most a day.
	DelayMillis int64 `json:"delay_ms,omitempty"`
	// Code of Throttle, Conflict or Expired; empty = ProvisionedThroughputExceeded, TransactionConflictException or
	// ExpiredTokenException.
	Code string `json:"code,omitempty"`
	// Reason of Throttle with the code TransactionCanceled; empty = ReasonThrottling.
	Reason string `json:"reason,omitempty"`
	// Item is the position in a transaction, from 0, that a cancellation reason names, or EveryItem. A transaction with fewer
	// items does not match.
	Item int `json:"item,omitempty"`
}

// codes are what a step's Code may be, by its fault.
var codes = map[Fault][]string{
	Throttle: {ProvisionedThroughputExceeded, Throttling, RequestLimitExceeded, TransactionCanceled},
	Conflict: {refusal.TransactionConflict, ReplicatedWriteConflict},
	Expired:  {refusal.ExpiredToken, ExpiredToken},
}

func (s Step) check() error {
	codes := codes[s.Fault]
	reasons := []string{ReasonThrottling, ReasonThroughput}
	switch {
	case !slices.Contains(faults, s.Fault):
		return fmt.Errorf("fault is %q, want one of %q", s.Fault, faults)
	case s.Item < EveryItem:
		return fmt.Errorf("item is %d, want a position from 0, or %d for every item", s.Item, EveryItem)
	case s.DelayMillis < 0 || s.DelayMillis > delayMillisMax:
		return fmt.Errorf("delay_ms is %d, want 0 to %d", s.DelayMillis, delayMillisMax)
	case (s.Fault == DelayRequest || s.Fault == DelayReply) && s.DelayMillis == 0:
		return fmt.Errorf("fault %q wants a delay_ms", s.Fault)
	case s.Code != "" && !slices.Contains(codes, s.Code):
		return fmt.Errorf("code is %q, and fault %q takes one of %q", s.Code, s.Fault, codes)
	case s.Reason != "" && (s.Code != TransactionCanceled || !slices.Contains(reasons, s.Reason)):
		return fmt.Errorf("reason is %q, want one of %q, and only with code %q", s.Reason, reasons, TransactionCanceled)
	}
	return nil
}

func (s Step) delay() time.Duration { return time.Duration(s.DelayMillis) * time.Millisecond }

// fits says that DynamoDB could answer the request so.
func (s Step) fits(q request) bool {
	switch {
	case s.Code == ReplicatedWriteConflict:
		return slices.Contains(singleWrites, q.operation)
	case s.Fault == Conflict:
		return q.transaction() && s.Item < q.items || slices.Contains(singleWrites, q.operation)
	case s.Code == TransactionCanceled:
		return q.transaction() && s.Item < q.items
	case s.Fault == InProgress, s.Fault == Mismatch:
		return q.operation == "TransactWriteItems"
	case s.Fault == Partial:
		return q.entries > 1
	}
	return q.operation != ""
}

var singleWrites = []string{"PutItem", "UpdateItem", "DeleteItem"}
