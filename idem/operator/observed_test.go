package operator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/storage"
)

func observed(r *storage.Record) { r.Observed = true }

func living(r *storage.Record) { r.LeaseUntil = noon.Add(time.Hour) }

// Nobody decides about what was observed without having been told, in whatever state it is.
func TestAStorySaysInEveryStateThatItWasObserved(t *testing.T) {
	for name, c := range map[string]struct {
		kind  idem.Kind
		state storage.State
		as    func(*storage.Record)
		only  bool
		says  string
	}{
		"unknown":            {idem.KindWrapped, storage.StateUnknown, observed, false, "release: where nothing happened, and nothing of it can still arrive; possible from 2026-11-21T12:02:02Z on; it was observed, so that it must be released once more"},
		"a living holder":    {idem.KindAtomic, storage.StateInProgress, living, false, "release: fences its holder off; it was observed, so that it must be released once more"},
		"a dead holder":      {idem.KindAtomic, storage.StateInProgress, observed, true, "it was observed, so that it must be released once more"},
		"a wrapped holder":   {idem.KindWrapped, storage.StateInProgress, living, false, "wait: its handler may run until"},
		"nothing happened":   {idem.KindAtomic, storage.StateFailedRetryable, observed, true, "release: where nothing was executed, under whatever operation id; look once no instance observes any more"},
		"an answer of which": {idem.KindAtomic, storage.StateCompleted, observed, false, "nothing: it has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.record(c.kind, c.state, c.as, observed)
			w.now = noon.Add(time.Minute)
			story, err := w.desk.Inspect(t.Context(), string(r.OperationID))
			w.ok(err)
			next := strings.Join(story.Next, "\n")
			if !story.Record.Observed || story.Record.OnlyObserved != c.only || !strings.Contains(next, c.says) || strings.Contains(next, "cache-bust") {
				t.Errorf("observed %t, only observed %t; next is\n%s", story.Record.Observed, story.Record.OnlyObserved, next)
			}
			if c.state == storage.StateFailedRetryable && strings.Contains(next, "once more") {
				t.Errorf("a second release is announced:\n%s", next)
			}
		})
	}
}

// A dead lease is not called the next request's while that would get its 409: until its retention is over by every clock.
func TestADeadLeaseIsOnlyObservedUntilARequestMayTakeItsKey(t *testing.T) {
	w := newWorld(t)
	r := w.record(idem.KindAtomic, storage.StateInProgress, observed)
	for after, only := range map[time.Duration]bool{time.Second: true, 2 * time.Second: false} {
		w.now = r.LeaseUntil.Add(r.Retention + after)
		story, err := w.desk.Inspect(t.Context(), string(r.OperationID))
		w.ok(err)
		if next := strings.Join(story.Next, "\n"); story.Record.OnlyObserved != only || strings.Contains(next, "the next request with its key takes it over") == only {
			t.Errorf("%v after its retention: only observed %t; next is\n%s", after, story.Record.OnlyObserved, next)
		}
	}
}

// Proof about a record says nothing of what was executed beside it, so that what was observed is released twice.
func TestWhatWasObservedIsReleasedTwice(t *testing.T) {
	for state, kind := range map[storage.State]idem.Kind{storage.StateUnknown: idem.KindWrapped, storage.StateInProgress: idem.KindAtomic} {
		t.Run(string(state), func(t *testing.T) {
			w := newWorld(t)
			id := w.record(kind, state, observed).OperationID
			w.now = noon.Add(time.Hour)
			var seen, only []bool
			for range 2 {
				story, err := w.desk.Inspect(t.Context(), string(id))
				w.ok(err)
				seen, only = append(seen, story.Record.Observed), append(only, story.Record.OnlyObserved)
				tried, err := w.desk.Release(t.Context(), id, operator.Change{Actor: "ada", Reason: "ticket 17", Seen: story.Record.Seen, DryRun: true})
				w.ok(err)
				if announced := strings.Contains(tried.Outcome, "released once more"); announced != (len(seen) == 1) {
					t.Errorf("release %d: a dry run says %q", len(seen), tried.Outcome)
				}
				_, err = w.desk.Release(t.Context(), id, because(story.Record.Seen))
				w.ok(err)
			}
			story, err := w.desk.Inspect(t.Context(), string(id))
			w.ok(err)
			if got := fmt.Sprintln(seen, only[1], story.Record.Observed, story.Record.State); got != "[true true] true false failed_retryable\n" {
				t.Errorf("got %s", got)
			}
		})
	}
}
