package cache_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/cache"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/storage"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// What a replay costs with and without a cache, in calls and capacity units; a lost write's are not reported (W is left
// out; the package's comment says what it is billed as). The table of the package's comment is this.
func TestWhatItSaves(t *testing.T) {
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Dynoxide), wirefault.Patiently)
	tables, err := dynamotest.CreateTables(t.Context(), client, "cache")
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	store := must[*dynamo.Store](t)(dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox, Meter: func(u dynamo.Usage) {
		read, _ := u.Units()
		calls = append(calls, fmt.Sprintf("%s %gR", u.Operation, read))
	}}))
	noise := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise)
	document := bytes.Repeat([]byte(`{"id":"pay_1","amount":500}`), 400)
	for _, test := range []struct {
		name                string
		body                []byte
		readFirst, reserves string
	}{
		{"300 B of JSON", document[:300], "GetItem 1R", "PutItem 0R"},
		{"10 KB of JSON", document[:10<<10], "GetItem 1R", "PutItem 0R"},
		{"10 KB of noise", noise[:10<<10], "GetItem 1R, BatchGetItem 3R", "PutItem 0R, BatchGetItem 3R"},
		{"1 MB of noise", noise, "GetItem 1R, BatchGetItem 260R", "PutItem 0R, BatchGetItem 260R"},
	} {
		for _, kind := range []struct {
			op           idem.Operation
			plain, saved string
		}{
			{idem.Operation{Kind: storage.KindOptimistic}, test.readFirst, ""},
			{idem.Operation{Kind: storage.KindAtomic, ReadFirst: true}, test.readFirst, ""},
			{idem.Operation{Kind: storage.KindAtomic}, test.reserves, "PutItem 0R"},
		} {
			t.Run(fmt.Sprintf("%s, %s, read first %v", test.name, kind.op.Kind, kind.op.ReadFirst), func(t *testing.T) {
				kind.op.Name, kind.op.Policy = "orders.create", idem.IETF()
				request := idem.Request{Tenant: "t", Key: t.Name(), Input: canonical.Input{MediaType: "application/json", Body: []byte(`{}`)}}
				do := func(store storage.Store) func() string {
					engine := must[*idem.Engine](t)(idem.New(store, idem.Config{}))
					if err := engine.CheckScopeSecret(t.Context()); err != nil {
						t.Fatal(err)
					}
					orders := must[*idem.Registered](t)(engine.Register(kind.op))
					send := func(request idem.Request) {
						result, err := orders.Do(t.Context(), request, func(context.Context, *idem.Tx) (storage.Response, error) {
							return storage.Response{Status: 201, Body: test.body}, nil
						})
						if err != nil || !bytes.Equal(result.Response.Body, test.body) {
							t.Fatalf("%+v, %v", result, err)
						}
					}
					other := request
					other.Key += fmt.Sprintf(", warm up of %T", store) // an engine reads once a minute when data may have been lost
					send(other)
					return func() string {
						calls = nil
						send(request)
						return strings.Join(calls, ", ")
					}
				}
				plain, cached := do(store), do(must[*cache.Store](t)(cache.New(store, cache.Config{})))
				plain() // the first request
				if got := plain(); got != kind.plain {
					t.Errorf("a replay without a cache: %s, want %s", got, kind.plain)
				}
				if got := cached(); got != kind.plain {
					t.Errorf("a replay that fills it: %s, want %s", got, kind.plain)
				}
				if got := cached(); got != kind.saved {
					t.Errorf("a replay from it: %q, want %q", got, kind.saved)
				}
			})
		}
	}
}
