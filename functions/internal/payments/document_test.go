package payments_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/openapi"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// apiDocument is functions/api/openapi.yaml.
var apiDocument = sync.OnceValues(openapi.Find)

func document(t *testing.T) *openapi.Document {
	t.Helper()
	d, err := apiDocument()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// givenAnswer is an answer of an operation, by its operationId; "" where none was asked for.
type givenAnswer struct {
	operation string
	openapi.Answer
}

// documented holds an exchange against the document: every test of the application does, with all that its clients send.
func (w *world) documented(req *http.Request, body string, res *http.Response, raw []byte) {
	w.Helper()
	operation, answer, err := document(w.T).Check(openapi.Exchange{
		Method: req.Method, Path: req.URL.EscapedPath(), RequestHeader: req.Header, RequestBody: []byte(body),
		Status: res.StatusCode, Header: res.Header, Body: raw,
	})
	if err != nil {
		w.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.given = append(w.given, givenAnswer{operation, answer})
}

// The document has the routes that the application has, and says of each how it is protected.
func TestDocumentHasEveryRoute(t *testing.T) {
	tables, _ := reflect.TypeFor[config.Tables]().FieldByName("Retention")
	retention, err := time.ParseDuration(tables.Tag.Get("envDefault"))
	if err != nil {
		t.Fatal(err)
	}
	routes, err := payments.Routes(retention)
	if err != nil {
		t.Fatal(err)
	}
	var registered, said []string
	for _, r := range routes {
		line := r.Pattern
		if r.Operation != "" {
			line += " " + strings.Join([]string{r.Operation, string(r.Kind), r.Policy.Name, r.Retention().String()}, " ")
		}
		registered = append(registered, line)
	}
	for _, o := range document(t).Operations() {
		line := o.Method + " " + o.Path
		if p := o.Protection; p != nil {
			kept, err := time.ParseDuration(p.Retention)
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			line += " " + strings.Join([]string{p.Operation, p.Kind, p.Policy, kept.String()}, " ")
		}
		said = append(said, line)
	}
	slices.Sort(registered)
	slices.Sort(said)
	if !slices.Equal(registered, said) {
		t.Errorf("the application has\n%s\nthe document\n%s", strings.Join(registered, "\n"), strings.Join(said, "\n"))
	}
}

// Every answer that the document has is given by the application, each of its codes at each of its operations; that it
// gives no other, each exchange of each test shows.
func TestEveryDocumentedAnswerIsGiven(t *testing.T) {
	given := map[givenAnswer]bool{}
	for _, scenario := range []func(*world){
		(*world).refuseRequests, (*world).refuseCallers, (*world).fail, (*world).giveFinalAnswers, (*world).giveUp, (*world).giveUpUnclaimed,
		(*world).showNothing, (*world).exceedQuotas, (*world).answerTooMuch, (*world).beNotified, (*world).loseRecords, (*world).haveNoTime,
	} {
		w := &world{T: t, clock: idemtest.NewClock(noon)}
		w.backend = onMemstore(t, w.clock)
		w.start(options{})
		scenario(w)
		for _, g := range w.given {
			given[g] = true
		}
	}
	missing := func(operation string, answers []openapi.Answer) {
		for _, a := range answers {
			if g := (givenAnswer{operation, a}); !given[g] {
				t.Errorf("%s: the document has %d %s, which was never given", operation, a.Status, a.Code)
			}
		}
	}
	missing("", document(t).Unrouted())
	for _, o := range document(t).Operations() {
		missing(o.ID, o.Answers)
	}
}

// ask is a request that an operation accepts.
type ask struct{ path, body string }

// asks are one for each operation, in this order; the refund is of the payment.
func (w *world) asks(payment string) []ask {
	return []ask{
		{"/v1/payments", order("card_ok")},
		{"/v1/payments/" + payment + "/refunds", `{"amount":1}`},
		{"/v1/payouts", send("iban_ok", 500)},
		{"/v1/transfers", transfer("acct_1", "acct_2", 500)},
	}
}

// reads are the paths that are only read, with ids that lead nowhere.
var reads = []string{"/v1/payments/pay_x", "/v1/payouts/po_x", "/v1/accounts/acct_x", "/v1/operations/" + unusedOperation}

// refuseRequests: a request that is wrong, or comes at the wrong time.
func (w *world) refuseRequests() {
	w.open(payments.Account{Tenant: tenantA, ID: "acct_usd", Currency: "USD", Balance: 100})
	old := w.clock.Now().Add(-48 * time.Hour).Format(time.RFC3339)
	for _, a := range w.asks(w.paid("paid", "card_ok").ID) {
		key := "refused " + a.path
		w.post(tenantA, a.path, "", a.body).problem(400, "idempotency_key_missing")
		w.send(http.MethodPost, tenantA, a.path, a.body, "Content-Type: application/json", "Idempotency-Key: a, b").problem(400, "idempotency_key_invalid")
		w.post(tenantA, a.path, key, `{}`).problem(400, "request_invalid")
		w.post(tenantA, a.path, key, a.body, "Idempotency-First-Sent: "+old).problem(412, "idempotency_key_expired")
		w.post(tenantA, a.path, key, strings.Repeat("x", 256<<10+1)).problem(413, "request_too_large")
		w.send(http.MethodPost, tenantA, a.path, a.body, `Idempotency-Key: "k"`, "Content-Type: text/plain").problem(415, "unsupported_media_type")
		w.post(tenantA, a.path, key, a.body)
		w.post(tenantA, a.path, key, `{"amount":2}`).problem(422, "idempotency_key_reused_with_different_payload")
		w.hold(key)
		w.post(tenantA, a.path, key, a.body).problem(409, "idempotency_key_in_progress").want(409, "Retry-After")
	}
	w.post(tenantA, "/v1/payments/pay_x/refunds", "k", `{"amount":1}`).problem(404, "payment_not_found")
	w.post(tenantA, "/v1/transfers", "k", transfer("acct_x", "acct_2", 5)).problem(404, "account_not_found")
	w.post(tenantA, "/v1/transfers", "k2", transfer("acct_1", "acct_usd", 5)).problem(400, "currency_mismatch").want(400, "Idempotency-Status: executed")
	w.post(tenantA, "/v1/payouts", "k", `{"from":"acct_x","amount":5,"currency":"EUR","destination":"iban_ok"}`).problem(404, "account_not_found")
	w.post(tenantA, "/v1/payouts", "k2", `{"from":"acct_usd","amount":5,"currency":"EUR","destination":"iban_ok"}`).problem(400, "currency_mismatch")
	w.get(tenantA, "/v1/nothing").problem(404, "not_found")
	w.send(http.MethodDelete, tenantA, "/v1/payments", "").problem(405, "method_not_allowed")
}

// hold makes the key's record one that somebody is executing, whatever it was.
func (w *world) hold(key string) {
	w.Helper()
	for _, name := range []string{"payments.create", "refunds.create", "payouts.create", "transfers.create"} {
		scope := idem.Scope{Tenant: tenantA, Operation: name, Key: key}
		seen, err := w.backend.store.Get(w.Context(), scope.RecordKey())
		w.ok(err)
		if seen == nil {
			continue
		}
		held := *seen
		held.State, held.Kind, held.Response = storage.StateInProgress, idem.KindAtomic, idem.Response{}
		held.LeaseUntil, held.DoneAt, held.ExpiresAt = w.clock.Now().Add(time.Minute), time.Time{}, time.Time{}
		held.FreeAt = time.Time{}
		w.ok(w.backend.store.Update(w.Context(), held, storage.FenceOf(*seen)))
		return
	}
	w.Fatalf("key %s has no record", key)
}

// refuseCallers: whoever is nobody, at every operation.
func (w *world) refuseCallers() {
	for token, want := range map[string]struct {
		status int
		code   string
	}{
		"": {401, "unauthorized"}, strangerToken: {403, "forbidden"}, expiredToken: {403, "api_key_expired"}, revokedToken: {403, "api_key_revoked"},
		scopelessToken: {403, "scope_missing"}, namelessToken: {500, "internal_error"}, uncertainToken: {503, "idempotency_store_unavailable"},
	} {
		for _, a := range w.asks("pay_x") {
			w.post(token, a.path, "k", a.body).problem(want.status, want.code)
		}
		for _, path := range reads {
			w.get(token, path).problem(want.status, want.code)
		}
	}
}

// fail: the store has trouble, or the tenant's encryption key is gone.
func (w *world) fail() {
	for _, a := range w.asks(w.paid("paid", "card_ok").ID) {
		w.store.On(faulty.Commit, 1, faulty.Refuse(errors.New("a fault")))
		w.post(tenantA, a.path, "k", a.body).problem(500, "internal_error")
		w.store.On(faulty.Commit, 1, faulty.Refuse(storage.ErrErased))
		if got := w.post(tenantA, a.path, "k2", a.body).problem(410, "idempotency_response_erased"); !strings.Contains(got.body, "Nothing is executed") {
			w.Errorf("%s: a request that never ran is told %s", a.path, got.body)
		}
	}
	id := w.stored("sealed", nil)
	key, err := id.RecordKey()
	w.ok(err)
	seen, err := w.backend.store.Get(w.Context(), key)
	w.ok(err)
	sealed := *seen
	sealed.Sealed = true
	w.ok(w.backend.store.Update(w.Context(), sealed, storage.FenceOf(*seen)))
	w.store.On(faulty.LoadResponse, 1, faulty.Refuse(storage.ErrErased))
	w.get(tenantA, "/v1/operations/"+string(id)).problem(410, "idempotency_response_erased")
}

// giveFinalAnswers: what succeeds and what is declined, and what is read of it.
func (w *world) giveFinalAnswers() {
	w.faults(
		provider.Rule{On: provider.Charge, Source: "card_poor", Fault: provider.Decline},
		provider.Rule{On: provider.Screening, Destination: "iban_bad", Fault: provider.Decline},
		provider.Rule{On: provider.Screening, Destination: "iban_slow", Fault: provider.RateLimit},
	)
	paid := w.paid("paid", "card_ok").ID
	w.again("paid", "card_ok").want(201)
	poor := w.pay("poor", "card_poor")
	w.deliver(poor.Operation)
	w.again("poor", "card_poor").problem(402, "payment_declined")

	var refund accepted
	w.giveBack("refund", paid, 500).want(202).decode(&refund)
	w.deliver(refund.Operation)
	w.giveBack("refund", paid, 500).want(201)
	w.giveBack("much", paid, 1500).problem(402, "refund_exceeds_payment")
	w.giveBack("poor", poor.Payment.ID, 5).problem(402, "payment_not_refundable")
	var done payout
	w.payOut("payout", "iban_ok").want(201).decode(&done)
	w.payOut("slow", "iban_slow").want(202)
	w.payOut("bad", "iban_bad").problem(402, "payout_declined")
	w.post(tenantA, "/v1/payouts", "poor", `{"from":"acct_2","amount":5,"currency":"EUR","destination":"iban_ok"}`).problem(402, "insufficient_funds")
	w.post(tenantA, "/v1/transfers", "poor", transfer("acct_2", "acct_1", 5)).problem(402, "insufficient_funds")
	w.post(tenantA, "/v1/transfers", "transfer", transfer("acct_1", "acct_2", 5)).want(201)

	w.faults(provider.Rule{On: provider.Refund, Fault: provider.Decline})
	w.giveBack("declined", paid, 5).want(202).decode(&refund)
	w.deliver(refund.Operation)
	w.giveBack("declined", paid, 5).problem(402, "refund_declined")

	for _, path := range []string{"/v1/payments/" + paid, "/v1/payouts/" + done.ID, "/v1/accounts/acct_1", "/v1/operations/" + string(poor.Operation)} {
		w.get(tenantA, path).want(200, "-Idempotency-Status")
		w.send(http.MethodGet, tenantA, path, "", `Idempotency-Key: "k"`).want(200, "Idempotency-Status: ignored")
		w.send(http.MethodHead, tenantA, path, "").want(200)
	}
}

// giveUp: the provider can't be reached, for good, or refuses a request that is not the client's fault.
func (w *world) giveUp() {
	asks := w.asks(w.paid("paid", "card_ok").ID)
	for code, fault := range map[string]provider.Fault{"provider_unavailable": provider.RateLimit, "provider_refused": provider.Refuse} {
		for i, effect := range []provider.Kind{provider.Charge, provider.Refund, provider.Screening} {
			w.faults(provider.Rule{On: effect, Fault: fault})
			if first := w.post(tenantA, asks[i].path, code, asks[i].body); first.status != 502 { // what is delivered inline is over
				var a accepted
				first.want(202).decode(&a)
				w.deliver(a.Operation)
				w.drain(time.Hour)
			}
			w.post(tenantA, asks[i].path, code, asks[i].body).problem(502, code)
		}
	}
}

// giveUpUnclaimed: nobody begins in time, or an operator ends what nobody has begun. Payouts have no inline delivery here:
// an API function that has no time left for a call leaves its message to the worker, too.
func (w *world) giveUpUnclaimed() {
	refunded := w.paid("paid", "card_ok").ID
	app, err := newApp(w.store, w.backend.ledger, nil, idem.Config{Now: w.clock.Now, Pause: w.pause})
	w.ok(err)
	w.api = httptest.NewServer(app)
	w.Cleanup(w.api.Close)
	for _, a := range w.asks(refunded)[:3] {
		var abandoned, closed accepted
		w.post(tenantA, a.path, "abandoned", a.body).want(202).decode(&abandoned)
		w.post(tenantA, a.path, "closed", a.body).want(202).decode(&closed)
		m := w.message(closed.Operation)
		w.ok(w.operator.Close(w.Context(), m.ID, w.seen(m)))
		w.post(tenantA, a.path, "closed", a.body).problem(502, "operation_closed").want(502, "Idempotent-Replayed: true")
		w.clock.Advance(24 * time.Hour)
		w.deliver(abandoned.Operation)
		w.post(tenantA, a.path, "abandoned", a.body).problem(408, "operation_abandoned").want(408, "Idempotent-Replayed: true")
	}
}

// showNothing: there is nothing to read.
func (w *world) showNothing() {
	for _, path := range reads {
		w.get(tenantA, path).want(404)
	}
}

// restart puts the application there again, with an engine of another configuration.
func (w *world) restart(cfg idem.Config) {
	w.Helper()
	cfg.Now, cfg.Pause = w.clock.Now, w.pause
	app, err := newApp(w.store, w.backend.ledger, w.worker, cfg)
	w.ok(err)
	w.api = httptest.NewServer(app)
	w.Cleanup(w.api.Close)
}

// used is a quota of which nothing is left.
type used struct{}

func (used) NewKey(context.Context, string) (func(), error) {
	return nil, &idem.QuotaError{Limit: "new keys per second", RetryAfter: time.Second}
}

func (used) LookUp(context.Context, string) error {
	return &idem.QuotaError{Limit: "look-ups per second", RetryAfter: time.Second}
}

func (w *world) exceedQuotas() {
	w.restart(idem.Config{Quota: used{}})
	for _, a := range w.asks("pay_x") {
		w.post(tenantA, a.path, "k", a.body).problem(429, "idempotency_quota_exceeded").want(429, "Retry-After")
	}
	w.get(tenantA, "/v1/operations/"+unusedOperation).problem(429, "idempotency_quota_exceeded").want(429, "Retry-After")
}

// answerTooMuch: an answer that can't be stored.
func (w *world) answerTooMuch() {
	asks := w.asks(w.paid("paid", "card_ok").ID)
	w.restart(idem.Config{ResponseBytesMax: 16})
	for _, a := range asks {
		w.post(tenantA, a.path, "k", a.body).problem(500, "idempotency_response_too_large")
	}
}

// loseRecords: nothing proves that a key is younger than the loss.
func (w *world) loseRecords() {
	_, err := w.store.SetRefuseBefore(w.Context(), w.clock.Now())
	w.ok(err)
	for _, a := range w.asks("pay_x") {
		w.post(tenantA, a.path, "k", a.body).problem(503, "idempotency_refused_before").want(503, "Retry-After")
	}
}

// haveNoTime: a handler starts only with 400 ms, and these requests have little more for all.
func (w *world) haveNoTime() {
	for _, a := range w.asks("pay_x") {
		ctx, cancel := context.WithTimeout(w.Context(), 700*time.Millisecond)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, a.path, strings.NewReader(a.body))
		for name, value := range map[string]string{"Authorization": "Bearer " + tenantA, "Content-Type": "application/json", header.NameKey: `"k"`} {
			r.Header.Set(name, value)
		}
		got := httptest.NewRecorder()
		w.api.Config.Handler.ServeHTTP(got, r)
		cancel()
		w.documented(r, a.body, got.Result(), got.Body.Bytes())
		answer{t: w.T, status: got.Code, header: got.Header(), body: got.Body.String()}.problem(503, "idempotency_no_time").want(503, "Retry-After")
	}
}
