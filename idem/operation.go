package idem

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Operation is what a route registers: a stable name and how it is protected.
type Operation struct {
	// Name is stable for ever: it is part of every key's scope. "payments.create", never the route's path. Required.
	Name string
	// RenamedFrom is the first name that the operation was released under, if it has another one now. It stays for ever,
	// however often the operation is renamed. Scopes, fingerprints and records use it, so that releases before and after
	// the rename share every key, also while both run. Logs and the audit show Name. Empty means that it was never
	// renamed.
	RenamedFrom string
	// Kind says how the handler's work is committed, and what a crash leaves. Required, except for wrapped handlers.
	Kind Kind
	// Policy is the contract with the clients. Required.
	Policy Policy
	// ReadFirst reads the record before anything else. A replay then costs a read (a fifth of a write's price) instead of
	// a failed write, which is billed by the stored size, and takes no right of a quota, be it for a moment; a first request costs
	// one read more. Optimistic and deferred operations always read first: their duplicates would run the handler for nothing.
	ReadFirst bool
	// Inline, where set, delivers the operation's messages within the request, and answers with the final response where
	// that succeeds. A duplicate continues a chain that was left open. For KindDeferred only. Default: a worker
	// delivers them later.
	Inline InlineDelivery
	// SafeToRunAgain declares that running the handler twice does no harm. The handler then runs although its key may be
	// older than a loss of records; a provider's webhooks need that. The next request also takes over a wrapped handler's
	// dead lease, and an answer of a wrapped handler that is not stored frees the key. For KindWrapped and KindOptimistic
	// only. The fields that follow are for KindWrapped only.
	//
	// A wrapped operation must declare at least one of these four. They say what happens to a key whose handler died, or
	// whose answer is not stored.
	SafeToRunAgain bool
	// ReleaseOn are the statuses that this handler answers with before it does anything, for example 429 and 503: they free
	// the key. 408, 500, 502, 504 and statuses below 400 prove nothing and are refused. Default: none.
	ReleaseOn []int
	// Probed declares that outbox.NewRunner is given a Probe for the operation, which looks up unknown outcomes.
	Probed bool
	// UnknownToOperator declares that an unknown outcome waits for an operator.
	UnknownToOperator bool
}

var operationName = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$`)

const operationNameBytesMax = 64

func (o Operation) validate(unsettled time.Duration) error {
	if !operationName.MatchString(o.Name) || len(o.Name) > operationNameBytesMax {
		return &ConfigError{"Operation.Name", fmt.Sprintf("%q", o.Name), fmt.Sprintf("must match %s and have at most %d bytes", operationName, operationNameBytesMax)}
	}
	if o.RenamedFrom != "" && (!operationName.MatchString(o.RenamedFrom) || len(o.RenamedFrom) > operationNameBytesMax || o.RenamedFrom == o.Name) {
		return &ConfigError{"Operation.RenamedFrom", fmt.Sprintf("%q", o.RenamedFrom), "must be another name than Operation.Name, and of its form"}
	}
	if !o.Kind.Known() {
		return &ConfigError{"Operation.Kind", fmt.Sprintf("%q", o.Kind), "must be atomic, optimistic, deferred or wrapped"}
	}
	if o.Inline != nil && o.Kind != KindDeferred {
		return &ConfigError{"Operation.Inline", o.Kind, fmt.Sprintf("is for Operation.Kind = %s only", KindDeferred)}
	}
	if o.SafeToRunAgain && o.Kind != KindWrapped && o.Kind != KindOptimistic {
		return &ConfigError{"Operation.SafeToRunAgain", true, fmt.Sprintf("is for Operation.Kind = %s or %s only", KindWrapped, KindOptimistic)}
	}
	if err := o.validateWrapped(); err != nil {
		return err
	}
	if o.Policy.StoreServerErrors && o.Kind == KindWrapped && !o.SafeToRunAgain {
		return &ConfigError{"Policy.StoreServerErrors", true, fmt.Sprintf("contradicts Operation.Kind = %s: its 5xx may have had an effect and must become unknown", KindWrapped)}
	}
	if err := o.Policy.Validate(); err != nil {
		return err
	}
	if o.Policy.ExemptReason == "" && o.Policy.Retention <= unsettled {
		return &ConfigError{"Policy.Retention", o.Policy.Retention, fmt.Sprintf("must be longer than a request can live (Config.ExecutionMax + %v on the wire = %v)", storage.WireMax, unsettled)}
	}
	return nil
}

// validateWrapped rejects declarations about a handler that writes for itself, where there is none, and none where there is
// one.
func (o Operation) validateWrapped() error {
	wrapped := o.Kind == KindWrapped
	for _, declared := range []struct {
		field string
		set   bool
	}{
		{"Operation.ReleaseOn", len(o.ReleaseOn) > 0}, {"Operation.Probed", o.Probed}, {"Operation.UnknownToOperator", o.UnknownToOperator},
	} {
		if declared.set && !wrapped {
			return &ConfigError{declared.field, o.Kind, fmt.Sprintf("is for Operation.Kind = %s only", KindWrapped)}
		}
	}
	for _, status := range o.ReleaseOn {
		if status < 400 || status > 599 || slices.Contains([]int{408, 500, 502, 504}, status) {
			return &ConfigError{"Operation.ReleaseOn", status, "must be a status of 400..599 that a handler gives before it does anything: 408, 500, 502 and 504 prove nothing"}
		}
	}
	if wrapped && o.Policy.ExemptReason == "" && len(o.ReleaseOn) == 0 && !o.Probed && !o.SafeToRunAgain && !o.UnknownToOperator {
		return &ConfigError{"Operation.Kind", o.Kind, "needs Operation.ReleaseOn, Probed, SafeToRunAgain or UnknownToOperator: what becomes of a key whose handler died or answered with what is not stored"}
	}
	return nil
}

// recordedAs is the name in scopes, fingerprints and records.
func (o Operation) recordedAs() string { return cmp.Or(o.RenamedFrom, o.Name) }

// claims are the names that no other operation may have, now or formerly.
func (o Operation) claims() []string {
	if o.RenamedFrom == "" {
		return []string{o.Name}
	}
	return []string{o.Name, o.RenamedFrom}
}

// scope builds the scope of a request by the policy's rule.
func (o Operation) scope(req Request) Scope {
	scope := Scope{Tenant: req.Tenant, Key: req.Key}
	if o.Policy.Scope == ScopeOperation {
		scope.Operation = o.recordedAs()
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
	// OneOff says that the key was made for this request alone, so that no other request can have it.
	OneOff bool
	// FirstSent is when the client says that it sent the request for the first time; nil where it does not say. The zero
	// time counts as longer ago than any retention.
	FirstSent *time.Time
	// Overruled is called in observe mode once the handler has run, with the error for which an engine that enforces would not
	// have run it: a quota, a time, a loss of records. It may be nil.
	Overruled func(error)
	// Input is what the fingerprint is taken of; its Operation is filled in by the engine.
	Input canonical.Input
}

// Outcome is the result of a request. Its values are those of the Idempotency-Status header.
type Outcome string

// The outcomes of a request.
const (
	OutcomeExecuted   Outcome = "executed"
	OutcomeReplayed   Outcome = "replayed"
	OutcomeInProgress Outcome = "in_progress"
	OutcomeMismatch   Outcome = "mismatch"
	OutcomeUnknown    Outcome = "unknown"
)

// Result says how a request ended.
type Result struct {
	// Outcome says whether the request was executed, replayed or refused.
	Outcome Outcome
	// OperationID names the incarnation that the request met or began; empty where there is none.
	OperationID OperationID
	// State is the record's state after the request. Where the response of an execution was not stored, it is
	// StateFailedRetryable if the key is free again, and StateUnknown if what the handler did is not known.
	State storage.State
	// OnlyObserved says why an Outcome is OutcomeUnknown: see [storage.Record.OnlyObserved]. Nobody finds out by themselves; it ends
	// with an operator, or with the record's retention.
	OnlyObserved bool
	// Response is the answer of an executed or replayed request.
	Response Response
	// ExpiresAt is when the key may be reused; zero while the operation is not finished.
	ExpiresAt time.Time
	// RetryAfter is when to ask again, where the answer is not final; 0 otherwise.
	RetryAfter time.Duration
	// Differing are the parts in which a mismatching request differs from the one that the key belongs to, where that is
	// known. They are for the log, and must not be shown to the client.
	Differing []canonical.Part
}
