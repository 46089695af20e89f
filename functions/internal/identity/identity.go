// Package identity says who calls the API, and whether the caller's key opens the route: by what the gateway's authorizer put
// into the request's context, or, where the gateway has no authorizer, by what the same authenticator finds in this function.
// Both fail closed.
package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// The authorizer's names for whose the key is, for its scopes, with spaces between them, and for the tenant's own limits.
const (
	ContextTenant = "tenant"
	ContextScopes = "scopes"
	ContextLimits = "limits"
)

// Gateway trusts the context of the gateway's Lambda authorizer, and nothing else: without a tenant there, 401. Limits are told of the
// tenant's.
func Gateway(limits *Limits) func(*http.Request) (middleware.Identity, error) {
	return func(r *http.Request) (middleware.Identity, error) {
		authorizer, ok := awslambda.AuthorizerFrom(r.Context())
		tenant := authorizer.Lambda[ContextTenant]
		if !ok || tenant == "" {
			return middleware.Identity{}, middleware.ErrUnauthenticated
		}
		limits.note(tenant, apikey.ParseLimits(authorizer.Lambda[ContextLimits]))
		return admitted(r, tenant, apikey.SplitScopes(authorizer.Lambda[ContextScopes]))
	}
}

// Authenticator finds the key in the value of an Authorization header. *apikey.Keys implements it.
type Authenticator interface {
	Caller(ctx context.Context, authorization string) (apikey.Key, error)
}

// Function authenticates in this function; what a gateway says is not looked at. Limits are told of the tenant's, and the logger of who is
// refused, as the authorizer's is.
func Function(keys Authenticator, limits *Limits, logger *slog.Logger) func(*http.Request) (middleware.Identity, error) {
	return func(r *http.Request) (middleware.Identity, error) {
		key, err := keys.Caller(r.Context(), r.Header.Get("Authorization"))
		if apikey.Refused(err) {
			logger.InfoContext(r.Context(), "auth.denied", "reason", err.Error())
		}
		switch {
		case errors.Is(err, apikey.ErrMissing):
			return middleware.Identity{}, middleware.ErrUnauthenticated
		case errors.Is(err, apikey.ErrUnknown), errors.Is(err, apikey.ErrTest):
			return middleware.Identity{}, middleware.ErrForbidden
		case errors.Is(err, apikey.ErrExpired):
			return middleware.Identity{}, &idem.RejectedError{Problem: keyExpired()}
		case errors.Is(err, apikey.ErrRevoked):
			return middleware.Identity{}, &idem.RejectedError{Problem: keyRevoked()}
		case err != nil:
			return middleware.Identity{}, err
		}
		limits.note(key.Tenant, key.Limits)
		return admitted(r, key.Tenant, key.Scopes)
	}
}

// admitted says whether the scopes open the route. One that needs a scope which nobody has given it is closed.
func admitted(r *http.Request, tenant string, scopes []apikey.Scope) (middleware.Identity, error) {
	needed, ok := apikey.ScopeOf(r.Pattern)
	switch {
	case !ok:
		return middleware.Identity{}, middleware.ErrForbidden
	case !slices.Contains(scopes, needed):
		return middleware.Identity{}, &idem.RejectedError{Problem: scopeMissing(needed)}
	}
	return middleware.Identity{Tenant: tenant}, nil
}

func keyExpired() idem.Problem {
	return idem.NewProblem(http.StatusForbidden, "api_key_expired", "API key expired", "The API key has expired.")
}

func keyRevoked() idem.Problem {
	return idem.NewProblem(http.StatusForbidden, "api_key_revoked", "API key revoked", "The API key has been revoked.")
}

func scopeMissing(needed apikey.Scope) idem.Problem {
	return idem.NewProblem(http.StatusForbidden, "scope_missing", "Scope missing",
		fmt.Sprintf("The API key does not have the scope %q that this request needs.", needed))
}
