package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// tokenTests: a lost reply is resolved by sending the identical request again under the same token (design.md "What a
// lost reply means").
var tokenTests = []test{
	{"a commit sent twice happens once, and the second sending is told of the success", func(e *env) {
		r, row := completed(e.reserved(), "{}"), e.rowKey()
		send, err := e.Store.Prepare(storage.Commit{Record: r, Now: base, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}})
		e.ok(err)
		e.ok(send(e.ctx))
		e.ok(send(e.ctx))
		e.wantRow(row, 1)
		e.wantRecord(r.Key, &r)
	}},
	{"a commit sent again after the record moved on succeeds and undoes nothing", func(e *env) {
		r := e.insert(e.reserved())
		row, fence := e.rowKey(), storage.FenceOf(r)
		done := completed(r, "{}")
		send, err := e.Store.Prepare(storage.Commit{Record: done, Fence: &fence, Now: base, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}})
		e.ok(err)
		e.ok(send(e.ctx))
		next := e.again(r)
		e.ok(e.Store.Insert(e.ctx, next, done.ExpiresAt))
		e.ok(send(e.ctx))
		e.wantRecord(r.Key, &next)
		e.wantRow(row, 1)
	}},
	{"a commit that landed meets itself under a new token, and is recognised by its owner", func(e *env) {
		r := e.insert(e.reserved())
		row, fence, done := e.rowKey(), storage.FenceOf(r), completed(r, "{}")
		commit := storage.Commit{Record: done, Fence: &fence, Now: base, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}}
		e.ok(e.send(commit))
		commit.Token = e.token()
		e.wantRecordConflict(e.send(commit), &done)
		e.wantRow(row, 1)
	}},
	{"an inserting commit that landed meets itself under a new token", func(e *env) {
		r, row := pending(e.reserved()), e.rowKey()
		m := message(r, 1)
		commit := storage.Commit{
			Record: r, Now: base, Token: e.token(), Messages: []storage.Message{m},
			Writes: []storage.Write{e.InsertRow(row, rejects)},
		}
		e.ok(e.send(commit))
		commit.Token = e.token()
		err := e.send(commit)
		e.wantRecordConflict(err, &r)
		e.wantMessageBeside(err, &m)
		e.wantRow(row, 1)
	}},
	{"a fence-off decides: a lost commit that comes later fails", func(e *env) {
		r := e.insert(e.reserved())
		row, fence := e.rowKey(), storage.FenceOf(r)
		late, err := e.Store.Prepare(storage.Commit{Record: completed(r, "late"), Fence: &fence, Now: base, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}})
		e.ok(err)
		off := rewritten(r)
		off.State, off.Epoch, off.LeaseUntil = storage.StateFailedRetryable, 2, base
		e.ok(e.Store.Update(e.ctx, off, fence))
		e.wantRecordConflict(late(e.ctx), &off)
		e.wantRow(row, 0)
		e.wantRecord(r.Key, &off)
	}},
	{"a lost commit that landed first stops the fence-off", func(e *env) {
		r := e.insert(e.reserved())
		fence, done, off := storage.FenceOf(r), completed(r, "landed"), rewritten(r)
		e.ok(e.send(storage.Commit{Record: done, Fence: &fence, Now: base, Token: e.token()}))
		off.State, off.Epoch = storage.StateFailedRetryable, 2
		e.wantRecordConflict(e.Store.Update(e.ctx, off, fence), &done)
		e.wantRecord(r.Key, &done)
	}},
	{"another execution of the same scope and epoch is judged by its own condition", func(e *env) {
		winner := completed(e.reserved(), "winner")
		loser := completed(e.again(winner), "loser")
		row := e.rowKey()
		e.ok(e.send(storage.Commit{Record: winner, Now: base, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}}))
		e.wantRecordConflict(e.send(storage.Commit{Record: loser, Now: base, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}}), &winner)
		e.wantRow(row, 1)
	}},
	{"a token that comes back with another content is an error, never a success", func(e *env) {
		first, second := completed(e.reserved(), "first"), completed(e.reserved(), "second")
		row, token := e.rowKey(), e.token()
		e.ok(e.send(storage.Commit{Record: first, Now: base, Token: token}))
		err := e.send(storage.Commit{Record: second, Now: base, Token: token, Writes: []storage.Write{e.AddRow(row)}})
		var unknown *storage.OutcomeUnknownError
		if err == nil || errors.As(err, &unknown) || errors.Is(err, storage.ErrContention) {
			e.Errorf("got error %v, want one that is final", err)
		}
		e.wantNothing(second.Key, nil, message(second, 1).ID, row)
	}},
	{"a failed transaction is not remembered: sent again it is judged again", func(e *env) {
		r, row := e.reserved(), e.rowKey()
		fence, done := storage.FenceOf(r), completed(r, "{}")
		send, err := e.Store.Prepare(storage.Commit{Record: done, Fence: &fence, Now: base, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}})
		e.ok(err)
		e.wantRecordConflict(send(e.ctx), nil)
		e.insert(r)
		e.ok(send(e.ctx))
		e.wantRecord(r.Key, &done)
		e.wantRow(row, 1)
	}},
	{"a token that is too long is refused and nothing happens", func(e *env) {
		r := completed(e.reserved(), "{}")
		if err := e.send(storage.Commit{Record: r, Now: base, Token: strings.Repeat("t", tokenBytesMax+1)}); err == nil {
			e.Error("a token of 37 characters was taken")
		}
		e.wantRecord(r.Key, nil)
	}},
	{"a settlement sent twice happens once, also when the chain has gone on", func(e *env) {
		r, m := e.deferred()
		next, row := message(r, 2), e.rowKey()
		send, err := e.Store.PrepareSettle(storage.Settlement{
			Message: delivered(m), Fence: open, Next: &next, Token: e.token(), Writes: []storage.Write{e.AddRow(row)},
		})
		e.ok(err)
		e.ok(send(e.ctx))
		claimed := e.claimed(next)
		e.ok(e.Store.UpdateMessage(e.ctx, claimed, storage.FenceOfMessage(next)))
		e.ok(send(e.ctx))
		e.wantMessage(next.ID, &claimed)
		e.wantRow(row, 1)
		e.wantRecord(r.Key, &r)
	}},
	{"a settlement that landed meets itself under a new token", func(e *env) {
		r, m := e.deferred()
		row, done := e.rowKey(), completed(r, "{}")
		settlement := storage.Settlement{
			Message: delivered(m), Record: recordEnd(done), Token: e.token(), Writes: []storage.Write{e.AddRow(row)},
		}
		e.ok(e.settle(settlement))
		settlement.Token = e.token()
		e.wantMessageConflict(e.settle(settlement), ended(m, settlement.Message))
		e.wantRow(row, 1)
		e.wantRecord(r.Key, &done)
	}},
	{"sending under a cancelled context leaves all or nothing, and the same token resolves it", func(e *env) {
		r, row := completed(e.reserved(), "{}"), e.rowKey()
		send, err := e.Store.Prepare(storage.Commit{Record: r, Now: base.Add(time.Second), Token: e.token(), Writes: []storage.Write{e.AddRow(row)}})
		e.ok(err)
		ctx, cancel := canceled(e.ctx)
		defer cancel()
		if err := send(ctx); err == nil {
			e.Error("a commit under a cancelled context succeeded")
		}
		e.ok(send(e.ctx))
		e.wantRecord(r.Key, &r)
		e.wantRow(row, 1)
	}},
}
