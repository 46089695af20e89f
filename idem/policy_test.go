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
		"Policy.Syntax":        func(p *idem.Policy) { p.Syntax = "xml" },
		"Policy.KeyBytesMin":   func(p *idem.Policy) { p.KeyBytesMin = 8 },
		"Policy.Mismatch":      func(p *idem.Policy) { p.Mismatch = "418" },
		"Policy.InFlight":      func(p *idem.Policy) { p.InFlight = "" },
		"Policy.WaitMax":       func(p *idem.Policy) { p.WaitMax = time.Second },
		"Policy.Scope":         func(p *idem.Policy) { p.Scope = "key" },
		"Policy.Retention":     func(p *idem.Policy) { p.Retention = 91 * 24 * time.Hour },
		"Policy.KeepFor":       func(p *idem.Policy) { p.KeepFor = -time.Second },
		"Policy.KeyTime":       func(p *idem.Policy) { p.KeyTime = "UUIDv1" },
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

// What expiry needs of other fields is said by naming both (semantics.md "Policies": 410 after expiry without a tombstone
// or a time in the key).
func TestPolicyRejectsExpiryThatCannotBeKept(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*idem.Policy)
		fields []string
	}{
		"410 without tombstone or key time": {
			func(p *idem.Policy) { p.GoneAfterExpiry = true },
			[]string{"Policy.GoneAfterExpiry", "Policy.KeepFor", "Policy.KeyTimeRequired"},
		},
		"410 with a time that keys need not have": {
			func(p *idem.Policy) { p.GoneAfterExpiry, p.KeyTime = true, idem.KeyTimeULID },
			[]string{"Policy.GoneAfterExpiry", "Policy.KeyTimeRequired"},
		},
		"a time that no key has is required": {
			func(p *idem.Policy) { p.KeyTimeRequired = true },
			[]string{"Policy.KeyTimeRequired", "Policy.KeyTime"},
		},
		"keys longer than those with a time": {
			func(p *idem.Policy) {
				p.Syntax, p.KeyBytesMin, p.KeyTime, p.KeyTimeRequired = idem.SyntaxOpaque, 27, idem.KeyTimeULID, true
			},
			[]string{"Policy.KeyBytesMin", "Policy.KeyTimeRequired"},
		},
		"kept for ever": {
			func(p *idem.Policy) { p.KeepFor = 11 * 365 * 24 * time.Hour },
			[]string{"Policy.KeepFor"},
		},
	} {
		p := idem.IETF()
		c.change(&p)
		err := p.Validate()
		var broken *idem.ConfigError
		if !errors.As(err, &broken) || broken.Field != c.fields[0] {
			t.Errorf("%s: %v, want %s rejected", name, err, c.fields[0])
			continue
		}
		for _, field := range c.fields {
			if !strings.Contains(err.Error(), field) {
				t.Errorf("%s: %v does not name %s", name, err, field)
			}
		}
	}
	for name, change := range map[string]func(*idem.Policy){
		"tombstone": func(p *idem.Policy) { p.GoneAfterExpiry, p.KeepFor = true, time.Hour },
		"time in the key": func(p *idem.Policy) {
			p.GoneAfterExpiry, p.KeyTime, p.KeyTimeRequired = true, idem.KeyTimeEither, true
		},
		"audit":    func(p *idem.Policy) { p.KeepFor = 10 * 365 * 24 * time.Hour },
		"resource": func(p *idem.Policy) { p.ResourceBacked = true },
	} {
		p := idem.IETF()
		if change(&p); p.Validate() != nil {
			t.Errorf("%s: %v", name, p.Validate())
		}
	}
}

func TestRegisterRejects(t *testing.T) {
	mem, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(mem, idem.Config{ExecutionMax: 2 * time.Hour, RunMax: 2 * time.Hour})
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
		"Policy.StoreServerErrors": {Name: "a.c", Kind: idem.KindWrapped, UnknownToOperator: true, Policy: stripe},
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
		"Config.ExecutionMax":     {ExecutionMax: 3 * time.Second},
		"Config.LeaseMargin":      {LeaseMargin: -time.Second},
		"Config.ClockSkew":        {ClockSkew: 3 * time.Second},
		"Config.RunMax":           {RunMax: time.Second},
		"Config.CacheAge":         {CacheAge: -time.Second},
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
