package payments_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/identity"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/sim"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/webhook"
)

// simulated is the application in one story of the simulator: its http.Handler, its topics with their client of the provider, its webhook
// endpoint and its folder of collecting accounts, as the functions link them. Instead of its own are only the transport below the
// provider's client, the rows, who the callers are, and the functions' own envelopes.
type simulated struct {
	sim.Stage
	rows payments.Rows
	bank *bank
	asks map[string]asked
	// names are those of the asks, by their records' keys.
	names map[storage.RecordKey]string
	// decoded are the rows as the judge read them last.
	decoded map[string]seenRow
}

// asked is what the clients of one key ask for, in one of its variants.
type asked struct {
	tenant, key string
	variants    []variant
}

// variant is a request.
type variant struct{ target, body string }

// The accounts of a story's tenants: acct_1 holds this much, and acct_3 collects.
const simulatedFunds = 1000

func beginSimulated() sim.Begin {
	return sim.Begin{
		App: func(s sim.Stage) sim.App {
			return &simulated{Stage: s, asks: map[string]asked{}, names: map[storage.RecordKey]string{}, decoded: map[string]seenRow{}}
		},
		Translate: payments.TranslateRow,
	}
}

// Requests implements sim.App. Both tenants have the same keys, for the same operations.
func (s *simulated) Requests() (all []sim.Request) {
	s.rows = payments.Rows{Store: s.Rows()}
	s.bank = newBank(s)
	for _, tenant := range []string{tenantA, tenantB}[:s.Tenants()] {
		s.rows.Open(payments.Account{Tenant: tenant, ID: "acct_1", Currency: "EUR", Balance: simulatedFunds})
		s.rows.Open(payments.Account{Tenant: tenant, ID: "acct_2", Currency: "EUR"})
		s.rows.Open(payments.Account{Tenant: tenant, ID: "acct_3", Currency: "EUR", Partitions: 2})
		for _, id := range seeded {
			s.paid(tenant, id)
		}
		for i := range s.Keys() + 1 {
			key := fmt.Sprintf("k%d", i+1)
			name := key
			if tenant == tenantB {
				name += " of " + tenant
			}
			operation, kind, a := s.drawn(key, name)
			a.tenant, a.key = tenant, key
			scope := idem.Scope{Tenant: tenant, Operation: operation, Key: key}
			s.asks[name], s.names[scope.RecordKey()] = a, name
			all = append(all, sim.Request{Name: name, Scope: scope, Kind: kind})
		}
	}
	return all
}

// seeded are payments that are there from the beginning. Refunds are of the first; those of the second are asked for under the same keys.
var seeded = []string{"pay_1", "pay_2"}

// paid puts a payment there that succeeded, with its charge at the provider. The ids are the same in both tenants.
func (s *simulated) paid(tenant, id string) {
	source := [...]string{"card_ok", "card_ok", "card_stingy"}[s.OneOf("card of "+tenant, 3)]
	charge := s.bank.seed(tenant+"-"+id, source)
	w, err := payments.TranslateRow(payments.InsertPayment{Payment: payments.Payment{
		Tenant: tenant, ID: id, Status: payments.StatusSucceeded, Amount: simulatedFunds, Currency: "EUR", Source: source,
		ProviderReference: charge, CreatedAt: time.Now(), Message: "op_1.1",
	}})
	if err != nil {
		panic(err)
	}
	s.Rows().PutRow(w.Key, w.Apply(nil))
}

// drawn is what a key is for. Its second variant asks for another amount, of another payment, or with a query.
func (s *simulated) drawn(key, name string) (operation string, kind idem.Kind, a asked) {
	amount := [...]int64{300, 600, 900}[s.OneOf("amount of "+name, 3)]
	source := [...]string{"card_ok", "card_ok", "card_declined", "legacy_card", "legacy_declined"}[s.OneOf("source of "+key, 5)]
	destination := [...]string{"iban_ok", "iban_declined", "iban_bad", "legacy_iban", "legacy_iban_declined"}[s.OneOf("destination of "+key, 5)]
	operation, kind = "payments.create", idem.KindDeferred
	var target string
	var body func(amount int64) string
	switch s.OneOf("what "+key+" is for", 7) {
	case 0, 1:
		target, body = "/v1/payments", func(n int64) string {
			return fmt.Sprintf(`{"amount":%d,"currency":"EUR","source":%q}`, n, source)
		}
	case 2:
		operation, target, body = "refunds.create", refundsOf(seeded[0]), func(n int64) string { return fmt.Sprintf(`{"amount":%d}`, n) }
	case 3, 4:
		operation, target, body = "payouts.create", "/v1/payouts", func(n int64) string { return send(destination, n) }
	case 5:
		operation, kind, target, body = "transfers.create", idem.KindAtomic, "/v1/transfers", func(n int64) string { return transfer("acct_1", "acct_2", n) }
	default:
		operation, kind, target, body = "transfers.create", idem.KindAtomic, "/v1/transfers", func(n int64) string { return transfer("acct_1", "acct_3", n) }
	}
	another := variant{target, body(amount + 7)}
	switch s.OneOf("what differs for "+name, 3) {
	case 0:
		another = variant{target + "?note=1", body(amount)}
	case 1:
		if operation == "refunds.create" {
			another = variant{refundsOf(seeded[1]), body(amount)}
		}
	}
	a.variants = []variant{{target, body(amount)}, another}
	return operation, kind, a
}

func refundsOf(payment string) string { return "/v1/payments/" + payment + "/refunds" }

// Topics implements sim.App.
func (s *simulated) Topics(p sim.Process) []outbox.Topic {
	client, err := payments.NewProvider("http://provider.invalid", func(http.RoundTripper) http.RoundTripper { return wiredBank{s.bank, p} })
	if err != nil {
		panic(err)
	}
	return client.Topics(payments.Bounds{LongestRequest: s.LongestRequest()})
}

// Link implements sim.App. Each part is linked when the process is asked for it: a process has one role.
func (s *simulated) Link(p sim.Process) (sim.Served, error) {
	var api http.Handler
	serve := func(r *http.Request, tenant string) (*httptest.ResponseRecorder, error) {
		if api == nil {
			var err error
			if api, err = payments.New(payments.Config{
				Engine: p.Engine(), Ledger: simulatedLedger{p, s.rows}, Messages: p.Messages(), Inline: p.Inline(),
				Identify: identity.Function(callers{}, nil, silent), Retention: time.Hour, BodyBytesMax: 256 << 10, Logger: silent,
			}); err != nil {
				return nil, err
			}
		}
		r.Header.Set("Authorization", "Bearer "+tenant)
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		return w, nil
	}
	return sim.Served{
		Serve: func(ctx context.Context, name string, body int) (*idem.Result, error) {
			a := s.asks[name]
			asked := a.variants[body]
			r := httptest.NewRequest(http.MethodPost, asked.target, strings.NewReader(asked.body)).WithContext(ctx)
			r.Header.Set("Idempotency-Key", `"`+a.key+`"`)
			r.Header.Set("Content-Type", "application/json")
			w, err := serve(r, a.tenant)
			if err != nil {
				return nil, err
			}
			return resultOf(w)
		},
		Pry: func(ctx context.Context, name string, told *idem.Result) (string, error) {
			other := tenantA
			if s.asks[name].tenant == tenantA {
				other = tenantB
			}
			for _, path := range pathsOf(told) {
				w, err := serve(httptest.NewRequest(http.MethodGet, path, nil).WithContext(ctx), other)
				if err != nil {
					return "", err
				}
				if w.Code != http.StatusNotFound && w.Code != http.StatusServiceUnavailable {
					return fmt.Sprintf("%s: %d %s", path, w.Code, w.Body), nil
				}
			}
			return "", nil
		},
		Scheduled: func(ctx context.Context) error {
			accounts := simulatedCollections{p, s.rows}
			_, err := payments.Folder{Collections: accounts, RefuseBefore: p.RefuseBefore, Now: p.Now, Pause: pausing}.Run(ctx)
			return err
		},
	}, nil
}

func pausing(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pathsOf are where an answer may be looked after: its operation, and what it made.
func pathsOf(told *idem.Result) (paths []string) {
	if told.OperationID != "" {
		paths = append(paths, "/v1/operations/"+string(told.OperationID))
	}
	var view struct {
		ID              string
		Payment, Payout *struct{ ID string }
	}
	if json.Unmarshal(told.Response.Body, &view) != nil { // refunds show their payment's id
		_ = json.Unmarshal(told.Response.Body, &struct{ ID *string }{&view.ID})
	}
	if view.Payment != nil {
		view.ID = view.Payment.ID
	} else if view.Payout != nil {
		view.ID = view.Payout.ID
	}
	switch {
	case strings.HasPrefix(view.ID, "pay_"):
		paths = append(paths, "/v1/payments/"+view.ID)
	case strings.HasPrefix(view.ID, "po_"):
		paths = append(paths, "/v1/payouts/"+view.ID)
	}
	return paths
}

// errNotAnswered is an answer that says nothing about the key: come again.
var errNotAnswered = errors.New("not answered")

// resultOf is what an HTTP answer says of the key (docs/semantics.md "On the wire").
func resultOf(w *httptest.ResponseRecorder) (*idem.Result, error) {
	result := &idem.Result{Outcome: idem.Outcome(w.Header().Get("Idempotency-Status")), Response: idem.Response{Status: w.Code, Body: bytes.Clone(w.Body.Bytes())}}
	location := w.Header().Get("Location")
	switch at := w.Header().Get("Idempotency-Expires"); {
	case result.Outcome == idem.OutcomeMismatch, result.Outcome == idem.OutcomeUnknown, result.Outcome == idem.OutcomeInProgress:
		return result, nil
	case at != "":
		expires, err := time.Parse(time.RFC3339, at)
		result.State, result.ExpiresAt = storage.StateCompleted, expires
		return result, err
	case w.Code == http.StatusAccepted && location != "":
		result.State, result.OperationID = storage.StatePending, idem.OperationID(strings.TrimPrefix(location, "/v1/operations/"))
		return result, nil
	case result.Outcome == idem.OutcomeExecuted:
		result.State = storage.StateFailedRetryable
		return result, nil
	}
	return nil, fmt.Errorf("%w: %d %s", errNotAnswered, w.Code, w.Body)
}

// told has the endpoint of the webhooks take an event.
func (s *simulated) told(ctx context.Context, p sim.Process, body []byte) error {
	verifier, err := webhook.New(webhook.Config{Secrets: []string{secret}, Header: payments.SignatureHeader, Now: p.Now})
	if err != nil {
		return err
	}
	endpoint, err := payments.NewWebhook(payments.WebhookConfig{Verifier: verifier, Engine: p.Engine(), Messages: p.Messages(), Worker: p.Worker(), Logger: silent})
	if err != nil {
		return err
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/webhooks/provider", bytes.NewReader(body)).WithContext(ctx)
	r.Header.Set(payments.SignatureHeader, webhook.Sign(secret, time.Now(), body))
	w := httptest.NewRecorder()
	if endpoint.ServeHTTP(w, r); w.Code != http.StatusNoContent {
		return fmt.Errorf("%w: %d %s", errNotAnswered, w.Code, w.Body)
	}
	return nil
}

// simulatedLedger reads the application's rows through the story's network.
type simulatedLedger struct {
	p    sim.Process
	rows payments.Rows
}

func (l simulatedLedger) Payment(ctx context.Context, tenant, id string) (*payments.Payment, error) {
	return simulatedRow(ctx, l.p, "payment "+tenant, func() (*payments.Payment, error) { return l.rows.Payment(ctx, tenant, id) })
}

func (l simulatedLedger) Refund(ctx context.Context, tenant, id string) (*payments.Refund, error) {
	return simulatedRow(ctx, l.p, "refund "+tenant, func() (*payments.Refund, error) { return l.rows.Refund(ctx, tenant, id) })
}

func (l simulatedLedger) Payout(ctx context.Context, tenant, id string) (*payments.Payout, error) {
	return simulatedRow(ctx, l.p, "payout "+tenant, func() (*payments.Payout, error) { return l.rows.Payout(ctx, tenant, id) })
}

func (l simulatedLedger) Account(ctx context.Context, tenant, id string) (*payments.Account, error) {
	return simulatedRow(ctx, l.p, "account "+tenant+"/"+id, func() (*payments.Account, error) { return l.rows.Account(ctx, tenant, id) })
}

func (l simulatedLedger) Incoming(ctx context.Context, a payments.Account, partition, limit int) (found []payments.Transfer, err error) {
	return simulatedCollections(l).Incoming(ctx, a, partition, limit)
}

func simulatedRow[T any](ctx context.Context, p sim.Process, what string, read func() (*T, error)) (row *T, err error) {
	if err = p.Read(ctx, what, func() (err error) { row, err = read(); return err }); err != nil {
		return nil, &idem.UnavailableError{RetryAfter: time.Second, Cause: err}
	}
	return row, nil
}

// simulatedCollections are the collecting accounts through the story's network.
type simulatedCollections simulatedLedger

func (c simulatedCollections) Collecting(ctx context.Context) (all []payments.Account, err error) {
	err = c.p.Read(ctx, "the collecting accounts", func() (err error) { all, err = c.rows.Collecting(ctx); return err })
	return slices.DeleteFunc(all, func(payments.Account) bool { return err != nil }), err
}

func (c simulatedCollections) Incoming(ctx context.Context, a payments.Account, partition, limit int) (found []payments.Transfer, err error) {
	err = c.p.Read(ctx, fmt.Sprintf("partition %d of %s", partition, a.Tenant), func() (err error) {
		found, err = c.rows.Incoming(ctx, a, partition, limit)
		return err
	})
	return found, err
}

func (c simulatedCollections) Fold(ctx context.Context, a payments.Account, transfers []payments.Transfer, at time.Time) error {
	return c.p.Write(ctx, "a fold of "+a.Tenant, func() error { return c.rows.Fold(ctx, a, transfers, at) })
}
