// Package identity says who calls the API: what the gateway's authorizer put into the request's context, or, where the
// gateway has no authorizer, what the same authenticator finds in this function. Both fail closed.
package identity

import (
	"errors"
	"net/http"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// ContextTenant is the authorizer's name for the tenant.
const ContextTenant = "tenant"

// Gateway trusts the context of the gateway's Lambda authorizer, and nothing else: without a tenant there, 401.
func Gateway(r *http.Request) (middleware.Identity, error) {
	authorizer, ok := awslambda.AuthorizerFrom(r.Context())
	tenant := authorizer.Lambda[ContextTenant]
	if !ok || tenant == "" {
		return middleware.Identity{}, middleware.ErrUnauthenticated
	}
	return middleware.Identity{Tenant: tenant}, nil
}

// Function authenticates in this function; what a gateway says is not looked at.
func Function(keys apikey.Authenticator) func(*http.Request) (middleware.Identity, error) {
	return func(r *http.Request) (middleware.Identity, error) {
		tenant, err := keys.Tenant(r.Context(), r.Header.Get("Authorization"))
		switch {
		case errors.Is(err, apikey.ErrMissing):
			return middleware.Identity{}, middleware.ErrUnauthenticated
		case errors.Is(err, apikey.ErrUnknown):
			return middleware.Identity{}, middleware.ErrForbidden
		}
		return middleware.Identity{Tenant: tenant}, err
	}
}
