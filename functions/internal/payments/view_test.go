package payments

import (
	"testing"

	"github.com/idem-go/idem-aws/idem"
)

// docs/semantics.md "States of a record": record and message together.
func TestOperationState(t *testing.T) {
	for record, want := range map[idem.State]string{
		idem.StateInProgress: "in_progress", idem.StateFailedRetryable: "in_progress", idem.StateUnknown: "unknown",
		idem.StateCompleted: "completed", idem.StateFailed: "failed",
	} {
		if got := operationState(idem.Record{State: record}, nil); got != want {
			t.Errorf("record %s: %s, want %s", record, got, want)
		}
	}
	for message, want := range map[idem.MessageState]string{
		idem.MessagePending: "pending", idem.MessageClaimed: "in_progress", idem.MessageUnknown: "unknown", idem.MessageDead: "unknown",
		// The record was read just before its end.
		idem.MessageDelivered: "pending", idem.MessageDeclined: "pending", idem.MessageCancelled: "pending",
	} {
		if got := operationState(idem.Record{State: idem.StatePending}, &idem.Message{State: message}); got != want {
			t.Errorf("message %s: %s, want %s", message, got, want)
		}
	}
}
