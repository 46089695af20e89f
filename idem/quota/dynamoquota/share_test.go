package dynamoquota_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/quota"
	"github.com/idem-go/idem-aws/idem/quota/dynamoquota"
	"github.com/idem-go/idem-aws/internal/consumed"
)

// bill is what the calls of one context consumed, in half units.
type bill struct{ writes, reads atomic.Int64 }

type billKey struct{}

// metered adds what calls consume to the bill of their context.
var metered = consumed.Option(func(ctx context.Context, writes, reads float64) {
	if b, ok := ctx.Value(billKey{}).(*bill); ok {
		b.writes.Add(int64(2 * writes))
		b.reads.Add(int64(2 * reads))
	}
})

// units are what was consumed.
func (b *bill) units() (writes, reads float64) {
	return float64(b.writes.Load()) / 2, float64(b.reads.Load()) / 2
}

// caller is a tenant that asks steadily, of both instances at once.
type caller struct {
	limit, perSecond int
	bill             bill
	admitted         atomic.Int64

	mu    sync.Mutex
	asked map[int64]int // by second
}

// due is what the limit leaves of what was asked for in each second.
func (c *caller) due() (keys int) {
	for _, n := range c.asked {
		keys += min(n, c.limit)
	}
	return keys
}

func (c *caller) ask(t *testing.T, q *quota.Quota, name string, perSecond, seconds int, began time.Time) {
	ctx := context.WithValue(context.WithoutCancel(t.Context()), billKey{}, &c.bill)
	for n := range perSecond * seconds {
		time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(perSecond))))
		c.mu.Lock()
		c.asked[time.Now().Unix()]++
		c.mu.Unlock()
		_, err := q.NewKey(ctx, name)
		var over *idem.QuotaError
		switch {
		case err == nil:
			c.admitted.Add(1)
		case !errors.As(err, &over):
			t.Error(err)
		}
	}
}

// virtually runs a test on a real table, in time that passes only while nobody waits for the table's answer. An idle connection
// would be waited for as well, so that none is kept.
func virtually(t *testing.T, test func(t *testing.T, c *dynamoquota.Counters)) {
	t.Helper()
	client, name := table(t)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC))) // the table removes no counter meanwhile
		c, err := dynamoquota.New(dynamodb.New(client.Options(), func(o *dynamodb.Options) {
			o.HTTPClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		}), name)
		if err != nil {
			t.Fatal(err)
		}
		test(t, c)
	})
}

// traffic has all callers ask for some seconds.
func traffic(t *testing.T, c quota.Counters, callers map[string]*caller, seconds int) {
	t.Helper()
	began := time.Now().Truncate(time.Second).Add(time.Second) // whole windows only
	for _, caller := range callers {
		caller.asked = map[int64]int{}
	}
	var group sync.WaitGroup
	for range 2 {
		q, err := quota.New(c, quota.Config{CallTimeout: 5 * time.Second, Limits: func(name string) quota.Limits {
			return quota.Limits{NewKeysPerSecond: int64(callers[name].limit)}
		}})
		if err != nil {
			t.Fatal(err)
		}
		for name, caller := range callers {
			group.Go(func() { caller.ask(t, q, name, caller.perSecond/2, seconds, began) })
		}
	}
	group.Wait()
}

// Issue "Limits per tenant": 2 instances, 1 tenant at 3 times its limit: admitted within 10 % of it; the other tenant
// unaffected.
func TestTwoInstancesShareALimit(t *testing.T) { virtually(t, twoInstancesShareALimit) }

func twoInstancesShareALimit(t *testing.T, c *dynamoquota.Counters) {
	const seconds = 5
	callers := map[string]*caller{"modest": {limit: 40, perSecond: 10}}
	for _, limit := range []int{2, 20, 200} {
		callers[fmt.Sprintf("greedy %d", limit)] = &caller{limit: limit, perSecond: 3 * limit}
	}
	traffic(t, c, callers, seconds)
	for name, caller := range callers {
		got, due := float64(caller.admitted.Load()), float64(caller.due())
		writes, reads := caller.bill.units()
		t.Logf("%s: %v of %v due; %.3f W and %.3f R each", name, got, due, writes/got, reads/got)
		if got < 0.9*due || got > 1.1*due {
			t.Errorf("%s: %v admitted, want %v within 10 %%", name, got, due)
		}
		if name == "modest" && int(got) != caller.perSecond*seconds {
			t.Errorf("%v of the modest tenant's, want all %d", got, caller.perSecond*seconds)
		}
	}
}

// doc.go "Cost": what keys below the limit cost, by the table's own figures.
func TestWhatAKeyCosts(t *testing.T) { virtually(t, whatAKeyCosts) }

func whatAKeyCosts(t *testing.T, c *dynamoquota.Counters) {
	const seconds = 4
	most := map[int]float64{10: 1, 100: 0.5, 1000: 0.1} // the first second, in which blocks grow, included
	callers := map[string]*caller{}
	for perSecond := range most {
		callers[fmt.Sprint(perSecond)] = &caller{limit: 10 * perSecond, perSecond: perSecond}
	}
	traffic(t, c, callers, seconds)
	for name, caller := range callers {
		writes, reads := caller.bill.units()
		got := float64(caller.admitted.Load())
		t.Logf("%s per second: %.3f W and %.3f R each", name, writes/got, reads/got)
		if int(got) != caller.perSecond*seconds || writes/got > most[caller.perSecond] {
			t.Errorf("%s per second: %v admitted at %.3f W, want all at %v at most", name, got, writes/got, most[caller.perSecond])
		}
	}
}

// An addition is a write unit, a read half a read unit for each counter.
func TestCapacity(t *testing.T) {
	c, _, _ := counters(t)
	var b bill
	ctx := context.WithValue(t.Context(), billKey{}, &b)
	for _, counter := range []string{"a", "b"} {
		if _, err := c.Add(ctx, counter, "n", 5, time.Unix(1800000000, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Read(ctx, []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	if writes, reads := b.units(); writes != 2 || reads != 1 {
		t.Errorf("%v W, %v R; want 2 and 1", writes, reads)
	}
}
