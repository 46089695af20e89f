package operator_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

func because(seen operator.Seen) operator.Change {
	return operator.Change{Actor: "ada", Reason: "ticket 17", Seen: seen}
}

// changes are all that an operator can do to one thing, each where the contract admits it.
func changes() map[string]func(*world) (do func(operator.Change) (operator.Result, error), seen operator.Seen, outcome string) {
	type made = func(operator.Change) (operator.Result, error)
	return map[string]func(*world) (made, operator.Seen, string){
		"resolve": func(w *world) (made, operator.Seen, string) {
			m := w.message("acme", unknown)
			return func(ch operator.Change) (operator.Result, error) {
				return w.desk.Resolve(w.Context(), m.ID, outbox.Delivered{Reference: "ch_1"}, ch)
			}, operator.SeenMessage(m, time.Time{}), "delivered"
		},
		"close": func(w *world) (made, operator.Seen, string) {
			m := w.message("acme", unknown)
			return func(ch operator.Change) (operator.Result, error) { return w.desk.Close(w.Context(), m.ID, ch) }, operator.SeenMessage(m, time.Time{}), "cancelled"
		},
		"redrive": func(w *world) (made, operator.Seen, string) {
			m := w.message("acme", dead)
			return func(ch operator.Change) (operator.Result, error) { return w.desk.Redrive(w.Context(), m.ID, ch) }, operator.SeenMessage(m, time.Time{}), "unknown"
		},
		"resolve a record": func(w *world) (made, operator.Seen, string) {
			r := w.record(idem.KindWrapped, storage.StateUnknown)
			return func(ch operator.Change) (operator.Result, error) {
				return w.desk.ResolveRecord(w.Context(), r.OperationID, idem.Response{Status: 201}, ch)
			}, operator.SeenRecord(r, time.Time{}), "completed"
		},
		"release": func(w *world) (made, operator.Seen, string) {
			r := w.record(idem.KindAtomic, storage.StateInProgress)
			return func(ch operator.Change) (operator.Result, error) {
				return w.desk.Release(w.Context(), r.OperationID, ch)
			}, operator.SeenRecord(r, time.Time{}), "failed_retryable"
		},
		"cache-bust": func(w *world) (made, operator.Seen, string) {
			r := w.record(idem.KindAtomic, storage.StateCompleted)
			return func(ch operator.Change) (operator.Result, error) {
				return w.desk.CacheBust(w.Context(), r.OperationID, ch)
			}, operator.SeenRecord(r, time.Time{}), "failed_retryable"
		},
	}
}

// Every change is made once, with its entry in the log; what was seen before is stale after it.
func TestEachChange(t *testing.T) {
	for name, prepare := range changes() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			do, seen, want := prepare(w)
			w.now = noon.Add(time.Hour)
			got, err := do(because(seen))
			if err != nil || got.State != operator.EntryDone || got.Outcome != want || got.DryRun {
				t.Fatalf("%+v, %v, want %s", got, err, want)
			}
			e := w.audit.entries[0]
			if len(w.audit.entries) != 1 || e.ID != got.Entry || e.State != operator.EntryDone || e.Actor != "ada" || e.Reason != "ticket 17" ||
				e.Seen != string(seen) || e.Outcome != want || e.Tenant != "acme" || !strings.HasPrefix(e.Subject, "op_") || e.DoneAt.IsZero() {
				t.Errorf("entry %+v", e)
			}
			var stale *operator.StaleError
			if again, err := do(because(seen)); !errors.As(err, &stale) || again.State != operator.EntryRefused || !operator.Refused(err) {
				t.Errorf("again: %+v, %v", again, err)
			}
			if e := w.audit.entries[1]; e.State != operator.EntryRefused || !strings.Contains(e.Outcome, "you saw "+string(seen)) {
				t.Errorf("entry of the refusal %+v", e)
			}
		})
	}
}

// Nobody who has stopped waiting keeps the outcome from the log; and a log that hangs ends.
func TestTheOutcomeIsLoggedWithinABound(t *testing.T) {
	w := newWorld(t)
	r := w.record(idem.KindAtomic, storage.StateInProgress)
	var left time.Duration
	w.audit.onEnd = func(ctx context.Context) {
		until, bounded := ctx.Deadline()
		if left = time.Until(until); !bounded || ctx.Err() != nil {
			t.Errorf("bounded %t, %v", bounded, ctx.Err())
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	w.audit.onBegin = leave
	_, _ = w.desk.Release(ctx, r.OperationID, because(operator.SeenRecord(r, time.Time{}))) // it may be made or not
	if len(w.audit.entries) != 1 || left <= 0 || left > operator.AuditWithin {
		t.Errorf("%s left; entries %+v", left, w.audit.entries)
	}
}

// A dry run judges what was seen, says what would be done, and writes nothing, not even to the log.
func TestDryRunChangesNothing(t *testing.T) {
	for name, prepare := range changes() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			do, seen, _ := prepare(w)
			w.now = noon.Add(time.Hour) // what is closed is proven absent
			before := w.everything()
			ch := because(seen)
			ch.DryRun = true
			if got, err := do(ch); err != nil || !got.DryRun || got.Outcome == "" || got.Entry != "" {
				t.Errorf("%+v, %v", got, err)
			}
			ch.Seen = "dead.9.00000000"
			var stale *operator.StaleError
			if _, err := do(ch); !errors.As(err, &stale) || stale.Now != seen {
				t.Errorf("stale: %v", err)
			}
			if after := w.everything(); after != before || len(w.audit.entries) > 0 {
				t.Errorf("%s\nbecame\n%s\nlog %+v", before, after, w.audit.entries)
			}
		})
	}
}

// Without a reason, an actor, or a log that can be written, nothing is changed.
func TestChangeNeedsItsReasonAndTheLog(t *testing.T) {
	for name, prepare := range changes() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			do, seen, _ := prepare(w)
			before := w.everything()
			for _, spoil := range []func(*operator.Change){
				func(ch *operator.Change) { ch.Reason = "  " },
				func(ch *operator.Change) { ch.Reason = strings.Repeat("x", 501) },
				func(ch *operator.Change) { ch.Reason = "two\nlines" },
				func(ch *operator.Change) { ch.Actor = "" },
			} {
				ch := because(seen)
				spoil(&ch)
				var invalid *operator.InvalidError
				if _, err := do(ch); !errors.As(err, &invalid) {
					t.Errorf("%+v: %v", ch, err)
				}
			}
			w.audit.failBegin = errors.New("throttled")
			if _, err := do(because(seen)); !errors.Is(err, w.audit.failBegin) || operator.Refused(err) {
				t.Errorf("no log: %v", err)
			}
			if after := w.everything(); after != before || len(w.audit.entries) > 0 {
				t.Errorf("%s\nbecame\n%s\nlog %+v", before, after, w.audit.entries)
			}
		})
	}
}

// The intent is in the log before the change: whoever dies in between, or can't write its end, leaves it visible.
func TestIntentIsWrittenFirst(t *testing.T) {
	w := newWorld(t)
	m := w.message("acme", unknown)
	w.now = noon.Add(time.Hour)
	w.audit.failEnd = errors.New("throttled")
	got, err := w.desk.Resolve(t.Context(), m.ID, outbox.Delivered{Reference: "ch_1"}, because(operator.SeenMessage(m, time.Time{})))
	var unlogged *operator.UnloggedError
	if !errors.As(err, &unlogged) || unlogged.Entry != got.Entry || got.State != operator.EntryDone {
		t.Errorf("%+v, %v", got, err)
	}
	if e := w.audit.entries[0]; e.State != operator.EntryIntended || w.stateOf(m.ID) != storage.MessageDelivered {
		t.Errorf("entry %+v, message %s", e, w.stateOf(m.ID))
	}
}

// What the contract refuses is refused here, with its reason, and nothing changes.
func TestContractRefuses(t *testing.T) {
	w := newWorld(t)
	early, live := w.message("acme", unknown), w.record(idem.KindWrapped, storage.StateInProgress)
	w.now = noon.Add(-time.Second)
	for name, try := range map[string]func() (operator.Result, error){
		"close before absence can be proven": func() (operator.Result, error) {
			return w.desk.Close(t.Context(), early.ID, because(operator.SeenMessage(early, time.Time{})))
		},
		"redrive what is not dead": func() (operator.Result, error) {
			return w.desk.Redrive(t.Context(), early.ID, because(operator.SeenMessage(early, time.Time{})))
		},
		"release a live wrapped lease": func() (operator.Result, error) {
			return w.desk.Release(t.Context(), live.OperationID, because(operator.SeenRecord(live, time.Time{})))
		},
		"a message that is not there": func() (operator.Result, error) {
			return w.desk.Close(t.Context(), early.OperationID.Message(7), because("dead.1.00000000"))
		},
		"no message's id": func() (operator.Result, error) {
			return w.desk.Close(t.Context(), "op_17", because("dead.1.00000000"))
		},
	} {
		if got, err := try(); !operator.Refused(err) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if w.stateOf(early.ID) != storage.MessageUnknown || w.recordState(live.Key) != storage.StateInProgress {
		t.Error("something changed")
	}
}

// What the handler of a wrapped operation sent last may be under way, or not be listed yet, and the handler may be frozen before it sends it:
// a release before that is over lets the retry do it a second time.
func TestAnUnknownRecordIsReleasedOnceItsAbsenceIsProof(t *testing.T) {
	w := newWorld(t)
	r := w.record(idem.KindWrapped, storage.StateUnknown)
	proof := noon.Add(122 * time.Second) // after its lease: the longest request, the allowance for a freeze, and the clocks' difference
	w.now = noon.Add(10 * time.Second)
	if next, want := w.advice(r.OperationID), "possible from "+proof.Format(time.RFC3339)+" on"; !strings.Contains(next, want) {
		t.Errorf("next is\n%s\nwant that a release is %s", next, want)
	}
	for _, c := range []struct {
		at   time.Time
		want storage.State
	}{{w.now, storage.StateUnknown}, {proof.Add(-time.Millisecond), storage.StateUnknown}, {proof, storage.StateFailedRetryable}} {
		w.now = c.at
		tried := because(operator.SeenRecord(r, time.Time{}))
		tried.DryRun = true
		if _, err := w.desk.Release(t.Context(), r.OperationID, tried); errors.Is(err, operator.ErrRefused) != c.at.Before(proof) {
			t.Errorf("at %v a dry run says %v", c.at.Sub(noon), err)
		}
		result, err := w.desk.Release(t.Context(), r.OperationID, because(operator.SeenRecord(r, time.Time{})))
		if early := c.at.Before(proof); early != (result.State == operator.EntryRefused) || early != errors.Is(err, operator.ErrRefused) || w.recordState(r.Key) != c.want {
			t.Errorf("at %v: %+v, %v; the record is %s, want %s", c.at.Sub(noon), result, err, w.recordState(r.Key), c.want)
		}
	}
}

func TestReconcileAndSweepNow(t *testing.T) {
	w := newWorld(t)
	m, r, stuck := w.message("acme", unknown), w.record(idem.KindWrapped, storage.StateUnknown), w.message("acme", func(*storage.Message) {})
	w.now = noon.Add(time.Hour)
	w.finding = outbox.Found{Outcome: outbox.Declined{Reference: "ch_no"}}
	w.wrapped = outbox.Executed{Response: idem.Response{Status: 201}}
	if got, err := w.desk.ReconcileMessage(t.Context(), m.ID, because("")); err != nil || got.Outcome != string(outbox.DecisionSettled) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := w.desk.ReconcileRecord(t.Context(), r.OperationID, because("")); err != nil || got.Outcome != string(outbox.DecisionCompleted) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := w.desk.Sweep(t.Context(), because("")); err != nil || !strings.Contains(got.Outcome, `"offered":1`) {
		t.Errorf("%+v, %v", got, err)
	}
	if w.stateOf(m.ID) != storage.MessageDeclined || w.recordState(r.Key) != storage.StateCompleted || len(w.queue.Take()) != 1 || w.stateOf(stuck.ID) != storage.MessagePending {
		t.Errorf("message %s, record %s", w.stateOf(m.ID), w.recordState(r.Key))
	}
	if len(w.audit.entries) != 3 {
		t.Errorf("log %+v", w.audit.entries)
	}
}

// A copy in the dead-letter queue asks for what its message's row says, and nothing where that is not dead any more.
func TestRedriveLetter(t *testing.T) {
	w := newWorld(t)
	m, done := w.message("acme", dead), w.message("acme", func(m *storage.Message) { m.State, m.DoneAt = storage.MessageDelivered, noon })
	for range 2 {
		w.ok(w.desk.RedriveLetter(t.Context(), outbox.DeadLetter{Message: m.ID}, false, because("")))
		w.ok(w.desk.RedriveLetter(t.Context(), outbox.DeadLetter{Message: done.ID}, true, because("")))
	}
	if len(w.audit.entries) != 1 || w.stateOf(m.ID) != storage.MessageUnknown {
		t.Errorf("message %s, log %+v", w.stateOf(m.ID), w.audit.entries)
	}
}

// docs/operator.md: no run redrives a message twice. A further letter of it goes where the message is not dead, and stays where it is again.
func TestAFurtherLetterRedrivesNothing(t *testing.T) {
	w := newWorld(t)
	m, done := w.message("acme", dead), w.message("acme", func(m *storage.Message) { m.State, m.DoneAt = storage.MessageDelivered, noon })
	w.ok(w.desk.RedriveLetter(t.Context(), outbox.DeadLetter{Message: done.ID}, true, because("")))
	if err := w.desk.RedriveLetter(t.Context(), outbox.DeadLetter{Message: m.ID}, true, because("")); !operator.Refused(err) || !strings.Contains(err.Error(), "dead again") {
		t.Errorf("%v, want to hear that it is dead again", err)
	}
	if len(w.audit.entries) != 0 || w.stateOf(m.ID) != storage.MessageDead {
		t.Errorf("message %s, log %+v", w.stateOf(m.ID), w.audit.entries)
	}
}

// A letter's message that is not there was ended and has expired, and is never said to be redriven. Once data may have been lost it may be
// lost, and its letter is the last that names it.
func TestALetterOfAMessageThatIsNotThereIsNotRedriven(t *testing.T) {
	w := newWorld(t)
	gone := outbox.DeadLetter{Message: w.message("acme", dead).OperationID.Message(9)}
	if err := w.desk.RedriveLetter(t.Context(), gone, false, because("")); !errors.Is(err, outbox.ErrMessageGone) {
		t.Errorf("%v, want to hear that it is gone", err)
	}
	_, err := w.store.SetRefuseBefore(t.Context(), noon)
	w.ok(err)
	if err := w.desk.RedriveLetter(t.Context(), gone, false, because("")); err == nil || errors.Is(err, outbox.ErrMessageGone) || !operator.Refused(err) {
		t.Errorf("after a loss: %v, want to keep its letter", err)
	}
	if len(w.audit.entries) != 0 {
		t.Errorf("log %+v", w.audit.entries)
	}
}

// The story of each situation says what it is and what may be done next; it never tells what is stored.
func TestStoryOfEachSituation(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*world) idem.OperationID
		next    string
	}{
		"waiting": {func(w *world) idem.OperationID { return w.message("acme", func(*storage.Message) {}).OperationID }, "close: nobody has begun"},
		"unknown": {func(w *world) idem.OperationID { return w.message("acme", unknown).OperationID }, "from 2026-11-21T12:02:02Z on"},
		"dead":    {func(w *world) idem.OperationID { return w.message("acme", dead).OperationID }, "redrive: calls again under the same key; if a call is open"},
		"evidence kept": {func(w *world) idem.OperationID {
			return w.message("acme", func(m *storage.Message) { dead(m); m.KeptDelivered = &storage.Kept{} }).OperationID
		}, "redrive: settles the evidence"},
		"a decline kept": {func(w *world) idem.OperationID {
			return w.message("acme", func(m *storage.Message) { dead(m); m.KeptDeclined = &storage.Kept{} }).OperationID
		}, "refused where that may be about one attempt of several"},
		"another release": {func(w *world) idem.OperationID {
			return w.message("acme", func(m *storage.Message) { m.Topic = "other.topic" }).OperationID
		}, "not registered"},
		"wrapped, unknown": {func(w *world) idem.OperationID { return w.record(idem.KindWrapped, storage.StateUnknown).OperationID }, "release: where nothing happened"},
		"wrapped, died": {func(w *world) idem.OperationID {
			return w.record(idem.KindWrapped, storage.StateInProgress).OperationID
		}, "sweep: makes it unknown"},
		"atomic, died": {func(w *world) idem.OperationID { return w.record(idem.KindAtomic, storage.StateInProgress).OperationID }, "takes it over"},
		"completed":    {func(w *world) idem.OperationID { return w.record(idem.KindAtomic, storage.StateCompleted).OperationID }, "cache-bust"},
		"retryable": {func(w *world) idem.OperationID {
			return w.record(idem.KindAtomic, storage.StateFailedRetryable).OperationID
		}, "next request with its key executes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := c.prepare(w)
			w.now = noon.Add(time.Minute)
			story, err := w.desk.Inspect(t.Context(), string(id))
			if err != nil || story.Operation != id || story.Record == nil || !strings.Contains(strings.Join(story.Next, "\n"), c.next) {
				t.Fatalf("%+v, %v, want %q next", story, err, c.next)
			}
			raw, err := json.Marshal(story)
			w.ok(err)
			if strings.Contains(string(raw), "secret") || !strings.Contains(string(raw), "acme asked about") {
				t.Errorf("story %s", raw)
			}
		})
	}
}

// A time in an advice is the step's own: whoever shows it writes it as they write times, and the words around it stay.
func TestAdviceHasItsTime(t *testing.T) {
	w := newWorld(t)
	unasked := w.message("acme", unknown)
	w.now = noon.Add(time.Minute)
	story, err := w.desk.Inspect(t.Context(), string(unasked.OperationID))
	if err != nil {
		t.Fatal(err)
	}
	absent := noon.Add(122 * time.Second)
	shown := story.Advice(func(at time.Time) string { return "<" + at.Sub(noon).String() + ">" })
	timed := 0
	for i, s := range story.Steps {
		stored := s.Action + ": " + s.Why
		if story.Next[i] != stored {
			t.Errorf("next %q, step %q", story.Next[i], stored)
		}
		if s.At.IsZero() {
			if shown[i] != stored {
				t.Errorf("without a time: %q, want %q", shown[i], stored)
			}
			continue
		}
		timed++
		if want := strings.Replace(stored, "2026-11-21T12:02:02Z", "<2m2s>", 1); !s.At.Equal(absent) || shown[i] != want || want == stored {
			t.Errorf("at %s: %q, want %q", s.At, shown[i], want)
		}
	}
	if timed == 0 {
		t.Errorf("no time in %q", story.Next)
	}
}

// Every message of an operation is judged: a dead one before a delivered one waits for somebody all the same.
func TestStoryJudgesEveryMessage(t *testing.T) {
	delivered := func(m *storage.Message) { m.State, m.DoneAt = storage.MessageDelivered, noon }
	for name, c := range map[string]struct {
		first func(*storage.Message)
		next  string
	}{
		"dead":      {dead, "redrive: calls again under the same key; if a call is open"},
		"evidenced": {func(m *storage.Message) { dead(m); m.State, m.KeptDeclined = storage.MessageEvidenced, &storage.Kept{} }, "wait: its evidence (declined) is settled"},
		"contradicted": {func(m *storage.Message) {
			dead(m)
			m.KeptDelivered, m.KeptDeclined = &storage.Kept{}, &storage.Kept{}
		}, "resolve: the provider has said both"},
		"cancelled, and delivered all the same": {func(m *storage.Message) { m.State, m.KeptDelivered = storage.MessageCancelled, &storage.Kept{} }, "look: it is cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			all := w.messages("acme", c.first, delivered)
			story, err := w.desk.Inspect(t.Context(), string(all[0].OperationID))
			if want := string(all[0].ID) + ": " + c.next; err != nil || len(story.Next) == 0 || !strings.HasPrefix(story.Next[0], want) {
				t.Errorf("%q, %v, want %q", story.Next, err, want)
			}
		})
	}
}

// A decline that is kept from before a loss of data settles nothing by itself, where the provider would have executed each attempt.
func TestADeclineFromBeforeALossIsNotSettled(t *testing.T) {
	for name, c := range map[string]struct {
		topic      string
		recordless bool
		want       string
	}{
		"keys honoured":                {topicName, false, "wait: its evidence (declined) is settled"},
		"asked about":                  {probedName, false, "wait: it keeps a decline, which may be about one attempt of several"},
		"nobody to ask":                {keylessName, false, "resolve: it keeps a decline, which may be about one attempt of several"},
		"its record is not there, too": {keylessName, true, "look: its record is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			evidenced := func(m *storage.Message) {
				dead(m)
				m.State, m.KeptDeclined, m.Topic = storage.MessageEvidenced, &storage.Kept{}, c.topic
			}
			var m storage.Message
			if c.recordless {
				m = w.recordless(evidenced)
			} else {
				m = w.message("acme", evidenced)
			}
			_, err := w.store.SetRefuseBefore(t.Context(), noon.Add(time.Hour))
			w.ok(err)
			story, err := w.desk.Inspect(t.Context(), string(m.ID))
			if err != nil || len(story.Next) != 1 || !strings.HasPrefix(story.Next[0], c.want) {
				t.Errorf("%q, %v, want %q", story.Next, err, c.want)
			}
		})
	}
}

// What was seen is a revision: whoever writes the row makes it another, whatever they change.
func TestWhatWasSeenIsTheRowsRevision(t *testing.T) {
	w := newWorld(t)
	m := w.message("acme", dead)
	seen, other := operator.SeenMessage(m, time.Time{}), m
	after, later := operator.SeenMessage(m, noon), operator.SeenMessage(m, noon.Add(time.Second))
	for _, c := range []struct {
		seen, now operator.Seen
		lost      bool
	}{{seen, after, true}, {after, later, true}, {later, after, false}, {after, seen, false}, {seen, "", false}} {
		if stale := (&operator.StaleError{Seen: c.seen, Now: c.now}); stale.Lost() != c.lost {
			t.Errorf("%v, and it is %t that data was lost since", stale, !c.lost)
		}
	}
	other.Revision = "another"
	if operator.SeenMessage(other, time.Time{}) == seen {
		t.Error("a row that was written since looks the same")
	}
}

func TestStoryBelongsToItsNames(t *testing.T) {
	w := newWorld(t)
	m := w.message("acme", unknown)
	w.now = noon.Add(time.Hour)
	if _, err := w.desk.Close(t.Context(), m.ID, because(operator.SeenMessage(m, time.Time{}))); err != nil {
		t.Fatal(err)
	}
	record, err := w.store.Get(t.Context(), m.RecordKey)
	w.ok(err)
	for _, id := range []string{string(m.OperationID), string(m.ID)} {
		story, err := w.desk.Inspect(t.Context(), id)
		if err != nil || len(story.Messages) != 1 || story.Messages[0].State != storage.MessageCancelled || len(story.Audit) != 1 || story.Audit[0].Action != "close" {
			t.Errorf("%s: %+v, %v", id, story, err)
		}
	}
	scope := idem.Scope{Tenant: "acme", Operation: "payments.create", Key: string(record.Owner)}
	if story, err := w.desk.InspectScope(t.Context(), scope); err != nil || story.Operation != m.OperationID {
		t.Errorf("by key: %+v, %v", story, err)
	}
	scope.Tenant = "other"
	if _, err := w.desk.InspectScope(t.Context(), scope); !errors.Is(err, operator.ErrNotFound) {
		t.Errorf("another tenant's: %v", err)
	}
	for _, id := range []string{"", "op_17", string(m.OperationID)[:60]} {
		if _, err := w.desk.Inspect(t.Context(), id); !operator.Refused(err) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestListsByQueueAndTenant(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		w.message("acme", unknown)
		w.message("bolt", unknown)
		w.message("acme", dead)
	}
	w.message("acme", func(*storage.Message) {})
	w.message("acme", func(m *storage.Message) { m.SweepAt = noon.Add(time.Hour) })
	w.record(idem.KindWrapped, storage.StateUnknown)
	w.record(idem.KindWrapped, storage.StateInProgress)
	for _, c := range []struct {
		queue  operator.Queue
		tenant string
		limit  int
		rows   int
		more   bool
	}{
		{operator.QueueUnknown, "", 100, 7, false}, {operator.QueueUnknown, "acme", 100, 4, false}, {operator.QueueUnknown, "bolt", 2, 2, true},
		{operator.QueueDead, "", 100, 3, false}, {operator.QueueDead, "bolt", 100, 0, false}, {operator.QueueStuck, "", 100, 2, false},
	} {
		got, err := w.desk.List(t.Context(), c.queue, c.tenant, c.limit, "")
		if err != nil || len(got.Rows) != c.rows || (got.Next != "") != c.more {
			t.Errorf("%+v: %d rows, next %q, %v", c, len(got.Rows), got.Next, err)
		}
		if counted, err := w.desk.Count(t.Context(), c.queue, c.tenant); err != nil || counted.Queue != c.queue || counted.More || counted.N < c.rows || !c.more && counted.N != c.rows {
			t.Errorf("%+v: counted %+v, %v", c, counted, err)
		}
		for _, row := range got.Rows {
			if c.tenant != "" && row.Tenant != c.tenant || (row.Message == nil) == (row.Record == nil) {
				t.Errorf("%+v: %+v", c, row)
			}
		}
	}
	for _, bad := range []struct {
		queue operator.Queue
		limit int
		after string
	}{
		{"other", 1, ""}, {operator.QueueDead, 0, ""}, {operator.QueueDead, 1001, ""}, {operator.QueueDead, 1, "?"}, {operator.QueueDead, 1, "e30"},
		{operator.QueueDead, 1, base64.RawURLEncoding.EncodeToString([]byte(`{"q":"dead","s":-1}`))},
		{operator.QueueDead, 1, base64.RawURLEncoding.EncodeToString([]byte(`{"q":"unknown"}`))},
	} {
		if _, err := w.desk.List(t.Context(), bad.queue, "", bad.limit, bad.after); !operator.Refused(err) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// damaged is a store in which one message and one record can't be read, or are another release's where there is no error.
type damaged struct {
	*memstore.Store
	message             idem.MessageID
	record              storage.RecordKey
	ofMessage, ofRecord error
}

func (d damaged) Message(ctx context.Context, id idem.MessageID) (*storage.Message, error) {
	if id == d.message && d.ofMessage != nil {
		return nil, d.ofMessage
	}
	m, err := d.Store.Message(ctx, id)
	if id == d.message && m != nil {
		m.SchemaVersion, m.State = storage.SchemaVersion+1, "paused"
	}
	return m, err
}

func (d damaged) Get(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	if key == d.record && d.ofRecord != nil {
		return nil, d.ofRecord
	}
	r, err := d.Store.Get(ctx, key)
	if key == d.record && r != nil {
		r.SchemaVersion, r.State = storage.SchemaVersion+1, "paused"
	}
	return r, err
}

// docs/operator.md "UnknownTopic", "RecordUnreadable": one row that can't be read, or whose tenant's key can't be fetched, hides no other. It
// is listed by what the index has of it. A store that does not answer is no such row.
func TestARowThatCannotBeReadHidesNoOther(t *testing.T) {
	cause := errors.New("attribute st is missing")
	for name, c := range map[string]struct {
		ofMessage, ofRecord error
		listed              bool
	}{
		"malformed":                {&storage.MalformedError{Cause: cause}, &storage.MalformedRecordError{Cause: cause}, true},
		"another release's":        {nil, nil, true},
		"its key can't be fetched": {fmt.Errorf("seal: %w", storage.ErrKeyUnavailable), fmt.Errorf("seal: %w", storage.ErrKeyUnavailable), true},
		"the store is throttled":   {&storage.ContentionError{Throttled: true}, &storage.ContentionError{Throttled: true}, false},
		"the store is down":        {errors.New("no answer"), errors.New("no answer"), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m, other := w.message("acme", dead), w.message("bolt", dead)
			r, another := w.record(idem.KindWrapped, storage.StateUnknown), w.record(idem.KindWrapped, storage.StateUnknown)
			cfg := w.cfg
			cfg.Store = damaged{w.store, m.ID, r.Key, c.ofMessage, c.ofRecord}
			desk, err := operator.New(cfg)
			w.ok(err)
			for queue, want := range map[operator.Queue][]string{
				operator.QueueDead: {string(m.ID), string(other.ID)}, operator.QueueUnknown: {string(r.OperationID), string(another.OperationID)},
			} {
				list, err := desk.List(t.Context(), queue, "", 10, "")
				if !c.listed {
					if err == nil {
						t.Errorf("%s: %+v, want the store's error", queue, list)
					}
					continue
				}
				var ids []string
				for _, row := range list.Rows {
					ids = append(ids, row.ID())
					lost := row.ID() == string(m.ID) || row.ID() == string(r.OperationID)
					if (row.Unreadable != "") != lost || (row.Message == nil && row.Record == nil) != lost || row.At.IsZero() || row.Tenant == "" {
						t.Errorf("%s: %+v", queue, row)
					}
				}
				slices.Sort(ids)
				slices.Sort(want)
				if err != nil || !slices.Equal(ids, want) {
					t.Errorf("%s: %v, %v; want %v", queue, ids, err, want)
				}
			}
		})
	}
}

// hungKeys is a store in which the keys of some tenants hang: for ten seconds, as long as idemctl waits for one, or until its caller's time
// is over.
type hungKeys struct {
	operator.Store
	hang  func(tenant string) bool
	waits int
}

func (h *hungKeys) wait(ctx context.Context, tenant string) error {
	if !h.hang(tenant) {
		return nil
	}
	h.waits++
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
	}
	return fmt.Errorf("seal: %w", storage.ErrKeyUnavailable)
}

func (h *hungKeys) Message(ctx context.Context, id idem.MessageID) (*storage.Message, error) {
	m, err := h.Store.Message(ctx, id)
	if err == nil {
		err = h.wait(ctx, m.Tenant)
	}
	return m, err
}

func (h *hungKeys) Get(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	r, err := h.Store.Get(ctx, key)
	if err == nil {
		err = h.wait(ctx, r.Tenant)
	}
	return r, err
}

// A list waits once for a tenant's key that can't be fetched, and not for each of its rows; where no key can be fetched, it gives up after
// three tenants. So it is shown within its caller's time: a command has two minutes, and a page of the console ten seconds in all, no longer
// than one key may take.
func TestAListWaitsOnceForAKeyThatCannotBeFetched(t *testing.T) {
	for name, c := range map[string]struct {
		hang            func(tenant string) bool
		waits, readable int
	}{
		"one tenant's": {func(tenant string) bool { return tenant == "acme" }, 1, 5},
		"everybody's":  {func(string) bool { return true }, 3, 0},
	} {
		for _, within := range []time.Duration{2 * time.Minute, 10 * time.Second} {
			t.Run(fmt.Sprintf("%s, within %v", name, within), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { listsBeside(t, &hungKeys{hang: c.hang}, within, c.readable, c.waits) })
			})
		}
	}
}

func listsBeside(t *testing.T, keys *hungKeys, within time.Duration, readable, waits int) {
	w := newWorld(t)
	for range 20 {
		w.message("acme", unknown)
		w.record(idem.KindWrapped, storage.StateUnknown) // of acme
	}
	for _, tenant := range []string{"bolt", "crow", "dune", "echo", "fern"} {
		w.message(tenant, unknown)
	}
	keys.Store = w.store
	cfg := w.cfg
	cfg.Store, cfg.Now = keys, time.Now
	desk, err := operator.New(cfg)
	w.ok(err)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	list, err := desk.List(ctx, operator.QueueUnknown, "", 100, "")
	w.ok(err)
	read := 0
	for _, row := range list.Rows {
		if row.Unreadable == "" {
			read++
		}
	}
	if len(list.Rows) != 45 || read != readable || keys.waits != waits || ctx.Err() != nil {
		t.Errorf("%d rows, %d of them readable, after %d waits, %v; want 45, %d and %d", len(list.Rows), read, keys.waits, ctx.Err(), readable, waits)
	}
}

// A long list is read in parts, and what is dealt with between two of them leaves no gap: rows of the same moment and of
// others, messages and records, of one tenant and of all.
func TestListGoesOnWhereItEnded(t *testing.T) {
	for _, queue := range []operator.Queue{operator.QueueDead, operator.QueueUnknown} {
		for _, tenant := range []string{"", "acme"} {
			for _, limit := range []int{1, 2, 7, 100} {
				t.Run(fmt.Sprintf("%s of %q by %d", queue, tenant, limit), func(t *testing.T) { listInParts(t, queue, tenant, limit) })
			}
		}
	}
}

func listInParts(t *testing.T, queue operator.Queue, tenant string, limit int) {
	w := newWorld(t)
	want, shown := []string{}, []string{}
	for i := range 300 { // more than a page in some shard
		for _, of := range []string{"acme", "bolt"} {
			m := w.message(of, func(m *storage.Message) {
				if unknown(m); queue == operator.QueueDead {
					dead(m)
				}
				m.SweepAt = noon.Add(time.Duration(i/9) * time.Second)
			})
			if tenant == "" || of == tenant {
				want = append(want, string(m.ID))
			}
		}
	}
	if queue == operator.QueueUnknown {
		for range 20 {
			want = append(want, string(w.record(idem.KindWrapped, storage.StateUnknown).OperationID)) // of acme
		}
	}
	w.now = noon.Add(time.Hour) // what is dead may be closed
	for after := ""; ; {
		got, err := w.desk.List(t.Context(), queue, tenant, limit, after)
		w.ok(err)
		for i, row := range got.Rows {
			if row.Message == nil {
				shown = append(shown, string(row.Operation))
				continue
			}
			shown = append(shown, string(row.Message.ID))
			if queue == operator.QueueDead && i%2 == 0 { // it leaves the list
				_, err := w.desk.Close(t.Context(), row.Message.ID, because(row.Message.Seen))
				w.ok(err)
			}
		}
		if after = got.Next; after == "" {
			break
		}
		if len(got.Rows) != limit || len(shown) > len(want) {
			t.Fatalf("%d rows, %d of %d so far, and there are more", len(got.Rows), len(shown), len(want))
		}
	}
	slices.Sort(want)
	slices.Sort(shown)
	if !slices.Equal(shown, want) {
		t.Errorf("%d rows shown, want each of %d once", len(shown), len(want))
	}
}

func TestNewNeedsItsParts(t *testing.T) {
	var config *idem.ConfigError
	if _, err := operator.New(operator.Config{}); !errors.As(err, &config) {
		t.Errorf("%v", err)
	}
	w := newWorld(t)
	if _, err := operator.New(operator.Config{Store: w.store, Audit: w.audit}); !errors.As(err, &config) {
		t.Errorf("%v", err)
	}
}

// everything is what the store holds, in words.
func (w *world) everything() string {
	w.Helper()
	var b strings.Builder
	for _, r := range w.store.Records() {
		raw, err := json.Marshal(r)
		w.ok(err)
		b.Write(raw)
	}
	for _, queue := range operator.Queues() {
		l, err := w.desk.List(context.Background(), queue, "", 1000, "")
		w.ok(err)
		raw, err := json.Marshal(l)
		w.ok(err)
		b.Write(raw)
	}
	return b.String()
}

// A dry run says what closing does to the operation: that depends on the message's place in its chain.
func TestDryRunOfCloseIsTrueOfChains(t *testing.T) {
	delivered := func(m *storage.Message) {
		m.State, m.DoneAt, m.FirstClaimedAt, m.LastOutcome = storage.MessageDelivered, noon, noon, "delivered"
	}
	undoing := func(m *storage.Message) { dead(m); m.Undoes = true }
	detached := func(m *storage.Message) { dead(m); m.Detached = true }
	payout := func(m *storage.Message) { dead(m); m.Topic = payoutsName }
	const fails = "cancel it; its operation fails"
	for name, chain := range map[string]struct {
		before []func(*storage.Message)
		last   func(*storage.Message)
		would  string
		record storage.State
	}{
		"the first message":     {nil, dead, fails, storage.StateFailed},
		"a later message":       {[]func(*storage.Message){delivered}, dead, fails, storage.StateFailed},
		"one that is undone":    {[]func(*storage.Message){delivered}, payout, "cancel it, and send a message that undoes earlier steps: a worker calls the provider for it. Its operation fails once that has ended", storage.StatePending},
		"one that undoes":       {[]func(*storage.Message){delivered}, undoing, fails + ", and what it was to undo stands", storage.StateFailed},
		"one of no operation's": {nil, detached, "cancel it, and leave its operation as it is", storage.StatePending},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			messages := w.messages("acme", append(chain.before, chain.last)...)
			m := messages[len(messages)-1]
			w.now = noon.Add(time.Hour)
			ch := because(operator.SeenMessage(m, time.Time{}))
			ch.DryRun = true
			said, err := w.desk.Close(t.Context(), m.ID, ch)
			if err != nil || said.Outcome != chain.would {
				t.Errorf("%q, %v, want %q", said.Outcome, err, chain.would)
			}
			ch.DryRun = false
			if _, err := w.desk.Close(t.Context(), m.ID, ch); err != nil {
				t.Fatal(err)
			}
			if got := w.recordState(m.RecordKey); got != chain.record {
				t.Errorf("the record is %s, want %s", got, chain.record)
			}
		})
	}
}

// changing changes a record between the desk's read of it and the engine's.
type changing struct {
	storage.Store
	reads  int
	change func()
}

func (c *changing) Get(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	if c.reads++; c.reads == 1 {
		c.change()
	}
	return c.Store.Get(ctx, key)
}

// What changes in the last moment is noticed, too: a colleague's cache-bust and the corrected answer, or an answer that is kept for longer.
func TestACacheBustIsOfTheAnswerThatWasSeen(t *testing.T) {
	for name, change := range map[string]func(*world, storage.Record){
		"busted": func(w *world, r storage.Record) {
			_, err := w.engine.CacheBust(w.Context(), r.Tenant, r.OperationID, r.Revision, "a colleague")
			w.ok(err)
		},
		"prolonged": func(w *world, r storage.Record) {
			_, err := w.engine.Extend(w.Context(), r.Tenant, r.OperationID, noon.Add(48*time.Hour))
			w.ok(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.record(idem.KindAtomic, storage.StateCompleted)
			w.now = noon.Add(time.Hour)
			engine, err := idem.New(&changing{Store: w.store, change: func() { change(w, r) }}, idem.Config{Now: func() time.Time { return w.now }, Random: w.mint.Random})
			w.ok(err)
			cfg := w.cfg
			cfg.Engine = engine
			desk, err := operator.New(cfg)
			w.ok(err)
			var stale *storage.RecordConflictError
			if result, err := desk.CacheBust(t.Context(), r.OperationID, because(operator.SeenRecord(r, time.Time{}))); !errors.As(err, &stale) || result.State != operator.EntryRefused {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
}
