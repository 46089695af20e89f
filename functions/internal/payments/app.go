package payments

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// The operations' names: part of every key's scope, and never changed.
const (
	operationPayments  = "payments.create"
	operationRefunds   = "refunds.create"
	operationPayouts   = "payouts.create"
	operationTransfers = "transfers.create"
)

// Config is what the application needs; all of it is required but for Inline, WaitMax and the logger.
type Config struct {
	Engine   *idem.Engine
	Ledger   Ledger
	Messages outbox.Messages
	// Inline delivers payouts within their requests. Without one the worker does it all.
	Inline idem.InlineDelivery
	// Identify authenticates a request.
	Identify func(*http.Request) (middleware.Identity, error)
	// Retention is how long a final record answers.
	Retention time.Duration
	// BodyBytesMax bounds a request's body, in bytes.
	BodyBytesMax int
	// WaitMax bounds "Prefer: wait". Default 20 s.
	WaitMax time.Duration
	Logger  *slog.Logger
}

// DocsURL is where the API's answers are explained.
const DocsURL = "https://github.com/idem-go/idem-aws/blob/main/docs/semantics.md"

// operationsPath is where the status of an operation is served.
const operationsPath = "/v1/operations/"

// New returns the application, or a [*idem.ConfigError].
func New(cfg Config) (http.Handler, error) {
	router, err := route(cfg)
	if err != nil {
		return nil, err
	}
	app, err := router.Handler()
	if err != nil {
		return nil, err
	}
	return guarded(app), nil
}

// guarded keeps every answer out of caches, and from being taken for another type than its own.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}

// Routes lists the application's routes for an audit, its webhooks' included, without anything that they would need to serve.
func Routes(retention time.Duration) ([]middleware.RouteInfo, error) {
	store, err := memstore.New(memstore.Config{Translate: TranslateRow})
	if err != nil {
		return nil, err
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		return nil, err
	}
	nobody := func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{}, middleware.ErrUnauthenticated
	}
	router, err := route(Config{Engine: engine, Ledger: Rows{Store: store}, Messages: store, Identify: nobody, Retention: retention})
	if err != nil {
		return nil, err
	}
	if _, err := router.Handler(); err != nil {
		return nil, err
	}
	return append(router.Routes(), webhookRoute()), nil
}

func route(cfg Config) (*middleware.Router, error) {
	mw, err := middleware.New(cfg.Engine, middleware.Config{
		Identify: cfg.Identify, BodyBytesMax: cfg.BodyBytesMax, OperationsPath: operationsPath, DocsURL: DocsURL,
		WaitMax: cfg.WaitMax, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	policy := idem.IETF()
	policy.Retention = cfg.Retention
	read := reader{ledger: cfg.Ledger, messages: cfg.Messages}

	r := mw.NewRouter()
	handle(r, "POST /v1/payments", idem.Operation{Name: operationPayments, Kind: idem.KindDeferred, Policy: policy}, parsePayment,
		func(_ context.Context, tx *idem.Tx, _ *middleware.Request, req paymentRequest) (idem.Response, error) {
			return createPayment(tx, req)
		})
	handle(r, "POST /v1/payments/{id}/refunds", idem.Operation{Name: operationRefunds, Kind: idem.KindDeferred, Policy: policy}, parseRefund,
		func(ctx context.Context, tx *idem.Tx, r *middleware.Request, req refundRequest) (idem.Response, error) {
			return createRefund(ctx, cfg.Ledger, tx, r.PathValue("id"), req)
		})
	handle(r, "POST /v1/payouts", idem.Operation{Name: operationPayouts, Kind: idem.KindDeferred, Policy: policy, Inline: cfg.Inline}, parsePayout,
		func(ctx context.Context, tx *idem.Tx, _ *middleware.Request, req payoutRequest) (idem.Response, error) {
			return createPayout(ctx, cfg.Ledger, tx, req)
		})
	handle(r, "POST /v1/transfers", idem.Operation{Name: operationTransfers, Kind: idem.KindAtomic, Policy: policy}, parseTransfer,
		func(ctx context.Context, tx *idem.Tx, _ *middleware.Request, req transferRequest) (idem.Response, error) {
			return createTransfer(ctx, cfg.Ledger, tx, req)
		})
	r.Read("GET /v1/payments/{id}", read.getPayment)
	r.Read("GET /v1/payouts/{id}", read.getPayout)
	r.Read("GET /v1/accounts/{id}", read.getAccount)
	r.Status(cfg.Messages)
	return r, nil
}

// handle protects an operation whose body is parsed, first as its validation and then for its handler.
func handle[T any](
	r *middleware.Router, pattern string, op idem.Operation, parse func([]byte) (T, *idem.Problem),
	run func(context.Context, *idem.Tx, *middleware.Request, T) (idem.Response, error),
) {
	validate := func(r *middleware.Request) *idem.Problem {
		_, problem := parse(r.Body)
		return problem
	}
	r.Handle(pattern, op, middleware.Route{Validate: validate},
		func(ctx context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
			req, problem := parse(r.Body)
			if problem != nil {
				return idem.Response{}, fmt.Errorf("payments: a validated body is invalid: %s", problem.Detail)
			}
			return run(ctx, tx, r, req)
		})
}

func (r reader) getPayment(ctx context.Context, req *middleware.Request) (idem.Response, error) {
	p, err := r.payment(ctx, req.Identity.Tenant, req.PathValue("id"))
	if err != nil {
		return idem.Response{}, err
	}
	if p == nil {
		return notFound("payment").Response(), nil
	}
	return idem.JSON(http.StatusOK, viewPayment(*p))
}

func (r reader) getPayout(ctx context.Context, req *middleware.Request) (idem.Response, error) {
	p, err := r.payout(ctx, req.Identity.Tenant, req.PathValue("id"))
	if err != nil {
		return idem.Response{}, err
	}
	if p == nil {
		return notFound("payout").Response(), nil
	}
	return idem.JSON(http.StatusOK, viewPayout(*p))
}

func (r reader) getAccount(ctx context.Context, req *middleware.Request) (idem.Response, error) {
	a, err := r.account(ctx, req.Identity.Tenant, req.PathValue("id"))
	if err != nil {
		return idem.Response{}, err
	}
	if a == nil {
		return notFound("account").Response(), nil
	}
	view := accountView{ID: a.ID, Currency: a.Currency, Balance: a.Balance}
	if view.Incoming, err = r.incoming(ctx, *a); err != nil {
		return idem.Response{}, err
	}
	return idem.JSON(http.StatusOK, view)
}
