package console_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/console"
	"github.com/idem-go/idem-aws/idem/operator/memlog"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	address = "127.0.0.1:8080"
	origin  = "http://" + address
	tenant  = "acme"
	// secret is in every payload, body and key of the world: no page may have it.
	secret = "hush-hush"
	// contradiction is evidence of something else than a message asked for.
	contradiction = "of another amount: " + secret
)

// told is what the test's application knows.
type told console.Facts

func (t told) Facts() console.Facts { return console.Facts(t) }

// world is an application whose clock and chance are the test's, with a console over it.
type world struct {
	*testing.T
	// now is the time in Unix milliseconds.
	now   atomic.Int64
	store *faulty.Store
	// memory is what store keeps rows in.
	memory *memstore.Store
	log    *memlog.Log
	desk   *operator.Desk
	mint   storage.IDGenerator
	cfg    console.Config
	// known is what the application knows; by default nothing.
	known any
	// unread is why the application does not know all.
	unread error
	// settled counts how often evidence was settled.
	settled atomic.Int64
	// by is what evidence was last settled by.
	by atomic.Value
}

// opening is a store with the tenants' keys.
type opening struct{ *memstore.Store }

func (opening) Decrypts() bool { return true }

func newWorld(t *testing.T, with ...func(*idem.Config)) *world {
	t.Helper()
	w := &world{T: t, log: memlog.New(), mint: storage.IDGenerator{Random: rand.NewChaCha8([32]byte{9})}}
	w.now.Store(noon.UnixMilli())
	var err error
	w.memory, err = memstore.New(memstore.Config{Now: w.clock, Shards: 2})
	w.ok(err)
	w.store = faulty.New(opening{w.memory})
	cfg := idem.Config{Now: w.clock, Random: w.mint.Random, Logger: slog.New(slog.DiscardHandler)}
	for _, change := range with {
		change(&cfg)
	}
	engine, err := idem.New(w.store, cfg)
	w.ok(err)
	topics, err := outbox.NewTopics(outbox.Config{Now: w.clock, Random: w.mint.Random, Logger: slog.New(slog.DiscardHandler)}, outbox.Topic{
		Name: "payments.charges", Call: func(context.Context, storage.Message) outbox.Outcome { return outbox.NotExecuted{} },
		Probe: func(context.Context, storage.Message) outbox.Finding {
			return outbox.Found{Outcome: outbox.Delivered{Reference: "ch_found"}}
		},
		Settle: func(_ storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
			w.settled.Add(1)
			w.by.Store(o)
			if d, is := o.(outbox.Delivered); is && string(d.Evidence) == contradiction {
				return outbox.Settlement{}, errors.New("another amount")
			}
			return outbox.Settlement{Response: idem.Response{Status: map[string]int{"delivered": 201, "declined": 402}[o.Name()]}}, nil
		},
	})
	w.ok(err)
	queue := memqueue.New(w.clock)
	w.desk, err = operator.New(operator.Config{
		Store: w.store, Engine: engine, Topics: topics, WakeUps: queue, DeadLetters: queue, Audit: w.log, Now: w.clock, Random: w.mint.Random,
		Probes: map[string]outbox.Probe{"orders.import": func(context.Context, storage.Record) outbox.Finding { return outbox.Absent{} }},
		Application: func(context.Context, string, idem.OperationID, []operator.MessageView) (any, error) {
			return w.known, w.unread
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	w.ok(err)
	w.cfg = console.Config{Desk: w.desk, Address: address, Actor: "ada", About: "test", Now: w.clock, Logger: slog.New(slog.DiscardHandler)}
	return w
}

func (w *world) clock() time.Time { return time.UnixMilli(w.now.Load()).UTC() }

func (w *world) advance(d time.Duration) { w.now.Add(d.Milliseconds()) }

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// operation leaves an operation with the messages; the key is secret.
func (w *world) operation(record func(*storage.Record), messages ...func(*storage.Message)) idem.OperationID {
	w.Helper()
	owner, err := w.mint.Owner()
	w.ok(err)
	r := storage.Record{
		State: storage.StatePending, Epoch: 1, Owner: owner, Revision: storage.Revision(owner), Tenant: tenant, Operation: "payments.create",
		Kind: idem.KindDeferred, Response: idem.Response{Status: 202, Body: []byte(secret)}, CreatedAt: noon, Retention: 24 * time.Hour, Attempts: 1,
		SchemaVersion: storage.SchemaVersion,
	}
	record(&r)
	if r.Key == "" {
		r.Key = idem.Scope{Tenant: tenant, Operation: r.Operation, Key: secret + string(owner)}.RecordKey()
	}
	r.OperationID, err = w.mint.OperationID(r.Key)
	w.ok(err)
	commit := storage.Commit{Record: r, Now: noon, Token: string(owner)}
	for i, change := range messages {
		m := storage.Message{
			Revision: storage.Revision(owner), ID: r.OperationID.Message(i + 1), Index: i + 1, OperationID: r.OperationID, RecordKey: r.Key, Tenant: tenant,
			Topic: "payments.charges", Payload: []byte(secret), State: storage.MessagePending, CreatedAt: noon, NextAttemptAt: noon, SweepAt: noon,
			Retention: r.Retention, SchemaVersion: storage.SchemaVersion,
		}
		change(&m)
		commit.Messages = append(commit.Messages, m)
	}
	send, err := w.store.Prepare(commit)
	w.ok(err)
	w.ok(send(w.Context()))
	return r.OperationID
}

func deferred(*storage.Record) {}

func pending(*storage.Message) {}

func completed(r *storage.Record) {
	r.State, r.Response.Status, r.DoneAt, r.ExpiresAt = storage.StateCompleted, 201, noon.Add(2*time.Second), noon.Add(r.Retention)
}

func wrapped(r *storage.Record) {
	r.State, r.Kind, r.Operation, r.LeaseUntil, r.Response = storage.StateUnknown, idem.KindWrapped, "orders.import", noon, idem.Response{}
}

// abandoned is a record like wrapped, whose absence can be proof by now.
func abandoned(r *storage.Record) { wrapped(r); r.LeaseUntil = noon.Add(-time.Hour) }

func delivered(m *storage.Message) {
	m.State, m.Epoch, m.Owner, m.Attempts, m.Reference, m.LastOutcome = storage.MessageDelivered, 1, "worker", 1, "ch_1", "delivered"
	m.FirstClaimedAt, m.DoneAt = noon.Add(time.Second), noon.Add(2*time.Second)
}

func unknown(m *storage.Message) {
	m.State, m.Owner, m.Epoch, m.Attempts, m.LastOutcome = storage.MessageUnknown, "worker", 1, 1, "ambiguous"
	m.OpenSince, m.FirstClaimedAt, m.LeaseUntil = noon.Add(time.Second), noon.Add(time.Second), noon.Add(10*time.Second)
}

func dead(m *storage.Message) {
	unknown(m)
	m.State, m.Attempts = storage.MessageDead, 10
}

func (w *world) messageState(id idem.MessageID) storage.MessageState {
	w.Helper()
	m, err := w.store.Message(w.Context(), id)
	w.ok(err)
	return m.State
}

// entries are all of the audit log.
func (w *world) entries() []operator.Entry {
	w.Helper()
	all, err := w.log.Entries(w.Context(), noon.Add(-time.Hour), noon.Add(time.Hour*24*365), "", 1000)
	w.ok(err)
	return all
}

// browser is a browser on the console's machine.
type browser struct {
	w       *world
	console *console.Console
	cookies []*http.Cookie
	csrf    string
}

// served makes the console, with a browser that was let in.
func (w *world) served() *browser {
	w.Helper()
	c, err := console.New(w.cfg)
	w.ok(err)
	w.Cleanup(c.Close)
	b := &browser{w: w, console: c}
	b.enter()
	return b
}

// enter exchanges the token for a cookie.
func (b *browser) enter() {
	b.w.Helper()
	res := b.do(b.request(http.MethodGet, strings.TrimPrefix(b.console.Enter(), origin), nil))
	if b.cookies = res.Result().Cookies(); res.Code != http.StatusOK || len(b.cookies) != 1 {
		b.w.Fatalf("%d, cookies %v", res.Code, b.cookies)
	}
	b.csrf = hidden.FindStringSubmatch(b.get(http.StatusOK, "/find"))[1]
}

var hidden = regexp.MustCompile(`name="csrf" value="([0-9a-f]{64})"`)

// request is one as a browser sends it from a page of the console.
func (b *browser) request(method, path string, form url.Values) *http.Request {
	r := httptest.NewRequestWithContext(b.w.Context(), method, origin+path, strings.NewReader(form.Encode()))
	r.RemoteAddr = "127.0.0.1:50000"
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		r.Header.Set("Origin", origin)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	return r
}

func (b *browser) do(r *http.Request) *httptest.ResponseRecorder {
	b.w.Helper()
	w := httptest.NewRecorder()
	b.console.ServeHTTP(w, r)
	if body := w.Body.String(); strings.Contains(body, secret) {
		b.w.Errorf("%s %s shows a stored body, a payload or a key:\n%s", r.Method, r.URL, body)
	}
	return w
}

// get reads a page, and demands its status.
func (b *browser) get(want int, path string) string {
	b.w.Helper()
	res := b.do(b.request(http.MethodGet, path, nil))
	if res.Code != want {
		b.w.Fatalf("GET %s: %d, want %d\n%s", path, res.Code, want, res.Body)
	}
	return res.Body.String()
}

// post sends a form with its token, and returns where it leads, or its page.
func (b *browser) post(want int, path string, form url.Values) string {
	b.w.Helper()
	form.Set("csrf", b.csrf)
	res := b.do(b.request(http.MethodPost, path, form))
	if res.Code != want {
		b.w.Fatalf("POST %s: %d, want %d\n%s", path, res.Code, want, res.Body)
	}
	if want == http.StatusSeeOther {
		return res.Header().Get("Location")
	}
	return res.Body.String()
}

// shows demands texts of a page.
func (b *browser) shows(page string, texts ...string) {
	b.w.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			b.w.Errorf("no %q in\n%s", text, page)
		}
	}
}

// link is the first address of a page that begins so.
func (b *browser) link(page, prefix string) url.Values {
	b.w.Helper()
	found := regexp.MustCompile(`href="(` + regexp.QuoteMeta(prefix) + `[^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		b.w.Fatalf("no link to %q in\n%s", prefix, page)
	}
	address, err := url.Parse(strings.ReplaceAll(found[1], "&amp;", "&"))
	b.w.ok(err)
	return address.Query()
}

// offered is the form of the change that the operation's page offers.
func (b *browser) offered(id idem.OperationID, action string) url.Values {
	b.w.Helper()
	form := b.link(b.get(http.StatusOK, "/operation/"+string(id)), "/change?action="+action)
	form.Set("reason", "ticket 17")
	return form
}
