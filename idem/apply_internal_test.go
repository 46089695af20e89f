package idem

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// What the checker explores is protocol.Apply, and what everything else is tested on is the reference store: they do the same with every
// write of one row. storetest.RunAlike compares the reference store with DynamoDB.
func TestTheReferenceStoreDoesWhatTheCheckerExplores(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	outcomes := map[bool]int{}
	for range 20_000 {
		d := drawn{chance}
		outcomes[d.recordWrite(t)]++
		outcomes[d.messageWrite(t)]++
		if t.Failed() {
			return
		}
	}
	if outcomes[true] < 5_000 || outcomes[false] < 5_000 {
		t.Errorf("%d writes happened and %d did not: the test shows one side only", outcomes[true], outcomes[false])
	}
}

// drawn are rows and fences of few values, so that they often agree.
type drawn struct{ *rand.Rand }

// epoch is the first of the instants that are drawn.
var epoch = time.Date(2101, 2, 3, 4, 5, 6, 0, time.UTC)

func (d drawn) id(kind uint64) protocol.ID { return protocol.ID{kind, 1 + d.Uint64N(2)} }

func (d drawn) instant() protocol.Instant {
	return translation.InstantOf(epoch.Add(time.Duration(d.IntN(3)) * time.Minute))
}

func (d drawn) maybe() bool { return d.IntN(2) == 0 }

func (d drawn) record() protocol.Record {
	r := protocol.Record{
		State: protocol.State(1 + d.IntN(6)), Kind: protocol.Atomic, Epoch: 1 + d.Uint32N(2), Op: d.id(1), Owner: d.id(2), Revision: d.id(3),
		Retention: translation.MillisOf(time.Hour),
	}
	switch r.State {
	case protocol.InProgress:
		r.Lease = d.instant()
	case protocol.Pending:
		r.Kind = protocol.Deferred
	case protocol.Unknown:
		r.Kind = protocol.Wrapped
	case protocol.Completed, protocol.Failed:
		r.Free = d.instant()
		r.Expires = r.Free
	case protocol.Retryable:
		r.Free, r.Lease = d.instant(), 0
	case protocol.Absent: // not drawn
	}
	return r
}

// fence is one that a machine could send: about what is stored, or about something like it.
func (d drawn) fence(op, owner, revision protocol.ID, epoch uint32, state uint8) protocol.Fence {
	if d.maybe() {
		op = d.id(1)
	}
	if d.maybe() {
		owner, epoch = d.id(2), 1+d.Uint32N(2)
	}
	switch d.IntN(3) {
	case 0:
		if d.maybe() {
			revision = d.id(3)
		}
		return protocol.Fence{Op: op, Seen: revision}
	case 1:
		return protocol.Fence{Op: op, Owner: owner, Epoch: epoch, States: 1<<state | 1<<(1+d.IntN(6))}
	}
	return protocol.Fence{Free: d.instant()}
}

// recordWrite has both make the same write of a record, and says whether it happened.
func (d drawn) recordWrite(t *testing.T) bool {
	t.Helper()
	key := Scope{Tenant: "t", Operation: "op", Key: "k"}.RecordKey()
	row := func(h protocol.Record) storage.Record {
		r := withHeader(storage.Record{
			Key: key, OperationID: operationOf(key, h.Op), Tenant: "t", Operation: "op", CreatedAt: epoch, Retention: time.Hour, SchemaVersion: storage.SchemaVersion,
		}, h)
		if h.State == protocol.Unknown {
			r.LookAt = epoch
		}
		return r
	}
	store, err := memstore.New(memstore.Config{Now: func() time.Time { return epoch }})
	if err != nil {
		t.Fatal(err)
	}
	var rows protocol.Rows
	before := d.record()
	if d.IntN(8) > 0 {
		if err := store.Insert(context.Background(), row(before), epoch); err != nil {
			t.Fatal(err)
		}
		rows.Rec = before
	}
	w := protocol.Write{RecAs: protocol.Put, Rec: d.record()}
	w.RecIf = d.fence(before.Op, before.Owner, before.Revision, before.Epoch, uint8(before.State))
	about := row(protocol.Record{Op: w.RecIf.Op, State: protocol.InProgress, Kind: protocol.Atomic})
	write := func() error {
		return store.Update(context.Background(), row(w.Rec), fenceOf(&about, w.RecIf))
	}
	if rows.Rec.State == protocol.InProgress && w.RecIf.Free == 0 && d.maybe() {
		w.RecAs, w.Rec.Lease = protocol.Renew, d.instant()
		w.RecIf.LeaseBelow = w.Rec.Lease
		write = func() error { return store.Renew(context.Background(), row(w.Rec), fenceOf(&about, w.RecIf)) }
	}
	after, reply := protocol.Apply(rows, w, 0)

	err = write()
	var conflict *storage.RecordConflictError
	if errors.As(err, &conflict) != (reply.Code == protocol.Refused) || err != nil && conflict == nil {
		t.Fatalf("%+v on %+v: %v, and the checker's answer is %v", w, rows.Rec, err, reply.Code)
	}
	if conflict != nil && d.header(t, conflict.Existing) != reply.Rec {
		t.Errorf("%+v on %+v: the conflict has %+v", w, rows.Rec, conflict.Existing)
	}
	stored, err := store.Get(context.Background(), key)
	if err != nil || d.header(t, stored) != after.Rec {
		t.Errorf("%+v on %+v leaves %+v, and the checker's is %+v, %v", w, rows.Rec, stored, after.Rec, err)
	}
	return reply.Code == protocol.OK
}

func (d drawn) header(t *testing.T, r *storage.Record) protocol.Record {
	t.Helper()
	if r == nil {
		return protocol.Record{}
	}
	h, err := headerOf(r)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (d drawn) message() protocol.Message {
	m := protocol.Message{
		State: protocol.MessageState(1 + d.IntN(8)), Index: 1, Epoch: 1 + d.Uint32N(2), Op: d.id(1), Owner: d.id(2), Revision: d.id(3),
		Created: translation.InstantOf(epoch), LookAt: d.instant(), Kept: protocol.Kept(d.IntN(4)),
	}
	if m.State == protocol.Claimed {
		m.Lease = d.instant()
	}
	if m.State.Final() {
		m.Done, m.LookAt = translation.InstantOf(epoch), 0
	}
	return m
}

// messageWrite is recordWrite of a message.
func (d drawn) messageWrite(t *testing.T) bool {
	t.Helper()
	key := Scope{Tenant: "t", Operation: "op", Key: "k"}.RecordKey()
	row := func(h protocol.Message) storage.Message {
		operation := operationOf(key, h.Op)
		m := translation.WithHeader(storage.Message{
			ID: operation.Message(1), OperationID: operation, RecordKey: key, Tenant: "t", Topic: "topic", Index: 1, SchemaVersion: storage.SchemaVersion,
		}, h)
		if h.Kept&protocol.KeptDelivered != 0 {
			m.KeptDelivered = &storage.Kept{Reference: "ch_1"}
		}
		if h.Kept&protocol.KeptDeclined != 0 {
			m.KeptDeclined = &storage.Kept{Reference: "ch_1"}
		}
		return m
	}
	store, err := memstore.New(memstore.Config{Now: func() time.Time { return epoch }})
	if err != nil {
		t.Fatal(err)
	}
	before := d.message()
	send, err := store.Prepare(storage.Commit{
		Record: withHeader(storage.Record{
			Key: key, OperationID: operationOf(key, before.Op), Tenant: "t", Operation: "op", CreatedAt: epoch, Retention: time.Hour, SchemaVersion: storage.SchemaVersion,
		}, protocol.Record{State: protocol.Pending, Kind: protocol.Deferred, Epoch: 1, Op: before.Op, Owner: d.id(2), Revision: d.id(3)}),
		Messages: []storage.Message{row(before)}, Now: epoch, Token: "token",
	})
	if err == nil {
		err = send(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	rows := protocol.Rows{Msg: before}
	w := protocol.Write{MsgAs: protocol.Put, Msg: d.message()}
	w.Msg.Op = before.Op // an id names its incarnation
	f := d.fence(before.Op, before.Owner, before.Revision, before.Epoch, uint8(before.State))
	if f.Op = before.Op; f.Free != 0 {
		f = protocol.Fence{Op: before.Op, Open: true}
	}
	f.NotDead = d.IntN(4) == 0
	w.MsgIf = f
	next, fence := row(w.Msg), translation.FenceOn(row(before), f)
	write := func() error { return store.UpdateMessage(context.Background(), next, fence) }
	if d.maybe() {
		w.MsgAs = protocol.Patch
		write = func() error {
			return store.PatchMessage(context.Background(), storage.MessageEnd{
				ID: next.ID, Tenant: next.Tenant, Topic: next.Topic, State: next.State, Revision: next.Revision, DoneAt: next.DoneAt, SweepAt: next.SweepAt,
				KeptDelivered: next.KeptDelivered, KeptDeclined: next.KeptDeclined, Unfailed: next.Unfailed,
			}, fence)
		}
	}
	after, reply := protocol.Apply(rows, w, 0)

	err = write()
	var conflict *storage.MessageConflictError
	if errors.As(err, &conflict) != (reply.Code == protocol.Refused) || err != nil && conflict == nil {
		t.Fatalf("%+v on %+v: %v, and the checker's answer is %v", w, before, err, reply.Code)
	}
	if conflict != nil && translation.HeaderOf(conflict.Existing) != reply.Msg {
		t.Errorf("%+v on %+v: the conflict has %+v", w, before, conflict.Existing)
	}
	stored, err := store.Message(context.Background(), row(before).ID)
	if err != nil || translation.HeaderOf(stored) != after.Msg {
		t.Errorf("%+v on %+v leaves %+v, and the checker's is %+v, %v", w, before, stored, after.Msg, err)
	}
	return reply.Code == protocol.OK
}

// A settlement that sends the next message of its chain does not write over one that is there: it would call a provider again. The
// reference store and what the checker explores refuse the same, and change nothing.
func TestANextMessageThatIsThereIsInTheWayOfTheWholeSettlement(t *testing.T) {
	key := Scope{Tenant: "t", Operation: "op", Key: "k"}.RecordKey()
	chance := rand.New(rand.NewPCG(3, 4))
	d, id := drawn{chance}, func(kind, n uint64) protocol.ID { return protocol.ID{kind, n} }
	operation := operationOf(key, id(1, 1))
	row := func(h protocol.Message) storage.Message {
		return translation.WithHeader(storage.Message{
			ID: operation.Message(int(h.Index)), OperationID: operation, RecordKey: key, Tenant: "t", Topic: "topic", Index: int(h.Index), SchemaVersion: storage.SchemaVersion,
		}, h)
	}
	stored := func(store *memstore.Store, index int) protocol.Message {
		m, err := store.Message(t.Context(), operation.Message(index))
		if err != nil {
			t.Fatal(err)
		}
		if m == nil {
			return protocol.Message{}
		}
		return translation.HeaderOf(m)
	}
	for _, there := range []bool{false, true} {
		store, err := memstore.New(memstore.Config{Now: func() time.Time { return epoch }})
		if err != nil {
			t.Fatal(err)
		}
		message := func(index uint8, state protocol.MessageState, revision uint64) protocol.Message {
			return protocol.Message{
				State: state, Index: index, Epoch: 1, Op: id(1, 1), Owner: d.id(2), Revision: id(3, revision), Created: translation.InstantOf(epoch), LookAt: d.instant(),
			}
		}
		rows := protocol.Rows{Msg: message(1, protocol.Due, 1)}
		messages := []storage.Message{row(rows.Msg)}
		if there {
			rows.Next = message(2, protocol.InDoubt, 2) // a provider may have been called for it
			messages = append(messages, row(rows.Next))
		}
		send, err := store.Prepare(storage.Commit{
			Record: withHeader(storage.Record{
				Key: key, OperationID: operation, Tenant: "t", Operation: "op", CreatedAt: epoch, Retention: time.Hour, SchemaVersion: storage.SchemaVersion,
			}, protocol.Record{State: protocol.Pending, Kind: protocol.Deferred, Epoch: 1, Op: id(1, 1), Owner: d.id(2), Revision: id(3, 9)}),
			Messages: messages, Now: epoch, Token: "commit",
		})
		if err == nil {
			err = send(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		w := protocol.Write{
			MsgAs: protocol.Put, Msg: message(1, protocol.Claimed, 3), MsgIf: protocol.Fence{Op: id(1, 1), Seen: rows.Msg.Revision}, Next: message(2, protocol.Due, 4),
		}
		whole, next := row(w.Msg), row(w.Next)
		send, err = store.PrepareSettle(storage.Settlement{
			Message: storage.MessageEnd{ID: whole.ID, Tenant: whole.Tenant, Topic: whole.Topic}, Replace: &whole, Fence: translation.FenceOn(row(rows.Msg), w.MsgIf),
			Next: &next, Token: "settle",
		})
		if err != nil {
			t.Fatal(err)
		}
		after, reply := protocol.Apply(rows, w, 0)
		err = send(t.Context())
		if (err == nil) != (reply.Code == protocol.OK) || there != (err != nil) {
			t.Errorf("with a next message: %v: %v, and the checker's answer is %+v", there, err, reply)
		}
		if reply.Code == protocol.Refused && (reply.Conds != protocol.CondNextMessage || reply.Msg != (protocol.Message{})) {
			t.Errorf("the next message is in the way, and the checker's answer is %+v", reply)
		}
		if stored(store, 1) != after.Msg || stored(store, 2) != after.Next || there && after != rows {
			t.Errorf("with a next message: %v: %+v and %+v are left, and the checker's are %+v", there, stored(store, 1), stored(store, 2), after)
		}
	}
}
