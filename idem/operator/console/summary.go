package console

import (
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/storage"
)

// summary says in a sentence or two how an operation stands: what keeps it first.
func summary(s operator.Story, now time.Time) (text string, tone tone) {
	for i, m := range s.Messages {
		at := fmt.Sprintf("Message %d of %d (%s)", i+1, len(s.Messages), m.Topic)
		switch m.State {
		case storage.MessageDead:
			return at + " is dead: it was given up, or its evidence could not be settled. Nothing moves it but an operator.", bad
		case storage.MessageUnknown:
			return at + " is unknown" + since(m.OpenSince, now) + ": its call may have happened. It is asked about, and not called again, until evidence decides.", bad
		case storage.MessageEvidenced:
			return at + " keeps the provider's answer, which is to be settled. The provider is not called again.", waiting
		case storage.MessageClaimed:
			return at + " is claimed by a worker.", waiting
		case storage.MessagePending:
			return at + " waits for a worker" + since(m.CreatedAt, now) + ".", waiting
		case storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled: // final: the record says it
		}
	}
	if s.Record == nil {
		return "It has ended, and its record was removed after it expired.", plain
	}
	switch r := s.Record; r.State {
	case storage.StateUnknown:
		return "It is unknown" + since(r.CreatedAt, now) + ": its handler may have done what it was asked for. Its key executes nothing until that is decided.", bad
	case storage.StateInProgress:
		return "An execution has held it" + since(r.CreatedAt, now) + ".", waiting
	case storage.StatePending:
		return "It has had no final answer" + since(r.CreatedAt, now) + ".", waiting
	case storage.StateFailed:
		return fmt.Sprintf("It has failed. Every retry gets the stored answer, status %d.", r.ResponseStatus), bad
	case storage.StateFailedRetryable:
		return "Nothing happened. The next request with its key executes.", plain
	default:
		return fmt.Sprintf("It is completed. Every retry gets the stored answer, status %d.", r.ResponseStatus), good
	}
}

func since(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " for " + span(now.Sub(at))
}
