// Package audit shows what protects each route of a service, and finds changes that would lose the keys of clients.
// Such changes are an operation name that vanished, a scope that changed, and a route without a policy.
//
// Use [Check] in a test, with the routes of a middleware.Router, so that no release forgets it. Use [Table] for a
// command that lists them. It is not needed while a service is running.
//
// The operations that were ever released stand in a file beside the code, which [Read] reads. It has the names that
// records are kept under. An operation that is renamed stays in it under its first name
// ([idem.Operation].RenamedFrom), and one that was removed stays in it as retired, with the reason.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// Operation is an operation that was released.
type Operation struct {
	// Name is the one that its records are kept under.
	Name string `json:"name"`
	// Scope is what its keys are unique within, as [Scope] has it; empty for a retired one.
	Scope string `json:"scope,omitempty"`
	// Retired, where set, says why there is no such operation any more. The name is never given to another one. Empty
	// means that the operation is in use.
	Retired string `json:"retired,omitempty"`
}

// Read reads a JSON object with the list "operations". It returns an error for one that is malformed, or names an
// operation twice.
func Read(r io.Reader) ([]Operation, error) {
	var file struct {
		Operations []Operation `json:"operations"`
	}
	decoder := json.NewDecoder(r)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("audit: released operations: %w", err)
	}
	seen := map[string]bool{}
	for _, o := range file.Operations {
		if o.Name == "" || seen[o.Name] {
			return nil, fmt.Errorf("audit: released operations: %q is empty or there twice", o.Name)
		}
		if (o.Scope == "") == (o.Retired == "") {
			return nil, fmt.Errorf("audit: released operations: %s must have either a scope or a reason why it is retired", o.Name)
		}
		seen[o.Name] = true
	}
	return file.Operations, nil
}

// ScopeExempt is the scope of an operation whose keys are not looked at.
const ScopeExempt = "exempt"

// Scope says what the keys of an operation with the policy are unique within, and whether quotes are a part of them, as they
// are for the opaque syntax; the structured and the strict one name the same keys. A change of it loses live keys.
func Scope(p idem.Policy) string {
	if p.ExemptReason != "" {
		return ScopeExempt
	}
	scope := string(p.Scope)
	if p.BindPrincipal {
		scope += "+principal"
	}
	if p.Syntax == idem.SyntaxOpaque {
		scope += "+opaque"
	}
	return scope
}

// Check compares the routes with what was released, and returns all that it finds, joined, or nil.
func Check(routes []middleware.RouteInfo, released []Operation) error {
	var found []error
	find := func(format string, args ...any) { found = append(found, fmt.Errorf(format, args...)) }
	now := map[string]middleware.RouteInfo{}
	for _, route := range routes {
		if route.Unsafe && route.Operation == "" && route.Policy.ExemptReason == "" {
			find("%s admits POST or PATCH, and nothing protects it", route.Pattern)
		}
		if route.Operation != "" {
			now[recordedAs(route)] = route
		}
	}
	was := map[string]Operation{}
	for _, o := range released {
		was[o.Name] = o
		route, is := now[o.Name]
		switch {
		case is && o.Retired != "":
			find("%s (%s) was retired: its name must not be used again", o.Name, route.Pattern)
		case !is && o.Retired == "":
			find("%s has vanished, and the keys of its clients with it: where it was renamed set RenamedFrom, where it is gone for good record it as retired", o.Name)
		case is && o.Scope != Scope(route.Policy):
			find("%s had the scope %s and has %s: its live keys are not found any more", o.Name, o.Scope, Scope(route.Policy))
		}
	}
	for _, route := range routes {
		if name := recordedAs(route); name != "" && was[name].Name == "" {
			find(`%s (%s) is not recorded as released: record {"name": %q, "scope": %q}`, name, route.Pattern, name, Scope(route.Policy))
		}
	}
	return errors.Join(found...)
}

// recordedAs is the name that the records of the route's operation are kept under.
func recordedAs(r middleware.RouteInfo) string {
	if r.RenamedFrom != "" {
		return r.RenamedFrom
	}
	return r.Operation
}
