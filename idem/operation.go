package idem

import (
	"fmt"
	"regexp"
	"time"

	"github.com/idem-go/idem-aws/idem/canonical"
)

// Operation is what a route registers: a stable name and how it is protected.
type Operation struct {
	// Name is stable for ever: it is part of every key's scope. "payments.create", never the route's path.
	Name string
	Kind Kind
	// Policy is the contract with the clients.
	Policy Policy
	// ReadFirst reads the record before anything else: replays cost a read (a fifth of a write's price) instead of a
	// lost write that is billed by the stored size, and first requests one read more. Express and deferred operations
	// always read first: their duplicates would run the handler for nothing.
	ReadFirst bool
	// Inline, where set, delivers the operation's messages within the request first, and answers with the final response
	// where that succeeds; a duplicate that finds the chain abandoned goes on with it. For KindDeferred only.
	Inline Courier
	// SafeToRunAgain declares that running an opaque handler twice does no harm: its dead lease is taken over and its
	// 5xx releases. For KindOpaque only.
	SafeToRunAgain bool
}

var operationName = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$`)

const operationNameBytesMax = 64

func (o Operation) validate(unsettled time.Duration) error {
	if !operationName.MatchString(o.Name) || len(o.Name) > operationNameBytesMax {
		return &ConfigError{"Operation.Name", fmt.Sprintf("%q", o.Name), fmt.Sprintf("must match %s and have at most %d bytes", operationName, operationNameBytesMax)}
	}
	if !o.Kind.Known() {
		return &ConfigError{"Operation.Kind", fmt.Sprintf("%q", o.Kind), "must be atomic, express, deferred or opaque"}
	}
	if o.Inline != nil && o.Kind != KindDeferred {
		return &ConfigError{"Operation.Inline", o.Kind, fmt.Sprintf("is for Operation.Kind = %s only", KindDeferred)}
	}
	if o.SafeToRunAgain && o.Kind != KindOpaque {
		return &ConfigError{"Operation.SafeToRunAgain", true, fmt.Sprintf("is for Operation.Kind = %s only", KindOpaque)}
	}
	if o.Policy.StoreServerErrors && o.Kind == KindOpaque && !o.SafeToRunAgain {
		return &ConfigError{"Policy.StoreServerErrors", true, fmt.Sprintf("contradicts Operation.Kind = %s: its 5xx may have had an effect and must become unknown", KindOpaque)}
	}
	if err := o.Policy.Validate(); err != nil {
		return err
	}
	if o.Policy.ExemptReason == "" && o.Policy.Retention <= unsettled {
		return &ConfigError{"Policy.Retention", o.Policy.Retention, fmt.Sprintf("must be longer than a request can live (Config.ExecutionMax + Config.WireMax = %v)", unsettled)}
	}
	return nil
}

// reserves says whether the operation takes a lease before its handler runs.
func (o Operation) reserves() bool { return o.Kind == KindAtomic || o.Kind == KindOpaque }

// readsFirst says whether the record is read before anything is written.
func (o Operation) readsFirst() bool { return o.ReadFirst || !o.reserves() }

// scope builds the scope of a request by the policy's rule.
func (o Operation) scope(req Request) Scope {
	scope := Scope{Tenant: req.Tenant, Key: req.Key}
	if o.Policy.Scope == ScopeOperation {
		scope.Operation = o.Name
	}
	if o.Policy.BindPrincipal {
		scope.Principal = req.Principal
	}
	return scope
}

// Request is one request for an operation.
type Request struct {
	// Tenant comes from the authorizer's context only.
	Tenant string
	// Principal is the caller's session or token, for policies that bind a key to it.
	Principal string
	// Key is the client's key, as the header syntax yields it.
	Key string
	// Input is what the fingerprint is taken of; its Operation is filled in by the engine.
	Input canonical.Input
}

// Outcome is what became of a request; its values are those of the Idempotency-Status header.
type Outcome string

// The outcomes of a request.
const (
	OutcomeExecuted   Outcome = "executed"
	OutcomeReplayed   Outcome = "replayed"
	OutcomeInProgress Outcome = "in_progress"
	OutcomeMismatch   Outcome = "mismatch"
	OutcomeUnknown    Outcome = "unknown"
)

// Result is what became of a request.
type Result struct {
	Outcome     Outcome
	OperationID OperationID
	// State is the record's state after the request; StateFailedRetryable where a response was not stored.
	State State
	// Response is the answer of an executed or replayed request.
	Response Response
	// ExpiresAt is when the key may be reused; zero while the operation is not finished.
	ExpiresAt time.Time
	// RetryAfter is when to ask again, where the answer is not final; 0 otherwise.
	RetryAfter time.Duration
}
