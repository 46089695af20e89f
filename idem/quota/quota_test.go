package quota_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/quota"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// fleet is a number of instances on the same counters, on a clock that the test moves; each has its own error of it.
type fleet struct {
	*testing.T
	now       time.Time
	counters  *counting
	instances []*quota.Quota
}

// counting counts the calls, and fails them if it is told to.
type counting struct {
	quota.Counters
	mu          sync.Mutex
	adds, reads int
	byCounter   map[string]int
	err         error
}

func (c *counting) Add(ctx context.Context, counter, field string, n int64, removeAfter time.Time) (int64, error) {
	c.mu.Lock()
	c.adds++
	c.byCounter[counter]++
	err := c.err
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Counters.Add(ctx, counter, field, n, removeAfter)
}

func (c *counting) Read(ctx context.Context, counters []string) ([]map[string]int64, error) {
	c.mu.Lock()
	c.reads += len(counters)
	err := c.err
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return c.Counters.Read(ctx, counters)
}

func newFleet(t *testing.T, limits quota.Limits, skews ...time.Duration) *fleet {
	t.Helper()
	f := &fleet{T: t, now: noon}
	f.counters = &counting{Counters: quota.NewMemory(func() time.Time { return f.now }), byCounter: map[string]int{}}
	for i, skew := range skews {
		q, err := quota.New(f.counters, quota.Config{
			Limits: func(string) quota.Limits { return limits }, Now: func() time.Time { return f.now.Add(skew) },
			Random: rand.NewChaCha8([32]byte{byte(i)}),
		})
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

// The issue of limits: 2 instances, 1 tenant at 3 times its limit: admitted within 10 % of it; the other tenant unaffected.
func TestTwoInstancesShareALimit(t *testing.T) {
	const seconds = 10
	for _, limit := range []int64{2, 10, 100, 999, 1700} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			f := newFleet(t, quota.Limits{NewKeysPerSecond: limit}, 0, 0)
			other := int(max(1, limit/2))
			got := f.offer(seconds*time.Second, map[string]int{"greedy": int(3 * limit), "modest": other})
			if want := float64(seconds * limit); float64(got["greedy"]) < 0.9*want || float64(got["greedy"]) > 1.1*want {
				t.Errorf("%d of the greedy tenant's, want %v within 10 %%", got["greedy"], want)
			}
			if want := other * seconds; got["modest"] != want {
				t.Errorf("%d of the modest tenant's, want all %d", got["modest"], want)
			}
		})
	}
}

// A limit that is not used up admits everybody, and one that is says when to come again.
func TestARefusalSaysWhenTheWindowEnds(t *testing.T) {
	f := newFleet(t, quota.Limits{NewKeysPerSecond: 1}, 0)
	f.now = noon.Add(250 * time.Millisecond)
	if _, err := f.instances[0].NewKey(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	_, err := f.instances[0].NewKey(t.Context(), "a")
	var over *idem.QuotaError
	if !errors.As(err, &over) || over.RetryAfter != 750*time.Millisecond || over.Limit != "new keys per second" {
		t.Errorf("%v, want a refusal for 750 ms", err)
	}
	f.now = f.now.Add(750 * time.Millisecond)
	if _, err := f.instances[0].NewKey(t.Context(), "a"); err != nil {
		t.Errorf("in the next window: %v", err)
	}
}

// doc.go: over n seconds at most (n + 1 + s) times the limit, s being the seconds by which clocks differ.
func TestClocksThatDifferAdmitNoMoreThanTheBound(t *testing.T) {
	const limit, seconds, skew = 50, 5, 2
	f := newFleet(t, quota.Limits{NewKeysPerSecond: limit}, 0, skew*time.Second)
	f.now = noon.Add(500 * time.Millisecond)
	got := f.offer(seconds*time.Second, map[string]int{"a": 10 * limit})["a"]
	if got > (seconds+1+skew)*limit || got < seconds*limit {
		t.Errorf("%d admitted in %d s at a limit of %d, want %d to %d", got, seconds, limit, seconds*limit, (seconds+1+skew)*limit)
	}
}

// Whatever instances do in whatever order: no window of a shared clock ever admits more than the limit, and all of it is
// admitted as long as somebody asks on each instance.
func TestNoOrderExceedsALimit(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.Int64Range(1, 1200).Draw(r, "limit")
		f := newFleet(t, quota.Limits{NewKeysPerSecond: limit}, make([]time.Duration, rapid.IntRange(1, 5).Draw(r, "instances"))...)
		for range rapid.IntRange(1, 4).Draw(r, "windows") {
			var admitted int64
			for range rapid.IntRange(0, 3000).Draw(r, "requests") {
				giveBack, err := f.instances[rapid.IntRange(0, len(f.instances)-1).Draw(r, "instance")].NewKey(t.Context(), "a")
				if err != nil {
					continue
				}
				if admitted++; rapid.IntRange(0, 9).Draw(r, "back") == 0 {
					giveBack()
					admitted--
				}
			}
			if admitted > limit {
				r.Fatalf("%d admitted, limit %d", admitted, limit)
			}
			f.now = f.now.Add(time.Second)
		}
	})
}

// What a request turned out not to need is the next one's.
func TestARightThatIsGivenBackCanBeTakenAgain(t *testing.T) {
	f := newFleet(t, quota.Limits{NewKeysPerSecond: 1, ActiveKeys: 1}, 0)
	for range 5 {
		giveBack, err := f.instances[0].NewKey(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		giveBack()
	}
	if _, err := f.instances[0].NewKey(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	_, err := f.instances[0].NewKey(t.Context(), "a")
	f.refused(err)
}

// Active keys count for ActiveFor, by the hour, whichever instance took them.
func TestActiveKeysCountByTheHour(t *testing.T) {
	f := newFleet(t, quota.Limits{ActiveKeys: 100}, 0, 0)
	take := func(n int) (admitted int) {
		for i := range n {
			if _, err := f.instances[i%2].NewKey(t.Context(), "a"); err == nil {
				admitted++
			}
		}
		return admitted
	}
	if got := take(60); got != 60 {
		t.Errorf("%d of 60", got)
	}
	f.now = f.now.Add(3 * time.Hour)
	if got := take(60); got > 40 || got < 36 { // within 10 %
		t.Errorf("%d more, want 40: 60 are active already", got)
	}
	_, err := f.instances[0].NewKey(t.Context(), "a")
	var over *idem.QuotaError
	if !errors.As(err, &over) || over.RetryAfter != time.Hour || over.Limit != "active keys" {
		t.Errorf("%v, want a refusal until the next hour", err)
	}
	f.now = noon.Add(24 * time.Hour) // the first 60 count for the last time in this hour
	if got := take(10); got > 4 {
		t.Errorf("%d a day later", got)
	}
	f.now = noon.Add(25 * time.Hour)
	if got := take(70); got > 64 || got < 54 {
		t.Errorf("%d once the first hour is over, want 60", got)
	}
}

// A new day is a new counter; the day before still counts.
func TestActiveKeysCountAcrossMidnight(t *testing.T) {
	f := newFleet(t, quota.Limits{ActiveKeys: 3}, 0)
	f.now = time.Date(2026, 11, 21, 23, 59, 0, 0, time.UTC)
	for range 2 {
		if _, err := f.instances[0].NewKey(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	f.now = f.now.Add(2 * time.Minute)
	if _, err := f.instances[0].NewKey(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	_, err := f.instances[0].NewKey(t.Context(), "a")
	f.refused(err)
}

// A refusal for want of active keys takes nothing of the rate.
func TestARefusalTakesNothing(t *testing.T) {
	f := newFleet(t, quota.Limits{NewKeysPerSecond: 2, ActiveKeys: 1}, 0)
	q := f.instances[0]
	if _, err := q.NewKey(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, err := q.NewKey(t.Context(), "a")
		var over *idem.QuotaError
		if !errors.As(err, &over) || over.Limit != "active keys" {
			t.Errorf("%v, want a refusal for active keys: the rate has room", err)
		}
	}
}

func TestLookUpsHaveTheirOwnLimit(t *testing.T) {
	f := newFleet(t, quota.Limits{NewKeysPerSecond: 1, LookUpsPerSecond: 2}, 0)
	for range 2 {
		if err := f.instances[0].LookUp(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	f.refused(f.instances[0].LookUp(t.Context(), "a"))
	if _, err := f.instances[0].NewKey(t.Context(), "a"); err != nil {
		t.Errorf("a new key: %v", err)
	}
}

// Without a limit nobody is asked.
func TestNoLimitCostsNothing(t *testing.T) {
	f := newFleet(t, quota.Limits{}, 0)
	f.offer(time.Second, map[string]int{"a": 1000})
	if err := f.instances[0].LookUp(t.Context(), "a"); err != nil || f.counters.adds+f.counters.reads != 0 {
		t.Errorf("%v, %d additions, %d reads", err, f.counters.adds, f.counters.reads)
	}
}

// Nobody to ask is an error of its own, not a refusal: the engine answers 503.
func TestCountersThatFailAreNoRefusal(t *testing.T) {
	for _, limits := range []quota.Limits{{NewKeysPerSecond: 5}, {ActiveKeys: 5}} {
		f := newFleet(t, limits, 0)
		f.counters.err = errors.New("down")
		_, err := f.instances[0].NewKey(t.Context(), "a")
		var over *idem.QuotaError
		if err == nil || errors.As(err, &over) {
			t.Errorf("%+v: %v, want the counters' error", limits, err)
		}
		f.counters.err = nil
		if _, err := f.instances[0].NewKey(t.Context(), "a"); err != nil {
			t.Errorf("%+v, afterwards: %v", limits, err)
		}
	}
}

// doc.go "Cost": write units for each admitted key, by size of the fleet, at a limit that is not met.
func TestCost(t *testing.T) {
	for _, c := range []struct {
		instances, perSecond int
		most                 float64 // write units per key
	}{
		{2, 10, 1}, {2, 100, 0.25}, {2, 1000, 0.04}, {20, 1000, 0.25}, {200, 1000, 1},
	} {
		t.Run(fmt.Sprintf("%d instances, %d keys per s", c.instances, c.perSecond), func(t *testing.T) {
			f := newFleet(t, quota.Limits{NewKeysPerSecond: int64(2 * c.perSecond)}, make([]time.Duration, c.instances)...)
			f.offer(3*time.Second, map[string]int{"a": c.perSecond})
			f.counters.adds = 0
			keys := f.offer(5*time.Second, map[string]int{"a": c.perSecond})["a"]
			cost := float64(f.counters.adds) / float64(keys)
			t.Logf("%d instances, %d keys per second: %.3f W per key", c.instances, c.perSecond, cost)
			if keys != 5*c.perSecond || cost > c.most {
				t.Errorf("%d keys at %.3f W each, want %d at %v at most", keys, cost, 5*c.perSecond, c.most)
			}
		})
	}
}

// A high rate is spread over counters: none gets more writes than a partition takes.
func TestAHighRateIsSpread(t *testing.T) {
	f := newFleet(t, quota.Limits{NewKeysPerSecond: 10 * quota.ShardRate}, make([]time.Duration, 300)...)
	f.offer(time.Second, map[string]int{"a": 10 * quota.ShardRate})
	for name, writes := range f.counters.byCounter {
		if writes > 2*quota.ShardRate {
			t.Errorf("%d writes of counter %s in one second", writes, name)
		}
	}
}

func TestManyTenantsAreBounded(t *testing.T) {
	f := newFleet(t, quota.Limits{NewKeysPerSecond: 1}, 0)
	small, err := quota.New(f.counters, quota.Config{
		Limits: func(string) quota.Limits { return quota.Limits{NewKeysPerSecond: 1} }, TenantsMax: 1, Now: func() time.Time { return noon },
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, tenant := range []string{"a", "b"} {
			if _, err := small.NewKey(t.Context(), tenant); err != nil {
				f.refused(err) // forgotten here, but counted there
				continue
			}
			if f.counters.byCounter["again "+tenant]++; f.counters.byCounter["again "+tenant] > 1 {
				t.Errorf("%s got two of one", tenant)
			}
		}
	}
}

func TestSimultaneousRequestsStayWithinTheLimit(t *testing.T) {
	const limit = 100
	f := newFleet(t, quota.Limits{NewKeysPerSecond: limit, ActiveKeys: 10 * limit}, 0, 0)
	var group sync.WaitGroup
	admitted := make(chan struct{}, 10*limit)
	for i := range 10 * limit {
		group.Go(func() {
			if giveBack, err := f.instances[i%2].NewKey(t.Context(), "a"); err == nil {
				if i%10 == 0 {
					giveBack()
					return
				}
				admitted <- struct{}{}
			}
		})
	}
	group.Wait()
	if n := len(admitted); n > limit || n < limit*8/10 {
		t.Errorf("%d admitted, limit %d", n, limit)
	}
}

func TestNewRejectsItsConfiguration(t *testing.T) {
	limits := func(string) quota.Limits { return quota.Limits{} }
	counters := quota.NewMemory(nil)
	for field, make := range map[string]func() (*quota.Quota, error){
		"counters":      func() (*quota.Quota, error) { return quota.New(nil, quota.Config{Limits: limits}) },
		"Config.Limits": func() (*quota.Quota, error) { return quota.New(counters, quota.Config{}) },
		"Config.ActiveFor": func() (*quota.Quota, error) {
			return quota.New(counters, quota.Config{Limits: limits, ActiveFor: 90 * time.Minute})
		},
		"Config.TenantsMax": func() (*quota.Quota, error) { return quota.New(counters, quota.Config{Limits: limits, TenantsMax: -1}) },
		"Config.CallTimeout": func() (*quota.Quota, error) {
			return quota.New(counters, quota.Config{Limits: limits, CallTimeout: -1})
		},
	} {
		var rejected *idem.ConfigError
		if _, err := make(); !errors.As(err, &rejected) || rejected.Field != field {
			t.Errorf("%v, want a ConfigError of %s", err, field)
		}
	}
}
