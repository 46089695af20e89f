//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/idem-go/idem-aws/internal/clients"
	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// paymentsOfAClient is how many payments each client makes at once.
const paymentsOfAClient = 12

// lostOfAClient are what comes between the client and API Gateway, by the number of a payment's POST; none is passed on.
var lostOfAClient = [][]trouble{
	{},
	{replyLost},
	{requestLost},
	{unavailableBefore},
	{throttledBefore},
	{replyLost, unavailableBefore, throttledBefore},
	{timedOutAfter},
	{replyLost, replyLost},
	{requestLost, throttledBefore, replyLost},
}

// trouble is what a door does to one request.
type trouble string

const (
	passed            trouble = ""
	requestLost       trouble = "the connection is cut, nobody has seen the request"
	replyLost         trouble = "the request is served, its reply is lost"
	unavailableBefore trouble = "503, nobody has seen the request"
	throttledBefore   trouble = "429, nobody has seen the request"
	timedOutAfter     trouble = "the request is served, 504 is the reply"
)

// door stands between a client and API Gateway. What it does depends on the reference of a payment, not on the order of
// requests, which run at once.
type door struct {
	*httptest.Server
	plan func(reference string, attempt int) trouble

	mu   sync.Mutex
	keys map[string][]string // of each reference, as they arrived
	// held is closed when a reply is held back until the client is gone; nil where none is to be.
	held      chan struct{}
	holdOnce  sync.Once
	reference string // of the payment whose first reply is held
}

func openDoor(t *testing.T, plan func(reference string, attempt int) trouble) *door {
	t.Helper()
	d := &door{plan: plan, keys: map[string][]string{}}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

// arrived notes a POST's key, and returns which of its payment's attempts it is, from 0.
func (d *door) arrived(reference, key string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys[reference] = append(d.keys[reference], key)
	return len(d.keys[reference]) - 1
}

// keysOf are the keys that a payment was sent with.
func (d *door) keysOf(reference string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.keys[reference])
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	reference, attempt := referenceOf(body), 0
	if r.Method == http.MethodPost {
		attempt = d.arrived(reference, r.Header.Get("Idempotency-Key"))
	}
	does := passed
	if r.Method == http.MethodPost {
		does = d.plan(reference, attempt)
	}
	switch does {
	case requestLost:
		panic(http.ErrAbortHandler)
	case unavailableBefore, throttledBefore:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(map[trouble]int{unavailableBefore: http.StatusServiceUnavailable, throttledBefore: http.StatusTooManyRequests}[does])
		return
	}
	// Not the client's context: what has left is served, whoever waits for it.
	got, err := deployed.tenantA.send(context.WithoutCancel(r.Context()), request{method: r.Method, path: r.URL.Path, body: string(body), header: forwarded(r.Header)})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if d.held != nil && reference == d.reference && attempt == 0 {
		d.holdOnce.Do(func() { close(d.held) })
		<-r.Context().Done()
	}
	if does == replyLost || r.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	for name, values := range got.header {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length")
	if does == timedOutAfter {
		w.Header().Del("Idempotency-Expires")
		w.WriteHeader(http.StatusGatewayTimeout)
		return
	}
	w.WriteHeader(got.status)
	_, _ = w.Write(got.body) // the client may have gone
}

// forwarded are the headers that go on; the connection's own stay here.
func forwarded(h http.Header) http.Header {
	on := h.Clone()
	for _, name := range []string{"Connection", "Content-Length", "Accept-Encoding", "Host"} {
		on.Del(name)
	}
	return on
}

func referenceOf(body []byte) string {
	_, rest, _ := bytes.Cut(body, []byte(`"reference":"`))
	reference, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(reference)
}

// builtClients are what a user installs, by the languages.
var builtClients = map[string]func(context.Context, string) (*clients.Client, error){
	"go": clients.Go, "typescript": clients.TypeScript, "python": clients.Python,
}

// builtClient builds one. Where a tool for it is missing one line says so; with CI=true that is a failure.
func builtClient(t *testing.T, name string) *clients.Client {
	t.Helper()
	c, err := builtClients[name](t.Context(), t.TempDir())
	if localtool.Excuses(err) || os.Getenv("CI") != "true" && errors.Is(err, clients.ErrMissing) {
		t.Skipf("not run: the %s client: %v", name, err)
	}
	must(t, err)
	return c
}

// cardsOfClients are the sources of each client's payments: the provider loses replies, fails and throttles, too.
var cardsOfClients = func() map[string][]string {
	cards := map[string][]string{}
	for name := range builtClients {
		cards[name] = []string{
			card("client_" + name),
			troubled("card_client_lost_"+name, provider.Rule{On: provider.Charge, Fault: provider.DropAfter, Times: 2}),
			troubled("card_client_500_"+name, provider.Rule{On: provider.Charge, Fault: provider.ErrorAfter, Times: 1}),
			troubled("card_client_429_"+name, provider.Rule{On: provider.Charge, Fault: provider.RateLimit, Times: 2}),
		}
	}
	return cards
}()

// paymentOf is a client's payment through a door.
func paymentOf(d *door, reference, source, journal string) clients.Task {
	return clients.Task{
		ID: reference, URL: d.URL + payments, Method: http.MethodPost, Body: paymentBody(1999, source, reference),
		Headers:   map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + deployed.tenantA.token},
		Operation: &reference, Journal: journal, Await: true, Done: true,
		Options: clients.Options{SendFirstSent: true, AttemptsMax: 40, ElapsedMaxMS: float64(delivered.Milliseconds()), AwaitMaxMS: float64(delivered.Milliseconds())},
	}
}

// paidOnce fails the test unless the payment has its final answer and made one charge, under one key of the client's.
func paidOnce(t *testing.T, d *door, reference string, got clients.Result) {
	t.Helper()
	if got.Answer == nil || got.Answer.Status != http.StatusCreated {
		t.Errorf("%s ended with %+v %+v, want 201", reference, got.Answer, got.Error)
		return
	}
	charge := chargedOnce(t, request{key: reference}, provider.Succeeded)
	if !strings.Contains(got.Answer.Body, charge.ID) {
		t.Errorf("%s is answered by %s, want the charge %s", reference, got.Answer.Body, charge.ID)
	}
	if keys := slices.Compact(slices.Sorted(slices.Values(d.keysOf(reference)))); !slices.Equal(keys, []string{`"` + got.Key + `"`}) {
		t.Errorf("%s was sent with the keys %q, want %q alone", reference, keys, got.Key)
	}
}

// Whatever is lost between client, gateway, function and provider: a payment is one charge, and its client learns of it.
func TestEveryClientPaysOnceThroughFaults(t *testing.T) {
	t.Parallel()
	for name := range builtClients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, journal := builtClient(t, name), t.TempDir()
			plans := map[string][]trouble{}
			d := openDoor(t, func(reference string, attempt int) trouble {
				if plan := plans[reference]; attempt < len(plan) {
					return plan[attempt]
				}
				return passed
			})
			var tasks []clients.Task
			for n := range paymentsOfAClient {
				reference := named(fmt.Sprintf("client-%s-%d", name, n))
				plans[reference] = lostOfAClient[n%len(lostOfAClient)]
				tasks = append(tasks, paymentOf(d, reference, cardsOfClients[name][n%len(cardsOfClients[name])], journal))
			}
			results, err := c.Run(t.Context(), tasks...)
			must(t, err)
			for _, task := range tasks {
				paidOnce(t, d, task.ID, results[task.ID])
				if sent, least := len(d.keysOf(task.ID)), len(plans[task.ID])+1; sent < least {
					t.Errorf("%s was sent %d times, want at least %d: the faults were not met", task.ID, sent, least)
				}
			}
			nothingKept(t, journal)
		})
	}
}

// A client's process is killed when its request was served and the reply is under way; its successor has the journal.
func TestAKilledClientIsContinuedWithItsKey(t *testing.T) {
	t.Parallel()
	for name := range builtClients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, journal, reference := builtClient(t, name), t.TempDir(), named("client-killed-"+name)
			d := openDoor(t, func(string, int) trouble { return passed })
			d.held, d.reference = make(chan struct{}), reference
			task := paymentOf(d, reference, card("client_killed"), journal)
			first, err := c.Start(t.Context())
			must(t, err)
			must(t, first.Send(task))
			select {
			case <-d.held:
			case <-t.Context().Done():
				t.Fatal("the request never came")
			}
			must(t, first.Kill())
			if results, err := first.Wait(); err == nil || len(results) != 0 {
				t.Fatalf("a killed process said %v, %v", results, err)
			}
			results, err := c.Run(t.Context(), task)
			must(t, err)
			paidOnce(t, d, reference, results[reference])
			if sent := len(d.keysOf(reference)); sent < 2 {
				t.Errorf("it was sent %d times, want once by each process", sent)
			}
			nothingKept(t, journal)
		})
	}
}

// nothingKept fails the test where a journal still has an operation that is done.
func nothingKept(t *testing.T, journal string) {
	t.Helper()
	entries, err := os.ReadDir(journal)
	must(t, err)
	if len(entries) > 0 {
		t.Errorf("the journal keeps %d operations that are done", len(entries))
	}
}
