package function_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/function"
)

func TestNewRefuses(t *testing.T) {
	with := func(change func(*idem.Policy)) idem.Policy {
		policy := idem.IETF()
		change(&policy)
		return policy
	}
	fields, err := canonical.NewFields([]string{"/id"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	long, err := canonical.NewFields([]string{"/" + strings.Repeat("a", canonical.SelectionBytesMax)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	key := function.JSONPointer("/id")
	for field, test := range map[string]struct {
		op  idem.Operation
		cfg function.Config
	}{
		"Config.Tenant":            {cfg: function.Config{Key: key}},
		"Config.Key":               {cfg: function.Config{Tenant: "t"}},
		"Config.Key ":              {cfg: function.Config{Tenant: "t", Key: function.JSONPointer("id")}},
		"Config.Key  ":             {cfg: function.Config{Tenant: "t", Key: function.JSONPointer()}},
		"Config.Key   ":            {cfg: function.Config{Tenant: "t", Key: function.KeyFunc(nil)}},
		"Config.Raw":               {cfg: function.Config{Tenant: "t", Key: key, Raw: true}},
		"Config.Raw ":              {cfg: function.Config{Tenant: "t", Key: function.KeyFunc(whole), Raw: true, Fields: fields}},
		"Config.Fields":            {cfg: function.Config{Tenant: "t", Key: key, Fields: long}},
		"Policy.ExemptReason":      {op: idem.Operation{Policy: with(func(p *idem.Policy) { p.ExemptReason = "why" })}},
		"Policy.Observe":           {op: idem.Operation{Policy: idem.Observe(idem.IETF())}},
		"Policy.StoreServerErrors": {op: idem.Operation{Policy: idem.Stripe()}},
		"Policy.BindPrincipal":     {op: idem.Operation{Policy: with(func(p *idem.Policy) { p.BindPrincipal = true })}},
		"Policy.Retention":         {op: idem.Operation{Policy: with(func(p *idem.Policy) { p.Retention = time.Second })}},
		"Policy.KeyTime":           {op: idem.Operation{Policy: with(func(p *idem.Policy) { p.KeyTime = idem.KeyTimeUUIDv7 })}},
		"Operation.Name":           {op: idem.Operation{Name: "/charges"}},
		"Operation.Kind":           {op: idem.Operation{Kind: "decorated"}},
	} {
		op := test.op
		if op.Name == "" {
			op.Name = "charges.create"
		}
		if op.Kind == "" {
			op.Kind = idem.KindAtomic
		}
		if op.Policy.Name == "" {
			op.Policy = idem.IETF()
		}
		if test.cfg.Key.IsZero() && test.cfg.Tenant == "" {
			test.cfg = function.Config{Tenant: "t", Key: key}
		}
		w := newWorld(t, idem.Config{})
		_, err := function.New(w.engine, op, test.cfg)
		var refused *idem.ConfigError
		if !errors.As(err, &refused) || refused.Field != strings.TrimSpace(field) || len(w.engine.Operations()) > 0 {
			t.Errorf("%s: got %v", field, err)
		}
	}
	if _, err := function.New(nil, idem.Operation{}, function.Config{}); err == nil {
		t.Error("made without an engine")
	}
}

// After a loss of data nothing executes for a key that is not proven younger, and a function's key says no time: it would
// never execute, so it does not start.
func TestAFunctionThatWouldNeverExecuteDoesNotStart(t *testing.T) {
	w := newWorld(t, idem.Config{RefuseBefore: time.Now()})
	cfg := function.Config{Tenant: "t", Key: function.JSONPointer("/id")}
	op := idem.Operation{Name: "charges.create", Kind: idem.KindOptimistic, Policy: idem.IETF()}
	_, err := function.New(w.engine, op, cfg)
	var refused *idem.ConfigError
	if !errors.As(err, &refused) || refused.Field != "Config.RefuseBefore" || len(w.engine.Operations()) > 0 {
		t.Errorf("got %v", err)
	}
	op.SafeToRunAgain = true
	if _, err := function.New(w.engine, op, cfg); err != nil {
		t.Error(err)
	}
}

func whole(_ context.Context, input []byte) (string, error) { return string(input), nil }
