//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Bounds of the time from when a message is due until it has its end, with the clients gone. What died is looked for once a
// minute: sweep and reconciler run no more often than that. A wake-up has another 15 s before the sweep makes it good. What
// nobody may repeat is first parked, then asked about, once the longest request (15 s on a local stack) can't land any more,
// and offered again by a third run. The worker's own time, with everything that waits at once, is in deliverySlack.
const (
	schedulePeriod = time.Minute
	sweepGrace     = 15 * time.Second
	longestRequest = 15 * time.Second
	deliverySlack  = 20 * time.Second

	boundOfDead    = schedulePeriod + deliverySlack
	boundOfWaiting = sweepGrace + boundOfDead
	boundOfKeyless = 3*schedulePeriod + longestRequest + sweepGrace + deliverySlack
)

// unsettled is a message that had not ended when the clients were gone, or that came after.
type unsettled struct {
	what  string
	due   time.Time
	bound time.Duration
}

// watch waits until everything has its end, and returns what is there then. Whoever had to wait longer than the bound fails
// the test, and so does what has no end.
func (l *loop) watch(t *testing.T) leftovers {
	t.Helper()
	gone := time.Now()
	waits, took := map[string]unsettled{}, map[string][]time.Duration{}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		left, err := collect(t.Context())
		must(t, err)
		for _, m := range left.messages {
			l.note(t, m, gone, waits, took)
		}
		waiting, err := deployed.dynamodb.Waiting(t.Context())
		must(t, err)
		unfinished := left.unfinished()
		l.open.Store(int64(len(unfinished)))
		if len(unfinished) == 0 && waiting.Delayed+waiting.Late == 0 {
			l.figures.spans("until everything had its end, with the clients gone", []time.Duration{time.Since(gone)})
			for what, spans := range took {
				l.figures.spans("open when the clients were gone, "+what+", from due to end", spans)
			}
			l.figures.ages(left.messages, l.began)
			return left
		}
		if time.Since(gone) > boundOfKeyless+longestRequest {
			t.Fatalf("%s after the clients were gone, %d have no end:\n%s", time.Since(gone).Round(time.Second), len(unfinished), strings.Join(unfinished, "\n"))
		}
		if !*chaosSchedule {
			if err := hasten(t.Context()); err != nil {
				l.figures.add(tableKills, fmt.Sprintf("sweep and reconciler did not run: %v", err), 1)
			}
		}
		<-ticker.C
	}
}

// note keeps a message that is open, and how long it took when it has ended.
func (l *loop) note(t *testing.T, m item, gone time.Time, waits map[string]unsettled, took map[string][]time.Duration) {
	t.Helper()
	id := text(m, schema.MessageID)
	wait, known := waits[id]
	switch {
	case !known && !settled(m):
		waits[id] = waitOf(m, gone)
	case known && settled(m):
		delete(waits, id)
		span := endOf(m).Sub(wait.due)
		took[wait.what] = append(took[wait.what], span)
		if span > wait.bound {
			t.Errorf("%s: message %s ended %s after it was due, want at most %s", wait.what, id, span.Round(time.Millisecond), wait.bound)
		}
	}
}

// waitOf says when an open message is due, and how long it may take then.
func waitOf(m item, gone time.Time) unsettled {
	due := time.UnixMilli(number(m, schema.NextAttemptAt))
	wait := unsettled{what: "pending", bound: boundOfWaiting}
	switch storage.MessageState(text(m, schema.State)) {
	case storage.MessageClaimed:
		due = time.UnixMilli(number(m, schema.LeaseUntil))
		wait = unsettled{what: "claimed by the dead", bound: boundOfDead}
	case storage.MessageUnknown:
		wait = unsettled{what: "unknown", bound: boundOfKeyless}
	}
	if ignoresKeys(m) {
		wait.what, wait.bound = "keyless, "+wait.what, boundOfKeyless
	}
	if wait.due = due; due.Before(gone) {
		wait.due = gone
	}
	return wait
}

// ignoresKeys says that the provider does, for the message.
func ignoresKeys(m item) bool { return topicIgnoresKeys(text(m, schema.Topic)) }

func topicIgnoresKeys(topic string) bool { return strings.Contains(topic, "legacy") }

// endOf is when a message ended; a dead one has just been seen.
func endOf(m item) time.Time {
	if done := number(m, schema.DoneAt); done > 0 {
		return time.UnixMilli(done)
	}
	return time.Now()
}

// deaths are the claims that were held while a process was killed, and whose messages ended only after their lease.
func (l *loop) deaths(left leftovers) {
	messages, spans := by(left.messages, schema.MessageID), map[bool][]time.Duration{}
	for id, c := range l.died {
		m := messages[id]
		if done := number(m, schema.DoneAt); done > c.leaseUntil {
			spans[ignoresKeys(m)] = append(spans[ignoresKeys(m)], time.Duration(done-c.leaseUntil)*time.Millisecond)
		}
	}
	l.figures.spans("claims that died on the way, keyed, from the end of the lease", spans[false])
	l.figures.spans("claims that died on the way, keyless, from the end of the lease", spans[true])
}
