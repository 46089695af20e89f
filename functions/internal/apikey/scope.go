package apikey

import (
	"slices"
	"strings"
)

// Scope is what a key may be used for.
type Scope string

// The scopes.
const (
	PaymentsRead   Scope = "payments:read"
	PaymentsWrite  Scope = "payments:write"
	RefundsWrite   Scope = "refunds:write"
	PayoutsRead    Scope = "payouts:read"
	PayoutsWrite   Scope = "payouts:write"
	TransfersWrite Scope = "transfers:write"
	AccountsRead   Scope = "accounts:read"
	// OperationsRead is for the status of an operation, which has the answer whatever it is about.
	OperationsRead Scope = "operations:read"
)

// routes are the scopes that the application's routes need. One without a scope here is nobody's.
var routes = map[string]Scope{
	"POST /v1/payments":              PaymentsWrite,
	"GET /v1/payments/{id}":          PaymentsRead,
	"POST /v1/payments/{id}/refunds": RefundsWrite,
	"POST /v1/payouts":               PayoutsWrite,
	"GET /v1/payouts/{id}":           PayoutsRead,
	"POST /v1/transfers":             TransfersWrite,
	"GET /v1/accounts/{id}":          AccountsRead,
	"GET /v1/operations/{id}":        OperationsRead,
}

// ScopeOf is the scope that a route needs, by its pattern; false where no key opens it.
func ScopeOf(pattern string) (Scope, bool) {
	scope, ok := routes[pattern]
	return scope, ok
}

// Scopes are all there are.
func Scopes() []Scope {
	all := make([]Scope, 0, len(routes))
	for _, scope := range routes {
		all = append(all, scope)
	}
	slices.Sort(all)
	return all
}

// JoinScopes is how the authorizer says them to the function, and SplitScopes how that reads them.
func JoinScopes(scopes []Scope) string {
	words := make([]string, len(scopes))
	for i, scope := range scopes {
		words[i] = string(scope)
	}
	return strings.Join(words, " ")
}

// SplitScopes is the inverse of [JoinScopes].
func SplitScopes(words string) []Scope {
	var scopes []Scope
	for _, word := range strings.Fields(words) {
		scopes = append(scopes, Scope(word))
	}
	return scopes
}
