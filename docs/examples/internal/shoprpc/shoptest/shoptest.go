// Package shoptest proves of a service that its calls run once for each key, whatever the protocol.
package shoptest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc"
	"github.com/idem-go/idem-aws/docs/examples/internal/shoprpc/shopv1"
	"github.com/idem-go/idem-aws/docs/examples/rpc"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Authorization is that of the customer who calls.
const Authorization = "Basic Y3VzdG9tZXItMTpzZWNyZXQ="

// Answer is how a call ended.
type Answer struct {
	Reply   *shopv1.PayResponse
	Status  *status.Status
	Trailer map[string]string
}

// Client calls a service over a connection. An empty key is none.
type Client struct {
	Pay func(ctx context.Context, key string, request *shopv1.PayRequest) Answer
	Get func(ctx context.Context, payment string) (*shopv1.PayResponse, error)
}

// Start serves a till on the store, on a TCP port, and returns its clients by their names.
type Start func(t *testing.T, store storage.Store, till shoprpc.Till) map[string]Client

// Run proves it for each client, on the store in memory and on each endpoint of dynamotest.
func Run(t *testing.T, start Start) {
	t.Run("memory", func(t *testing.T) {
		store, err := memstore.New(memstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		clauses(t, start, store, shoprpc.Memory{Store: store})
	})
	dynamotest.Each(t, func(t *testing.T, url string) {
		client := dynamotest.Client(url, wirefault.Patiently)
		tables, err := dynamotest.CreateTables(t.Context(), client, "shop")
		if err != nil {
			t.Fatal(err)
		}
		payments := shoprpc.Table{Client: client, Name: "shop-payments"}
		if err := dynamotest.CreateTable(t.Context(), client, payments.Name, schema.Table{Key: "pk"}); err != nil {
			t.Fatal(err)
		}
		store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox})
		if err != nil {
			t.Fatal(err)
		}
		clauses(t, start, store, payments)
	})
}

func clauses(t *testing.T, start Start, store storage.Store, payments shoprpc.Payments) {
	watched := &watched{Payments: payments, held: make(chan struct{}), release: make(chan struct{})}
	clients := start(t, store, shoprpc.Till{Payments: watched})
	for _, name := range slices.Sorted(maps.Keys(clients)) {
		c := clauseTest{client: clients[name], payments: watched, name: name}
		t.Run(name, func(t *testing.T) {
			t.Run("a call that is sent again gets the first reply", c.replays)
			t.Run("another request under the key is refused", c.mismatches)
			t.Run("no key", c.needsKey)
			t.Run("a refusal is stored with its details", c.storesRefusals)
			t.Run("a race has one winner", c.races)
			t.Run("a duplicate of a running call is told to come again", c.conflicts)
			t.Run("a panic leaves nothing", c.panics)
			t.Run("a deadline without time executes nothing", c.deadline)
			t.Run("a caller who hangs up finds the reply", c.hangsUp)
		})
	}
}

type clauseTest struct {
	client   Client
	payments *watched
	name     string
}

func (c clauseTest) request() *shopv1.PayRequest {
	return &shopv1.PayRequest{Order: c.name, Amount: 500, Labels: map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}}
}

func (c clauseTest) replays(t *testing.T) {
	ran := c.payments.runs.Load()
	first := c.pay(t, "first", c.request()).executed(t)
	for range 5 { // maps are encoded in another order each time
		if again := c.pay(t, "first", c.request()).replayed(t); !proto.Equal(again.Reply, first.Reply) {
			t.Errorf("the retry got %v, the first call %v", again.Reply, first.Reply)
		}
	}
	if ran = c.payments.runs.Load() - ran; ran != 1 {
		t.Errorf("%d runs", ran)
	}
	if stored, err := c.client.Get(t.Context(), first.Reply.GetPayment()); err != nil || !proto.Equal(stored, first.Reply) {
		t.Errorf("the payment is %v (%v), the reply said %v", stored, err, first.Reply)
	}
}

func (c clauseTest) mismatches(t *testing.T) {
	c.pay(t, "reused", c.request()).executed(t)
	other := c.request()
	other.Amount++
	c.pay(t, "reused", other).refused(t, codes.FailedPrecondition, "idempotency_key_reused_with_different_payload")
}

func (c clauseTest) needsKey(t *testing.T) {
	c.pay(t, "", c.request()).refused(t, codes.InvalidArgument, "idempotency_key_missing")
	c.pay(t, strings.Repeat("k", 300), c.request()).refused(t, codes.InvalidArgument, "idempotency_key_invalid")
}

func (c clauseTest) storesRefusals(t *testing.T) {
	free := c.request()
	free.Amount = 0
	for _, replayed := range []string{"", "true"} {
		a := c.pay(t, "free", free)
		if a.Status.Code() != codes.InvalidArgument || a.Trailer["idempotent-replayed"] != replayed {
			t.Errorf("got %v %v", a.Status, a.Trailer)
		}
		details := a.Status.Details()
		if len(details) != 1 {
			t.Fatalf("the details are %v", details)
		}
		if request, ok := details[0].(*errdetails.BadRequest); !ok || len(request.GetFieldViolations()) != 1 || request.GetFieldViolations()[0].GetField() != "amount" {
			t.Errorf("the details are %v", details)
		}
	}
}

func (c clauseTest) races(t *testing.T) {
	before := c.payments.runs.Load()
	var mu sync.Mutex
	ids, executed := map[string]bool{}, 0
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			a := c.untilAnswered(t, "race", c.request())
			mu.Lock()
			defer mu.Unlock()
			ids[a.Reply.GetPayment()] = true
			if a.Trailer["idempotency-status"] == "executed" {
				executed++
			}
		})
	}
	callers.Wait()
	if len(ids) != 1 || ids[""] || executed != 1 {
		t.Errorf("%d executions, payments %v", executed, ids)
	}
	t.Logf("%d runs of the handler", c.payments.runs.Load()-before)
}

func (c clauseTest) conflicts(t *testing.T) {
	slow := c.request()
	slow.Order = orderHeld
	done := make(chan Answer, 1)
	go func() { done <- c.client.Pay(t.Context(), c.name+"/slow", slow) }()
	<-c.payments.held
	c.pay(t, "slow", slow).refused(t, codes.Aborted, "idempotency_key_in_progress").retried(t)
	c.payments.release <- struct{}{}
	first := (<-done).executed(t)
	if again := c.pay(t, "slow", slow).replayed(t); !proto.Equal(again.Reply, first.Reply) {
		t.Errorf("the duplicate got %v, the first call %v", again.Reply, first.Reply)
	}
}

func (c clauseTest) panics(t *testing.T) {
	broken := c.request()
	broken.Order = orderPanics
	before := c.payments.runs.Load()
	for range 2 { // the key is free again, so each call runs
		if a := c.pay(t, "panic", broken); a.Status.Code() != codes.Internal || a.Status.Message() != "the call failed" {
			t.Errorf("got %v", a.Status)
		}
	}
	if ran := c.payments.runs.Load() - before; ran != 2 {
		t.Errorf("%d runs", ran)
	}
}

func (c clauseTest) deadline(t *testing.T) {
	before := c.payments.runs.Load()
	c.late(t).refused(t, codes.DeadlineExceeded, "idempotency_no_time")
	if ran := c.payments.runs.Load() - before; ran != 0 {
		t.Errorf("%d runs", ran)
	}
	c.pay(t, "late", c.request()).executed(t)
}

// late is how the server answers a call that has less time than an execution needs. Where the machine stands still for so long it is
// the client that gives the call up: then it is made again.
func (c clauseTest) late(t *testing.T) (a Answer) {
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		a = c.client.Pay(ctx, c.name+"/late", c.request())
		over := ctx.Err() != nil
		cancel()
		if !over || len(a.Status.Details()) > 0 {
			break
		}
	}
	return a
}

func (c clauseTest) hangsUp(t *testing.T) {
	slow := c.request()
	slow.Order = orderHeld
	ctx, hangUp := context.WithCancel(t.Context())
	done := make(chan Answer, 1)
	go func() { done <- c.client.Pay(ctx, c.name+"/gone", slow) }()
	<-c.payments.held
	hangUp()
	if a := <-done; a.Status.Code() != codes.Canceled {
		t.Errorf("got %v", a.Status)
	}
	c.payments.release <- struct{}{}
	c.untilAnswered(t, "gone", slow).replayed(t)
}

func (c clauseTest) pay(t *testing.T, key string, request *shopv1.PayRequest) Answer {
	if key != "" {
		key = c.name + "/" + key
	}
	return c.client.Pay(t.Context(), key, request)
}

// untilAnswered sends the call again for as long as another one holds its key.
func (c clauseTest) untilAnswered(t *testing.T, key string, request *shopv1.PayRequest) Answer {
	for {
		a := c.pay(t, key, request)
		if a.Status.Code() != codes.Aborted {
			return a
		}
		select {
		case <-t.Context().Done():
			return a
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (a Answer) ended(t *testing.T, idempotency, replayed string) Answer {
	t.Helper()
	if a.Status.Code() != codes.OK || a.Trailer["idempotency-status"] != idempotency || a.Trailer["idempotent-replayed"] != replayed ||
		a.Trailer["idempotency-expires"] == "" {
		t.Errorf("got %v %v, want %s", a.Status, a.Trailer, idempotency)
	}
	return a
}

func (a Answer) executed(t *testing.T) Answer { t.Helper(); return a.ended(t, "executed", "") }

func (a Answer) replayed(t *testing.T) Answer { t.Helper(); return a.ended(t, "replayed", "true") }

func (a Answer) refused(t *testing.T, code codes.Code, reason string) Answer {
	t.Helper()
	for _, detail := range a.Status.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && a.Status.Code() == code && info.GetReason() == reason && info.GetDomain() == rpc.Domain {
			return a
		}
	}
	t.Errorf("got %v with %v, want %v %s", a.Status, a.Status.Details(), code, reason)
	return a
}

// retried proves that the answer says when to come again.
func (a Answer) retried(t *testing.T) {
	t.Helper()
	for _, detail := range a.Status.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && info.GetRetryDelay().AsDuration() > 0 {
			return
		}
	}
	t.Errorf("%v has no RetryInfo", a.Status.Details())
}

const (
	orderHeld   = "held"
	orderPanics = "panics"
)

// watched counts the runs of the handler, and holds those of some orders.
type watched struct {
	shoprpc.Payments
	runs          atomic.Int64
	held, release chan struct{}
}

// Insert implements shoprpc.Payments.
func (w *watched) Insert(payment *shopv1.PayResponse) idem.Write {
	w.runs.Add(1)
	switch payment.GetOrder() {
	case orderHeld:
		w.held <- struct{}{}
		<-w.release
	case orderPanics:
		panic("trouble")
	}
	return w.Payments.Insert(payment)
}
