package operator_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/storage"
)

// expired is a detached message that was delivered, and that native TTL may have removed.
func expired(m *storage.Message) {
	m.State, m.Detached, m.DoneAt, m.RemoveAt = storage.MessageDelivered, true, noon, noon.Add(48*time.Hour)
}

// Native TTL removes an operation's messages one by one, and none that waits for a person: of such an operation each message that is
// left has its story, by its own id and by the operation's.
func TestStoryHasEachMessageThatIsLeft(t *testing.T) {
	detached := func(m *storage.Message) { dead(m); m.Detached = true }
	chained := func(m *storage.Message) { expired(m); m.Detached = false }
	many := slices.Repeat([]func(*storage.Message){expired}, 79)
	for name, c := range map[string]struct {
		messages []func(*storage.Message)
		left     []int
		next     []string
	}{
		"the second of two":         {[]func(*storage.Message){expired, detached}, []int{2}, []string{"redrive", "resolve", "close"}},
		"around a gap":              {[]func(*storage.Message){detached, expired, detached}, []int{1, 3}, []string{"redrive", "resolve", "close", "redrive", "resolve", "close"}},
		"the last that fits":        {append(many, detached), []int{80}, []string{"redrive", "resolve", "close"}},
		"of a chain that has ended": {[]func(*storage.Message){chained, dead, chained}, []int{2}, []string{"close"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			all := w.ended(c.messages...)
			w.now = noon.Add(49 * time.Hour)
			if records, messages := w.store.Expire(w.now); records != 1 || messages != len(all)-len(c.left) {
				t.Fatalf("%d records and %d messages expire", records, messages)
			}
			var want []idem.MessageID
			for _, n := range c.left {
				want = append(want, all[n-1].ID)
			}
			for _, id := range []string{string(all[0].OperationID), string(want[len(want)-1])} {
				story, err := w.desk.Inspect(t.Context(), id)
				var left []idem.MessageID
				for _, m := range story.Messages {
					left = append(left, m.ID)
				}
				var next []string
				for _, s := range story.Steps {
					next = append(next, s.Action)
				}
				if err != nil || !slices.Equal(left, want) || !slices.Equal(next, c.next) {
					t.Errorf("%s: %v may %v, %v; want %v may %v", id, left, next, err, want, c.next)
				}
			}
		})
	}
}

// An answer that was extended outlives the messages of its operation: they are removed a retention and a day after their own end.
func TestStoryOfAnExtendedAnswerHasEachMessageThatIsLeft(t *testing.T) {
	w := newWorld(t)
	all := w.ended(expired, func(m *storage.Message) { dead(m); m.Detached = true })
	_, err := w.cfg.Engine.Extend(t.Context(), all[0].Tenant, all[0].OperationID, noon.Add(30*24*time.Hour))
	w.ok(err)
	w.now = noon.Add(49 * time.Hour)
	if records, messages := w.store.Expire(w.now); records != 0 || messages != 1 {
		t.Fatalf("%d records and %d messages expire", records, messages)
	}
	story, err := w.desk.Inspect(t.Context(), string(all[0].OperationID))
	if err != nil || story.Record == nil || len(story.Messages) != 1 || story.Messages[0].ID != all[1].ID {
		t.Errorf("%+v, %v", story, err)
	}
}

// A message that was asked for is shown, although an earlier one is lost and nothing of its operation can have expired.
func TestStoryHasTheMessageThatWasAskedFor(t *testing.T) {
	w := newWorld(t)
	all := w.messages("acme", expired, expired, dead) // the record is pending, and the first two are not there
	w.store.Expire(noon.Add(49 * time.Hour))
	story, err := w.desk.Inspect(t.Context(), string(all[2].ID))
	if err != nil || story.Record == nil || len(story.Messages) != 1 || story.Messages[0].ID != all[2].ID {
		t.Errorf("%+v, %v", story, err)
	}
}

// A record that waits for a message which is not there shows that a loss has made a gap: what lies behind the gap is looked for. Where the
// record waits for one that is there, only the message that was asked for is, with the tenant or without.
func TestStoryHasWhatLiesBehindAGapOfALoss(t *testing.T) {
	open := func(*storage.Message) {}
	for name, c := range map[string]struct {
		chain      []func(*storage.Message)
		whole, one int
	}{
		"nothing waits before it": {[]func(*storage.Message){expired, expired, dead}, 1, 1},
		"one waits before it":     {[]func(*storage.Message){open, expired, dead}, 1, 2},
	} {
		w := newWorld(t)
		all := w.messages("acme", c.chain...)
		w.store.Expire(noon.Add(49 * time.Hour))
		operation, dead := string(all[2].OperationID), string(all[2].ID)
		for id, want := range map[string]int{operation: c.whole, dead: c.one} {
			for _, tenant := range []string{"", "acme"} {
				story, err := w.desk.InspectOf(t.Context(), tenant, id)
				if err != nil || len(story.Messages) != want {
					t.Errorf("%s: %d messages of %q by %s, want %d: %v", name, len(story.Messages), tenant, id, want, err)
				} else if last := story.Messages[len(story.Messages)-1].ID; (want == c.one) && string(last) != dead {
					t.Errorf("%s: the last is %s", name, last)
				}
			}
		}
	}
}

// Where nothing can have been removed a story costs one read more than there are messages.
func TestAStoryOfWhatCannotHaveExpiredReadsNoFurther(t *testing.T) {
	w := newWorld(t)
	all := w.ended(expired, expired)
	counted := &counting{Store: w.store}
	cfg := w.cfg
	cfg.Store = counted
	desk, err := operator.New(cfg)
	w.ok(err)
	for now, want := range map[time.Time]int64{noon.Add(time.Hour): 3, noon.Add(49 * time.Hour): 99} { // no id has a higher number
		w.now = now
		counted.messages.Store(0)
		if story, err := desk.Inspect(t.Context(), string(all[0].OperationID)); err != nil || len(story.Messages) != 2 || counted.messages.Load() != want {
			t.Errorf("at %s: %d reads, %v, want %d", now, counted.messages.Load(), err, want)
		}
	}
}

// counting counts what is read.
type counting struct {
	*memstore.Store
	messages atomic.Int64
}

func (c *counting) Message(ctx context.Context, id idem.MessageID) (*storage.Message, error) {
	c.messages.Add(1)
	return c.Store.Message(ctx, id)
}
