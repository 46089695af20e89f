package dynamo_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// bill counts the calls of a path and what they consumed.
type bill struct{ calls []string }

func (b *bill) meter(u dynamo.Usage) {
	if u.Failed {
		b.calls = append(b.calls, u.Operation+" lost") // DynamoDB does not report what a failed condition consumes
		return
	}
	read, write := u.Units()
	line := u.Operation
	if write > 0 {
		line += fmt.Sprintf(" %gW", write)
	}
	if read > 0 {
		line += fmt.Sprintf(" %gR", read)
	}
	b.calls = append(b.calls, line)
}

func (b *bill) take() string {
	all := strings.Join(b.calls, ", ")
	b.calls = nil
	return all
}

// What each path of a request costs, in calls and capacity units (dynoxide counts them as DynamoDB does; DynamoDB Local
// does not). A transaction costs 2 per item and KB; entering or leaving a sparse index, or changing what it shows, costs
// 1: "complete" is a wrapped record's. The 27 bytes of a trace cost nothing unless they reach the next KB. A lost insert is
// billed as a write of the stored size, which no reply tells.
func TestCapacity(t *testing.T) {
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Dynoxide))
	var b bill
	tables := createTables(t, client)
	store := newStore(t, client, tables, dynamo.Config{Meter: b.meter})
	for _, row := range []struct {
		response string
		body     []byte
		at       trace.Context
		want     map[string]string
	}{
		{"27 B", []byte(`{"id":"pay_1","amount":500}`), "", map[string]string{
			"reserve": "PutItem 1W", "commit": "TransactWriteItems 4W", "complete": "PutItem 2W",
			"renew": "UpdateItem 1W", "renew, queued": "UpdateItem 1W", "postpone": "UpdateItem 3W",
			"optimistic": "TransactWriteItems 4W", "replay": "PutItem lost", "replay, read first": "GetItem 1R",
			"deferred": "TransactWriteItems 7W", "claim": "PutItem 1W", "settle": "TransactWriteItems 7W",
		}},
		{"27 B, traced", []byte(`{"id":"pay_1","amount":500}`), traced, map[string]string{
			"reserve": "PutItem 1W", "commit": "TransactWriteItems 4W", "complete": "PutItem 2W",
			"renew": "UpdateItem 1W", "renew, queued": "UpdateItem 1W", "postpone": "UpdateItem 3W",
			"optimistic": "TransactWriteItems 4W", "replay": "PutItem lost", "replay, read first": "GetItem 1R",
			"deferred": "TransactWriteItems 7W", "claim": "PutItem 1W", "settle": "TransactWriteItems 7W",
		}},
		{"10 KB of JSON", jsonOf(10 << 10), "", map[string]string{
			"reserve": "PutItem 1W", "commit": "TransactWriteItems 6W", "complete": "PutItem 4W",
			"renew": "UpdateItem 1W", "renew, queued": "UpdateItem 1W", "postpone": "UpdateItem 3W",
			"optimistic": "TransactWriteItems 6W", "replay": "PutItem lost", "replay, read first": "GetItem 1R",
			"deferred": "TransactWriteItems 7W", "claim": "PutItem 1W", "settle": "TransactWriteItems 11W",
		}},
		{"10 KB of noise", random(10 << 10), "", map[string]string{
			"reserve": "PutItem 1W", "commit": "TransactWriteItems 26W", "complete": "TransactWriteItems 25W",
			"renew": "UpdateItem 1W", "renew, queued": "UpdateItem 1W", "postpone": "UpdateItem 3W",
			"optimistic": "TransactWriteItems 26W", "replay": "PutItem lost, BatchGetItem 3R", "replay, read first": "GetItem 1R, BatchGetItem 3R",
			"deferred": "TransactWriteItems 7W", "claim": "PutItem 1W", "settle": "TransactWriteItems 29W",
		}},
	} {
		for path, cost := range costs(t, store, &b, tables, row.body, row.at) {
			if want := row.want[path]; cost != want {
				t.Errorf("%s: %s: got %s, want %s", row.response, path, cost, want)
			}
		}
	}
}

// traced is a position in a trace as a client may send it, with a tracestate.
var traced = trace.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "congo=t61rcWkgMzE")

// costs runs each path once, with one business row in each transaction.
func costs(t *testing.T, store *dynamo.Store, b *bill, tables tables, body []byte, at trace.Context) map[string]string {
	t.Helper()
	costs := map[string]string{}
	b.take()
	reserve := func() storage.Record {
		r := reserved(t)
		r.Trace = at.WithoutState()
		return r
	}
	commit := func(c storage.Commit) {
		c.Now, c.Token, c.Writes = base, string(owner(t)), []storage.Write{insertRow(tables, string(owner(t)))}
		send, err := store.Prepare(c)
		must(t, err)
		must(t, send(t.Context()))
	}

	r := reserve()
	must(t, store.Insert(t.Context(), r, base))
	costs["reserve"] = b.take()
	must(t, store.Renew(t.Context(), renewed(r), storage.FenceOfHolder(r)))
	costs["renew"] = b.take()
	fence := storage.FenceOfHolder(r)
	commit(storage.Commit{Record: completed(r, body), Fence: &fence})
	costs["commit"] = b.take()

	wrapped := reserve()
	wrapped.Kind = storage.KindWrapped
	must(t, store.Insert(t.Context(), wrapped, base))
	b.take()
	must(t, store.Renew(t.Context(), renewed(wrapped), storage.FenceOfHolder(wrapped)))
	costs["renew, queued"] = b.take()
	wrapped = renewed(wrapped)
	wrapped.LookAt = wrapped.LeaseUntil.Add(time.Hour)
	must(t, store.Postpone(t.Context(), wrapped, storage.FenceOf(wrapped)))
	costs["postpone"] = b.take()
	must(t, store.Update(t.Context(), completed(wrapped, body), storage.FenceOf(wrapped)))
	costs["complete"] = b.take()

	commit(storage.Commit{Record: completed(reserve(), body)})
	costs["optimistic"] = b.take()

	again := reserve()
	again.Key = r.Key
	conflict := firstKnown(store.Insert(t.Context(), again, base)).(*storage.RecordConflictError)
	_, err := store.LoadResponse(t.Context(), *conflict.Existing)
	must(t, err)
	costs["replay"] = b.take()
	got(t, store, r.Key)
	costs["replay, read first"] = b.take()

	held := pending(reserve())
	m := message(held, 1)
	m.Trace = at
	commit(storage.Commit{Record: held, Messages: []storage.Message{m}})
	costs["deferred"] = b.take()
	claimed := m
	claimed.State, claimed.Owner, claimed.Epoch, claimed.LeaseUntil = storage.MessageClaimed, owner(t), 1, base.Add(10*time.Second)
	must(t, store.UpdateMessage(t.Context(), claimed, storage.FenceOfMessage(m)))
	costs["claim"] = b.take()
	s := settlement(t, held, m, body)
	s.Writes = []storage.Write{insertRow(tables, string(owner(t)))}
	send, err := store.PrepareSettle(s)
	must(t, err)
	must(t, send(t.Context()))
	costs["settle"] = b.take()
	return costs
}

// jsonOf is a JSON document of about that size, as repetitive as such documents are: the same on every run.
func jsonOf(size int) []byte {
	source := rand.New(rand.NewPCG(1, 2))
	type entry struct {
		ID       string `json:"id"`
		Amount   int    `json:"amount"`
		Currency string `json:"currency"`
		Status   string `json:"status"`
	}
	var entries []entry
	for n := 0; n < size; n += 80 {
		entries = append(entries, entry{fmt.Sprintf("pay_%016x", source.Uint64()), source.IntN(100_000), "EUR", "succeeded"})
	}
	body, err := json.Marshal(entries)
	if err != nil {
		panic(err)
	}
	return body
}
