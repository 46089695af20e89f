package storetest

import (
	"github.com/idem-go/idem-aws/idem/storage"
)

// sealedTests: a store keeps whether a row is encrypted. One that forgot it would replay ciphertext to a client, or send it to a
// provider.
var sealedTests = []test{
	{"a sealed response says so after each write, and nobody below package seal loads it", func(e *env) {
		for path, write := range ordered(e.sealedWriters()) {
			r := e.reserved()
			done := completed(r, "ciphertext")
			done.Sealed = true
			e.ok(write(r, done))
			got, err := e.Store.Get(e.ctx, r.Key)
			e.ok(err)
			if got == nil || !got.Sealed {
				e.Errorf("%s: got %+v, want a sealed record", path, got)
				continue
			}
			if _, err := e.Store.LoadResponse(e.ctx, *got); err == nil {
				e.Errorf("%s: the response was loaded", path)
			}
		}
	}},
	{"a sealed message says so, and every write keeps that", func(e *env) {
		r := pending(e.reserved())
		m := message(r, 1)
		m.Sealed = true
		e.ok(e.send(storage.Commit{Record: r, Now: base, Messages: []storage.Message{m}, Token: e.token()}))
		e.wantMessage(m.ID, &m)
		held := e.claimed(m)
		e.ok(e.Store.UpdateMessage(e.ctx, held, storage.FenceOfMessage(m)))
		end := delivered(m)
		end.Sealed = true
		e.ok(e.settle(storage.Settlement{Message: end, Token: e.token()}))
		e.wantMessage(m.ID, ended(held, end))
	}},
}

// sealedWriters are writers; their settlement seals too.
func (e *env) sealedWriters() map[string]func(reserved, done storage.Record) error {
	all := e.writers()
	all["settlement"] = func(reserved, done storage.Record) error {
		held := pending(reserved)
		m := message(held, 1)
		e.ok(e.send(storage.Commit{Record: held, Now: base, Messages: []storage.Message{m}, Token: e.token()}))
		end := recordEnd(done)
		end.Sealed = true
		return e.settle(storage.Settlement{Message: delivered(m), Record: end, Token: e.token()})
	}
	return all
}
