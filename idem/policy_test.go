package idem_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
)

func TestPublishedPoliciesAreValid(t *testing.T) {
	for _, p := range []idem.Policy{idem.IETF(), idem.Stripe(), idem.Lenient(), idem.Exempt("a health check")} {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}

func TestPolicyRejectsContradictionsByNamingTheField(t *testing.T) {
	for field, change := range map[string]func(*idem.Policy){
		"Policy.MissingKey":    func(p *idem.Policy) { p.MissingKey = "" },
		"Policy.EmptyKey":      func(p *idem.Policy) { p.EmptyKey = "whatever" },
		"Policy.Syntax":        func(p *idem.Policy) { p.Syntax = "xml" },
		"Policy.KeyBytesMin":   func(p *idem.Policy) { p.KeyBytesMin = 8 },
		"Policy.Mismatch":      func(p *idem.Policy) { p.Mismatch = "418" },
		"Policy.InFlight":      func(p *idem.Policy) { p.InFlight = "" },
		"Policy.WaitMax":       func(p *idem.Policy) { p.WaitMax = time.Second },
		"Policy.ClientErrors":  func(p *idem.Policy) { p.ClientErrors = "" },
		"Policy.Scope":         func(p *idem.Policy) { p.Scope = "key" },
		"Policy.Retention":     func(p *idem.Policy) { p.Retention = 91 * 24 * time.Hour },
		"Policy.AfterExpiry":   func(p *idem.Policy) { p.AfterExpiry = idem.AfterExpiryGone },
		"Policy.ReplayHeaders": func(p *idem.Policy) { p.ReplayHeaders = []string{"X-Ok", "set-cookie"} },
	} {
		p := idem.IETF()
		change(&p)
		var broken *idem.ConfigError
		if err := p.Validate(); !errors.As(err, &broken) || broken.Field != field || broken.Rule == "" {
			t.Errorf("%s: %v, want a ConfigError that names it", field, err)
		}
	}
	waits := idem.IETF()
	waits.InFlight = idem.InFlightWait
	if err := waits.Validate(); err == nil || !strings.Contains(err.Error(), "WaitMax") || !strings.Contains(err.Error(), "InFlight") {
		t.Errorf("waiting for no time: %v, want both fields named", err)
	}
}

func TestRegisterRejects(t *testing.T) {
	mem, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(mem, idem.Config{WireMax: 2 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	short, stripe := idem.IETF(), idem.Stripe()
	short.Retention = time.Hour
	if _, err := engine.Register(idem.Operation{Name: "a.b", Kind: idem.KindAtomic, Policy: idem.IETF()}); err != nil {
		t.Fatal(err)
	}
	for field, op := range map[string]idem.Operation{
		"Operation.Name":           {Name: "/v1/orders", Kind: idem.KindAtomic, Policy: idem.IETF()},
		"Operation.Kind":           {Name: "a.c", Kind: "psychic", Policy: idem.IETF()},
		"Operation.SafeToRunAgain": {Name: "a.c", Kind: idem.KindAtomic, SafeToRunAgain: true, Policy: idem.IETF()},
		"Policy.StoreServerErrors": {Name: "a.c", Kind: idem.KindOpaque, Policy: stripe},
		"Policy.Retention":         {Name: "a.c", Kind: idem.KindAtomic, Policy: short},
	} {
		var broken *idem.ConfigError
		if _, err := engine.Register(op); !errors.As(err, &broken) || broken.Field != field {
			t.Errorf("%+v: %v, want %s rejected", op, err, field)
		}
	}
	if _, err := engine.Register(idem.Operation{Name: "a.b", Kind: idem.KindAtomic, Policy: idem.IETF()}); err == nil {
		t.Error("a name is registered twice")
	}
	if got := engine.Operations(); len(got) != 1 || got[0].Name != "a.b" {
		t.Errorf("operations %+v, want a.b alone", got)
	}
}

func TestNewRejectsRelationsThatCannotHold(t *testing.T) {
	mem, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for field, cfg := range map[string]idem.Config{
		"Config.ExecutionMax":     {ExecutionMax: 4 * time.Second},
		"Config.LeaseMargin":      {LeaseMargin: -time.Second},
		"Config.ResponseBytesMax": {ResponseBytesMax: 4 << 20},
	} {
		var broken *idem.ConfigError
		if _, err := idem.New(mem, cfg); !errors.As(err, &broken) || broken.Field != field {
			t.Errorf("%v, want %s rejected", err, field)
		}
	}
	if _, err := idem.New(nil, idem.Config{}); err == nil {
		t.Error("an engine without a store")
	}
}

func TestPolicyReplaysAllowListedHeadersOnly(t *testing.T) {
	p := idem.IETF()
	p.ReplayHeaders = []string{"x-request-cost"}
	var replayed []string
	for _, name := range []string{"content-type", "Location", "X-Request-Cost", "Set-Cookie", "Date", "X-Other"} {
		if p.Replays(name) {
			replayed = append(replayed, name)
		}
	}
	if want := []string{"content-type", "Location", "X-Request-Cost"}; !slices.Equal(replayed, want) {
		t.Errorf("replayed %q, want %q", replayed, want)
	}
}
