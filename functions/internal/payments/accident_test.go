package payments_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

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

	api      http.Handler
	worker   *outbox.Worker
	runner   *outbox.Runner
	operator *outbox.Operator
}

// accident is one run: a fresh store and provider, and the processes one after the other.
type accident struct {
	clock  *idemtest.Clock
	random io.Reader // seeded: an accident repeats
	inner  *memstore.Store
	rows   payments.Rows
	queue  *memqueue.Queue
	till   *till
	// wire are requests that land when the next process makes its call with the number, or when they have been under way for as
	// long as any may be, or at the end.
	wire   []sent
	landAt int
	request
	answers []string
}

// request is what the client of an accident asks for, and who finishes it.
type request struct {
	path, body string
	by         finisher
	// paidOut is what the provider answers to a payout; nil where it pays out.
	paidOut outbox.Outcome
	// partitions are those of the account that is transferred to, where it collects.
	partitions int
	// blind says that the provider answers no look-up: a person reads its books.
	blind bool
}

// sent is a request on the wire.
type sent struct {
	at     time.Time
	arrive func()
}

// longestRequest is how long a request is under way at most (outbox.Topic).
const longestRequest = time.Minute

// finisher is who goes on after the first process: the client with its retries, the platform with its wake-ups and sweep
// while the client is gone, or both.
type finisher int

const (
	byBoth finisher = iota
	byClient
	byPlatform
)

// errCut is what a cut call's caller gets, and what a process dies of.
var errCut = errors.New("cut")

func newAccident(r request, landAt int) *accident {
	a := &accident{clock: idemtest.NewClock(noon), random: rand.NewChaCha8([32]byte{}), request: r, landAt: landAt, till: &till{paidOut: r.paidOut}}
	var err error
	if a.inner, err = memstore.New(memstore.Config{Translate: payments.TranslateRow, Now: a.clock.Now}); err != nil {
		panic(err)
	}
	a.rows, a.queue = payments.Rows{Store: a.inner}, memqueue.New(a.clock.Now)
	a.rows.Open(payments.Account{Tenant: tenantA, ID: "acct_1", Currency: "EUR", Balance: seedBalance})
	a.rows.Open(payments.Account{Tenant: tenantA, ID: "acct_2", Currency: "EUR", Partitions: r.partitions})
	a.paid()
	return a
}

// paid puts a payment there that succeeded, as the one to refund.
func (a *accident) paid() {
	w, err := payments.TranslateRow(payments.InsertPayment{Payment: payments.Payment{
		Tenant: tenantA, ID: "pay_1", Status: payments.StatusSucceeded, Amount: 1999, Currency: "EUR", Source: "card_ok",
		ProviderReference: "ch_1", CreatedAt: noon, Message: "op_1.1",
	}})
	if err != nil {
		panic(err)
	}
	a.inner.PutRow(w.Key, w.Apply(nil))
}

// silent keeps hundreds of thousands of accidents from writing a gigabyte of log lines that nobody reads.
var silent = slog.New(slog.DiscardHandler)

// begin starts a process.
func (a *accident) begin(c cut) *life {
	l := &life{accident: a, cut: c, begun: a.clock.Now()}
	store := faulty.New(a.inner)
	store.All(l.through)
	var err error
	client, err := payments.NewProvider("http://provider.invalid", nil)
	if err != nil {
		panic(err)
	}
	all := client.Topics(payments.Bounds{AttemptsMax: 10})
	for i := range all {
		all[i].Call, all[i].Probe, all[i].LongestRequest = l.call, l.probe, longestRequest
	}
	topics, err := outbox.NewTopics(outbox.Config{Now: a.clock.Now, Pause: a.clock.Pause, Random: a.random, SweepConcurrency: 1, Logger: silent}, all...)
	if err != nil {
		panic(err)
	}
	if l.worker, err = outbox.NewWorker(store, topics, a.queue, a.queue); err != nil {
		panic(err)
	}
	if l.runner, err = outbox.NewRunner(l.worker, nil, nil); err != nil {
		panic(err)
	}
	if l.operator, err = outbox.NewOperator(store, topics, a.queue, a.queue); err != nil {
		panic(err)
	}
	if l.api, err = newApp(store, cutLedger{l}, l.worker, idem.Config{Now: a.clock.Now, Pause: a.clock.Pause, Random: a.random, Logger: silent}); err != nil {
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
		return &storage.OutcomeUnknownError{Cause: errCut}
	case l.calls != l.cut.at:
		return run(ctx)
	}
	switch l.cut.mode {
	case loseReply, dieAfter:
		_ = run(ctx) // nobody hears of it
	case late, dieLate, outage:
		l.wire = append(l.wire, sent{l.clock.Now(), func() { _ = run(context.WithoutCancel(ctx)) }})
	}
	switch l.cut.mode {
	case dieBefore, dieAfter, dieLate:
		l.dead = true
		panic(errCut)
	}
	return &storage.OutcomeUnknownError{Cause: errCut}
}

func (a *accident) land() {
	wire := a.wire
	a.wire = nil
	for _, w := range wire {
		w.arrive()
	}
}

// overdue lands what has been under way for as long as any request may be: from then on absence may be proof.
func (a *accident) overdue() {
	if len(a.wire) > 0 && !a.clock.Now().Before(a.wire[0].at.Add(longestRequest)) {
		a.land()
	}
}

// cutLedger is the ledger as the process reads it.
type cutLedger struct{ l *life }

func (c cutLedger) Payment(ctx context.Context, tenant, id string) (*payments.Payment, error) {
	return readRow(ctx, c.l, func() (*payments.Payment, error) { return c.l.rows.Payment(ctx, tenant, id) })
}

func (c cutLedger) Refund(ctx context.Context, tenant, id string) (*payments.Refund, error) {
	return readRow(ctx, c.l, func() (*payments.Refund, error) { return c.l.rows.Refund(ctx, tenant, id) })
}

func (c cutLedger) Payout(ctx context.Context, tenant, id string) (*payments.Payout, error) {
	return readRow(ctx, c.l, func() (*payments.Payout, error) { return c.l.rows.Payout(ctx, tenant, id) })
}

func (c cutLedger) Account(ctx context.Context, tenant, id string) (*payments.Account, error) {
	return readRow(ctx, c.l, func() (*payments.Account, error) { return c.l.rows.Account(ctx, tenant, id) })
}

func (c cutLedger) Incoming(ctx context.Context, a payments.Account, partition, limit int) (found []payments.Transfer, err error) {
	err = c.l.through(ctx, func(context.Context) error {
		found, err = c.l.rows.Incoming(ctx, a, partition, limit)
		return err
	})
	return found, err
}

// cutCollections are the collecting accounts as the process folds them. A process that dies folds nothing more.
type cutCollections struct{ l *life }

func (c cutCollections) Collecting(ctx context.Context) (all []payments.Account, err error) {
	err = c.through(ctx, func() error {
		all, err = c.l.rows.Collecting(ctx)
		return err
	})
	return all, err
}

func (c cutCollections) Incoming(ctx context.Context, a payments.Account, partition, limit int) (found []payments.Transfer, err error) {
	err = c.through(ctx, func() error {
		found, err = c.l.rows.Incoming(ctx, a, partition, limit)
		return err
	})
	return found, err
}

func (c cutCollections) Fold(ctx context.Context, a payments.Account, transfers []payments.Transfer, at time.Time) error {
	return c.through(ctx, func() error { return c.l.rows.Fold(ctx, a, transfers, at) })
}

// RefuseBefore is the store's, which the process reads before it folds.
func (c cutCollections) RefuseBefore(ctx context.Context) (at time.Time, err error) {
	err = c.through(ctx, func() error {
		at, err = c.l.inner.RefuseBefore(ctx)
		return err
	})
	return at, err
}

// through turns the death of the process into an error: its accounts are folded on goroutines of their own, which no part of a test
// can recover.
func (c cutCollections) through(ctx context.Context, run func() error) (err error) {
	err = errCut
	mortal(func() { err = c.l.through(ctx, func(context.Context) error { return run() }) })
	return err
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

// call is the process's call to the provider.
func (l *life) call(ctx context.Context, m storage.Message) outbox.Outcome {
	var outcome outbox.Outcome
	if err := l.through(ctx, func(context.Context) error {
		outcome = l.till.serve(m)
		return nil
	}); err != nil {
		return outbox.Ambiguous{Cause: err}
	}
	return outcome
}

// probe is the process's look into the provider's books.
func (l *life) probe(ctx context.Context, m storage.Message) (finding outbox.Finding) {
	err := l.through(ctx, func(context.Context) error {
		evidence := l.till.evidence(m)
		switch {
		case l.blind:
			return errBlind
		case evidence == nil:
			finding = outbox.Absent{}
		default:
			finding = outbox.Found{Outcome: evidence}
		}
		return nil
	})
	if err != nil {
		return outbox.Unclear{Cause: err}
	}
	return finding
}

var errBlind = errors.New("the provider answers no look-up")

// till is the provider.
type till struct {
	// made are the keys of its objects, also of a payout that it declined.
	made    []idem.MessageID
	paidOut outbox.Outcome
}

// serve makes what is asked for; where keys are honoured, once for each.
func (t *till) serve(m storage.Message) outbox.Outcome {
	payout := m.Topic == payments.TopicPayouts || m.Topic == payments.TopicLegacyPayouts
	if _, refused := t.paidOut.(outbox.Refused); payout && refused {
		return t.paidOut
	}
	if keyless(m) || !slices.Contains(t.made, m.ID) {
		t.made = append(t.made, m.ID)
	}
	if payout && t.paidOut != nil {
		return t.paidOut
	}
	return outbox.Delivered{Reference: "ch_1", Evidence: []byte(`{"id":"ch_1"}`)}
}

// evidence is what the books say of a message; nil where they have nothing.
func (t *till) evidence(m storage.Message) outbox.Outcome {
	payout := m.Topic == payments.TopicPayouts || m.Topic == payments.TopicLegacyPayouts
	switch {
	case !slices.Contains(t.made, m.ID):
		return nil
	case payout && t.paidOut != nil:
		return t.paidOut
	}
	return outbox.Delivered{Reference: "ch_1", Evidence: []byte(`{"id":"ch_1"}`)}
}

func keyless(m storage.Message) bool { return strings.HasPrefix(m.Topic, "payments.legacy_") }

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

// live is what happens while the process runs.
func (l *life) live() {
	if l.by != byPlatform || len(l.answers) == 0 && l.begun.Equal(noon) {
		l.post()
	}
	if l.by != byClient {
		l.serve()
	}
}

// serve does what the platform does: stream records of new messages, due wake-ups, and what is scheduled. An operator looks at what
// it leaves in doubt.
func (l *life) serve() {
	ctx := context.Background()
	for _, m := range l.inner.Messages() {
		if m.State == storage.MessagePending {
			mortal(func() { _ = l.worker.DeliverSeen(ctx, m) }) // its trouble is what this is about
		}
	}
	mortal(func() { _, _ = l.runner.Sweep(ctx) })
	for _, id := range l.queue.Take() {
		mortal(func() { _ = l.worker.Deliver(ctx, id) })
	}
	if l.overdue(); l.doubtful() != "" {
		mortal(func() { _, _ = l.runner.Reconcile(ctx) })
		l.judge(ctx)
	}
	l.fold()
}

// judge is what an operator does about what is left to them: they settle by the provider's books, and close what those have nothing
// of, which is refused while a call may be under way.
func (l *life) judge(ctx context.Context) {
	for _, m := range l.inner.Messages() {
		if m.State != storage.MessageDead && (m.State != storage.MessageUnknown || !l.blind) {
			continue
		}
		mortal(func() {
			if evidence := l.till.evidence(m); evidence != nil {
				_, _ = l.operator.Settle(ctx, m.ID, outbox.Seen{Revision: m.Revision}, evidence)
			} else {
				_ = l.operator.Close(ctx, m.ID, outbox.Seen{Revision: m.Revision})
			}
		})
	}
}

// fold does what the scheduled sweep does beside sweeping.
func (l *life) fold() {
	if !l.dead {
		folder := payments.Folder{Collections: cutCollections{l}, RefuseBefore: cutCollections{l}.RefuseBefore, Now: l.clock.Now, Pause: l.clock.Pause}
		_, _ = folder.Run(context.Background()) // its trouble is what this is about
	}
}
