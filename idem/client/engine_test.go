package client_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/client"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/internal/clients"
)

// meet runs a built client against an API of the engine's.
func meet(t *testing.T, c *clients.Client) {
	for name, test := range map[string]func(*testing.T, *clients.Client){
		"whatever is lost, it executes once":      lostAnswers,
		"in progress":                             inProgress,
		"mismatch":                                mismatch,
		"outcome unknown":                         outcomeUnknown,
		"a stored decline is an answer":           storedDecline,
		"202 and status polling":                  polled,
		"a 409 beside a lost attempt that runs":   busyBesideLost,
		"a killed process and its successor":      killedProcess,
		"a key that the journals of others began": sharedJournal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting for real seconds
			test(t, c)
		})
	}
}

// task is a POST to the path, by the machine's clock.
func (w *world) task(path string) clients.Task {
	return clients.Task{
		ID: "one", URL: w.server.URL + path, Method: http.MethodPost, Body: scenarioBody,
		Headers: map[string]string{"Content-Type": "application/json", "Authorization": scenarioToken},
		Options: clients.Options{BackoffBaseMS: 5, BackoffMaxMS: 20, AttemptTimeoutMS: 20_000},
	}
}

func named(task clients.Task, journal string) clients.Task {
	name := "order-17/charge"
	task.Operation, task.Journal = &name, journal
	return task
}

func keyed(task clients.Task, key string) clients.Task {
	task.Key = &key
	return task
}

// start starts a process with one task.
func start(t *testing.T, c *clients.Client, task clients.Task) *clients.Process {
	t.Helper()
	p, err := c.Start(t.Context())
	if err == nil {
		err = p.Send(task)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// finish waits for the process's one result.
func finish(t *testing.T, p *clients.Process) clients.Result {
	t.Helper()
	results, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return results["one"]
}

func perform(t *testing.T, c *clients.Client, task clients.Task) clients.Result {
	t.Helper()
	return finish(t, start(t, c, task))
}

// answered checks an answer, and that all requests had the one key that the client tells.
func (w *world) answered(got clients.Result, status int, body string) {
	w.Helper()
	if got.Answer == nil || got.Answer.Status != status || got.Answer.Body != body {
		w.Errorf("got %s, want %d %s", show(got), status, body)
	}
	w.oneKey()
	if lines := w.proxy.arrived(); len(lines) == 0 || lines[0] != `"`+got.Key+`"` {
		w.Errorf("the keys on the wire: %q, want %q", lines, got.Key)
	}
}

func (w *world) ended(got clients.Result, code string, unknown bool) {
	w.Helper()
	if got.Error == nil || got.Error.Code != code || got.Error.Unknown != unknown || got.Key == "" {
		w.Errorf("got %s, want %s, unknown: %v", show(got), code, unknown)
	}
}

// eventually waits a minute for another process or goroutine.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		if is() {
			return
		}
		if err := idem.Pause(t.Context(), 5*time.Millisecond); err != nil {
			break
		}
	}
	t.Fatal("never happened: " + what)
}

func lostAnswers(t *testing.T, c *clients.Client) {
	w := open(t)
	w.proxy.spoil(dropBefore, dropAfter, torn, after504, status(502, ""))
	w.answered(perform(t, c, w.task("/orders")), 201, `{"run":1}`)
	w.ran(1)
	if n := len(w.proxy.arrived()); n != 6 {
		t.Errorf("%d requests, want 6", n)
	}
}

func inProgress(t *testing.T, c *clients.Client) {
	w, g := open(t), &gate{make(chan struct{}), make(chan struct{})}
	w.handle("/slow", idem.IETF(), g.count(w))
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := w.post(t.Context(), w.base, "/slow", scenarioBody, `"order-17"`); err != nil {
			t.Error(err)
		}
	})
	<-g.started
	p := start(t, c, keyed(w.task("/slow"), "order-17"))
	eventually(t, "a 409 and another request", func() bool { return len(w.proxy.arrived()) >= 3 })
	close(g.release)
	wg.Wait()
	w.answered(finish(t, p), 201, `{"run":1}`)
	w.ran(1)
}

func mismatch(t *testing.T, c *clients.Client) {
	for _, path := range []string{"/orders", "/stripe"} { // 422, and 400 by Stripe's policy
		w := open(t)
		another := keyed(w.task(path), "order-17")
		another.Body = `{"another":"request"}`
		w.answered(perform(t, c, another), 201, `{"run":1}`)
		w.ended(perform(t, c, keyed(w.task(path), "order-17")), "key_mismatch", true) // the key was used before
		w.ran(1)
		if n := len(w.proxy.arrived()); n != 2 {
			t.Errorf("%s: %d requests, want 2", path, n)
		}
	}
}

func outcomeUnknown(t *testing.T, c *clients.Client) {
	w := open(t)
	w.wrap("/breaks", func(http.ResponseWriter, *http.Request) {
		w.runs.Add(1)
		panic("after its effect, perhaps")
	})
	w.ended(perform(t, c, w.task("/breaks")), "outcome_unknown", true)
	w.ran(1)
	if n := len(w.proxy.arrived()); n != 2 { // the 500 of the first, the 409 of the second
		t.Errorf("%d requests, want 2", n)
	}
}

func storedDecline(t *testing.T, c *clients.Client) {
	w := open(t)
	w.handle("/declined", idem.IETF(), func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
		w.runs.Add(1)
		return idem.Response{}, &idem.RejectedError{Problem: idem.NewProblem(402, "insufficient_funds", "Insufficient funds", "")}
	})
	w.proxy.spoil(dropAfter)
	got := perform(t, c, w.task("/declined"))
	if got.Answer == nil || got.Answer.Status != 402 || !strings.Contains(got.Answer.Body, "insufficient_funds") || got.Answer.Headers["content-type"] != "application/problem+json" {
		t.Errorf("%s", show(got))
	}
	w.ran(1)
}

// Without a lease a lost attempt runs on, and commits after the next one was told 409. The client gives that 409 to nobody as the
// end of the operation: a new key would execute it a second time, and its own gets the one execution.
func busyBesideLost(t *testing.T, c *clients.Client) {
	w, journal, release := open(t), t.TempDir(), make(chan struct{})
	var calls atomic.Int64
	w.serve("/busy", idem.Operation{Kind: idem.KindOptimistic, Policy: idem.IETF()}, func(ctx context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
		if calls.Add(1) == 2 {
			return idem.NewProblem(409, "account_busy", "Account busy", "").Response(), nil
		}
		w.proxy.running <- struct{}{}
		<-release
		return w.count(ctx, tx, r)
	})
	w.proxy.spoil(dropDuring)
	w.ended(perform(t, c, named(w.task("/busy"), journal)), "gave_up", true)
	if commits := len(w.mem.Row("commits")); calls.Load() != 2 || commits != 0 {
		t.Fatalf("%d calls and %d commits, want a lost one that runs and a 409", calls.Load(), commits)
	}
	close(release)
	w.proxy.left.Wait()
	w.answered(perform(t, c, named(w.task("/busy"), journal)), 201, `{"run":1}`)
	if commits := len(w.mem.Row("commits")); commits != 1 {
		t.Errorf("%d commits, want 1", commits)
	}
	w.ran(1)
}

// deferred serves POST /payments, whose effect a worker makes, and the status of operations.
func (w *world) deferred(t *testing.T) *outbox.Worker {
	t.Helper()
	topics, err := outbox.NewTopics(outbox.Config{}, outbox.Topic{
		Name: "payments.charge", Keys: outbox.Keys{Honoured: true, Retention: time.Hour},
		Call: func(context.Context, storage.Message) outbox.Outcome {
			w.runs.Add(1)
			return outbox.Delivered{Reference: "ch_1"}
		},
		Settle: func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
			response, err := idem.JSON(201, map[string]string{"id": "pay_1"})
			return outbox.Settlement{Response: response}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	queue := memqueue.New(time.Now)
	worker, err := outbox.NewWorker(w.mem, topics, queue, queue)
	if err != nil {
		t.Fatal(err)
	}
	op := idem.Operation{Name: "payments.create", Kind: idem.KindDeferred, Policy: idem.IETF()}
	payments, err := w.mw.Handle(op, middleware.Route{}, func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
		tx.Write(memstore.Write{Key: "commits", Apply: func(row []byte) []byte { return append(row, '1') }})
		tx.Send("payments.charge", []byte("{}"))
		return idem.JSON(202, map[string]string{"state": "pending"})
	})
	if err != nil {
		t.Fatal(err)
	}
	w.mux.Handle("POST /payments", payments)
	w.mux.Handle("GET /v1/operations/{id}", w.mw.Read(func(ctx context.Context, r *middleware.Request) (idem.Response, error) {
		response, err := w.status(ctx, r)
		for i := range response.Header {
			if response.Header[i].Name == "Retry-After" {
				response.Header[i].Value = "1"
			}
		}
		return response, err
	}))
	return worker
}

func polled(t *testing.T, c *clients.Client) {
	w := open(t)
	worker := w.deferred(t)
	w.proxy.spoil(dropAfter)
	task := w.task("/payments")
	task.Await = true
	p := start(t, c, task)
	eventually(t, "the 202 and its replay", func() bool { return w.proxy.passed.Load() > 0 })
	messages := w.mem.Messages()
	if len(messages) != 1 {
		t.Fatalf("%d messages", len(messages))
	}
	if err := worker.Deliver(t.Context(), messages[0].ID); err != nil {
		t.Fatal(err)
	}
	got := finish(t, p)
	w.answered(got, 201, `{"id":"pay_1"}`)
	if got.Answer == nil || got.Answer.First != 202 || got.Answer.Headers["content-type"] != "application/json" || len(w.mem.Row("commits")) != 1 {
		t.Errorf("%s, %d commits", show(got), len(w.mem.Row("commits")))
	}
	w.ran(1)
}

// A process is killed between its attempts. Its successor has the journal's key, and so the first one's answer; once that
// is kept the operation ends, and the same id begins anew.
func killedProcess(t *testing.T, c *clients.Client) {
	w, journal := open(t), t.TempDir()
	task := named(w.task("/orders"), journal)
	task.Done = true
	w.proxy.spoil(dropAfter, status(503, "30"))
	p := start(t, c, task)
	eventually(t, "the second attempt", func() bool { return len(w.proxy.arrived()) == 2 })
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if results, err := p.Wait(); err == nil || len(results) != 0 {
		t.Fatalf("a killed process said %v, %v", results, err)
	}
	w.answered(perform(t, c, task), 201, `{"run":1}`)
	w.ran(1)
	entries, err := os.ReadDir(journal)
	if err != nil || len(entries) != 0 {
		t.Errorf("the journal after the operation was done: %v, %v", entries, err)
	}
	before := w.proxy.arrived()[0]
	perform(t, c, task)
	if lines := w.proxy.arrived(); lines[len(lines)-1] == before || w.runs.Load() != 2 {
		t.Errorf("after the operation was done: keys %q, %d runs", lines, w.runs.Load())
	}
}

// The journal's files are the same in every language: whoever goes on with an operation has its key.
func sharedJournal(t *testing.T, c *clients.Client) {
	w, journal := open(t), t.TempDir()
	theirs := perform(t, c, named(w.task("/orders"), journal))
	w.answered(theirs, 201, `{"run":1}`)
	keys, err := client.OpenFileJournal(journal, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := client.New(client.Config{Base: w.base, Journal: keys})
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.post(client.WithOperation(t.Context(), "order-17/charge"), ours, "/orders", scenarioBody)
	if err != nil {
		t.Fatal(err)
	}
	w.ran(1)
	if client.KeyOf(got.Response) != theirs.Key || got.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d %v after %s, want its replay", got.StatusCode, got.Header, show(theirs))
	}
}
