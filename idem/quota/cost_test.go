package quota_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/quota"
)

// doc.go "Cost": write and read units for each key that is admitted, by size of the fleet, below the limit and at three
// times it. A read that may be a moment old is half a unit.
func TestCost(t *testing.T) {
	for _, c := range []struct {
		instances, limit, perSecond int
		writes, reads               float64 // at most, per key
	}{
		{2, 20, 10, 1, 0}, {2, 200, 100, 0.2, 0}, {2, 2000, 1000, 0.02, 0.02}, {20, 2000, 1000, 0.2, 0}, {200, 2000, 1000, 1, 0},
		{2, 10, 30, 1, 0.6}, {2, 100, 300, 0.2, 0.11}, {2, 1000, 3000, 0.04, 0.02}, {200, 100, 300, 1, 1.5},
	} {
		t.Run(fmt.Sprintf("%d instances, %d keys per s, limit %d", c.instances, c.perSecond, c.limit), func(t *testing.T) {
			f := newFleet(t, quota.Limits{NewKeysPerSecond: int64(c.limit)}, make([]time.Duration, c.instances)...)
			f.offer(3*time.Second, map[string]int{"a": c.perSecond})
			f.counters.forget()
			keys := f.offer(5*time.Second, map[string]int{"a": c.perSecond})["a"]
			writes, reads := float64(f.counters.adds)/float64(keys), float64(f.counters.reads)/2/float64(keys)
			t.Logf("%.3f W, %.3f R per key", writes, reads)
			if want := 5 * min(c.perSecond, c.limit); keys != want || writes > c.writes || reads > c.reads {
				t.Errorf("%d keys at %.3f W and %.3f R each, want %d at %v and %v at most", keys, writes, reads, want, c.writes, c.reads)
			}
		})
	}
}

// A partition takes 1,000 writes and 3,000 reads a second. However many instances ask for however much, no counter comes
// near, once they know that the limit is met. A read that may be a moment old is half a unit.
func TestNoCounterOfARateIsHot(t *testing.T) {
	for _, c := range []struct{ instances, limit int }{{300, 5000}, {2000, 500}, {2000, 1500}} {
		t.Run(fmt.Sprintf("%d instances, limit %d", c.instances, c.limit), func(t *testing.T) {
			f := newFleet(t, quota.Limits{NewKeysPerSecond: int64(c.limit)}, make([]time.Duration, c.instances)...)
			f.offer(time.Second, map[string]int{"a": 3 * c.limit})
			for second := range 3 {
				f.counters.forget()
				f.offer(time.Second, map[string]int{"a": 3 * c.limit})
				writes, reads := hottest(f.counters.written), hottest(f.counters.looks)/2
				t.Logf("%d W, %d R of one counter", writes, reads)
				if writes > quota.ShardRate*11/10 || reads > 1500 {
					t.Errorf("second %d: %d write and %d read units of one counter", second, writes, reads)
				}
			}
		})
	}
}

// The counter of active keys is one item: what it takes grows with the instances, not with the keys, and not all come at
// the turn of the hour.
func TestTheCounterOfActiveKeysIsNotHot(t *testing.T) {
	const instances, perSecond = 1000, 5000
	f := newFleet(t, quota.Limits{ActiveKeys: 1_000_000}, make([]time.Duration, instances)...)
	f.now = noon.Add(58 * time.Minute)
	f.offer(110*time.Second, map[string]int{"a": perSecond})
	for second := range 15 { // from 12:59:50 on
		f.counters.forget()
		f.offer(time.Second, map[string]int{"a": perSecond})
		if writes, reads := hottest(f.counters.written), hottest(f.counters.looks); writes > 400 || reads > 400 {
			t.Errorf("second %d: %d writes and %d reads of one counter", second, writes, reads)
		}
	}
}

// A fleet that starts asks seldom where the limit is large.
func TestNewInstancesAskSeldomForMuch(t *testing.T) {
	const instances = 500
	f := newFleet(t, quota.Limits{ActiveKeys: 10_000_000}, make([]time.Duration, instances)...)
	f.offer(time.Second, map[string]int{"a": 20 * instances})
	if f.counters.adds != instances {
		t.Errorf("%d additions of %d new instances, want one each", f.counters.adds, instances)
	}
}

func BenchmarkNewKey(b *testing.B) {
	f := newFleet(b, quota.Limits{NewKeysPerSecond: 1 << 40, ActiveKeys: 1 << 40}, 0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.instances[0].NewKey(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
	}
}
