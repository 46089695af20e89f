package quota_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/quota"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// fleet is a number of instances on the same counters, on a clock that the test moves; each has its own error of it.
type fleet struct {
	testing.TB
	now       time.Time
	counters  *counting
	instances []*quota.Quota
}

// counting counts what counters are asked, fails it if it is told to, and sees to it that none is ever below 0.
type counting struct {
	testing.TB
	quota.Counters
	mu             sync.Mutex
	adds, reads    int
	written, looks map[string]int // by counter
	err            error
}

// forget begins to count anew.
func (c *counting) forget() {
	c.adds, c.reads, c.written, c.looks = 0, 0, map[string]int{}, map[string]int{}
}

func hottest(byCounter map[string]int) (most int) {
	for _, n := range byCounter {
		most = max(most, n)
	}
	return most
}

func (c *counting) Add(ctx context.Context, counter, field string, n int64, removeAfter time.Time) (int64, error) {
	c.mu.Lock()
	c.adds++
	c.written[counter]++
	err := c.err
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	sum, err := c.Counters.Add(ctx, counter, field, n, removeAfter)
	if sum < 0 {
		c.Errorf("a counter is %d after %d", sum, n)
	}
	return sum, err
}

func (c *counting) Read(ctx context.Context, counters []string) ([]map[string]int64, error) {
	c.mu.Lock()
	c.reads += len(counters)
	for _, counter := range counters {
		c.looks[counter]++
	}
	err := c.err
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return c.Counters.Read(ctx, counters)
}

func newFleet(t testing.TB, limits quota.Limits, skews ...time.Duration) *fleet {
	t.Helper()
	return newFleetOf(t, quota.Config{Limits: func(string) quota.Limits { return limits }}, skews...)
}

func newFleetOf(t testing.TB, cfg quota.Config, skews ...time.Duration) *fleet {
	t.Helper()
	f := &fleet{TB: t, now: noon}
	f.counters = &counting{TB: t, Counters: quota.NewMemory(func() time.Time { return f.now })}
	f.counters.forget()
	for i, skew := range skews {
		cfg.Now, cfg.Random = func() time.Time { return f.now.Add(skew) }, rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)})
		q, err := quota.New(f.counters, cfg)
		if err != nil {
			t.Fatal(err)
		}
		f.instances = append(f.instances, q)
	}
	return f
}

// offer sends so many requests of each tenant per second for a span, instance by instance in turn, and says how many of
// each were admitted.
func (f *fleet) offer(span time.Duration, perSecond map[string]int) map[string]int {
	f.Helper()
	admitted := map[string]int{}
	const steps = 100 // in a second
	n := 0
	for step := range int(span.Seconds() * steps) {
		for tenant, rate := range perSecond {
			for range rate*(step+1)/steps - rate*step/steps {
				n++
				if _, err := f.instances[n%len(f.instances)].NewKey(f.Context(), tenant); err == nil {
					admitted[tenant]++
				} else {
					f.refused(err)
				}
			}
		}
		f.now = f.now.Add(time.Second / steps)
	}
	return admitted
}

func (f *fleet) refused(err error) {
	f.Helper()
	var over *idem.QuotaError
	if !errors.As(err, &over) || over.RetryAfter <= 0 {
		f.Fatalf("%v, want a QuotaError with a time to come again", err)
	}
}
