package quota_test

import (
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

// Blocks take nothing from a tenant that stays well below its limit: up to four fifths of it, whoever is asked.
func TestATenantWellBelowItsLimitIsNeverRefused(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.Int64Range(2, 1500).Draw(r, "limit")
		f := newFleet(t, quota.Limits{NewKeysPerSecond: limit}, make([]time.Duration, rapid.IntRange(1, 6).Draw(r, "instances"))...)
		for range rapid.IntRange(1, 5).Draw(r, "windows") {
			among := rapid.IntRange(1, len(f.instances)).Draw(r, "among")
			for n := range limit * 4 / 5 {
				if _, err := f.instances[rapid.IntRange(0, among-1).Draw(r, "instance")].NewKey(t.Context(), "a"); err != nil {
					r.Fatalf("key %d of a limit of %d: %v", n+1, limit, err)
				}
			}
			f.now = f.now.Add(time.Second)
		}
	})
}

// An instance that is asked no more holds little of the limit: what is left is another's.
func TestLittleIsLostInHand(t *testing.T) {
	const limit = 1000
	f := newFleet(t, quota.Limits{NewKeysPerSecond: limit}, 0, 0)
	for busy := 780; busy < 820; busy++ {
		admitted := 0
		for n := range 2 * limit {
			instance := f.instances[0]
			if n >= busy {
				instance = f.instances[1]
			}
			if _, err := instance.NewKey(t.Context(), "a"); err == nil {
				admitted++
			}
		}
		if admitted < limit*95/100 {
			t.Errorf("%d admitted of %d after %d of one instance", admitted, limit, busy)
		}
		f.now = f.now.Add(time.Second)
	}
}

// A small limit starves no instance: over a minute each gets a fair part.
func TestEachInstanceGetsItsPart(t *testing.T) {
	for _, limit := range []int64{1, 2, 30} {
		f := newFleet(t, quota.Limits{NewKeysPerSecond: limit}, 0, 0)
		chance, admitted := rand.New(rand.NewPCG(1, 2)), [2]int{}
		for range 60 {
			for range 3 * limit {
				instance := chance.IntN(2)
				if _, err := f.instances[instance].NewKey(t.Context(), "a"); err == nil {
					admitted[instance]++
				}
			}
			f.now = f.now.Add(time.Second)
		}
		if all := 60 * int(limit); admitted[0]+admitted[1] != all || min(admitted[0], admitted[1]) < all/3 {
			t.Errorf("limit %d: %v, want %d fairly shared", limit, admitted, all)
		}
	}
}

// A longer window is a larger burst at the same rate.
func TestAWindowIsABurst(t *testing.T) {
	limits := func(string) quota.Limits { return quota.Limits{NewKeysPerSecond: 2} }
	f := newFleetOf(t, quota.Config{Limits: limits, Window: 10 * time.Second}, 0, 0)
	f.now = noon.Add(3 * time.Second)
	for n := range 20 {
		if _, err := f.instances[n%2].NewKey(t.Context(), "a"); err != nil {
			t.Fatalf("key %d of a burst: %v", n+1, err)
		}
	}
	_, err := f.instances[0].NewKey(t.Context(), "a")
	var over *idem.QuotaError
	if !errors.As(err, &over) || over.RetryAfter != 7*time.Second {
		t.Errorf("%v, want a refusal for the 7 s that are left", err)
	}
	f.now = noon.Add(10 * time.Second)
	if got := f.offer(time.Minute, map[string]int{"a": 6})["a"]; got != 120 {
		t.Errorf("%d in a minute at 2 per second", got)
	}
}

// Less than no limit is no right at all.
func TestANegativeLimitAdmitsNothing(t *testing.T) {
	for _, limits := range []quota.Limits{{NewKeysPerSecond: -1}, {ActiveKeys: -1}, {LookUpsPerSecond: -1}} {
		f := newFleet(t, limits, 0)
		_, err := f.instances[0].NewKey(t.Context(), "a")
		if limits.LookUpsPerSecond < 0 {
			err = f.instances[0].LookUp(t.Context(), "a")
		}
		f.refused(err)
	}
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

// A right that is given back stays with its instance: the others lack it until its window is over, and one of active keys for ActiveFor
// after the instance was last asked. So says "What a replay takes", of the package's documentation.
func TestARightThatIsGivenBackStaysWithItsInstance(t *testing.T) {
	for name, c := range map[string]struct {
		limits quota.Limits
		window time.Duration
	}{
		"of a second": {quota.Limits{NewKeysPerSecond: 2}, time.Second},
		"of an hour":  {quota.Limits{ActiveKeys: 2}, 26 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, c.limits, 0, 0, 0)
			take := func(instance int) func() {
				t.Helper()
				giveBack, err := f.instances[instance].NewKey(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				return giveBack
			}
			for _, instance := range []int{0, 1} { // two duplicates, each at an instance
				take(instance)()
			}
			_, err := f.instances[2].NewKey(t.Context(), "a")
			f.refused(err)
			take(0)() // its own next one is admitted
			f.now = f.now.Add(c.window)
			take(2)
		})
	}
}

// A right counts in the window and in the hour in which it was taken: given back later, it admits nobody beyond the limit of another.
func TestARightThatIsGivenBackAfterItsWindowAdmitsNobody(t *testing.T) {
	for name, c := range map[string]struct {
		limits quota.Limits
		window time.Duration
	}{
		"of a second": {quota.Limits{NewKeysPerSecond: 1}, time.Second},
		"of an hour":  {quota.Limits{ActiveKeys: 2}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, c.limits, 0)
			giveBack, err := f.instances[0].NewKey(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			f.now = f.now.Add(c.window)
			if _, err := f.instances[0].NewKey(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			giveBack()
			_, err = f.instances[0].NewKey(t.Context(), "a")
			f.refused(err)
		})
	}
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

// An instance forgets tenants; what they used up is counted elsewhere.
func TestForgottenTenantsStayLimited(t *testing.T) {
	f := newFleetOf(t, quota.Config{Limits: func(string) quota.Limits { return quota.Limits{NewKeysPerSecond: 1} }, TenantsMax: 1}, 0)
	admitted := map[string]int{}
	for range 3 {
		for _, tenant := range []string{"a", "b"} {
			if _, err := f.instances[0].NewKey(t.Context(), tenant); err != nil {
				f.refused(err)
				continue
			}
			admitted[tenant]++
		}
	}
	if admitted["a"] != 1 || admitted["b"] != 1 {
		t.Errorf("%v, want one of each", admitted)
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
		"Config.Window": func() (*quota.Quota, error) {
			return quota.New(counters, quota.Config{Limits: limits, Window: 1500 * time.Millisecond})
		},
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
