package storetest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// tooLarge is more than any store may take: a DynamoDB transaction ends at 4 MB. Random, so that it can't be compressed.
const tooLarge = 4<<20 + 1

// responseTests: a replay has the stored status, headers and body bytes (semantics.md "On the wire").
var responseTests = []test{
	{"bodies of any size and kind are stored by each write and read back byte for byte", func(e *env) {
		for name, body := range ordered(bodies()) {
			e.sub(name, func(e *env) {
				for path, write := range ordered(e.writers()) {
					r := e.reserved()
					done := completed(r, "")
					done.Response.Body = body
					e.ok(write(r, done))
					got := e.record(r.Key)
					if got == nil || !bytes.Equal(got.Response.Body, body) {
						e.Errorf("%s: the body was not read back", path)
						continue
					}
					e.sameRecord(got, &done)
				}
			})
		}
	}},
	{"a lost race against a large response can load it", func(e *env) {
		r := completed(e.reserved(), "")
		r.Response.Body = random(1 << 20)
		e.ok(e.send(storage.Commit{Record: r, Now: base, Token: e.token()}))
		e.wantRecordConflict(e.Store.Insert(e.ctx, e.again(r), base), &r)
		e.wantRecordConflict(e.send(storage.Commit{Record: e.again(r), Now: base, Token: e.token()}), &r)
	}},
	{"a response without a status is none", func(e *env) {
		r := e.reserved()
		r.Response = storage.Response{}
		e.insert(r)
		e.wantRecord(r.Key, &r)
	}},
	{"a large response of an earlier incarnation is whole or missing, never mixed", func(e *env) {
		old := completed(e.reserved(), "")
		old.Response.Body = random(1 << 20)
		e.ok(e.send(storage.Commit{Record: old, Now: base, Token: e.token()}))
		seen, err := e.Store.Get(e.ctx, old.Key)
		e.ok(err)
		next := completed(e.again(old), "")
		next.Response.Body = random(1 << 20)
		e.ok(e.send(storage.Commit{Record: next, Now: old.ExpiresAt, Token: e.token()}))
		loaded, err := e.Store.LoadResponse(e.ctx, *seen)
		switch {
		case err == nil:
			e.sameRecord(&loaded, &old)
		case !errors.Is(err, storage.ErrChunksMissing):
			e.Fatal(err)
		}
		e.wantRecord(old.Key, &next)
	}},
	{"a large response of an earlier execution of the same incarnation is whole or missing, never mixed (a cache-bust keeps the operation id)", func(e *env) {
		old := completed(e.reserved(), "")
		old.Response.Body = random(1 << 20)
		e.ok(e.send(storage.Commit{Record: old, Now: base, Token: e.token()}))
		seen, err := e.Store.Get(e.ctx, old.Key)
		e.ok(err)
		freed := rewritten(old)
		freed.State, freed.Epoch, freed.Response = storage.StateFailedRetryable, old.Epoch+1, storage.Response{}
		freed.DoneAt, freed.ExpiresAt = time.Time{}, time.Time{}
		e.ok(e.Store.Update(e.ctx, freed, storage.FenceOf(old)))
		next := rewritten(rewritten(old))
		next.Epoch = freed.Epoch + 1
		next.Response = storage.Response{Status: 202, Header: []storage.Field{{Name: "Location", Value: "/another"}}, Body: random(1 << 20)}
		e.ok(e.Store.Update(e.ctx, next, storage.FenceOf(freed)))
		loaded, err := e.Store.LoadResponse(e.ctx, *seen)
		switch {
		case err == nil:
			e.sameRecord(&loaded, &old)
		case !errors.Is(err, storage.ErrChunksMissing):
			e.Fatal(err)
		}
		e.wantRecord(old.Key, &next)
	}},
	{"a header's value is any bytes, and is read back byte for byte", func(e *env) {
		for path, write := range ordered(e.writers()) {
			r := e.reserved()
			done := completed(r, "{}")
			done.Response.Header = []storage.Field{{Name: "X-Latin-1", Value: "caf\xe9"}, {Name: "X-Quoted", Value: "a\"b\\: \t"}, {Name: "X-Empty"}}
			if err := write(r, done); err != nil {
				e.Errorf("%s: %v", path, err)
				continue
			}
			e.wantRecord(r.Key, &done)
		}
	}},
	{"a response that can't be stored is refused before anything is written (semantics.md \"idempotency_response_too_large\")", func(e *env) {
		body := random(tooLarge)
		for path, write := range ordered(e.writers()) {
			r := e.reserved()
			done := completed(r, "")
			done.Response.Body = body
			if err := write(r, done); !errors.Is(err, storage.ErrResponseTooLarge) {
				e.Errorf("%s: got error %v, want ErrResponseTooLarge", path, err)
			}
			if got := e.record(r.Key); got != nil && got.State != storage.StateInProgress && got.State != storage.StatePending {
				e.Errorf("%s: the record is %s", path, got.State)
			}
		}
	}},
}

// bodies are the responses that stores are known to lose or damage.
func bodies() map[string][]byte {
	all := map[string][]byte{
		"no body": nil, "empty": {}, "zero": []byte("0"), "empty object": []byte("{}"), "false": []byte("false"),
		"null": []byte("null"), "empty string": []byte(`""`), "spaces": []byte(" \n"), "NUL": {0},
		"not UTF-8": {0xff, 0xfe, 0x80, 0x00}, "gzip-like": {0x1f, 0x8b, 8, 0},
	}
	for _, size := range []int{1 << 10, 10 << 10, 100 << 10, 1 << 20} {
		all[fmt.Sprintf("%d KB random", size>>10)] = random(size)
		all[fmt.Sprintf("%d KB repetitive", size>>10)] = bytes.Repeat([]byte("idem "), size/5)
	}
	return all
}

func random(size int) []byte {
	body := make([]byte, size)
	rand.Read(body)
	return body
}

// writers are the ways in which a response gets into a record: from reserved to done.
func (e *env) writers() map[string]func(reserved, done storage.Record) error {
	return map[string]func(reserved, done storage.Record) error{
		"insert": func(_, done storage.Record) error { return e.Store.Insert(e.ctx, done, base) },
		"update": func(reserved, done storage.Record) error {
			e.insert(reserved)
			return e.Store.Update(e.ctx, done, storage.FenceOf(reserved))
		},
		"inserting commit": func(_, done storage.Record) error {
			return e.send(storage.Commit{Record: done, Now: base, Token: e.token()})
		},
		"fenced commit": func(reserved, done storage.Record) error {
			e.insert(reserved)
			fence := storage.FenceOf(reserved)
			return e.send(storage.Commit{Record: done, Fence: &fence, Now: base, Token: e.token()})
		},
		"settlement": func(reserved, done storage.Record) error {
			held := pending(reserved)
			held.Kind = done.Kind
			m := message(held, 1)
			e.ok(e.send(storage.Commit{Record: held, Now: base, Messages: []storage.Message{m}, Token: e.token()}))
			return e.settle(storage.Settlement{Message: delivered(m), Record: recordEnd(done), Token: e.token()})
		},
	}
}
