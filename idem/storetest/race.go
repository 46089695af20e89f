package storetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// raceTests: of everybody who wants the same, one wins, and all others learn who did. What changes a part of a row takes nothing else of
// it back.
var raceTests = []test{
	{"50 reserves of one key: one wins", func(e *env) {
		first := e.reserved()
		records := e.rivals(first, 50)
		won := e.race(len(records), func(i int) error { return e.Store.Insert(e.ctx, records[i], base) })
		e.wantRecord(first.Key, &records[won])
	}},
	{"50 reserves of one expired key: one wins", func(e *env) {
		old := completed(e.reserved(), "{}")
		e.insert(old)
		records := e.rivals(e.again(old), 50)
		won := e.race(len(records), func(i int) error { return e.Store.Insert(e.ctx, records[i], old.ExpiresAt) })
		e.wantRecord(old.Key, &records[won])
	}},
	{"20 optimistic commits of one key: one wins, and one set of rows and messages", func(e *env) {
		first := e.reserved()
		records := e.rivals(first, 20)
		row := e.rowKey()
		won := e.race(len(records), func(i int) error {
			records[i] = pending(records[i])
			return e.send(storage.Commit{
				Record: records[i], Now: base, Token: e.token(),
				Messages: []storage.Message{message(records[i], 1)}, Writes: []storage.Write{e.AddRow(row)},
			})
		})
		e.wantRecord(first.Key, &records[won])
		e.wantRow(row, 1)
		for i, r := range records {
			want := message(r, 1)
			if i == won {
				e.wantMessage(want.ID, &want)
			} else {
				e.wantMessage(want.ID, nil)
			}
		}
	}},
	{"20 take-overs of one dead lease: one wins", func(e *env) {
		dead := e.insert(e.reserved())
		records := make([]storage.Record, 20)
		won := e.race(len(records), func(i int) error {
			records[i] = dead
			records[i].Revision = e.revision()
			records[i].Owner, records[i].Epoch, records[i].LeaseUntil = e.owner(), 2, base.Add(2*lease)
			return e.Store.Update(e.ctx, records[i], storage.FenceOf(dead))
		})
		e.wantRecord(dead.Key, &records[won])
	}},
	{"20 claims of one message: one wins", func(e *env) {
		_, m := e.deferred()
		claims := make([]storage.Message, 20)
		won := e.race(len(claims), func(i int) error {
			claims[i] = e.claimed(m)
			return e.Store.UpdateMessage(e.ctx, claims[i], storage.FenceOfMessage(m))
		})
		e.wantMessage(m.ID, &claims[won])
	}},
	{"20 settlements of one message, from anywhere: one wins, and one set of rows", func(e *env) {
		r, m := e.deferred()
		row, done := e.rowKey(), completed(r, "{}")
		e.race(20, func(int) error {
			return e.settle(storage.Settlement{
				Message: delivered(m), Record: recordEnd(done), Token: e.token(), Writes: []storage.Write{e.AddRow(row)},
			})
		})
		e.wantMessage(m.ID, ended(m, delivered(m)))
		e.wantRecord(r.Key, &done)
		e.wantRow(row, 1)
	}},
	{"a late commit and its fence-off: one wins", func(e *env) {
		for range 10 {
			r := e.insert(e.reserved())
			fence, done, off, row := storage.FenceOf(r), completed(r, "{}"), r, e.rowKey()
			off.Revision, off.State, off.Epoch = e.revision(), storage.StateFailedRetryable, 2
			won := e.race(2, func(i int) error {
				if i == 0 {
					return e.send(storage.Commit{Record: done, Fence: &fence, Now: base, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}})
				}
				return e.Store.Update(e.ctx, off, fence)
			})
			e.wantRecord(r.Key, &[]storage.Record{done, off}[won])
			e.wantRow(row, 1-won)
		}
	}},
	{"a reserve of an expired key and late writes of the record before it: one wins", func(e *env) {
		for range 10 {
			old := completed(e.reserved(), "{}")
			e.insert(old)
			next := e.again(old)
			late := make([]storage.Record, 3)
			won := e.race(1+len(late), func(i int) error {
				if i == 0 {
					return e.Store.Insert(e.ctx, next, old.ExpiresAt)
				}
				late[i-1] = old
				late[i-1].Revision, late[i-1].FreeAt = e.revision(), old.FreeAt.Add(retention)
				return e.Store.Update(e.ctx, late[i-1], storage.FenceOf(old))
			})
			if won == 0 {
				e.wantRecord(old.Key, &next)
			} else {
				e.wantRecord(old.Key, &late[won-1])
			}
		}
	}},
	{"an answer and renewals of its lease: the answer is stored, whole", func(e *env) {
		for round := range raceRounds {
			r := e.insert(e.wrapped())
			renewals, done := e.renewals(r, 8), completed(r, "own")
			e.beside(
				round,
				func() error { return e.Store.Update(e.ctx, done, holder(r)) },
				len(renewals), func(i int) error { return e.Store.Renew(e.ctx, renewals[i], renewal(renewals[i])) },
			)
			e.wantRecord(r.Key, &done)
		}
	}},
	{"8 renewals of one lease: the longest stays, and nothing else changes", func(e *env) {
		for round := range raceRounds {
			r := e.insert(e.wrapped())
			renewals := e.renewals(r, 8)
			want := r
			want.LookAt, want.LeaseUntil, want.Revision = r.LeaseUntil, renewals[7].LeaseUntil, renewals[7].Revision
			e.beside(
				round,
				func() error { return e.Store.Renew(e.ctx, renewals[7], renewal(renewals[7])) },
				7, func(i int) error { return e.Store.Renew(e.ctx, renewals[i], renewal(renewals[i])) },
			)
			e.wantRecord(r.Key, &want)
		}
	}},
	{"an answer and the postponement of its record: the answer is stored, whole", func(e *env) {
		for round := range raceRounds {
			r := e.insert(e.wrapped())
			later, done := r, completed(r, "own")
			later.LookAt = r.LeaseUntil.Add(time.Hour)
			e.beside(
				round,
				func() error { return e.Store.Update(e.ctx, done, holder(r)) },
				1, func(int) error { return e.Store.Postpone(e.ctx, later, storage.FenceOf(r)) },
			)
			e.wantRecord(r.Key, &done)
		}
	}},
	{"evidence and a claim: the evidence is kept, and so is a claim that came before it", func(e *env) {
		for round := range raceRounds {
			_, m := e.deferred()
			claimed, kept := e.claimed(m), delivered(m)
			kept.State, kept.DoneAt, kept.SweepAt = storage.MessageEvidenced, time.Time{}, base.Add(time.Hour)
			kept.KeptDelivered = &storage.Kept{Reference: "ch_1", Evidence: []byte("yes")}
			others := e.beside(
				round,
				func() error { return e.Store.PatchMessage(e.ctx, kept, open) },
				1, func(int) error { return e.Store.UpdateMessage(e.ctx, claimed, storage.FenceOfMessage(m)) },
			)
			if others[0] == nil {
				m = claimed
			}
			e.wantMessage(m.ID, ended(m, kept))
		}
	}},
	{"a claim and the postponement of its message: the claim is stored, whole", func(e *env) {
		for round := range raceRounds {
			_, m := e.deferred()
			claimed := e.claimed(m)
			e.beside(
				round,
				func() error { return e.Store.UpdateMessage(e.ctx, claimed, storage.FenceOfMessage(m)) },
				1, func(int) error {
					return e.Store.PostponeMessage(e.ctx, m.ID, base.Add(time.Hour), storage.FenceOfMessage(m))
				},
			)
			e.wantMessage(m.ID, &claimed)
		}
	}},
	{"20 commits that write the same two rows, half of them in the other order: all happen", func(e *env) {
		one, other := e.rowKey(), e.rowKey()
		for i, err := range e.together(20, func(i int) error {
			writes := []storage.Write{e.AddRow(one), e.AddRow(other)}
			if i%2 == 1 {
				slices.Reverse(writes)
			}
			return e.send(storage.Commit{Record: completed(e.reserved(), "{}"), Now: base, Token: e.token(), Writes: writes})
		}) {
			if err != nil {
				e.Errorf("commit %d: %v", i, err)
			}
		}
		e.wantRow(one, 20)
		e.wantRow(other, 20)
	}},
	{"one commit sent 10 times at once happens once, and every sender is told of the success", func(e *env) {
		r, row := completed(e.reserved(), "{}"), e.rowKey()
		send, err := e.Store.Prepare(storage.Commit{Record: r, Now: base, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}})
		e.ok(err)
		for i, err := range e.together(10, func(int) error { return send(e.ctx) }) {
			if err != nil {
				e.Errorf("sender %d: %v", i, err)
			}
		}
		e.wantRecord(r.Key, &r)
		e.wantRow(row, 1)
	}},
}

// raceRounds is how often a race is run that may go well by luck.
const raceRounds = 12

// holder is the fence of the execution's own answer: its lease may be renewed, and its record parked, meanwhile.
func holder(r storage.Record) storage.Fence {
	return storage.FenceOfHolder(r, storage.StateInProgress, storage.StateUnknown)
}

// renewals are n of the record's lease, each for longer than the one before.
func (e *env) renewals(r storage.Record, n int) []storage.Record {
	e.Helper()
	all := make([]storage.Record, n)
	for i := range all {
		all[i] = r
		all[i].LeaseUntil, all[i].Revision = r.LeaseUntil.Add(time.Duration(i+1)*time.Second), e.revision()
	}
	return all
}

// beside makes a write whose fence holds whatever the n others do, and must succeed, while they are made. Each of them may be told of a
// conflict. It returns what they were told. In each round it has another place among them, because who is started last often comes first.
func (e *env) beside(round int, must func() error, n int, other func(i int) error) []error {
	e.Helper()
	at := round % (1 + n)
	errs := e.together(1+n, func(i int) error {
		switch {
		case i == at:
			return must()
		case i > at:
			i--
		}
		return other(i)
	})
	e.ok(errs[at])
	others := slices.Delete(errs, at, at+1)
	for i, err := range others {
		if err != nil && !showsWinner(err) {
			e.Errorf("%d was told %v, want a conflict with what is stored", i, err)
		}
	}
	return others
}

// showsWinner says whether an error is a conflict that has what is stored instead.
func showsWinner(err error) bool {
	var record *storage.RecordConflictError
	var message *storage.MessageConflictError
	return errors.As(err, &record) && record.Existing != nil || errors.As(err, &message) && message.Existing != nil
}

// rivals are n executions that reserve the scope of the first at once.
func (e *env) rivals(first storage.Record, n int) []storage.Record {
	e.Helper()
	records := []storage.Record{first}
	for len(records) < n {
		records = append(records, e.again(first))
	}
	return records
}

// race demands that one of n calls wins and that all others are told of a conflict. It returns who won.
func (e *env) race(n int, call func(i int) error) int {
	e.Helper()
	won := -1
	for i, err := range e.together(n, call) {
		switch {
		case err == nil && won < 0:
			won = i
		case err == nil:
			e.Fatalf("both %d and %d won", won, i)
		case showsWinner(err):
		default:
			e.Errorf("%d was told %v, want a conflict with what won", i, err)
		}
	}
	if won < 0 {
		e.Fatal("nobody won")
	}
	return won
}

// together makes n calls at once, each until no running transaction is in its way.
func (e *env) together(n int, call func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			<-start
			errs[i] = e.untilUncontended(func() error { return call(i) })
		})
	}
	close(start)
	calls.Wait()
	return errs
}
