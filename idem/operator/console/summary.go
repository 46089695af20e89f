package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/storage"
)

// summary says in a sentence or two how an operation stands: what keeps it first.
func summary(s operator.Story, now time.Time) (text string, tone tone) {
	if why, is := anotherReleases(s); is {
		return "Another release wrote it (" + why + "). This console can't judge it: what it shows may be wrong, and it changes nothing of it. Use the console, or idemctl, of that release.", bad
	}
	for _, m := range s.Messages {
		at := fmt.Sprintf("Message %s of %s (%s)", numberOf(m), numberOf(s.Messages[len(s.Messages)-1]), m.Topic)
		switch m.State {
		case storage.MessageDead:
			return at + " is dead: it was given up, or its evidence could not be settled" + inBrackets(tried(m)) + ". Nothing moves it but an operator.", bad
		case storage.MessageUnknown:
			return at + " has been unknown" + since(m.OpenSince, now) + ": the call may have happened. If the provider can be asked, it is asked" +
				" again after 1 minute, later after up to 1 hour. Nothing calls again until the outcome is known.", bad
		case storage.MessageEvidenced:
			return at + " keeps the provider's answer, which is to be settled. The provider is not called again.", waiting
		case storage.MessageClaimed:
			return at + " is claimed by a worker" + inBrackets(tried(m)) + ".", waiting
		case storage.MessagePending:
			return at + " waits for a worker" + since(m.CreatedAt, now) + inBrackets(tried(m)) + ".", waiting
		case storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled: // final: the record says it
		}
	}
	if s.RecordMayBeLost {
		return "Its record is not there: it has expired, or was lost. Nobody knows by it whether the operation has ended.", bad
	}
	if s.Record == nil {
		return "It has ended, and its record was removed after it expired.", plain
	}
	if s.Record.OnlyObserved {
		return "It was only observed, and has not ended. Another request may have been executed beside it: where its policy is enforced, its key executes nothing.", bad
	}
	switch r := s.Record; r.State {
	case storage.StateUnknown:
		text = "It is unknown"
		if open := openSince(*r, now); !open.IsZero() {
			text += ", and the lease of its execution ended " + span(now.Sub(open)) + " ago"
		}
		return text + ": the handler may have done its work. Its key executes nothing until the outcome is known.", bad
	case storage.StateInProgress: // a key that was freed and taken again is as old as its first execution
		text = "It was begun " + span(now.Sub(r.CreatedAt)) + " ago, and has not ended: "
		if open := openSince(*r, now); !open.IsZero() {
			return text + "the lease of its execution ended " + span(now.Sub(open)) + " ago.", waiting
		}
		return text + "an execution holds its lease, which lasts until " + moment(r.LeaseUntil, now) + ".", waiting
	case storage.StatePending: // no message is open
		return "It has had no final answer" + since(r.CreatedAt, now) + ", and the message that it waits for is not there.", bad
	case storage.StateFailed:
		return fmt.Sprintf("It has failed. Every retry gets the stored answer, status %d.", r.ResponseStatus), bad
	case storage.StateFailedRetryable:
		text = "Nothing happened."
		if strings.HasPrefix(r.LastError, storage.CacheBustReason) {
			text = "Its answer was taken out of use."
		}
		if r.LeaseUntil.After(now) {
			return text + " Its key answers 409 for " + span(r.LeaseUntil.Sub(now)) + " more, and then the next request executes.", waiting
		}
		return text + " The next request with its key executes.", plain
	default:
		return fmt.Sprintf("It is completed. Every retry gets the stored answer, status %d.", r.ResponseStatus), good
	}
}

// openSince is from when on nobody knows the outcome of a record's latest execution: from the end of its lease, until which the handler may
// have run. It is the zero time where that is not over, and where there was no lease.
func openSince(r operator.RecordView, now time.Time) time.Time {
	if r.LeaseUntil.After(now) {
		return time.Time{}
	}
	return r.LeaseUntil
}

// anotherReleases says why this release can't judge a part of the operation, where it can't.
func anotherReleases(s operator.Story) (why string, is bool) {
	if s.Record != nil && s.Record.Unreadable != "" {
		return s.Record.Unreadable, true
	}
	for _, m := range s.Messages {
		if m.Unreadable != "" {
			return fmt.Sprintf("message %s: %s", numberOf(m), m.Unreadable), true
		}
	}
	return "", false
}

// numberOf is a message's number in its chain: others of it may have been removed.
func numberOf(m operator.MessageView) string {
	_, number, _ := strings.Cut(string(m.ID), ".")
	return number
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func since(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " for " + span(now.Sub(at))
}
