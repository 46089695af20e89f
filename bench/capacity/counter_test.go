package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/quota"
	"github.com/idem-go/idem-aws/idem/quota/dynamoquota"
	"github.com/idem-go/idem-aws/internal/consumed"
	"github.com/idem-go/idem-aws/internal/localtool"
)

// counting counts what is asked of counters, and what the hottest of them is written in a second.
type counting struct {
	quota.Counters
	now         func() time.Time
	adds, reads float64
	second      int64
	written     map[string]int
	hottest     int
}

func (c *counting) Add(ctx context.Context, counter, field string, n int64, removeAfter time.Time) (int64, error) {
	if second := c.now().Unix(); second != c.second {
		c.second, c.written = second, map[string]int{}
	}
	c.adds++
	c.written[counter]++
	c.hottest = max(c.hottest, c.written[counter])
	return c.Counters.Add(ctx, counter, field, n, removeAfter)
}

func (c *counting) Read(ctx context.Context, counters []string) ([]map[string]int64, error) {
	c.reads += float64(len(counters))
	return c.Counters.Read(ctx, counters)
}

// fleet are the processes of the api that a plan counts on, with some of its tenants.
type fleet struct {
	now       time.Time
	counters  *counting
	processes []*quota.Quota
	random    *rand.Rand
}

func newFleet(t *testing.T, traffic Traffic, d Deployed) *fleet {
	t.Helper()
	f := &fleet{now: time.Date(2026, 11, 21, 12, 20, 0, 0, time.UTC), random: rand.New(rand.NewPCG(1, 2))}
	now := func() time.Time { return f.now }
	f.counters = &counting{Counters: quota.NewMemory(now), now: now}
	limits := quota.Limits{NewKeysPerSecond: int64(d.NewKeys), LookUpsPerSecond: int64(d.LookUps), ActiveKeys: int64(d.ActiveKeys)}
	for i := range int(math.Round(traffic.requests() * traffic.API.Seconds() / traffic.Utilisation)) {
		q, err := quota.New(f.counters, quota.Config{
			Limits: func(string) quota.Limits { return limits }, ActiveFor: d.ActiveFor, Now: now, Random: rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}),
		})
		if err != nil {
			t.Fatal(err)
		}
		f.processes = append(f.processes, q)
	}
	return f
}

// serve has so many payments come at random times, of so many tenants, each at a process of its own choice.
func (f *fleet) serve(t *testing.T, payments, tenants int, perSecond float64, count func(*quota.Quota, string) error) {
	t.Helper()
	for range payments {
		f.now = f.now.Add(time.Duration(f.random.ExpFloat64() / perSecond * float64(time.Second)))
		if err := count(f.processes[f.random.IntN(len(f.processes))], fmt.Sprint("tenant-", f.random.IntN(tenants))); err != nil {
			t.Fatal(err)
		}
	}
}

func newKey(t *testing.T) func(*quota.Quota, string) error {
	return func(q *quota.Quota, tenant string) error { _, err := q.NewKey(t.Context(), tenant); return err }
}

// deployedNow is what the stack sets today.
func deployedNow(t *testing.T) Deployed {
	t.Helper()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	f, err := readFacts(root)
	if err != nil {
		t.Fatal(err)
	}
	return f.deployed
}

func trafficOf(t *testing.T, line ...string) Traffic {
	t.Helper()
	a, err := parsed(line...)
	if err != nil {
		t.Fatal(err)
	}
	return a.Traffic
}

// The units that the plan counts for the quotas are those that a fleet of package quota takes: not less than it does, and not a fifth
// more. Some tenants of all are enough, because none knows of another.
func TestQuotasCostWhatThePlanCounts(t *testing.T) {
	for _, c := range []struct {
		rate, tenants string
		some          int
		hours         float64
	}{
		{"33.3", "1000", 20, 6},    // 30 new keys of a tenant in an hour at each of four processes
		{"333", "1000", 20, 6},     // and at each of forty
		{"33.3", "100", 5, 3},      // 300
		{"33.3", "20000", 200, 12}, // 1.5
		{"33.3", "1", 1, 1},        // 30,000
	} {
		t.Run(c.rate+" payments a second of "+c.tenants, func(t *testing.T) {
			traffic, d := trafficOf(t, "--rate", c.rate, "--tenants", c.tenants), deployedNow(t)
			d.NewKeys = max(d.NewKeys, 3*traffic.Rate/traffic.Tenants) // payments come in lumps, and none is to be refused
			f := newFleet(t, traffic, d)
			perSecond := traffic.Rate / traffic.Tenants * float64(c.some)
			payments := int(perSecond * 3600 * c.hours)
			f.serve(t, payments, c.some, perSecond, newKey(t))
			writes, reads := f.counters.adds*counterWrite/float64(payments), f.counters.reads*counterRead/float64(payments)
			want := ofNewKey(traffic, d)
			t.Logf("%d new keys at %.4f W and %.4f R, planned %.4f and %.4f", payments, writes, reads, want.Counters, want.Reads)
			if writes > 1.01*want.Counters || writes < want.Counters/1.2 || reads > 1.01*want.Reads {
				t.Errorf("%.4f W and %.4f R of a new key, planned are %+v", writes, reads, want)
			}
			f.counters.adds, f.counters.reads = 0, 0
			f.serve(t, 1000, c.some, perSecond, func(q *quota.Quota, tenant string) error { return q.LookUp(t.Context(), tenant) })
			if f.counters.adds*counterWrite != 1000*ofLookUp().Counters || f.counters.reads != 0 {
				t.Errorf("1,000 look-ups: %g additions and %g reads, planned are %+v each", f.counters.adds, f.counters.reads, ofLookUp())
			}
		})
	}
}

// A partition takes 1,000 writes a second, and a counter is in one. The rights of a rate are divided among counters, so all payments
// may be one tenant's: no counter takes as much once the processes have begun, each of which adds to the counter of active keys.
func TestOneTenantMayHaveTheWholeRate(t *testing.T) {
	traffic, d := trafficOf(t, "--rate", "10000", "--tenants", "1"), deployedNow(t)
	d.NewKeys, d.ActiveKeys = tenantQuota(traffic, 1), tenantQuota(traffic, d.activeSeconds())
	f := newFleet(t, traffic, d)
	f.serve(t, 20_000, 1, traffic.Rate, newKey(t))
	f.counters.hottest = 0
	f.serve(t, 100_000, 1, traffic.Rate, newKey(t))
	t.Logf("%d processes, %d additions to the hottest counter in a second", len(f.processes), f.counters.hottest)
	if f.counters.hottest*counterWrite > partitionWrites || len(f.processes) != 1200 {
		t.Errorf("%d additions to one counter in a second, of %d processes", f.counters.hottest, len(f.processes))
	}
}

// A quota that the stack would refuse is no remedy, and no context.
func TestQuotasOfTenantsAreThoseThatTheStackTakes(t *testing.T) {
	stackSays(t, "quota.go", fmt.Sprintf("quotaMax = %d\n", int(tenantQuotaMax)))
	for tenants, want := range map[string]struct {
		context any
		remedy  string
	}{
		"1000": {1285715.0, "deploy with quotaActiveKeys=1285715"}, // 10,000 × 90,000 s / 1,000 / 0.7
		"1":    {1e9, "none: a tenant's quota is 1,000,000,000 at most; the payments must come from more tenants"},
	} {
		p, _ := planned(t, "--rate", "10000", "--tenants", tenants)
		n := slices.IndexFunc(p.Limits, func(l Limit) bool { return strings.HasPrefix(l.What, "quota of active keys") })
		if n < 0 || p.Limits[n].Enough || p.Limits[n].Remedy != want.remedy || p.Contexts["quotaActiveKeys"] != want.context {
			t.Errorf("%s tenants: limit %d of %+v, context %v", tenants, n, p.Limits, p.Contexts["quotaActiveKeys"])
		}
	}
}

// The endpoint says that an addition and a read consume what the plan counts.
func TestACounterConsumesWhatThePlanCounts(t *testing.T) {
	endpoint, err := localtool.Open(t.Context(), localtool.Dynoxide)
	if localtool.Excuses(err) {
		t.Skipf("not run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(endpoint.Stop)
	var writes, reads float64
	client := dynamotest.Client(endpoint.URL, consumed.Option(func(_ context.Context, w, r float64) { writes, reads = writes+w, reads+r }))
	if err := dynamotest.CreateTable(t.Context(), client, "quota", schema.Quota()); err != nil {
		t.Fatal(err)
	}
	counters, err := dynamoquota.New(client, "quota")
	if err != nil {
		t.Fatal(err)
	}
	for hour := range 24 { // a counter of active keys has a field for each
		if _, err := counters.Add(t.Context(), "today", fmt.Sprint("h", hour), 1_000_000, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := counters.Read(t.Context(), []string{"yesterday", "today"}); err != nil {
		t.Fatal(err)
	}
	if writes != 24*counterWrite || reads != 2*counterRead {
		t.Errorf("24 additions consumed %g W and a read of two %g R, planned are %d and %g each", writes, reads, counterWrite, counterRead)
	}
}
