package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/storage"
)

// RunAlike gives two stores the same generated commands, and demands after each one the same outcome and the same rows. So what a test or a
// simulation shows on the one, such as memstore, holds for the other. Commands come one after the other: what overlaps is [Run]'s. A story
// is a sequence of commands on two keys; its seed says which.
func RunAlike(t *testing.T, one, other Harness, stories, commands int) {
	t.Helper()
	for seed := range stories {
		pair := alike{T: t, ctx: t.Context(), sides: [2]Harness{one, other}, chance: rand.New(rand.NewPCG(uint64(seed), 1)), seed: seed}
		pair.begin()
		for n := range commands {
			if !pair.command(n) {
				return
			}
		}
	}
}

// alike is one story on two stores.
type alike struct {
	*testing.T
	ctx    context.Context
	sides  [2]Harness
	chance *rand.Rand
	seed   int
	keys   []storage.RecordKey
	// operations are the incarnations that the keys may have, by key.
	operations map[storage.RecordKey][]storage.OperationID
	owners     []storage.Owner
	rows       []string
	minted     int
	// sent are transactions that may be sent again, one of each side.
	sent [][2]func(context.Context) error
	told []string
}

func (a *alike) begin() {
	e := &env{T: a.T, ctx: a.ctx}
	a.operations = map[storage.RecordKey][]storage.OperationID{}
	for range 2 {
		key := e.key()
		a.keys = append(a.keys, key)
		a.operations[key] = []storage.OperationID{e.operationID(key), e.operationID(key)}
		a.owners = append(a.owners, e.owner())
		a.rows = append(a.rows, e.rowKey())
	}
}

func pick[T any](a *alike, all []T) T { return all[a.chance.IntN(len(all))] }

func (a *alike) maybe() bool { return a.chance.IntN(2) == 0 }

// revision is a new one: no two writes of a story have the same.
func (a *alike) revision() storage.Revision {
	a.minted++
	return named("alike", string(a.keys[0]), fmt.Sprint(a.minted))
}

func (a *alike) token() string { return string(a.revision()) }

// at is one of few instants, so that some are equal.
func (a *alike) at() time.Time { return base.Add(time.Duration(a.chance.IntN(4)) * lease) }

// command gives both stores one command, and says whether they are alike still.
func (a *alike) command(n int) bool {
	a.Helper()
	name, do := a.draw()
	var outcomes [2]string
	for i, side := range a.sides {
		outcomes[i] = do(i, side.Store)
	}
	a.told = append(a.told, name+" → "+outcomes[0])
	if outcomes[0] != outcomes[1] {
		a.Errorf("seed %d, command %d: %s\n%s\n%s\nafter\n%s", a.seed, n, name, outcomes[0], outcomes[1], strings.Join(a.told, "\n"))
		return false
	}
	if one, other := a.state(0), a.state(1); one != other {
		a.Errorf("seed %d, command %d: %s leaves\n%s\n%s\nafter\n%s", a.seed, n, name, one, other, strings.Join(a.told, "\n"))
		return false
	}
	return true
}

// draw is a command and what it says of itself.
func (a *alike) draw() (name string, do func(side int, s Store) string) {
	key := pick(a, a.keys)
	switch a.chance.IntN(12) {
	case 0:
		r, at := a.record(key), a.at().Add(retention*time.Duration(a.chance.IntN(2)))
		return "insert " + string(r.State), func(_ int, s Store) string { return outcome(s.Insert(a.ctx, r, at)) }
	case 1, 2:
		r, fence := a.record(key), a.fence(key)
		return fmt.Sprintf("update to %s if %+v", r.State, fence), func(_ int, s Store) string { return outcome(s.Update(a.ctx, r, fence)) }
	case 3:
		r, fence := a.record(key), a.fence(key)
		r.LeaseUntil = a.at().Add(lease)
		return "renew", func(_ int, s Store) string { return outcome(s.Renew(a.ctx, r, fence)) }
	case 4:
		r, fence := a.record(key), a.fence(key)
		r.LookAt = a.at().Add(time.Minute)
		return "postpone", func(_ int, s Store) string { return outcome(s.Postpone(a.ctx, r, fence)) }
	case 5, 6:
		return a.commit(key)
	case 7, 8:
		return a.settle(key)
	case 9:
		m, fence := a.message(key), a.messageFence(key)
		return fmt.Sprintf("message to %s if %+v", m.State, fence), func(_ int, s Store) string { return outcome(s.UpdateMessage(a.ctx, m, fence)) }
	case 10:
		id, at, fence := a.message(key).ID, a.at(), a.messageFence(key)
		return "postpone message", func(_ int, s Store) string { return outcome(s.PostponeMessage(a.ctx, id, at, fence)) }
	}
	if len(a.sent) > 0 {
		again := pick(a, a.sent)
		return "send a transaction again", func(i int, _ Store) string { return outcome(again[i](a.ctx)) }
	}
	end, fence := a.end(key), a.messageFence(key)
	return "patch message to " + string(end.State), func(_ int, s Store) string { return outcome(s.PatchMessage(a.ctx, end, fence)) }
}

func (a *alike) commit(key storage.RecordKey) (string, func(int, Store) string) {
	c := storage.Commit{Record: a.record(key), Now: a.at(), Token: a.token()}
	if a.maybe() {
		fence := a.fence(key)
		c.Fence = &fence
	}
	rows := a.drawRows()
	if a.maybe() {
		m := message(c.Record, 1)
		m.Revision = a.revision()
		c.Messages = []storage.Message{m}
	}
	return a.transaction(fmt.Sprintf("commit %s and %d writes if %+v", c.Record.State, len(rows), c.Fence), func(side int, s Store) (func(context.Context) error, error) {
		mine := c
		mine.Writes = a.writes(side, rows)
		return s.Prepare(mine)
	})
}

func (a *alike) settle(key storage.RecordKey) (string, func(int, Store) string) {
	s := storage.Settlement{Message: a.end(key), Fence: a.messageFence(key), Token: a.token()}
	operation, _, err := s.Message.ID.Operation()
	if err != nil {
		a.Fatal(err)
	}
	switch a.chance.IntN(4) {
	case 0:
		s.Record = &storage.RecordEnd{
			Key: key, OperationID: operation, State: pick(a, []storage.State{storage.StateCompleted, storage.StateFailed}), Revision: a.revision(),
			Response: response(201, []byte(`{"n":1}`)), DoneAt: base.Add(time.Second), ExpiresAt: base.Add(retention), FreeAt: base.Add(retention),
		}
	case 1:
		s.Check = &storage.RecordCheck{Key: key, OperationID: operation, Ended: a.maybe()}
	}
	if a.maybe() {
		next := a.message(key)
		next.ID, next.Index, next.State = operation.Message(2), 2, storage.MessagePending
		s.Next = &next
	}
	rows := a.drawRows()
	return a.transaction(fmt.Sprintf("settle %s with record %t, next %t if %+v", s.Message.State, s.Record != nil, s.Next != nil, s.Fence), func(side int, store Store) (func(context.Context) error, error) {
		mine := s
		mine.Writes = a.writes(side, rows)
		return store.PrepareSettle(mine)
	})
}

// transaction is prepared and sent by both, and may be sent again later.
func (a *alike) transaction(name string, prepare func(side int, s Store) (func(context.Context) error, error)) (string, func(int, Store) string) {
	var sends [2]func(context.Context) error
	return name, func(side int, s Store) string {
		send, err := prepare(side, s)
		if err != nil {
			return "not prepared: " + outcome(err)
		}
		if sends[side] = send; side == 1 {
			a.sent = append(a.sent, sends)
		}
		return outcome(send(a.ctx))
	}
}

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
		r.FreeAt, r.Response = r.ExpiresAt, response(201, []byte(fmt.Sprintf(`{"n":%d}`, a.chance.IntN(3))))
	}
	return r
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
		storage.MessagePending, storage.MessageClaimed, storage.MessageUnknown, storage.MessageDelivered, storage.MessageDead, storage.MessageCancelled,
	})
	if m.State == storage.MessageClaimed {
		m.Owner, m.Epoch, m.LeaseUntil, m.Attempts, m.SweepAt = r.Owner, r.Epoch, a.at().Add(lease), 1, a.at().Add(lease)
	}
	if m.State.Final() {
		m.SweepAt, m.NextAttemptAt, m.DoneAt = time.Time{}, time.Time{}, base.Add(time.Second)
	}
	return m
}

func (a *alike) messageFence(key storage.RecordKey) storage.MessageFence {
	like := a.message(key)
	for _, operation := range a.operations[key] {
		if m, err := a.sides[0].Store.Message(a.ctx, operation.Message(1)); err == nil && m != nil && a.maybe() {
			like = *m
		}
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
func (a *alike) end(key storage.RecordKey) storage.MessageEnd {
	m := a.message(key)
	end := storage.MessageEnd{
		ID: m.ID, Tenant: m.Tenant, Topic: m.Topic, State: m.State, Revision: m.Revision, SweepAt: m.SweepAt, LastOutcome: "an answer", Reference: "ch_1",
	}
	if m.State.Final() {
		end.DoneAt = base.Add(time.Second)
	}
	return end
}

// outcome is what a caller can tell of an error: its kind, and what it shows of the rows.
func outcome(err error) string {
	var (
		record  *storage.RecordConflictError
		message *storage.MessageConflictError
		write   *storage.WriteFailedError
	)
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &record):
		return "record conflict with " + shown(record.Existing) + " and " + shownMessage(record.Message)
	case errors.As(err, &message):
		return "message conflict with " + shownMessage(message.Existing)
	case errors.As(err, &write):
		return fmt.Sprintf("writes %v failed, unjudged %v %t", write.Indexes, write.Unjudged, write.OwnUnjudged)
	}
	return "refused"
}

// shown is a record without what is a store's own: how many chunks hold its body, and the place of what is in no queue.
func shown(r *storage.Record) string {
	if r == nil {
		return "none"
	}
	same := *r
	same.Chunks = 0
	if _, at, queued := same.Queue(); queued {
		same.LookAt = at
	} else { // it is a place in no queue
		same.LookAt = time.Time{}
	}
	same.Response = normal(same.Response)
	return fmt.Sprintf("%+v", same)
}

func shownMessage(m *storage.Message) string {
	if m == nil {
		return "none"
	}
	same := *m
	same.Payload, same.KeptDelivered, same.KeptDeclined = orNil(same.Payload), nil, nil
	return fmt.Sprintf("%+v", same)
}

// state is everything that a story may have written.
func (a *alike) state(side int) string {
	a.Helper()
	var all []string
	store := a.sides[side].Store
	for _, key := range a.keys {
		r, err := store.Get(a.ctx, key)
		if err == nil && r != nil {
			var loaded storage.Record
			loaded, err = store.LoadResponse(a.ctx, *r)
			r = &loaded
		}
		all = append(all, fmt.Sprintf("%s %v", shown(r), err))
		for _, operation := range a.operations[key] {
			for n := 1; n <= 2; n++ {
				m, err := store.Message(a.ctx, operation.Message(n))
				all = append(all, fmt.Sprintf("%s %v", shownMessage(m), err))
			}
		}
	}
	for _, key := range a.rows {
		count, err := a.sides[side].CountRow(a.ctx, key)
		all = append(all, fmt.Sprintf("%d %v", count, err))
	}
	return strings.Join(all, "\n")
}
