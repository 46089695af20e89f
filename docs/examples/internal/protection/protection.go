// Package protection is the set-up that the examples of routers share: that of the nethttp example, on the store in memory.
package protection

import (
	"log"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// New returns a middleware on a store of its own. It knows callers by their name in HTTP's basic authentication.
func New() *middleware.Middleware {
	store := Must(memstore.New(memstore.Config{}))
	engine := Must(idem.New(store, idem.Config{}))
	return Must(middleware.New(engine, middleware.Config{Identify: Identify}))
}

// Identify says whose key it is, by the name in HTTP's basic authentication. A service would check the password.
func Identify(r *http.Request) (middleware.Identity, error) {
	name, _, ok := r.BasicAuth()
	if !ok || name == "" {
		return middleware.Identity{}, middleware.ErrUnauthenticated
	}
	return middleware.Identity{Tenant: name}, nil
}

// Must ends a service that can't start.
func Must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
