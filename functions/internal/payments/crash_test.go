package payments_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// This test takes the application through every way to go wrong once, and then once more. Each process that runs it has
// one cut: the n-th call that it makes to the outside, be it the store, the ledger or the provider, goes wrong, for every
// n until the process gets through. Another process follows with a cut of its own, and then one without; the client sends
// its request to each of them. At the end, and in every answer on the way, the invariants of docs/design.md hold.

// mode is how a call goes wrong.
type mode int

const (
	loseRequest mode = iota // the call is not made, and nobody hears
	loseReply               // the call is made, and nobody hears
	dieBefore               // the process dies before the call
	dieAfter                // the process dies when the call is made
	late                    // the call is still on the wire; the process goes on without a reply
	dieLate                 // the call is still on the wire; the process dies
	outage                  // the call is still on the wire; so long nothing else gets through that only a fence-off may
	modes
)

// outageFor ends between an execution's last commit and its last write (idem.Config).
const outageFor = 23_600 * time.Millisecond

func (m mode) String() string {
	return [...]string{"lose request", "lose reply", "die before", "die after", "late", "die, late", "outage"}[m]
}

// cut is where a process goes wrong.
type cut struct {
	at   int // counted from 1
	mode mode
}

// life is one process of the application.
type life struct {
	*accident
	cut   cut
	begun time.Time
	calls int
	dead  bool

	api    http.Handler
	worker *outbox.Worker
	sweep  *outbox.Sweep
}

// accident is one run: a fresh store and provider, and the processes one after the other.
type accident struct {
	clock  *clock
	random io.Reader // seeded: an accident repeats
	inner  *memstore.Store
	rows   payments.Rows
	queue  *memqueue.Queue
	till   *till
	// wire are requests that land when the next process makes its call with the number, or at the end.
	wire    []func()
	landAt  int
	path    string
	body    string
	answers []string
}

// errCut is what a cut call's caller gets, and what a process dies of.
var errCut = errors.New("cut")

func newAccident(path, body string, landAt int) *accident {
	a := &accident{clock: &clock{now: noon}, random: rand.NewChaCha8([32]byte{}), path: path, body: body, landAt: landAt, till: &till{keyed: !strings.Contains(body, "legacy_")}}
	var err error
	if a.inner, err = memstore.New(memstore.Config{Translate: payments.TranslateRow, Now: a.clock.Now}); err != nil {
		panic(err)
	}
	a.rows, a.queue = payments.Rows{Store: a.inner}, memqueue.New(a.clock.Now)
	a.rows.Open(payments.Account{Tenant: tenantA, ID: "acct_1", Currency: "EUR", Balance: seedBalance})
	a.rows.Open(payments.Account{Tenant: tenantA, ID: "acct_2", Currency: "EUR"})
	return a
}

// begin starts a process.
func (a *accident) begin(c cut) *life {
	l := &life{accident: a, cut: c, begun: a.clock.Now()}
	store := faulty.New(a.inner)
	store.All(l.through)
	var err error
	if l.api, err = newApp(store, cutLedger{l}, idem.Config{Now: a.clock.Now, Pause: a.clock.Pause, Random: a.random}); err != nil {
		panic(err)
	}
	client, err := payments.NewProvider("http://provider.invalid")
	if err != nil {
		panic(err)
	}
	charges := client.Topics(10)
	for i := range charges {
		charges[i].Call = l.charge
	}
	topics, err := outbox.NewTopics(outbox.Config{Now: a.clock.Now, Pause: a.clock.Pause, Random: a.random}, charges...)
	if err != nil {
		panic(err)
	}
	if l.worker, err = outbox.NewWorker(store, topics, a.queue, a.queue); err != nil {
		panic(err)
	}
	if l.sweep, err = outbox.NewSweep(store, topics, a.queue, a.queue); err != nil {
		panic(err)
	}
	return l
}

// through makes one call of the process to the outside.
func (l *life) through(ctx context.Context, run func(context.Context) error) error {
	if l.dead {
		panic(errCut)
	}
	l.calls++
	if l.calls == l.landAt {
		l.land()
	}
	switch {
	case l.cut.mode == outage && l.calls > l.cut.at && l.cut.at > 0 && l.clock.Now().Before(l.begun.Add(outageFor)):
		return &idem.OutcomeUnknownError{Cause: errCut}
	case l.calls != l.cut.at:
		return run(ctx)
	}
	switch l.cut.mode {
	case loseReply, dieAfter:
		_ = run(ctx) // nobody hears of it
	case late, dieLate, outage:
		l.wire = append(l.wire, func() { _ = run(context.WithoutCancel(ctx)) })
	}
	switch l.cut.mode {
	case dieBefore, dieAfter, dieLate:
		l.dead = true
		panic(errCut)
	}
	return &idem.OutcomeUnknownError{Cause: errCut}
}

func (a *accident) land() {
	wire := a.wire
	a.wire = nil
	for _, arrive := range wire {
		arrive()
	}
}

// cutLedger is the ledger as the process reads it.
type cutLedger struct{ l *life }

func (c cutLedger) Payment(ctx context.Context, tenant, id string) (*payments.Payment, error) {
	return readRow(ctx, c.l, func() (*payments.Payment, error) { return c.l.rows.Payment(ctx, tenant, id) })
}

func (c cutLedger) Account(ctx context.Context, tenant, id string) (*payments.Account, error) {
	return readRow(ctx, c.l, func() (*payments.Account, error) { return c.l.rows.Account(ctx, tenant, id) })
}

func readRow[T any](ctx context.Context, l *life, read func() (*T, error)) (*T, error) {
	var row *T
	err := l.through(ctx, func(context.Context) (err error) {
		row, err = read()
		return err
	})
	if err != nil {
		return nil, &idem.UnavailableError{RetryAfter: time.Second, Cause: err}
	}
	return row, nil
}

// charge is the process's call to the provider.
func (l *life) charge(ctx context.Context, m idem.Message) outbox.Outcome {
	var outcome outbox.Outcome
	if err := l.through(ctx, func(context.Context) error {
		outcome = l.till.charge(m)
		return nil
	}); err != nil {
		return outbox.Ambiguous{Cause: err}
	}
	return outcome
}

// till is the provider.
type till struct {
	keyed bool
	made  []idem.MessageID
}

// charge charges; where keys are honoured, once for each.
func (t *till) charge(m idem.Message) outbox.Outcome {
	if !t.keyed || len(t.made) == 0 {
		t.made = append(t.made, m.ID)
	}
	return outbox.Delivered{Reference: "ch_1", Evidence: []byte(`{"id":"ch_1"}`)}
}

// mortal runs a part of a process, which may die in it.
func mortal(f func()) {
	defer func() {
		if p := recover(); p != nil && p != any(errCut) {
			panic(p)
		}
	}()
	f()
}

// post sends the client's request and notes a definite answer. A process that dies gives none.
func (l *life) post() {
	r := httptest.NewRequest(http.MethodPost, l.path, strings.NewReader(l.body))
	r.Header.Set("Authorization", "Bearer "+tenantA)
	r.Header.Set("Idempotency-Key", `"k"`)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	mortal(func() { l.api.ServeHTTP(w, r) })
	if !l.dead {
		l.answers = append(l.answers, fmt.Sprintf("%d %s", w.Code, w.Body))
	}
}

// serve does what the platform does: stream records of new messages, due wake-ups, and the scheduled sweep.
func (l *life) serve() {
	ctx := context.Background()
	for _, m := range l.inner.Messages() {
		if m.State == idem.MessagePending {
			mortal(func() { _ = l.worker.DeliverSeen(ctx, m) }) // its trouble is what this is about
		}
	}
	mortal(func() { _, _ = l.sweep.Run(ctx) })
	for _, id := range l.queue.Take() {
		mortal(func() { _ = l.worker.Deliver(ctx, id) })
	}
}

// run is a whole accident. It returns how many calls each process with a cut made, and what is wrong at the end.
func (a *accident) run(cuts []cut, gap time.Duration) (calls []int, err error) {
	for _, c := range cuts {
		l := a.begin(c)
		l.post()
		l.serve()
		calls = append(calls, l.calls)
		a.clock.Add(gap)
	}
	l := a.begin(cut{})
	for range 5 {
		l.post()
		l.serve()
		a.clock.Add(time.Minute)
	}
	a.land()
	l.serve()
	l.post()
	return calls, a.check()
}

// check judges the end (docs/design.md I1, I2, I4, I6): one incarnation's writes, one charge, one final answer, no money
// lost; and every answer on the way was either that one, the one 202 before it, or a request to come again.
func (a *accident) check() error {
	records := a.inner.Records()
	if len(records) != 1 {
		return fmt.Errorf("I1: %d records", len(records))
	}
	if err := a.checkAnswers(records[0]); err != nil {
		return err
	}
	counted := map[string]int{}
	var sum int64
	for key, row := range a.inner.Rows() {
		kind, _, _ := strings.Cut(key, "#")
		counted[kind]++
		var account payments.Account
		if err := json.Unmarshal(row, &account); err != nil {
			return err
		}
		sum += account.Balance
	}
	moved, err := a.rows.Account(context.Background(), tenantA, "acct_2")
	switch {
	case err != nil:
		return err
	case sum != seedBalance:
		return fmt.Errorf("I6: %d became %d", seedBalance, sum)
	case counted["payment"]+counted["transfer"] != 1:
		return fmt.Errorf("I1: rows %v", counted)
	case counted["transfer"] == 1 && moved.Balance != 500:
		return fmt.Errorf("I1: %d moved, want 500", moved.Balance)
	case counted["payment"] == 1:
		return a.checkPayment(records[0])
	}
	return nil
}

func (a *accident) checkAnswers(r idem.Record) error {
	stored := fmt.Sprintf("%d %s", r.Response.Status, r.Response.Body)
	first := ""
	for i, got := range a.answers {
		switch status := got[:3]; status {
		case "202":
			if first == "" {
				first = got
			}
			if got != first {
				return fmt.Errorf("I4: accepted as %s and as %s", first, got)
			}
		case "409":
			if first != "" {
				return fmt.Errorf("I4: %s after %s", got, first)
			}
		case "503": // come again, whatever was answered before
		default:
			if got != stored {
				return fmt.Errorf("I4: answer %d is %s, stored is %s", i, got, stored)
			}
			first = stored
		}
	}
	if last := a.answers[len(a.answers)-1]; last != stored {
		return fmt.Errorf("promise 3: the last answer is %s, stored is %s", last, stored)
	}
	return nil
}

// checkPayment demands that the payment, its message, its record and the provider tell the same.
func (a *accident) checkPayment(r idem.Record) error {
	messages := a.inner.Messages()
	if len(messages) != 1 {
		return fmt.Errorf("I1: %d messages", len(messages))
	}
	m := messages[0]
	p, err := a.rows.Payment(context.Background(), tenantA, paymentOf(m))
	if err != nil || p == nil {
		return fmt.Errorf("I1: the message charges no payment: %w", err)
	}
	told := fmt.Sprintf("message %s, payment %s, record %s %d, %d charges", m.State, p.Status, r.State, r.Response.Status, len(a.till.made))
	settled := m.State == idem.MessageDelivered && p.Status == payments.StatusSucceeded && r.State == idem.StateCompleted && r.Response.Status == 201
	parked := m.State == idem.MessageUnknown && p.Status == payments.StatusPending && r.State == idem.StatePending
	switch {
	case len(a.till.made) > 1:
		return errors.New("I2: " + told)
	case settled && len(a.till.made) == 1 && a.till.made[0] == m.ID:
		return nil
	case parked && !a.till.keyed:
		return nil
	}
	return errors.New("I3: " + told)
}

func paymentOf(m idem.Message) string {
	var charge struct{ Payment string }
	if err := json.Unmarshal(m.Payload, &charge); err != nil {
		panic(err)
	}
	return charge.Payment
}

func TestCrashAtEveryCall(t *testing.T) {
	for name, request := range map[string]struct{ path, body string }{
		"transfer":       {"/v1/transfers", transfer("acct_1", "acct_2", 500)},
		"payment":        {"/v1/payments", order("card_ok")},
		"legacy payment": {"/v1/payments", order("legacy_card")},
	} {
		for _, gap := range []time.Duration{0, 45 * time.Second} {
			t.Run(fmt.Sprintf("%s, next process after %v", name, gap), func(t *testing.T) {
				t.Parallel()
				runs := 0
				run := func(landAt int, cuts ...cut) []int {
					runs++
					calls, err := newAccident(request.path, request.body, landAt).run(cuts, gap)
					if err != nil {
						t.Fatalf("cuts %v, late requests land at call %d: %v", cuts, landAt, err)
					}
					return calls
				}
				everyCut(run)
				t.Logf("%d accidents", runs)
				if runs < 100 {
					t.Errorf("%d accidents: the test proves less than it says", runs)
				}
			})
		}
	}
}

// everyCut tries every cut of a first process, and after each the main ones of a second; a request that is late lands at
// each of the second's calls, or after all.
func everyCut(run func(landAt int, cuts ...cut) []int) {
	for first := range modes {
		for at := 1; ; at++ {
			one := cut{at, first}
			if calls := run(0, one); calls[0] < at {
				break
			}
			if first == late || first == dieLate || first == outage {
				for landAt := 1; run(landAt, one, cut{})[1] >= landAt; landAt++ {
				}
				continue
			}
			for _, second := range []mode{loseReply, dieBefore, dieAfter} {
				for n := 1; run(0, one, cut{n, second})[1] >= n; n++ {
				}
			}
		}
	}
}
