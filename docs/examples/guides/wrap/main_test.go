package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
)

// A process dies after it has paid, and before. The client learns the truth in both cases, and nothing is paid twice.
func TestThePageShowsWhatACrashLeaves(t *testing.T) {
	page := check.NewPage(t, "protect-a-service.md")
	clock := idemtest.NewClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	store, err := memstore.New(memstore.Config{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{Now: clock.Now, Pause: clock.Pause})
	if err != nil {
		t.Fatal(err)
	}
	books := &ledger{}
	crash, busy := "", false
	service, err := routes(engine, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		execution, _ := idem.ExecutionFrom(r.Context())
		switch {
		case busy:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case crash == "before":
			panic("power cut")
		case crash == "after":
			books.write(execution.OperationID, payment{"17", 500})
			panic("power cut")
		default:
			books.pay(w, r)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	runner, err := newRunner(store, engine, memqueue.New(clock.Now), books, outbox.Config{Now: clock.Now, Pause: clock.Pause})
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"order":"17","amount":500}`

	crash = "after"
	page.Send("crashed", service, "POST", "/payments", "order-17", body).Want(t, 500, "")
	page.Send("unknown", service, "POST", "/payments", "order-17", body).Want(t, 409, "unknown")
	clock.Advance(time.Minute)
	if _, err := runner.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	page.Send("found", service, "POST", "/payments", "order-17", body).Want(t, 201, "replayed")

	crash = "before"
	check.Send(t, service, "POST", "/payments", "order-18", body).Want(t, 500, "")
	crash = ""
	for range 20 {
		clock.Advance(time.Minute)
		if _, err := runner.Reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check.Send(t, service, "POST", "/payments", "order-18", body).Want(t, 201, "executed")

	busy = true
	page.Send("busy", service, "POST", "/payments", "order-19", body).Want(t, 503, "executed")
	busy = false
	page.Send("after the busy one", service, "POST", "/payments", "order-19", body).Want(t, 201, "executed")
	if n := len(books.payments); n != 3 {
		t.Errorf("%d payments, want 3", n)
	}
}

// What the page says of an answer of the handler's own: a 202 and its Location are stored and replayed as they are.
func TestA202OfTheHandlerIsReplayed(t *testing.T) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	service, err := routes(engine, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/jobs/1")
		w.WriteHeader(http.StatusAccepted)
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"executed", "replayed"} {
		answer := check.Send(t, service, "POST", "/payments", "k", "{}").Want(t, 202, want)
		if got := answer.Header.Get("Location"); got != "/jobs/1" {
			t.Errorf("Location %q", got)
		}
	}
}
