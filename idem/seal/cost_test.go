package seal_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/storage"
)

// What sealing costs in calls and capacity: the store's own calls are the same ones, and consume the same, but where 38
// bytes and a flag, or what no longer compresses in the store, make an item one unit larger. Keys that are held cost nothing.
func TestWhatSealingCosts(t *testing.T) {
	b := newBank(t, dynamotest.Endpoint(t, dynamotest.Dynoxide))
	noise := make([]byte, 10<<10)
	rand.NewChaCha8([32]byte{}).Read(noise)
	for name, body := range map[string][]byte{
		"27 B": []byte(`{"id":"pay_1","amount":500}`), "9 KB of JSON": []byte(payments(9 << 10)), "10 KB of noise": noise,
	} {
		plain, sealed := b.path(t, body, true), b.path(t, body, false)
		if plain != sealed {
			t.Errorf("%s: sealed it costs %s, else %s", name, sealed, plain)
		}
	}
	r := completed(t, "ada", "")
	r.Response = storage.Response{Status: 201, Body: noise}
	v := newVault(t, seal.Config{})
	ok(t, v.Insert(t.Context(), r, base))
	if grown := len(v.inner.Records()[0].Response.Body) - len(noise); grown != 38+1 { // and the number of headers
		t.Errorf("it grew by %d bytes", grown)
	}
}

// path is what committing, reading and loading a record and its message consumes, once the tenant's key is held.
func (b *bank) path(t *testing.T, body []byte, off bool) string {
	t.Helper()
	var used []string
	inner := b.plain(t, dynamo.Config{Meter: func(u dynamo.Usage) {
		read, write := u.Units()
		used = append(used, fmt.Sprintf("%s %gW %gR", u.Operation, write, read))
	}})
	store := must(seal.New(inner, seal.Config{Keys: b.keys, OpenOnly: off}))(t)
	r, m := accepted(t, "ada", `{"amount":500,"card":"card_1"}`)
	r.Response = storage.Response{Status: 201, Body: body}
	r.State, r.DoneAt, r.ExpiresAt = storage.StateCompleted, base, base.Add(r.Retention)
	r.FreeAt = r.ExpiresAt
	commit(t, store, r, m)
	_, err := load(t, store, r.Key)
	ok(t, err)
	got, err := store.Message(t.Context(), m.ID)
	ok(t, err)
	claimed := *got
	claimed.State, claimed.Epoch = storage.MessageClaimed, 1
	ok(t, store.UpdateMessage(t.Context(), claimed, storage.FenceOfMessage(*got)))
	return strings.Join(used, ", ")
}

// payments is a JSON document of about that size, as repetitive as such documents are.
func payments(size int) string {
	source := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for b.Len() < size {
		fmt.Fprintf(&b, `{"id":"pay_%016x","amount":%d,"currency":"EUR","status":"succeeded"},`, source.Uint64(), source.IntN(100_000))
	}
	return b.String()
}
