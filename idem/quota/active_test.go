package quota_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/quota"
	"github.com/idem-go/idem-aws/internal/twoclocks"
)

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

// A limit that is changed holds at once: what an instance has in hand under the limit before comes back, and one that has met that
// limit asks again.
func TestAChangedLimitOfActiveKeysHoldsAtOnce(t *testing.T) {
	limits := quota.Limits{ActiveKeys: 1_000_000_000}
	f := newFleetOf(t, quota.Config{Limits: func(string) quota.Limits { return limits }}, 0)
	admitted := func(limit int64, tries int) (n int) {
		limits.ActiveKeys = limit
		for range tries {
			if _, err := f.instances[0].NewKey(t.Context(), "a"); err == nil {
				n++
			} else {
				f.refused(err)
			}
		}
		return n
	}
	for _, step := range []struct {
		limit       int64
		tries, want int
	}{{1_000_000_000, 2, 2}, {1, 3, 0}, {5, 10, 3}, {5, 10, 0}, {6, 10, 1}} {
		if got := admitted(step.limit, step.tries); got != step.want {
			t.Errorf("%d of %d at a limit of %d, want %d", got, step.tries, step.limit, step.want)
		}
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

// Rights that were not used in their hour come back: an instance that dies may lose some, one that lives may not.
func TestUnusedActiveKeysComeBack(t *testing.T) {
	const limit, hours = 2400, 24
	f := newFleet(t, quota.Limits{ActiveKeys: limit}, 0, 0)
	f.now = noon.Add(30 * time.Minute) // past the minutes for which rights outlive their hour
	got := 0
	for range hours { // 99 an hour leave blocks begun
		got += f.offer(3*time.Second, map[string]int{"a": 33})["a"]
		f.now = f.now.Add(time.Hour - 3*time.Second)
	}
	if got != 99*hours {
		t.Errorf("%d of %d keys at a limit of %d", got, 99*hours, limit)
	}
	if got, left := f.offer(time.Second, map[string]int{"a": 500})["a"], limit-99*hours; got != left {
		t.Errorf("%d more, want the %d that are left", got, left)
	}
}

// What a last block has beyond the limit goes back: it would count for as long as the keys of its hour do.
func TestWhatLiesBeyondTheLimitGoesBack(t *testing.T) {
	f := newFleet(t, quota.Limits{ActiveKeys: 1000}, 0, 0, 0)
	first := f.offer(time.Second, map[string]int{"a": 500})["a"]
	f.now = noon.Add(90 * time.Minute)
	second := f.offer(10*time.Second, map[string]int{"a": 150})["a"]
	f.now = noon.Add(25*time.Hour + 15*time.Minute) // the first hour counts no longer
	third := f.offer(10*time.Second, map[string]int{"a": 150})["a"]
	if first != 500 || second != 500 || third != 500 {
		t.Errorf("%d, %d and %d; want 500 each", first, second, third)
	}
}

// What was in hand for longer than it counts is not returned: its counter may be gone, and would be below 0, which
// counting reports.
func TestWhatCountsNoLongerIsNotReturned(t *testing.T) {
	f := newFleetOf(t, quota.Config{Limits: func(string) quota.Limits { return quota.Limits{ActiveKeys: 10_000} }, ActiveFor: time.Hour}, 0)
	f.offer(time.Second, map[string]int{"a": 101})
	f.now = f.now.Add(30 * time.Hour)
	f.counters.forget()
	f.offer(time.Second, map[string]int{"a": 1})
	if f.counters.adds != 1 {
		t.Errorf("%d additions for one key, want the one", f.counters.adds)
	}
}

// A lost reply may have counted: while the counters fail, an instance asks one by one.
func TestFailuresDoNotUseUpALimit(t *testing.T) {
	const limit = 10_000
	f := newFleet(t, quota.Limits{ActiveKeys: limit}, 0)
	f.offer(time.Second, map[string]int{"a": 1000})
	lossy := &lost{Counters: f.counters.Counters}
	f.counters.Counters = lossy
	for range 50 {
		if _, err := f.instances[0].NewKey(t.Context(), "a"); err != nil {
			f.now = f.now.Add(time.Second)
		}
	}
	f.counters.Counters = lossy.Counters
	if lossy.rights > 200 || lossy.rights < 10 {
		t.Errorf("%d rights lost of %d, want few of the limit", lossy.rights, limit)
	}
}

// A tenant that is full costs no writes.
func TestActiveKeysAtTheirLimitAreOnlyRead(t *testing.T) {
	f := newFleet(t, quota.Limits{ActiveKeys: 50}, 0, 0)
	f.offer(time.Second, map[string]int{"a": 200})
	f.counters.forget()
	if got := f.offer(time.Minute, map[string]int{"a": 20})["a"]; got != 0 {
		t.Errorf("%d more", got)
	}
	if f.counters.adds != 0 || f.counters.reads > 2*2*7 {
		t.Errorf("%d additions and %d reads in a minute, want none, and two every 10 s and instance", f.counters.adds, f.counters.reads)
	}
}

// The monotonic clock may stand still while a process is frozen: neither that the limit was met, nor what the hours before had, is
// believed for longer than by the wall clock.
func TestAFreezeMakesNothingKnownOfActiveKeysYounger(t *testing.T) {
	full := newFleet(t, quota.Limits{ActiveKeys: 50}, 0)
	full.now = time.Now()
	full.offer(time.Second, map[string]int{"a": 200})
	full.now = twoclocks.Set(full.now, 25*time.Hour)
	if _, err := full.instances[0].NewKey(t.Context(), "a"); err != nil {
		t.Errorf("no key is active any more: %v", err)
	}

	busy := newFleet(t, quota.Limits{ActiveKeys: 100_000}, 0)
	busy.now = time.Now()
	busy.now = busy.now.Add(time.Minute - busy.now.Sub(busy.now.Truncate(time.Hour))) // no hour turns meanwhile
	reads := func() int {
		busy.counters.forget()
		for range 200 {
			if _, err := busy.instances[0].NewKey(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		return busy.counters.reads
	}
	if reads() == 0 || reads() != 0 {
		t.Error("the hours before are read each time, or never")
	}
	if busy.now = twoclocks.Set(busy.now, 6*time.Minute); reads() == 0 {
		t.Error("the hours before are not read again")
	}
}

// doc.go "How exact a limit of active keys is": at the turn of an hour an instance that is ahead does not see what one that is behind
// adds to the hour before. Once the clocks agree that it has turned, and the sum of the past is read again, there is no more.
func TestAtTheTurnOfAnHourThereAreTwiceTheActiveKeysAtMost(t *testing.T) {
	const limit = 100
	f := newFleet(t, quota.Limits{ActiveKeys: limit}, time.Second, 0)
	f.now = noon.Add(time.Hour - time.Second)
	ahead, behind := f.instances[0], f.instances[1]
	admitted := 0
	take := func(q *quota.Quota, n int) {
		for range n {
			if _, err := q.NewKey(t.Context(), "a"); err == nil {
				admitted++
			}
		}
	}
	take(ahead, 1)
	take(behind, 2*limit)
	take(ahead, 2*limit)
	if admitted <= limit || admitted > 2*limit {
		t.Errorf("%d at a limit of %d; the page says that it can be more, and twice as many at most", admitted, limit)
	}
	before := admitted
	for range 23 {
		f.now = f.now.Add(time.Hour)
		take(ahead, limit)
		take(behind, limit)
	}
	if admitted > before {
		t.Errorf("%d more while they are active", admitted-before)
	}
}

// Whatever instances do in whatever order, through any hours: what was admitted within ActiveFor, less the minutes for which
// rights outlive their hour, never exceeds the limit, but for the turns of an hour at which clocks differ: then it is twice the limit at
// most (doc.go). No counter is ever below 0, which counting reports.
func TestNoOrderExceedsActiveKeys(t *testing.T) {
	const clockSkew = 2 * time.Second // by which two clocks differ, at most
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.Int64Range(1, 400).Draw(r, "limit")
		activeFor := time.Duration(rapid.IntRange(1, 3).Draw(r, "hours")) * time.Hour
		skews := rapid.SliceOfN(rapid.SampledFrom([]time.Duration{-clockSkew / 2, 0, clockSkew / 2}), 1, 4).Draw(r, "skews")
		f := newFleetOf(t, quota.Config{Limits: func(string) quota.Limits { return quota.Limits{ActiveKeys: limit} }, ActiveFor: activeFor}, skews...)
		var keys []time.Time
		most := limit
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			if f.now.Add(slices.Min(skews)).Hour() != f.now.Add(slices.Max(skews)).Hour() {
				most = 2 * limit
			}
			for range rapid.IntRange(0, 100).Draw(r, "requests") {
				giveBack, err := f.instances[rapid.IntRange(0, len(f.instances)-1).Draw(r, "instance")].NewKey(t.Context(), "a")
				switch {
				case err != nil:
				case rapid.IntRange(0, 9).Draw(r, "back") == 0:
					giveBack()
				default:
					keys = append(keys, f.now)
				}
			}
			keys = slices.DeleteFunc(keys, func(at time.Time) bool { return f.now.Sub(at) > activeFor-10*time.Minute-clockSkew })
			if int64(len(keys)) > most {
				r.Fatalf("%d active keys at a limit of %d, want %d at most", len(keys), limit, most)
			}
			f.now = f.now.Add(time.Duration(rapid.IntRange(0, 100).Draw(r, "minutes")) * time.Minute)
		}
	})
}
