// Package observe is the program of docs/guides/observe.md: a policy that reports what it would answer, and changes nothing yet.
package observe

import (
	"context"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// Step is how far the roll-out has come. Deploy one after the other.
type Step int

// The steps.
const (
	Watch   Step = iota // every request executes
	Offer               // who sends a key is protected
	Require             // who sends none is refused
)

// Policy is the policy of a step.
func Policy(step Step) idem.Policy {
	policy := idem.IETF()
	switch step {
	case Watch:
		return idem.Observe(policy)
	case Offer:
		policy.Name, policy.MissingKey = "optional", idem.MissingKeyUnprotected
	case Require: // as the policy does
	}
	return policy
}

// Identify says whose key it is. The service has it already, under another name: it is how callers are authenticated.
type Identify = func(*http.Request) (middleware.Identity, error)

// NewService protects an existing handler by the step's policy. report gets what would have been answered.
func NewService(engine *idem.Engine, step Step, identify Identify, report func(context.Context, middleware.Observation), existing http.Handler) (http.Handler, error) {
	mw, err := middleware.New(engine, middleware.Config{Identify: identify, Report: report})
	if err != nil {
		return nil, err
	}
	operation := idem.Operation{Name: "orders.create", Policy: Policy(step), UnknownToOperator: true}
	return mw.Wrap(operation, middleware.Route{}, existing)
}
