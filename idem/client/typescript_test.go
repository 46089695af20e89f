package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/internal/localtool"
)

// script is a compiled client in TypeScript, which scenario.ts drives.
type script struct{ path string }

// compile type-checks the client and builds it for the Node that is here. Without Node one line says what did not run;
// with CI=true that is a failure.
func compile(t *testing.T) script {
	t.Helper()
	const isNew = "process.exit(+process.versions.node.split('.')[0] < 20 ? 1 : 0)"
	if err := exec.CommandContext(t.Context(), "node", "-e", isNew).Run(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the TypeScript client can't be tested: Node 20 or newer is needed (%v)", err)
		}
		t.Skipf("not run: the TypeScript client: Node 20 or newer is needed (%v)", err)
	}
	tool, err := localtool.TypeScriptTool.Find()
	if err != nil {
		t.Fatal(err)
	}
	out, modules := t.TempDir(), filepath.Join(tool, "node_modules")
	tsc := exec.CommandContext(t.Context(), "node", filepath.Join(modules, "typescript", "bin", "tsc"),
		"--project", "typescript", "--outDir", out, "--typeRoots", filepath.Join(modules, "@types"))
	if said, err := tsc.CombinedOutput(); err != nil {
		t.Fatalf("tsc: %v\n%s", err, said)
	}
	if err := os.WriteFile(filepath.Join(out, "package.json"), []byte(`{"type":"module"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	return script{filepath.Join(out, "scenario.js")}
}

// scenario is what scenario.ts reads.
type scenario struct {
	URL          string         `json:"url"`
	Send         map[string]any `json:"send"`
	Options      map[string]any `json:"options"`
	Journal      string         `json:"journal,omitempty"`
	Await        bool           `json:"await,omitempty"`
	Done         bool           `json:"done,omitempty"`
	AbortAfterMS int            `json:"abortAfterMs,omitempty"`
}

// told is what scenario.ts says.
type told struct {
	First, Status, Attempts, ElapsedMS int
	Body, Key, ContentType             string
	Error, Told, Reason                string
	Unknown                            *bool
}

const tsBody = `{"amount":1999,"note":"secret-body"}`

// options makes the client's pauses short: they are real.
func options(more map[string]any) map[string]any {
	all := map[string]any{"backoffBaseMs": 5, "backoffMaxMs": 20, "attemptTimeoutMs": 20_000}
	for name, value := range more {
		all[name] = value
	}
	return all
}

// start starts a process of the client with a POST to the path.
func (s script) start(w *world, t *testing.T, path string, sc scenario) (wait func() told, kill func()) {
	t.Helper()
	send := map[string]any{
		"method": "POST", "body": tsBody,
		"headers": map[string]string{"Content-Type": "application/json", "Authorization": "Bearer secret-token"},
	}
	for name, value := range sc.Send {
		send[name] = value
	}
	sc.URL, sc.Send, sc.Options = w.server.URL+path, send, options(sc.Options)
	input, err := json.Marshal(sc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	var out, errs bytes.Buffer
	node := exec.CommandContext(ctx, "node", s.path)
	node.Stdin, node.Stdout, node.Stderr = bytes.NewReader(input), &out, &errs
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cancel)
	wait = func() (result told) {
		t.Helper()
		if err := node.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, errs.String())
		}
		if err := json.Unmarshal(out.Bytes(), &result); err != nil {
			t.Fatalf("%v: %s%s", err, out.String(), errs.String())
		}
		for _, secret := range []string{"secret-body", "secret-token", result.Key} {
			if secret != "" && strings.Contains(result.Told, secret) {
				t.Errorf("an error tells a secret: %s", result.Told)
			}
		}
		return result
	}
	return wait, func() {
		cancel()
		_ = node.Wait() // it was killed
	}
}

func (s script) run(w *world, t *testing.T, path string, sc scenario) told {
	t.Helper()
	wait, _ := s.start(w, t, path, sc)
	return wait()
}

// answered checks an answer: its status, its body and the key that all requests had.
func (got told) answered(t *testing.T, w *world, status int, body string) {
	t.Helper()
	if got.Error != "" || got.Status != status || got.Body != body || got.Key == "" {
		t.Errorf("got %+v, want %d %s", got, status, body)
	}
	w.oneKey()
	if lines := w.proxy.arrived(); len(lines) > 0 && lines[0] != `"`+got.Key+`"` {
		t.Errorf("the keys on the wire: %q, want %q", lines, got.Key)
	}
}

// ended checks an end without an answer.
func (got told) ended(t *testing.T, name, reason string, unknown bool) {
	t.Helper()
	if got.Error != name || got.Reason != reason || got.Key == "" || got.Unknown == nil || *got.Unknown != unknown {
		t.Errorf("got %+v, want %s %s, unknown: %v", got, name, reason, unknown)
	}
}

// eventually waits for another process or goroutine.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 2000 {
		if is() {
			return
		}
		if err := idem.Pause(t.Context(), 5*time.Millisecond); err != nil {
			break
		}
	}
	t.Fatal("never happened: " + what)
}

// The client in TypeScript keeps the rules that this package keeps: semantics.md "On the wire", from the client's side.
func TestTypeScriptClient(t *testing.T) {
	s := compile(t)
	for name, test := range map[string]func(*testing.T, script){
		"whatever is lost, it executes once":   tsLost,
		"Retry-After is honoured":              tsRetryAfter,
		"in progress":                          tsInProgress,
		"mismatch":                             tsMismatch,
		"outcome unknown":                      tsUnknown,
		"a stored decline is an answer":        tsStored,
		"refused credentials":                  tsRefused,
		"202 and status polling":               tsAccepted,
		"a killed process and its successor":   tsRestart,
		"an old key is not sent":               tsOldKey,
		"the server says that the key expired": tsExpired,
		"canceled":                             tsCanceled,
		"what can't be sent":                   tsNotSent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting for real seconds
			test(t, s)
		})
	}
}

func tsLost(t *testing.T, s script) {
	w := open(t)
	w.proxy.spoil(dropBefore, dropAfter, torn, after504, status(502, ""))
	s.run(w, t, "/orders", scenario{}).answered(t, w, 201, `{"run":1}`)
	w.ran(1)
	if n := len(w.proxy.arrived()); n != 6 {
		t.Errorf("%d requests, want 6", n)
	}
}

func tsRetryAfter(t *testing.T, s script) {
	w := open(t)
	w.proxy.spoil(status(503, "1"), status(429, "1"))
	got := s.run(w, t, "/orders", scenario{})
	got.answered(t, w, 201, `{"run":1}`)
	if got.ElapsedMS < 2000 || got.ElapsedMS > 10_000 {
		t.Errorf("it took %d ms, want two pauses of 1 s", got.ElapsedMS)
	}
	w.proxy.spoil(dropAfter, status(503, "3600"))
	s.run(w, t, "/orders", scenario{}).ended(t, "GaveUpError", "retry_after", true)
	w.proxy.spoil(slices.Repeat([]fault{dropAfter}, 3)...)
	got = s.run(w, t, "/orders", scenario{Options: map[string]any{"attemptsMax": 3}})
	got.ended(t, "GaveUpError", "attempts", true)
	if got.Attempts != 3 {
		t.Errorf("%+v", got)
	}
}

func tsInProgress(t *testing.T, s script) {
	w, g := open(t), &gate{make(chan struct{}), make(chan struct{})}
	w.handle("/slow", idem.IETF(), g.count(w))
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := w.post(t.Context(), w.base, "/slow", tsBody, `"order-17"`); err != nil {
			t.Error(err)
		}
	})
	<-g.started
	wait, _ := s.start(w, t, "/slow", scenario{Send: map[string]any{"key": "order-17"}})
	eventually(t, "a 409 and another request", func() bool { return len(w.proxy.arrived()) >= 3 })
	close(g.release)
	wg.Wait()
	got := wait()
	got.answered(t, w, 201, `{"run":1}`)
	w.ran(1)
	if got.ElapsedMS < 1000 {
		t.Errorf("it took %d ms, less than the 409's Retry-After", got.ElapsedMS)
	}
}

func tsMismatch(t *testing.T, s script) {
	for _, path := range []string{"/orders", "/stripe"} { // 422, and 400 by Stripe's policy
		w := open(t)
		s.run(w, t, path, scenario{Send: map[string]any{"key": "order-17", "body": `{"another":"request"}`}}).answered(t, w, 201, `{"run":1}`)
		s.run(w, t, path, scenario{Send: map[string]any{"key": "order-17"}}).ended(t, "MismatchError", "", false)
		w.ran(1)
		if n := len(w.proxy.arrived()); n != 2 {
			t.Errorf("%s: %d requests, want 2", path, n)
		}
	}
}

func tsUnknown(t *testing.T, s script) {
	w := open(t)
	w.wrap("/breaks", func(http.ResponseWriter, *http.Request) {
		w.runs.Add(1)
		panic("after its effect, perhaps")
	})
	got := s.run(w, t, "/breaks", scenario{})
	got.ended(t, "OutcomeUnknownError", "", true)
	w.ran(1)
	if n := len(w.proxy.arrived()); n != 2 { // the 500 of the first, the 409 of the second
		t.Errorf("%d requests, want 2", n)
	}
}

func tsStored(t *testing.T, s script) {
	w := open(t)
	w.handle("/declined", idem.IETF(), func(context.Context, *idem.Tx, *middleware.Request) (idem.Response, error) {
		w.runs.Add(1)
		return idem.Response{}, &idem.RejectedError{Problem: idem.NewProblem(402, "insufficient_funds", "Insufficient funds", "")}
	})
	w.proxy.spoil(dropAfter)
	if got := s.run(w, t, "/declined", scenario{}); got.Status != 402 || !strings.Contains(got.Body, "insufficient_funds") || got.ContentType != "application/problem+json" {
		t.Errorf("%+v", got)
	}
	w.ran(1)
}

func tsRefused(t *testing.T, s script) {
	w := open(t)
	refused := map[string]any{"headers": map[string]string{"Authorization": "Bearer wrong"}}
	if got := s.run(w, t, "/orders", scenario{Send: refused}); got.Status != 401 {
		t.Errorf("%+v, want the 401 as an answer: nothing was tried before", got)
	}
	w.proxy.spoil(dropAfter)
	got := s.run(w, t, "/orders", scenario{Send: refused})
	got.ended(t, "GaveUpError", "refused", true)
	if got.Status != 401 || got.Attempts != 2 {
		t.Errorf("%+v", got)
	}
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

func tsAccepted(t *testing.T, s script) {
	w := open(t)
	worker := w.deferred(t)
	w.proxy.spoil(dropAfter)
	wait, _ := s.start(w, t, "/payments", scenario{Await: true})
	eventually(t, "the 202 and its replay", func() bool { return w.proxy.passed.Load() > 0 })
	messages := w.mem.Messages()
	if len(messages) != 1 {
		t.Fatalf("%d messages", len(messages))
	}
	if err := worker.Deliver(t.Context(), messages[0].ID); err != nil {
		t.Fatal(err)
	}
	got := wait()
	got.answered(t, w, 201, `{"id":"pay_1"}`)
	if got.First != 202 || got.ContentType != "application/json" || len(w.mem.Row("commits")) != 1 {
		t.Errorf("%+v, %d commits", got, len(w.mem.Row("commits")))
	}
	w.ran(1)
}

// A process is killed between its attempts. Its successor has the journal's key, and so the first one's answer; once that
// is kept the operation ends, and the same id begins anew.
func tsRestart(t *testing.T, s script) {
	w, journal := open(t), filepath.Join(t.TempDir(), "keys")
	named := scenario{Journal: journal, Done: true, Send: map[string]any{"operation": "order-17/charge"}}
	w.proxy.spoil(dropAfter, status(503, "30"))
	_, kill := s.start(w, t, "/orders", named)
	eventually(t, "the second attempt", func() bool { return len(w.proxy.arrived()) == 2 })
	kill()
	s.run(w, t, "/orders", named).answered(t, w, 201, `{"run":1}`)
	w.ran(1)
	entries, err := os.ReadDir(journal)
	if err != nil || len(entries) != 0 {
		t.Errorf("the journal after the operation was done: %v, %v", entries, err)
	}
	before := w.proxy.arrived()[0]
	s.run(w, t, "/orders", named)
	if lines := w.proxy.arrived(); lines[len(lines)-1] == before || w.runs.Load() != 2 {
		t.Errorf("after the operation was done: keys %q, %d runs", lines, w.runs.Load())
	}
}

func tsOldKey(t *testing.T, s script) {
	w, journal := open(t), t.TempDir()
	named := scenario{Journal: journal, Send: map[string]any{"operation": "order-17/charge"}, Options: map[string]any{
		"attemptsMax": 1, "attemptTimeoutMs": 5000, "elapsedMaxMs": 1, "keyAgeMaxMs": 5002,
	}}
	w.proxy.spoil(dropAfter)
	s.run(w, t, "/orders", named).ended(t, "GaveUpError", "attempts", true)
	aged(t, journal, 6*time.Second)
	s.run(w, t, "/orders", named).ended(t, "ExpiredError", "", false)
	w.ran(1)
	if n := len(w.proxy.arrived()); n != 1 {
		t.Errorf("%d requests, want the old key not to be sent", n)
	}
}

// aged makes the one entry of a journal older.
func aged(t *testing.T, journal string, by time.Duration) {
	t.Helper()
	paths, err := fs.Glob(os.DirFS(journal), "*.json")
	if err != nil || len(paths) != 1 {
		t.Fatalf("%v, %v", paths, err)
	}
	path := filepath.Join(journal, paths[0])
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entry := map[string]string{}
	if err := json.Unmarshal(raw, &entry); err != nil {
		t.Fatal(err)
	}
	sent, err := time.Parse(time.RFC3339, entry["first_sent"])
	if err != nil {
		t.Fatal(err)
	}
	entry["first_sent"] = sent.Add(-by).Format(time.RFC3339Nano)
	if raw, err = json.Marshal(entry); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func tsExpired(t *testing.T, s script) {
	for _, status := range []int{http.StatusGone, http.StatusPreconditionFailed} {
		w := open(t)
		w.mux.HandleFunc("POST /gone", func(rw http.ResponseWriter, _ *http.Request) {
			answer := idem.NewProblem(status, header.CodeKeyExpired, "Key expired", "").Response()
			rw.Header().Set("Content-Type", answer.Get("Content-Type"))
			rw.WriteHeader(status)
			_, _ = rw.Write(answer.Body)
		})
		s.run(w, t, "/gone", scenario{}).ended(t, "ExpiredError", "", false)
		if n := len(w.proxy.arrived()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
	}
}

func tsCanceled(t *testing.T, s script) {
	w := open(t)
	w.proxy.spoil(dropAfter, status(503, "30"))
	got := s.run(w, t, "/orders", scenario{AbortAfterMS: 1500})
	got.ended(t, "GaveUpError", "canceled", true)
	if got.ElapsedMS > 20_000 {
		t.Errorf("it took %d ms to cancel", got.ElapsedMS)
	}
	// The key is what the caller asks again with.
	w.proxy.spoil()
	s.run(w, t, "/orders", scenario{Send: map[string]any{"key": got.Key}}).answered(t, w, 201, `{"run":1}`)
	w.ran(1)
}

func tsNotSent(t *testing.T, s script) {
	w := open(t)
	for name, test := range map[string]struct {
		scenario scenario
		want     string
	}{
		"a key that no header takes": {scenario{Send: map[string]any{"key": "schlüssel"}}, "KeyError"},
		"an empty key":               {scenario{Send: map[string]any{"key": ""}}, "KeyError"},
		"a key in the headers":       {scenario{Send: map[string]any{"headers": map[string]string{"Idempotency-Key": `"k"`}}}, "KeyError"},
		"a name without a journal":   {scenario{Send: map[string]any{"operation": "order-17"}}, "KeyError"},
		"a header that is none":      {scenario{Send: map[string]any{"headers": map[string]string{"X": "line\nline"}}}, "TypeError"},
		"a configuration":            {scenario{Options: map[string]any{"backoffBaseMs": 50, "backoffMaxMs": 20}}, "RangeError"},
	} {
		if got := s.run(w, t, "/orders", test.scenario); got.Error != test.want || got.Unknown != nil {
			t.Errorf("%s: got %+v, want %s", name, got, test.want)
		}
	}
	if n := len(w.proxy.arrived()); n != 0 {
		t.Errorf("%d requests", n)
	}
}
