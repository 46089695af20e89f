package faultproxy

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Rule says which requests meet a fault. The first matching rule that is not used up wins; one whose Chance does not fall
// leaves the request to the rules after it.
type Rule struct {
	// Operation is the name in X-Amz-Target, as "TransactWriteItems"; empty = all.
	Operation string `json:"operation,omitempty"`
	// Table is a part of the name of a table that the request names; empty = any or none.
	Table string `json:"table,omitempty"`
	// Contains is a part of the request's body, byte for byte; empty = any.
	Contains string `json:"contains,omitempty"`

	// Fault, DelayMillis, Code, Reason and Item are the first step.
	Fault       Fault  `json:"fault"`
	DelayMillis int64  `json:"delay_ms,omitempty"`
	Code        string `json:"code,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Item        int    `json:"item,omitempty"`

	// After lets the first matches go by.
	After int `json:"after,omitempty"`
	// Times is how often the rule applies after that; 0 = for ever.
	Times int `json:"times,omitempty"`
	// Chance is the probability with which the rule applies to a match, above 0 and at most 1; 0 = always.
	Chance float64 `json:"chance,omitempty"`
	// Seed of Chance. The n-th match of a rule falls the same way under the same seed; which request is the n-th is up to
	// the clients.
	Seed uint64 `json:"seed,omitempty"`
	// Then is what requests of the same content meet after Fault, one step each: what a client gets that sends again. The
	// order of a JSON object's members is not content. The steps count neither as matches nor against Times. A request that
	// one of them does not fit does not match the rule.
	Then []Step `json:"then,omitempty"`
}

func (r Rule) first() Step {
	return Step{Fault: r.Fault, DelayMillis: r.DelayMillis, Code: r.Code, Reason: r.Reason, Item: r.Item}
}

func (r Rule) check() error {
	switch {
	case r.After < 0 || r.Times < 0:
		return fmt.Errorf("after and times are %d and %d, want 0 or more", r.After, r.Times)
	case !(r.Chance >= 0 && r.Chance <= 1):
		return fmt.Errorf("chance is %g, want above 0 and at most 1, or 0 for always", r.Chance)
	case r.Seed != 0 && r.Chance == 0:
		return fmt.Errorf("seed is %d without a chance", r.Seed)
	}
	if err := r.first().check(); err != nil {
		return err
	}
	for i, step := range r.Then {
		if err := step.check(); err != nil {
			return fmt.Errorf("then[%d]: %w", i, err)
		}
	}
	return nil
}

func (r Rule) matches(q request) bool {
	switch {
	case r.Operation != "" && r.Operation != q.operation:
		return false
	case r.Table != "" && !slices.ContainsFunc(q.tables, func(t string) bool { return strings.Contains(t, r.Table) }):
		return false
	case !bytes.Contains(q.body, []byte(r.Contains)):
		return false
	}
	return r.first().fits(q) && !slices.ContainsFunc(r.Then, func(s Step) bool { return !s.fits(q) })
}
