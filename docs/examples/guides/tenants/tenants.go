// Package tenants is the program of docs/guides/tenants.md: keys that belong to a tenant, and limits for each.
package tenants

import (
	"context"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/quota"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Limits are those of every tenant but the large one. All instances must say the same.
func Limits(tenant string) quota.Limits {
	if tenant == "customer-large" {
		return quota.Limits{NewKeysPerSecond: 100, ActiveKeys: 1_000_000, LookUpsPerSecond: 200}
	}
	return quota.Limits{NewKeysPerSecond: 2, ActiveKeys: 10_000, LookUpsPerSecond: 10}
}

// NewEngine counts what the tenants ask for. counters are dynamoquota.New in production, and quota.NewMemory for one process.
func NewEngine(store storage.Store, counters quota.Counters, cfg idem.Config) (*idem.Engine, error) {
	limits, err := quota.New(counters, quota.Config{Limits: Limits, Now: cfg.Now})
	if err != nil {
		return nil, err
	}
	cfg.Quota = limits
	return idem.New(store, cfg)
}

// NewService protects POST /orders.
func NewService(engine *idem.Engine) (http.Handler, error) {
	mw, err := middleware.New(engine, middleware.Config{Identify: identify})
	if err != nil {
		return nil, err
	}
	operation := idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}
	return mw.Handle(operation, middleware.Route{}, func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
		return idem.JSON(http.StatusCreated, map[string]string{"owner": tx.Tenant()})
	})
}

// authorized is the key of what the authorizer puts into a request's context.
type authorized struct{}

// Authorize stands for your authorizer: it checks the token, and says whose it is.
func Authorize(owners map[string]string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		owner, ok := owners[r.Header.Get("Authorization")]
		if !ok {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), authorized{}, owner)))
	})
}

// identify takes the tenant from the authorizer, and from nothing that the client writes.
func identify(r *http.Request) (middleware.Identity, error) {
	owner, ok := r.Context().Value(authorized{}).(string)
	if !ok {
		return middleware.Identity{}, middleware.ErrUnauthenticated
	}
	return middleware.Identity{Tenant: owner}, nil
}
