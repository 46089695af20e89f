package payments

import (
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// step is a message of an operation that is made again. The last one of a chain is pending, and the earlier ones have ended.
type step struct {
	topic     string
	payload   []byte
	state     storage.MessageState
	reference string
	// undoes says that it undoes an earlier step: the operation fails with it.
	undoes bool
}

// steps are the messages of a lost payout up to the one that it goes on with, by the payload of its first one; nil where it goes on with
// that. One whose destination has passed goes on with the payout itself: because the provider shows it, or because an operator has said that
// it is paid out now. So that message is written here, and says itself that it may have been called: what the screening's settlement
// inserts counts as called only while RefuseBefore is there, and the provider may list late what was made.
func (l Lost) steps(screened []byte) ([]step, error) {
	switch {
	case l.Released:
		return stepsToRelease(screened, l.First.ID)
	case l.Screened || l.Ordered:
		_, steps, err := afterScreening(screened, l.First.ID)
		return steps, err
	}
	return nil, nil
}

// stepsToRelease is the chain of a payout that was not made, whose hold the provider was asked to release: it goes on with the release, and
// never pays out. Where the provider had declined the payout it would show that, so it was not executed.
func stepsToRelease(screened []byte, screeningID string) ([]step, error) {
	unmade, steps, err := afterScreening(screened, screeningID)
	if err != nil {
		return nil, err
	}
	steps[1].state = storage.MessageCancelled
	third, err := release{payout: unmade, Because: becauseNotExecuted}.encode()
	return append(steps, step{topic: TopicReleases, payload: third, state: storage.MessagePending, undoes: true}), err
}

// afterScreening is a payout whose destination has passed, and its chain up to the message that pays it out.
func afterScreening(screened []byte, screeningID string) (payout, []step, error) {
	s, err := decodePayload[screening](screened)
	if err != nil {
		return payout{}, nil, err
	}
	passed := payout{screening: s, Screening: screeningID}
	second, err := passed.encode()
	return passed, []step{
		{topic: TopicScreenings, payload: screened, state: storage.MessageDelivered, reference: screeningID},
		{topic: payoutTopic(s.Destination), payload: second, state: storage.MessagePending},
	}, err
}

// chain are the messages of an operation that is made again. The pending one says itself that it may have been called since it was created.
// The protocol takes that for granted of what is older than RefuseBefore, but that row may be gone when the worker looks. The settlement
// that ends the operation marks the earlier ones for removal, so they must be there.
func (b begun) chain(record storage.Record, now time.Time) (all []storage.Message) {
	steps := b.steps
	if steps == nil {
		steps = []step{{topic: b.topic, payload: b.payload, state: storage.MessagePending}}
	}
	for i, s := range steps {
		m := storage.Message{
			ID: record.OperationID.Message(b.after + i + 1), Index: b.after + i + 1, OperationID: record.OperationID, RecordKey: record.Key, Tenant: record.Tenant,
			Topic: s.topic, Payload: s.payload, State: s.state, Reference: s.reference, Undoes: s.undoes, Revision: record.Revision, CreatedAt: record.CreatedAt,
			Retention: record.Retention, Expiry: record.Expiry, SchemaVersion: storage.SchemaVersion,
		}
		if s.state.Final() {
			m.DoneAt = now
		} else {
			m.OpenSince, m.NextAttemptAt, m.SweepAt, m.RedrivenAt = record.CreatedAt, now, now.Add(sweepGrace), now
		}
		all = append(all, m)
	}
	return all
}
