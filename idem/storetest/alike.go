package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// RunAlike gives two stores the same generated commands, and demands after each one the same outcome and the same rows, and after some
// the same queues. So what a test or a simulation shows on the one, such as memstore, holds for the other. Commands come one after the
// other: what overlaps is [Run]'s. A story is a sequence of commands on two keys; its seed says which, and from is the first story's.
func RunAlike(t *testing.T, one, other Harness, from uint64, stories, commands int) {
	t.Helper()
	for seed := from; seed < from+uint64(stories); seed++ {
		pair := alike{T: t, ctx: t.Context(), sides: [2]Harness{one, other}, chance: rand.New(rand.NewPCG(seed, 1)), seed: seed}
		pair.begin()
		for n := range commands {
			if !pair.command(n) || n%queuesEvery == queuesEvery-1 && !pair.sameQueues(n) {
				return
			}
		}
	}
}

// chain is how many messages an operation has at most.
const chain = 3

// queuesEvery is after how many commands the queues are compared: that reads every shard of each.
const queuesEvery = 10

// alike is one story on two stores.
type alike struct {
	*testing.T
	ctx    context.Context
	sides  [2]Harness
	chance *rand.Rand
	seed   uint64
	keys   []storage.RecordKey
	// operations are the incarnations that the keys may have, by key.
	operations map[storage.RecordKey][]storage.OperationID
	owners     []storage.Owner
	rows       []string
	large      []byte
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
		a.operations[key] = []storage.OperationID{e.operationID(key), e.operationID(key), e.operationID(key)}
		a.owners = append(a.owners, e.owner())
		a.rows = append(a.rows, e.rowKey())
	}
	a.large = make([]byte, largeBytes)
	for i := range a.large {
		a.large[i] = byte(a.chance.Uint32())
	}
}

// largeBytes are more than fit into a DynamoDB item beside everything else, and can't be compressed: such a body is stored in chunks.
const largeBytes = 450 << 10

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
	brief, _, _ := strings.Cut(outcomes[0], " with ")
	a.told = append(a.told, name+" → "+brief)
	return a.same(n, name, outcomes[0], outcomes[1]) && a.same(n, name+" leaves", a.state(0), a.state(1))
}

// same says whether both sides say the same, and fails the test where they don't.
func (a *alike) same(n int, what, one, other string) bool {
	a.Helper()
	if one != other {
		a.Errorf("seed %d, command %d: %s\n%s\n%s\nafter\n%s", a.seed, n, what, unlike(one, other), unlike(other, one), strings.Join(a.told, "\n"))
	}
	return one == other
}

// unlike are the lines of what one side says that the other does not.
func unlike(one, other string) string {
	var lines []string
	for line := range strings.SplitSeq(one, "\n") {
		if !slices.Contains(strings.Split(other, "\n"), line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// draw is a command and what it says of itself.
func (a *alike) draw() (name string, do func(side int, s Store) string) {
	key := pick(a, a.keys)
	switch a.chance.IntN(14) {
	case 0:
		r, at := a.record(key), a.at().Add(retention*time.Duration(a.chance.IntN(2)))
		return "insert " + string(r.State), func(i int, s Store) string { return a.outcome(i, s.Insert(a.ctx, r, at)) }
	case 1, 2:
		r, fence := a.record(key), a.fence(key)
		return fmt.Sprintf("update to %s if %+v", r.State, fence), func(i int, s Store) string { return a.outcome(i, s.Update(a.ctx, r, fence)) }
	case 3:
		r, fence := a.record(key), a.fence(key)
		r.LeaseUntil = a.at().Add(lease)
		return "renew", func(i int, s Store) string { return a.outcome(i, s.Renew(a.ctx, r, fence)) }
	case 4:
		r, fence := a.record(key), a.fence(key)
		r.LookAt = a.at().Add(time.Minute)
		return "postpone", func(i int, s Store) string { return a.outcome(i, s.Postpone(a.ctx, r, fence)) }
	case 5, 6:
		return a.commit(key)
	case 7, 8, 12, 13:
		return a.settle(key)
	case 9:
		target := a.target(key)
		m, fence := a.rewrites(target), a.messageFence(target)
		return fmt.Sprintf("message to %s if %+v", m.State, fence), func(i int, s Store) string { return a.outcome(i, s.UpdateMessage(a.ctx, m, fence)) }
	case 10:
		target, at := a.target(key), a.at()
		id, fence := target.ID, a.messageFence(target)
		return "postpone message", func(i int, s Store) string { return a.outcome(i, s.PostponeMessage(a.ctx, id, at, fence)) }
	}
	if len(a.sent) > 0 {
		again := pick(a, a.sent)
		return "send a transaction again", func(i int, _ Store) string { return a.outcome(i, again[i](a.ctx)) }
	}
	target := a.target(key)
	end, fence := a.end(target), a.messageFence(target)
	return "patch message to " + string(end.State), func(i int, s Store) string { return a.outcome(i, s.PatchMessage(a.ctx, end, fence)) }
}

func (a *alike) commit(key storage.RecordKey) (string, func(int, Store) string) {
	c := storage.Commit{Record: a.record(key), Now: a.at(), Token: a.token()}
	if a.maybe() {
		c.Record = pending(c.Record)
		c.Record.DoneAt, c.Record.ExpiresAt, c.Record.FreeAt = time.Time{}, time.Time{}, time.Time{}
	}
	if a.maybe() {
		fence := a.fence(key)
		c.Fence = &fence
	}
	rows := a.drawRows()
	if a.chance.IntN(4) > 0 {
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
	target := a.target(key)
	s := storage.Settlement{Message: a.end(target), Fence: a.messageFence(target), Token: a.token()}
	operation := target.OperationID
	switch a.chance.IntN(4) {
	case 0:
		s.Record = &storage.RecordEnd{
			Key: key, OperationID: operation, State: pick(a, []storage.State{storage.StateCompleted, storage.StateFailed}), Revision: a.revision(),
			Response: response(201, a.body()), DoneAt: base.Add(time.Second), ExpiresAt: base.Add(retention), FreeAt: base.Add(retention),
		}
	case 1:
		s.Check = &storage.RecordCheck{Key: key, OperationID: operation, Ended: a.maybe()}
	}
	if a.maybe() {
		next := message(storage.Record{Key: key, OperationID: operation, Tenant: s.Message.Tenant}, target.Index+1)
		next.Revision = a.revision()
		s.Next = &next
	} else if s.Message.State.Final() && a.maybe() { // whether it is there or not
		s.Message.RemoveAt, s.Earlier = a.removal(), []storage.MessageID{operation.Message(target.Index%chain + 1)}
	}
	if a.chance.IntN(4) == 0 {
		whole := a.rewrites(target)
		s.Replace = &whole
	}
	rows := a.drawRows()
	return a.transaction(fmt.Sprintf("settle %s with record %t, next %t, replaced %t, earlier %d if %+v",
		s.Message.State, s.Record != nil, s.Next != nil, s.Replace != nil, len(s.Earlier), s.Fence), func(side int, store Store) (func(context.Context) error, error) {
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
			return "not prepared: " + a.outcome(side, err)
		}
		if sends[side] = send; side == 1 {
			a.sent = append(a.sent, sends)
		}
		return a.outcome(side, send(a.ctx))
	}
}
