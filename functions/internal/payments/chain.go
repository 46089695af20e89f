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

// stepsToRelease is the chain of a payout that was not made, whose hold the provider was asked to release: it goes on with the release, and
// never pays out. Where the provider had declined the payout it would show that, so it was not executed.
func stepsToRelease(screened []byte, screeningID string) ([]step, error) {
	s, err := decodePayload[screening](screened)
	if err != nil {
		return nil, err
	}
	unmade := payout{screening: s, Screening: screeningID}
	second, err := unmade.encode()
	if err != nil {
		return nil, err
	}
	third, err := release{payout: unmade, Because: becauseNotExecuted}.encode()
	return []step{
		{topic: TopicScreenings, payload: screened, state: storage.MessageDelivered, reference: screeningID},
		{topic: payoutTopic(s.Destination), payload: second, state: storage.MessageCancelled},
		{topic: TopicReleases, payload: third, state: storage.MessagePending, undoes: true},
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
