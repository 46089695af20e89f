package storetest

import (
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

var (
	rejects = idem.Reject(idem.NewProblem(409, "row_exists", "Conflict", "The row exists."))
	retries = idem.Retry()
)

// commitTests: record, business writes and messages become visible together, once, or not at all (design.md "One request,
// step by step").
var commitTests = []test{
	{"an inserting commit writes record, rows and messages", func(e *env) {
		r := pending(e.reserved())
		first, second := message(r, 1), message(r, 2)
		row, counter := e.rowKey(), e.rowKey()
		e.ok(e.send(storage.Commit{
			Record: r, Now: base, Token: e.token(), Messages: []storage.Message{first, second},
			Writes: []storage.Write{e.InsertRow(row, rejects), e.AddRow(counter)},
		}))
		e.wantRecord(r.Key, &r)
		e.wantMessage(first.ID, &first)
		e.wantMessage(second.ID, &second)
		e.wantRow(row, 1)
		e.wantRow(counter, 1)
	}},
	{"a fenced commit writes record, rows and messages", func(e *env) {
		r := e.insert(e.reserved())
		fence, next, m, row := storage.FenceOf(r), completed(r, `{"n":1}`), message(r, 1), e.rowKey()
		e.ok(e.send(storage.Commit{
			Record: next, Fence: &fence, Now: base, Token: e.token(), Messages: []storage.Message{m},
			Writes: []storage.Write{e.InsertRow(row, rejects)},
		}))
		e.wantRecord(r.Key, &next)
		e.wantMessage(m.ID, &m)
		e.wantRow(row, 1)
	}},
	{"every field of a record and of a message round-trips", func(e *env) {
		r := e.full()
		m := e.fullMessage(r)
		e.ok(e.send(storage.Commit{Record: r, Now: base, Token: e.token(), Messages: []storage.Message{m}}))
		e.wantRecord(r.Key, &r)
		e.wantMessage(m.ID, &m)
	}},
	{"an inserting commit loses against a live record and replaces an expired one", func(e *env) {
		r := completed(e.reserved(), "first")
		e.insert(r)
		rival := completed(e.again(r), "second")
		row := e.rowKey()
		commit := storage.Commit{Record: rival, Now: r.ExpiresAt.Add(-time.Millisecond), Token: e.token(), Writes: []storage.Write{e.AddRow(row)}}
		e.wantRecordConflict(e.send(commit), &r)
		e.wantRow(row, 0)
		commit.Now, commit.Token = r.ExpiresAt, e.token()
		e.ok(e.send(commit))
		e.wantRecord(r.Key, &rival)
		e.wantRow(row, 1)
	}},
	{"any one part of the fence that is wrong is a conflict and nothing happens", func(e *env) {
		for name, wrong := range ordered(e.wrongFences(e.key())) {
			e.sub(name, func(e *env) {
				r := e.insert(e.reserved())
				fence, m, row := wrong(storage.FenceOfHolder(r)), message(r, 1), e.rowKey()
				err := e.send(storage.Commit{
					Record: completed(r, "zombie"), Fence: &fence, Now: base, Token: e.token(),
					Messages: []storage.Message{m}, Writes: []storage.Write{e.AddRow(row)},
				})
				e.wantRecordConflict(err, &r)
				e.wantNothing(r.Key, &r, m.ID, row)
			})
		}
	}},
	{"a late commit on a record that TTL removed is a conflict with nothing (design.md \"Tables\")", func(e *env) {
		r := e.reserved()
		fence, row := storage.FenceOf(r), e.rowKey()
		err := e.send(storage.Commit{Record: completed(r, "{}"), Fence: &fence, Now: base, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}})
		e.wantRecordConflict(err, nil)
		e.wantNothing(r.Key, nil, message(r, 1).ID, row)
	}},
	{"failed writes are named by their positions, whatever they declare, and nothing happens", func(e *env) {
		for name, failure := range ordered(map[string]storage.Failure{"reject": rejects, "retry": retries}) {
			e.sub(name, func(e *env) {
				r := e.insert(e.reserved())
				fence, m, row, taken, other := storage.FenceOf(r), message(r, 1), e.rowKey(), e.takenRow(), e.takenRow()
				err := e.send(storage.Commit{
					Record: completed(r, "{}"), Fence: &fence, Now: base, Token: e.token(), Messages: []storage.Message{m},
					Writes: []storage.Write{e.AddRow(row), e.InsertRow(taken, failure), e.InsertRow(e.rowKey(), rejects), e.InsertRow(other, rejects)},
				})
				e.wantWriteFailed(err, 1, 3)
				e.wantNothing(r.Key, &r, m.ID, row)
				e.wantRow(taken, 1)
			})
		}
	}},
	{"a failed write of an inserting commit leaves no record", func(e *env) {
		r, row := pending(e.reserved()), e.rowKey()
		m := message(r, 1)
		err := e.send(storage.Commit{
			Record: r, Now: base, Token: e.token(), Messages: []storage.Message{m},
			Writes: []storage.Write{e.InsertRow(e.takenRow(), rejects), e.AddRow(row)},
		})
		e.wantWriteFailed(err, 0)
		e.wantNothing(r.Key, nil, m.ID, row)
	}},
	{"where record and write fail together the record decides", func(e *env) {
		winner := completed(e.reserved(), "winner")
		e.insert(winner)
		loser, row := completed(e.again(winner), "loser"), e.rowKey()
		fence := storage.FenceOf(loser)
		for _, fence := range []*storage.Fence{nil, &fence} {
			err := e.send(storage.Commit{
				Record: loser, Fence: fence, Now: base, Token: e.token(),
				Writes: []storage.Write{e.InsertRow(e.takenRow(), rejects), e.InsertRow(e.takenRow(), retries), e.AddRow(row)},
			})
			e.wantRecordConflict(err, &winner)
			e.wantNothing(winner.Key, &winner, message(loser, 1).ID, row)
		}
	}},
	{"a message that is there already is a conflict and nothing happens", func(e *env) {
		r, m := e.deferred()
		other := completed(e.reserved(), "{}")
		row := e.rowKey()
		err := e.send(storage.Commit{Record: other, Now: base, Token: e.token(), Messages: []storage.Message{m}, Writes: []storage.Write{e.AddRow(row)}})
		e.wantMessageConflict(err, &m)
		e.wantNothing(other.Key, nil, other.OperationID.Message(1), row)
		e.wantRecord(r.Key, &r)
	}},
	{"a record's conflict tells of the first message that was in the way too, and of no other's", func(e *env) {
		r, m := e.deferred()
		second, third := message(r, 2), message(r, 3)
		claimed := e.claimed(m)
		e.ok(e.Store.UpdateMessage(e.ctx, claimed, storage.FenceOfMessage(m)))
		err := e.send(storage.Commit{Record: e.again(r), Now: base, Token: e.token(), Messages: []storage.Message{second, m, third}})
		e.wantRecordConflict(err, &r)
		e.wantMessageBeside(err, &claimed)
		err = e.send(storage.Commit{Record: e.again(r), Now: base, Token: e.token(), Messages: []storage.Message{second}})
		e.wantRecordConflict(err, &r)
		e.wantMessageBeside(err, nil)
		e.wantMessage(second.ID, nil)
	}},
	{"a transaction's largest number of items fits, one more is refused and nothing happens", func(e *env) {
		const itemsMax = 100 // TransactWriteItems
		r, row := completed(e.reserved(), "{}"), e.rowKey()
		writes := []storage.Write{e.AddRow(row)}
		for len(writes) < itemsMax-1 {
			writes = append(writes, e.AddRow(fmt.Sprint(row, "/", len(writes))))
		}
		if err := e.send(storage.Commit{Record: r, Now: base, Token: e.token(), Writes: append(writes, e.AddRow(e.rowKey()))}); err == nil {
			e.Error("a transaction of 101 items succeeded")
		}
		e.wantNothing(r.Key, nil, message(r, 1).ID, row)
		e.ok(e.send(storage.Commit{Record: r, Now: base, Token: e.token(), Writes: writes}))
		e.wantRecord(r.Key, &r)
		e.wantRow(row, 1)
		e.wantRow(fmt.Sprint(row, "/", itemsMax-2), 1)
	}},
	{"one item written twice by a transaction is refused and nothing happens", func(e *env) {
		r, row := completed(e.reserved(), "{}"), e.rowKey()
		if err := e.send(storage.Commit{Record: r, Now: base, Token: e.token(), Writes: []storage.Write{e.AddRow(row), e.AddRow(row)}}); err == nil {
			e.Error("a transaction that writes one row twice succeeded")
		}
		e.wantNothing(r.Key, nil, message(r, 1).ID, row)
	}},
	{"a commit is frozen when it is prepared", func(e *env) {
		r := pending(e.reserved())
		want, m, row, other := r, message(r, 1), e.rowKey(), e.rowKey()
		want.Response = response(202, []byte(string(r.Response.Body)))
		wantMessage := message(r, 1)
		commit := storage.Commit{Record: r, Now: base, Token: e.token(), Messages: []storage.Message{m}, Writes: []storage.Write{e.AddRow(row)}}
		send, err := e.Store.Prepare(commit)
		e.ok(err)
		scribble(commit.Record.Response)
		copy(m.Payload, "!!!")
		commit.Messages[0].Topic = "scribbled"
		commit.Writes[0] = e.AddRow(other)
		e.ok(send(e.ctx))
		e.wantRecord(r.Key, &want)
		e.wantMessage(m.ID, &wantMessage)
		e.wantRow(row, 1)
		e.wantRow(other, 0)
	}},
}

// takenRow is a row that is there.
func (e *env) takenRow() string {
	e.Helper()
	row := e.rowKey()
	e.ok(e.send(storage.Commit{Record: completed(e.reserved(), "{}"), Now: base, Token: e.token(), Writes: []storage.Write{e.AddRow(row)}}))
	return row
}

// wantNothing demands that a transaction left no trace: the record as it was, no message, no row.
func (e *env) wantNothing(key storage.RecordKey, record *storage.Record, message storage.MessageID, row string) {
	e.Helper()
	e.wantRecord(key, record)
	e.wantMessage(message, nil)
	e.wantRow(row, 0)
}
