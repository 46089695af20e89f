package faultproxy

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Fault is what the proxy does to a request.
type Fault string

// The faults.
const (
	// Refuse closes the connection; nothing is forwarded.
	Refuse Fault = "refuse"
	// Refuse503 answers 503 ServiceUnavailable; nothing is forwarded.
	Refuse503 Fault = "refuse_503"
	// DropReply forwards, waits for the answer, and closes the connection instead of passing it on.
	DropReply Fault = "drop_reply"
	// Late closes the connection at once and forwards after the delay; without a delay, at the next release.
	Late Fault = "late"
	// DelayRequest waits for the delay, then forwards and answers.
	DelayRequest Fault = "delay"
	// Pause holds the request until the next release, then forwards and answers.
	Pause Fault = "pause"
	// Conflict answers TransactionConflictException, and TransactionCanceledException to a transaction. It matches only
	// PutItem, UpdateItem, DeleteItem, TransactWriteItems and TransactGetItems: nothing else can meet a conflict.
	Conflict Fault = "conflict"
	// Throttle answers the exception in Rule.Code.
	Throttle Fault = "throttle"
	// down is what the log says of a request that met the proxy while it was down; no rule has it.
	down Fault = "down"
)

// Codes of Throttle.
const (
	// ProvisionedThroughputExceeded is the default.
	ProvisionedThroughputExceeded = "ProvisionedThroughputExceededException"
	// Throttling is the control-plane's and the on-demand table's word for it.
	Throttling = "ThrottlingException"
	// TransactionCanceled cancels a transaction with the reason ThrottlingError. A rule with it matches transactions only.
	TransactionCanceled = "TransactionCanceledException"
)

// delayMillisMax bounds a delay to a day.
const delayMillisMax = 24 * 60 * 60 * 1000

// Rule says which requests meet a fault. The first matching rule that is not used up wins.
type Rule struct {
	// Operation is the name in X-Amz-Target, as "TransactWriteItems"; empty = all.
	Operation string `json:"operation,omitempty"`
	// Table is a part of the name of a table that the request names; empty = any or none.
	Table string `json:"table,omitempty"`
	// Contains is a part of the request's body, byte for byte; empty = any.
	Contains string `json:"contains,omitempty"`
	Fault    Fault  `json:"fault"`
	// After lets the first matches go by.
	After int `json:"after,omitempty"`
	// Times is how often the rule applies after that; 0 = for ever.
	Times int `json:"times,omitempty"`
	// DelayMillis is the delay of DelayRequest and Late, in milliseconds, at most a day.
	DelayMillis int64 `json:"delay_ms,omitempty"`
	// Code of Throttle; empty = ProvisionedThroughputExceeded.
	Code string `json:"code,omitempty"`
	// Item is the position in a transaction, from 0, that a cancellation reason names. A transaction with fewer items
	// does not match.
	Item int `json:"item,omitempty"`
}

func (r Rule) check() error {
	faults := []Fault{Refuse, Refuse503, DropReply, Late, DelayRequest, Pause, Conflict, Throttle}
	codes := []string{"", ProvisionedThroughputExceeded, Throttling, TransactionCanceled}
	switch {
	case !slices.Contains(faults, r.Fault):
		return fmt.Errorf("fault is %q, want one of %q", r.Fault, faults)
	case r.After < 0 || r.Times < 0 || r.Item < 0:
		return fmt.Errorf("after, times and item are %d, %d and %d, want 0 or more", r.After, r.Times, r.Item)
	case r.DelayMillis < 0 || r.DelayMillis > delayMillisMax:
		return fmt.Errorf("delay_ms is %d, want 0 to %d", r.DelayMillis, delayMillisMax)
	case r.Fault == DelayRequest && r.DelayMillis == 0:
		return fmt.Errorf("fault %q wants a delay_ms", r.Fault)
	case !slices.Contains(codes, r.Code) || (r.Code != "" && r.Fault != Throttle):
		return fmt.Errorf("code is %q, want one of %q, and only with fault %q", r.Code, codes[1:], Throttle)
	}
	return nil
}

func (r Rule) delay() time.Duration { return time.Duration(r.DelayMillis) * time.Millisecond }

func (r Rule) matches(q request) bool {
	switch {
	case r.Operation != "" && r.Operation != q.operation:
		return false
	case r.Table != "" && !slices.ContainsFunc(q.tables, func(t string) bool { return strings.Contains(t, r.Table) }):
		return false
	case !bytes.Contains(q.body, []byte(r.Contains)):
		return false
	case r.Fault == Conflict:
		return q.transaction() && r.Item < q.items || slices.Contains(singleWrites, q.operation)
	case r.Code == TransactionCanceled:
		return q.transaction() && r.Item < q.items
	}
	return q.operation != ""
}

var singleWrites = []string{"PutItem", "UpdateItem", "DeleteItem"}
