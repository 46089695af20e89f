package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// deadlineTests: no try is sent after its own deadline, by the monotonic clock or by the wall clock (design.md "What a lost reply
// means").
var deadlineTests = []test{
	{"a write of a machine that was suspended past its deadline is not asked, and does not happen", func(e *env) {
		for name, prepare := range ordered(lateWrites) {
			e.sub(name, func(e *env) {
				send, want := prepare(e)
				var notAsked *storage.NotAskedError
				if err := send(suspended{e.ctx, time.Now().Add(-time.Hour)}); !errors.As(err, &notAsked) {
					e.Errorf("got error %v, want a NotAskedError", err)
				}
				want(false)
				e.ok(send(e.ctx))
				want(true)
			})
		}
	}},
	{"a mark of a machine that was suspended past its deadline is not kept", func(e *env) {
		before := e.mark("")
		var notAsked *storage.NotAskedError
		kept, err := e.Store.ScopeMark(suspended{e.ctx, time.Now().Add(-time.Hour)}, string(e.owner()))
		switch {
		case before == "" && !errors.As(err, &notAsked):
			e.Errorf("got %q, %v, want a NotAskedError", kept, err)
		case before != "" && err == nil && kept != before: // there was nothing to write
			e.Errorf("got %q, want %q", kept, before)
		}
		if now := e.mark(""); now != before {
			e.Errorf("the mark is %q, and was %q", now, before)
		}
	}},
}

// suspended is the context of a call whose machine was suspended until after the deadline. Contexts go by the monotonic clock,
// which stood still meanwhile, so it has not ended.
type suspended struct {
	context.Context
	deadline time.Time
}

// Deadline implements context.Context.
func (s suspended) Deadline() (time.Time, bool) { return s.deadline, true }

// lateWrite prepares a write. want demands that it has happened, or that it has not.
type lateWrite func(e *env) (send func(context.Context) error, want func(happened bool))

var lateWrites = map[string]lateWrite{
	"an insert": func(e *env) (func(context.Context) error, func(bool)) {
		r := e.reserved()
		return func(ctx context.Context) error { return e.Store.Insert(ctx, r, base) }, e.records(r.Key, nil, &r)
	},
	"an update": func(e *env) (func(context.Context) error, func(bool)) {
		r := e.insert(e.reserved())
		done := completed(r, "{}")
		return func(ctx context.Context) error { return e.Store.Update(ctx, done, storage.FenceOf(r)) }, e.records(r.Key, &r, &done)
	},
	"a renewal": func(e *env) (func(context.Context) error, func(bool)) {
		r := e.insert(e.wrapped())
		next := r
		next.LeaseUntil, next.Revision = r.LeaseUntil.Add(lease), e.revision()
		renewed := next
		_, renewed.LookAt, _ = r.Queue() // its place stays
		return func(ctx context.Context) error { return e.Store.Renew(ctx, next, renewal(next)) }, e.records(r.Key, &r, &renewed)
	},
	"a postponement": func(e *env) (func(context.Context) error, func(bool)) {
		r := e.insert(e.wrapped())
		later := r
		later.LookAt = r.LeaseUntil.Add(time.Hour)
		return func(ctx context.Context) error { return e.Store.Postpone(ctx, later, storage.FenceOf(r)) }, e.records(r.Key, &r, &later)
	},
	"a commit": func(e *env) (func(context.Context) error, func(bool)) {
		r, row := completed(e.reserved(), "{}"), e.rowKey()
		send, err := e.Store.Prepare(storage.Commit{Record: r, Now: base, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}})
		e.ok(err)
		return send, e.withRow(row, e.records(r.Key, nil, &r))
	},
	"a settlement": func(e *env) (func(context.Context) error, func(bool)) {
		r, m := e.deferred()
		done, row := completed(r, "{}"), e.rowKey()
		send, err := e.Store.PrepareSettle(storage.Settlement{
			Message: delivered(m), Fence: open, Record: recordEnd(done), Token: e.token(), Writes: []storage.Write{e.AddRow(row)},
		})
		e.ok(err)
		return send, e.withRow(row, e.records(r.Key, &r, &done))
	},
	"a claim": func(e *env) (func(context.Context) error, func(bool)) {
		_, m := e.deferred()
		held := e.claimed(m)
		return func(ctx context.Context) error { return e.Store.UpdateMessage(ctx, held, storage.FenceOfMessage(m)) }, e.messages(m, &held)
	},
	"a patch": func(e *env) (func(context.Context) error, func(bool)) {
		_, m := e.deferred()
		return func(ctx context.Context) error { return e.Store.PatchMessage(ctx, delivered(m), open) }, e.messages(m, ended(m, delivered(m)))
	},
	"a message's postponement": func(e *env) (func(context.Context) error, func(bool)) {
		_, m := e.deferred()
		later := m
		later.SweepAt = base.Add(time.Hour)
		return func(ctx context.Context) error {
			return e.Store.PostponeMessage(ctx, m.ID, later.SweepAt, storage.FenceOfMessage(m))
		}, e.messages(m, &later)
	},
	"a place": func(e *env) (func(context.Context) error, func(bool)) {
		name := "late." + e.token()
		return func(ctx context.Context) error { return e.Store.SetPlace(ctx, name, "MTcgaWQ") }, func(happened bool) {
			e.Helper()
			e.wantPlace(name, map[bool]string{true: "MTcgaWQ"}[happened])
		}
	},
	"a loss": func(e *env) (func(context.Context) error, func(bool)) {
		before, err := e.Store.RefuseBefore(e.ctx)
		e.ok(err)
		at := e.laterLoss()
		send := func(ctx context.Context) error {
			_, err := e.Store.SetRefuseBefore(ctx, at)
			return err
		}
		return send, func(happened bool) {
			e.Helper()
			e.wantLoss(map[bool]time.Time{true: at, false: before}[happened])
		}
	},
}

// records demands the record after the write, or the one before it.
func (e *env) records(key storage.RecordKey, before, after *storage.Record) func(happened bool) {
	return func(happened bool) {
		e.Helper()
		if happened {
			e.wantRecord(key, after)
		} else {
			e.wantRecord(key, before)
		}
	}
}

// messages demands the message after the write, or the one before it.
func (e *env) messages(before storage.Message, after *storage.Message) func(happened bool) {
	return func(happened bool) {
		e.Helper()
		if happened {
			e.wantMessage(before.ID, after)
		} else {
			e.wantMessage(before.ID, &before)
		}
	}
}

// withRow demands of a business row besides that it counts the write.
func (e *env) withRow(row string, want func(happened bool)) func(happened bool) {
	return func(happened bool) {
		e.Helper()
		want(happened)
		if happened {
			e.wantRow(row, 1)
		} else {
			e.wantRow(row, 0)
		}
	}
}
