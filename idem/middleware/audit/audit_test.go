package audit_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/middleware/audit"
)

func released(t *testing.T, file string) []audit.Operation {
	t.Helper()
	operations, err := audit.Read(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return operations
}

func route(name, formerly string, p idem.Policy) middleware.RouteInfo {
	return middleware.RouteInfo{Pattern: "POST /" + name, Operation: name, RenamedFrom: formerly, Kind: idem.KindAtomic, Policy: p, Unsafe: true}
}

// semantics.md "Policies": the audit fails on a gap or on an operation name that vanished.
func TestCheckFindsWhatWouldLoseKeys(t *testing.T) {
	const file = `{"operations": [{"name": "a.b", "scope": "tenant+operation+key"}, {"name": "old.one", "retired": "served by a.b since 2026"}]}`
	bound := idem.IETF()
	bound.BindPrincipal = true
	opaque, strict := idem.IETF(), idem.IETF()
	opaque.Syntax, strict.Syntax = idem.SyntaxOpaque, idem.SyntaxStrict
	for name, c := range map[string]struct {
		routes []middleware.RouteInfo
		want   []string // of each finding a part; none for nothing found
	}{
		"as released": {[]middleware.RouteInfo{route("a.b", "", idem.IETF()), {Pattern: "GET /a"}}, nil},
		"renamed":     {[]middleware.RouteInfo{route("a.c", "a.b", idem.IETF())}, nil},
		"observed":    {[]middleware.RouteInfo{route("a.b", "", idem.Observe(idem.IETF()))}, nil},
		"exempt": {[]middleware.RouteInfo{
			route("a.b", "", idem.IETF()), {Pattern: "POST /hook", Policy: idem.Exempt("signed"), Unsafe: true},
		}, nil},
		"vanished":        {nil, []string{"a.b has vanished"}},
		"alias forgotten": {[]middleware.RouteInfo{route("a.c", "", idem.IETF())}, []string{"a.b has vanished", `record {"name": "a.c", "scope": "tenant+operation+key"}`}},
		"renamed from the last name": {[]middleware.RouteInfo{route("a.d", "a.c", idem.IETF())},
			[]string{"a.b has vanished", `record {"name": "a.c"`}},
		"scope changed":     {[]middleware.RouteInfo{route("a.b", "", idem.Stripe())}, []string{"had the scope tenant+operation+key and has tenant+key+opaque"}},
		"quotes kept":       {[]middleware.RouteInfo{route("a.b", "", opaque)}, []string{"has tenant+operation+key+opaque"}},
		"strict":            {[]middleware.RouteInfo{route("a.b", "", strict)}, nil}, // names the same keys
		"principal bound":   {[]middleware.RouteInfo{route("a.b", "", bound)}, []string{"has tenant+operation+key+principal"}},
		"exempted":          {[]middleware.RouteInfo{route("a.b", "", idem.Exempt("why not"))}, []string{"has exempt"}},
		"a retired name":    {[]middleware.RouteInfo{route("a.b", "", idem.IETF()), route("old.one", "", idem.IETF())}, []string{"old.one (POST /old.one) was retired"}},
		"gap":               {[]middleware.RouteInfo{route("a.b", "", idem.IETF()), {Pattern: "PATCH /a", Unsafe: true}}, []string{"PATCH /a admits POST or PATCH, and nothing protects it"}},
		"new, not recorded": {[]middleware.RouteInfo{route("a.b", "", idem.IETF()), route("n.n", "", idem.Lenient())}, []string{`record {"name": "n.n", "scope": "tenant+key+opaque"}`}},
	} {
		err := audit.Check(c.routes, released(t, file))
		if (err == nil) != (len(c.want) == 0) || err != nil && len(strings.Split(err.Error(), "\n")) != len(c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, file := range []string{
		``, `{"operations": [{"name": ""}]}`, `{"operations": [{"name": "a.b"}]}`, `{"operations": [{"name": "a.b", "scope": "s", "retired": "r"}]}`,
		`{"operations": [{"name": "a.b", "scope": "s"}, {"name": "a.b", "scope": "s"}]}`, `{"operations": [{"nam": "a.b", "scope": "s"}]}`,
	} {
		if operations, err := audit.Read(strings.NewReader(file)); err == nil {
			t.Errorf("%s is read as %+v", file, operations)
		}
	}
}

func TestDifferences(t *testing.T) {
	stripe := idem.Stripe()
	stripe.KeyBytesMin, stripe.Retention = 16, 48*time.Hour
	own := idem.Lenient()
	own.Name = "ours"
	for name, c := range map[string]struct {
		policy idem.Policy
		want   string
	}{
		"ietf":     {idem.IETF(), "[]"},
		"observed": {idem.Observe(idem.Lenient()), "[]"},
		"stripe":   {stripe, "[KeyBytesMin = 16]"},
		"own": {own, "[MissingKey = unprotected EmptyKeyIsMissing = true Syntax = opaque Mismatch = replay InFlight = wait WaitMax = 10s " +
			"StoreClientErrors = true Scope = tenant+key]"},
	} {
		if got := fmt.Sprint(audit.Differences(c.policy)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func ExampleTable() {
	patient := idem.IETF()
	patient.InFlight, patient.WaitMax, patient.Retention = idem.InFlightWait, 5*time.Second, 72*time.Hour
	err := audit.Table(os.Stdout, []middleware.RouteInfo{
		{Pattern: "POST /orders", Operation: "purchases.create", RenamedFrom: "orders.create", Kind: idem.KindAtomic, Policy: patient, Unsafe: true},
		{Pattern: "POST /hooks", Policy: idem.Exempt("events have ids of their own"), Unsafe: true},
		{Pattern: "POST /forgotten", Unsafe: true},
		{Pattern: "GET /orders/{id}"},
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// ROUTE             OPERATION                                      KIND    RETENTION  POLICY
	// POST /orders      purchases.create (renamed from orders.create)  atomic  72h0m0s    ietf, InFlight = wait, WaitMax = 5s
	// POST /hooks       -                                              -       -          exempt: events have ids of their own
	// POST /forgotten   -                                              -       -          none
	// GET /orders/{id}  -                                              -       -          -
}
