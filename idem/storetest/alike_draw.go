package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/storage"
)

// row is a business write: it adds to a row, or inserts it.
type row struct {
	key    string
	insert bool
}

func (a *alike) drawRows() (rows []row) {
	for _, key := range a.rows {
		if a.chance.IntN(3) == 0 {
			rows = append(rows, row{key, a.maybe()})
		}
	}
	return rows
}

// writes are the rows as the side's harness makes them.
func (a *alike) writes(side int, rows []row) (writes []storage.Write) {
	for _, r := range rows {
		if r.insert {
			writes = append(writes, a.sides[side].InsertRow(r.key, idem.Retry()))
		} else {
			writes = append(writes, a.sides[side].AddRow(r.key))
		}
	}
	return writes
}

// seen is the record that the first store has.
func (a *alike) seen(key storage.RecordKey) *storage.Record {
	a.Helper()
	r, err := a.sides[0].Store.Get(a.ctx, key)
	if err != nil {
		a.Fatal(err)
	}
	return r
}

// record is a record of the key as some write would make it, in any state.
func (a *alike) record(key storage.RecordKey) storage.Record {
	r := storage.Record{
		Key: key, OperationID: pick(a, a.operations[key]), Epoch: int64(1 + a.chance.IntN(2)), Owner: pick(a, a.owners), Revision: a.revision(),
		Tenant: "tenant", Operation: "orders.create", Kind: pick(a, []storage.Kind{storage.KindAtomic, storage.KindWrapped}),
		Fingerprint: canonical.Fingerprint{Version: 1}, CreatedAt: base, Retention: retention, Attempts: 1, SchemaVersion: storage.SchemaVersion,
		State: pick(a, []storage.State{
			storage.StateInProgress, storage.StateInProgress, storage.StatePending, storage.StateCompleted, storage.StateFailed, storage.StateFailedRetryable, storage.StateUnknown,
		}),
	}
	switch r.State {
	case storage.StateInProgress:
		r.LeaseUntil = a.at().Add(lease)
	case storage.StatePending:
		r.Kind, r.Response = storage.KindDeferred, response(202, []byte(`{"state":"pending"}`))
	case storage.StateUnknown:
		r.Kind, r.LookAt = storage.KindWrapped, a.at()
	case storage.StateFailedRetryable:
		r.DoneAt, r.FreeAt, r.LastError = a.at(), a.at(), "nothing happened"
	default: // final
		r.DoneAt, r.ExpiresAt = base.Add(time.Second), a.at().Add(retention)
		r.FreeAt, r.Response = r.ExpiresAt, response(201, a.body())
	}
	return r
}

// body is a response's: one of few, or one that is stored in chunks.
func (a *alike) body() []byte {
	if a.chance.IntN(6) == 0 {
		return a.large[a.chance.IntN(3):]
	}
	return fmt.Appendf(nil, `{"n":%d}`, a.chance.IntN(3))
}

// kept is evidence, or none.
func (a *alike) kept() *storage.Kept {
	if a.chance.IntN(3) > 0 {
		return nil
	}
	return &storage.Kept{Reference: pick(a, []string{"", "ch_1"}), Evidence: pick(a, [][]byte{nil, []byte("\x00 an answer")})}
}

// removal is when native TTL may remove a message that is final: a second of few.
func (a *alike) removal() time.Time {
	return a.at().Add(retention).Truncate(time.Second)
}

// fence admits what is stored, or something like it.
func (a *alike) fence(key storage.RecordKey) storage.Fence {
	like := a.record(key)
	if r := a.seen(key); r != nil && a.chance.IntN(4) > 0 {
		like = *r
	}
	var f storage.Fence
	switch a.chance.IntN(3) {
	case 0:
		f = storage.FenceOf(like)
	case 1:
		f = storage.FenceOfHolder(like, like.State, pick(a, []storage.State{storage.StateInProgress, storage.StateUnknown}))
		f.States = slices.Compact(f.States)
		f.AnyEpoch = a.chance.IntN(4) == 0
	default:
		f = storage.Fence{OperationID: like.OperationID, FreeAt: a.at().Add(retention * time.Duration(a.chance.IntN(2)))}
	}
	if a.chance.IntN(5) == 0 {
		f.LeaseBefore = a.at().Add(lease)
	}
	return f
}

// message is a message of the key as some write would make it.
func (a *alike) message(key storage.RecordKey) storage.Message {
	r := a.record(key)
	m := message(r, 1)
	m.Revision, m.State = a.revision(), pick(a, []storage.MessageState{
		storage.MessagePending, storage.MessageClaimed, storage.MessageUnknown, storage.MessageEvidenced, storage.MessageDelivered, storage.MessageDeclined,
		storage.MessageDead, storage.MessageCancelled,
	})
	m.KeptDelivered, m.KeptDeclined = a.kept(), a.kept()
	if m.State == storage.MessageClaimed {
		m.Owner, m.Epoch, m.LeaseUntil, m.Attempts, m.SweepAt = r.Owner, r.Epoch, a.at().Add(lease), 1, a.at().Add(lease)
	}
	if m.State.Final() {
		m.SweepAt, m.NextAttemptAt, m.DoneAt = time.Time{}, time.Time{}, base.Add(time.Second)
		if a.maybe() {
			m.RemoveAt = a.removal()
		}
	}
	return m
}

// target is what a command on a message is about: mostly one that is there.
func (a *alike) target(key storage.RecordKey) storage.Message {
	a.Helper()
	var there []storage.Message
	for _, operation := range a.operations[key] {
		for n := 1; n < chain; n++ {
			m, err := a.sides[0].Store.Message(a.ctx, operation.Message(n))
			if err != nil {
				a.Fatal(err)
			}
			if m != nil {
				there = append(there, *m)
			}
		}
	}
	if len(there) == 0 || a.chance.IntN(6) == 0 {
		return a.message(key)
	}
	return pick(a, there)
}

// rewrites is a message in the place of another.
func (a *alike) rewrites(m storage.Message) storage.Message {
	whole := a.message(m.RecordKey)
	whole.ID, whole.OperationID, whole.Index = m.ID, m.OperationID, m.Index
	return whole
}

// messageFence admits the message, or something like it.
func (a *alike) messageFence(like storage.Message) storage.MessageFence {
	if a.chance.IntN(4) == 0 {
		like = a.message(like.RecordKey)
	}
	f := storage.MessageFence{NotDead: a.chance.IntN(4) == 0}
	switch a.chance.IntN(3) {
	case 0:
		f.Revision = like.Revision
	case 1:
		f.Owner, f.Epoch, f.States = like.Owner, like.Epoch, []storage.MessageState{like.State}
	default:
		f.Open = true
	}
	return f
}

// end is what a settlement makes of a message.
func (a *alike) end(target storage.Message) storage.MessageEnd {
	m := a.rewrites(target)
	end := storage.MessageEnd{
		ID: m.ID, Tenant: m.Tenant, Topic: m.Topic, State: m.State, Revision: m.Revision, SweepAt: m.SweepAt, LastOutcome: "an answer", Reference: "ch_1",
		SettledBy: pick(a, []storage.Settler{"", storage.SettledByWebhook, storage.SettledByOperator}), KeptDelivered: a.kept(), KeptDeclined: a.kept(), Unfailed: pick(a, []bool{false, true}),
	}
	if m.State.Final() {
		end.DoneAt, end.RemoveAt = base.Add(time.Second), m.RemoveAt
	}
	return end
}
