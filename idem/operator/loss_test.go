package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// What an operator starts anew may have been called before a loss: their desk reads the row too.
func TestAnOperatorsRedriveHeedsTheRow(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w := newWorld(t)
		m := w.message("acme", func(m *storage.Message) { m.State, m.Unfailed = storage.MessageDead, true })
		w.now = noon.Add(time.Hour)
		want, before := storage.MessagePending, time.Time{}
		if lost {
			want, before = storage.MessageUnknown, noon.Add(time.Minute)
			if _, err := w.desk.RefuseBefore(t.Context(), before, because("")); err != nil {
				t.Fatal(err)
			}
		}
		if result, err := w.desk.Redrive(t.Context(), m.ID, because(operator.SeenMessage(m, before))); err != nil || result.Outcome != string(want) {
			t.Errorf("lost %v: %+v, %v; want %s", lost, result, err, want)
		}
	}
}

// undated is a store that knows that data was lost, until somebody says up to when.
type undated struct{ *memstore.Store }

func (u undated) RefuseBefore(ctx context.Context) (time.Time, error) {
	at, err := u.Store.RefuseBefore(ctx)
	if err == nil && at.IsZero() {
		err = storage.ErrLossNotDated
	}
	return at, err
}

// docs/recovery.md "What keeps money from moving twice": before it is known up to when data was lost, nothing is changed but that. What was
// restored would be taken for what was never called: cancelled, called again, or executed under its key again. All can be looked at.
func TestNothingIsChangedBeforeItIsKnownUpToWhenDataWasLost(t *testing.T) {
	w := newWorld(t)
	w.cfg.Store = undated{w.store}
	var err error
	w.desk, err = operator.New(w.cfg)
	w.ok(err)
	waits, asked, given := w.message("acme", func(*storage.Message) {}), w.message("acme", unknown), w.message("acme", dead)
	parked, wrong := w.record(idem.KindWrapped, storage.StateUnknown), w.record(idem.KindAtomic, storage.StateCompleted)
	w.now = noon.Add(25 * time.Hour)
	changes := map[string]func(operator.Change) (operator.Result, error){
		"sweep":   func(c operator.Change) (operator.Result, error) { return w.desk.Sweep(t.Context(), c) },
		"close":   func(c operator.Change) (operator.Result, error) { return w.desk.Close(t.Context(), waits.ID, c) },
		"redrive": func(c operator.Change) (operator.Result, error) { return w.desk.Redrive(t.Context(), given.ID, c) },
		"reconcile": func(c operator.Change) (operator.Result, error) {
			return w.desk.ReconcileMessage(t.Context(), asked.ID, c)
		},
		"reconcile a record": func(c operator.Change) (operator.Result, error) {
			return w.desk.ReconcileRecord(t.Context(), parked.OperationID, c)
		},
		"release": func(c operator.Change) (operator.Result, error) {
			return w.desk.Release(t.Context(), parked.OperationID, c)
		},
		"cache-bust": func(c operator.Change) (operator.Result, error) {
			return w.desk.CacheBust(t.Context(), wrong.OperationID, c)
		},
	}
	seen := map[string]operator.Seen{
		"close": operator.SeenMessage(waits, time.Time{}), "redrive": operator.SeenMessage(given, time.Time{}), "release": operator.SeenRecord(parked, time.Time{}), "cache-bust": operator.SeenRecord(wrong, time.Time{}),
	}
	unchanged := func(name string) {
		t.Helper()
		for m, want := range map[idem.MessageID]storage.MessageState{waits.ID: storage.MessagePending, asked.ID: storage.MessageUnknown, given.ID: storage.MessageDead} {
			if got := w.stateOf(m); got != want {
				t.Errorf("%s: a message that was %s is %s", name, want, got)
			}
		}
		if p, c := w.recordState(parked.Key), w.recordState(wrong.Key); p != storage.StateUnknown || c != storage.StateCompleted {
			t.Errorf("%s: the records are %s and %s", name, p, c)
		}
	}
	for name, change := range changes {
		for _, dry := range []bool{true, false} {
			ch := because(seen[name])
			ch.DryRun = dry
			result, err := change(ch)
			if !errors.Is(err, storage.ErrLossNotDated) || !operator.Refused(err) || !dry && result.State != operator.EntryRefused {
				t.Errorf("%s, dry run %t: %+v, %v", name, dry, result, err)
			}
		}
		unchanged(name)
	}
	if err := w.desk.RedriveLetter(t.Context(), outbox.DeadLetter{Message: given.ID}, false, because("")); !operator.Refused(err) {
		t.Errorf("its letter: %v", err)
	}
	if err := w.desk.RedriveLetter(t.Context(), outbox.DeadLetter{Message: waits.OperationID.Message(9)}, false, because("")); !operator.Refused(err) { // it would be deleted
		t.Errorf("the letter of a message that is not there: %v", err)
	}
	unchanged("letters")

	if loss, err := w.desk.Loss(t.Context()); err != nil || !loss.NotDated {
		t.Errorf("%+v, %v", loss, err)
	}
	if story, err := w.desk.Inspect(t.Context(), string(waits.ID)); err != nil || len(story.Messages) != 1 {
		t.Errorf("%+v, %v", story, err)
	}
	if _, err := w.desk.RefuseBefore(t.Context(), w.now, because("")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.desk.Sweep(t.Context(), because("")); err != nil || w.stateOf(waits.ID) != storage.MessageUnknown {
		t.Errorf("once it is known: %v, %s; it counts as called", err, w.stateOf(waits.ID))
	}
}

// A record that is not there may be lost, whenever it was made, while nobody has said up to when data was.
func TestARecordMayBeLostWhileTheLossIsNotDated(t *testing.T) {
	w := newWorld(t)
	m := w.recordless(dead)
	w.cfg.Store = undated{w.store}
	var err error
	w.desk, err = operator.New(w.cfg)
	w.ok(err)
	story, err := w.desk.Inspect(t.Context(), string(m.ID))
	if err != nil || !story.RecordMayBeLost || len(story.Next) == 0 || !strings.HasPrefix(story.Next[0], "look") {
		t.Errorf("%+v, %v", story, err)
	}
}

// A lost reply is no reason to doubt: the same is set again. An earlier instant is refused.
func TestRefuseBeforeMovesToALaterInstantOnly(t *testing.T) {
	w := newWorld(t)
	at := noon.Add(-time.Hour)
	for range 2 {
		if result, err := w.desk.RefuseBefore(t.Context(), at, because("")); err != nil || result.State != operator.EntryDone {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	result, err := w.desk.RefuseBefore(t.Context(), at.Add(-time.Second), because(""))
	if !errors.Is(err, operator.ErrNotLater) || !operator.Refused(err) || result.State != operator.EntryRefused {
		t.Errorf("earlier: %+v, %v", result, err)
	}
	if loss, err := w.desk.Loss(t.Context()); err != nil || !loss.RefuseBefore.Equal(at) {
		t.Errorf("%+v, %v", loss, err)
	}
	if n := len(w.audit.entries); n != 3 {
		t.Errorf("%d entries in the log, want 3", n)
	}
}

// What the story advises after a loss is what the machine admits: a call of the lost side may be under way for a claim's lease.
func TestTheStoryOfARestoredMessageHeedsTheRow(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*storage.Message)
		want   []string
	}{
		"unknown": {unknown, []string{"has nothing at 2026-11-21T12:03:12Z or later, nothing happened", "if nothing happened; possible from 2026-11-21T12:03:12Z on"}},
		"waiting": {func(*storage.Message) {}, []string{"wait: a worker takes it"}},
	} {
		w := newWorld(t)
		m := w.message("acme", c.change)
		w.now = noon.Add(time.Minute)
		if _, err := w.desk.RefuseBefore(t.Context(), w.now, because("")); err != nil {
			t.Fatal(err)
		}
		story, err := w.desk.Inspect(t.Context(), string(m.OperationID))
		next := strings.Join(story.Next, "\n")
		for _, want := range c.want {
			if err != nil || !strings.Contains(next, want) || strings.Contains(next, "nobody has begun it") {
				t.Errorf("%s: %q, %v, want %q", name, next, err, want)
			}
		}
	}
}

// docs/operator.md "OutboxDead": a message whose record was lost has no final answer that anybody knows of. It is not closed while it keeps
// what the provider said: its evidence would expire with it, and nothing would ever be booked.
func TestEvidenceOfALostRecordIsNotClosed(t *testing.T) {
	delivered := func(m *storage.Message) {
		dead(m)
		m.KeptDelivered = &storage.Kept{Reference: "ch_1", Evidence: []byte("{}")}
	}
	for name, c := range map[string]struct {
		change func(*storage.Message)
		lost   time.Time
		next   string // begins so
		may    bool   // the record may be lost
	}{
		"lost, and the effect is known": {delivered, noon.Add(time.Minute), "look: its record is not there", true},
		"lost, and nothing is known":    {dead, noon.Add(time.Minute), "look: its record is not there", true}, // what that means would not be written
		"lost, and unknown":             {func(m *storage.Message) { dead(m); m.State = storage.MessageUnknown }, noon.Add(time.Minute), "look: its record is not there", true},
		"of a time that is not lost":    {delivered, noon, "look: the provider delivered it, and its record has expired", false},
		"nothing is lost":               {delivered, time.Time{}, "look: the provider delivered it, and its record has expired", false},
		"nothing is lost or known":      {dead, time.Time{}, "close: its operation has its final answer", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.recordless(c.change)
			w.now = noon.Add(time.Hour)
			if !c.lost.IsZero() {
				_, err := w.desk.RefuseBefore(t.Context(), c.lost, because(""))
				w.ok(err)
			}
			story, err := w.desk.Inspect(t.Context(), string(m.ID))
			w.ok(err)
			next := strings.Join(story.Next, "\n")
			if !strings.HasPrefix(next, c.next) || story.RecordMayBeLost != c.may {
				t.Errorf("%s, may be lost: %t", next, story.RecordMayBeLost)
			}
			seen := because(operator.SeenMessage(m, c.lost))
			dry := seen
			dry.DryRun = true
			_, would := w.desk.Close(t.Context(), m.ID, dry)
			result, err := w.desk.Close(t.Context(), m.ID, seen)
			if !c.may {
				if would != nil || err != nil || w.stateOf(m.ID) != storage.MessageCancelled {
					t.Errorf("%v, %v, %+v", would, err, result)
				}
				return
			}
			if !errors.Is(would, operator.ErrRefused) || !errors.Is(err, operator.ErrRefused) || result.State != operator.EntryRefused || w.stateOf(m.ID) != m.State {
				t.Errorf("%v, %v, %+v", would, err, result)
			}
		})
	}
}

// Of what the application still has after record and messages have expired there is a story, to who knows whose it is.
func TestWhatTheApplicationHasIsToldWithoutRecordAndMessages(t *testing.T) {
	w := newWorld(t)
	m := w.ended(expired)[0]
	w.now = noon.Add(49 * time.Hour)
	w.store.Expire(w.now)
	if _, err := w.desk.Inspect(t.Context(), string(m.OperationID)); !errors.Is(err, operator.ErrNotFound) {
		t.Errorf("to who does not know: %v", err)
	}
	for _, c := range []struct {
		lost time.Time
		next string
	}{{time.Time{}, "nothing: nothing of it is here"}, {noon.Add(time.Minute), "look: its record and its messages are not there"}} {
		if !c.lost.IsZero() {
			_, err := w.desk.RefuseBefore(t.Context(), c.lost, because(""))
			w.ok(err)
		}
		story, err := w.desk.InspectOf(t.Context(), "acme", string(m.OperationID))
		if err != nil || story.Application != "acme asked about 0 messages" || len(story.Next) != 1 || !strings.HasPrefix(story.Next[0], c.next) || story.RecordMayBeLost != !c.lost.IsZero() {
			t.Errorf("%+v, %v", story, err)
		}
	}
}

// After a loss nobody knows whether an operation has ended whose record is not there, though its messages have.
func TestALostRecordBesideEndedMessagesMayNotHaveEnded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*storage.Message)
		lost   time.Time
		want   string
	}{
		"lost":               {delivered, noon.Add(time.Minute), "look: its record is not there, and data from before 2026-11-21T12:01:00Z may have been lost"},
		"not lost":           {delivered, noon, "nothing: it has ended, and its record was removed"},
		"complete before it": {func(m *storage.Message) { delivered(m); m.Detached = true }, noon.Add(time.Minute), "nothing: it had its answer before its message was sent"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.recordless(c.change)
			_, err := w.desk.RefuseBefore(t.Context(), c.lost, because(""))
			w.ok(err)
			story, err := w.desk.Inspect(t.Context(), string(m.OperationID))
			w.ok(err)
			if next := strings.Join(story.Next, "\n"); !strings.HasPrefix(next, c.want) || story.RecordMayBeLost != (name != "not lost") {
				t.Errorf("%q, may be lost: %t", next, story.RecordMayBeLost)
			}
		})
	}
}

// What was done about an operation is told for a year, though nothing says any more when it began.
func TestTheLogIsToldOfWhatIsNotThereAnyMore(t *testing.T) {
	w := newWorld(t)
	m := w.message("acme", unknown)
	w.now = noon.Add(time.Hour)
	_, err := w.desk.Resolve(t.Context(), m.ID, outbox.Delivered{Reference: "ch_1"}, because(operator.SeenMessage(m, time.Time{})))
	w.ok(err)
	w.now = noon.Add(30 * 24 * time.Hour)
	if records, messages := w.store.Expire(w.now); records != 1 || messages != 1 {
		t.Fatalf("%d records and %d messages expire", records, messages)
	}
	if story, err := w.desk.InspectOf(t.Context(), "acme", string(m.OperationID)); err != nil || len(story.Audit) != 1 || len(story.Messages) != 0 {
		t.Errorf("%+v, %v", story, err)
	}
}

// A message whose record may be lost is not started anew, and who tries it is told of the loss: not that its operation has its answer.
func TestARedriveWithoutItsRecordNamesTheLoss(t *testing.T) {
	for name, change := range map[string]func(*storage.Message){
		"nothing known": dead, "delivered": func(m *storage.Message) {
			dead(m)
			m.KeptDelivered = &storage.Kept{Reference: "ch_1", Evidence: []byte("{}")}
		},
	} {
		for _, lost := range []bool{true, false} {
			w := newWorld(t)
			m := w.recordless(change)
			before := time.Time{}
			if lost {
				before = noon.Add(time.Minute)
				_, err := w.desk.RefuseBefore(t.Context(), before, because(""))
				w.ok(err)
			}
			seen := because(operator.SeenMessage(m, before))
			dry := seen
			dry.DryRun = true
			_, would := w.desk.Redrive(t.Context(), m.ID, dry)
			_, err := w.desk.Redrive(t.Context(), m.ID, seen)
			for _, err := range []error{would, err} {
				if tells := err != nil && strings.Contains(err.Error(), "may have been lost") && operator.Refused(err); tells != lost {
					t.Errorf("%s, lost %t: %v", name, lost, err)
				}
			}
			if err == nil || w.stateOf(m.ID) != storage.MessageDead {
				t.Errorf("%s, lost %t: %v, %s", name, lost, err, w.stateOf(m.ID))
			}
		}
	}
}

// docs/operator.md "OutboxDead": a later message of a chain may be made after the loss that has taken the record. The operation is from
// before it all the same, and may have no answer yet.
func TestALostRecordIsAsOldAsItsChain(t *testing.T) {
	lost := noon.Add(time.Minute)
	for name, change := range map[string]func(*storage.Message){
		"dead, and the effect is known": func(m *storage.Message) { dead(m); m.KeptDelivered = &storage.Kept{Reference: "ch_2"} },
		"dead":                          dead, "unknown": unknown,
	} {
		for _, begun := range []time.Time{noon, lost} { // the second one is of a time that is not lost
			t.Run(name+" "+begun.Format(time.TimeOnly), func(t *testing.T) {
				w := newWorld(t)
				first := func(m *storage.Message) { delivered(m); m.CreatedAt = begun }
				m := w.ended(first, func(m *storage.Message) { change(m); m.CreatedAt = lost.Add(time.Hour) })[1]
				w.now = noon.Add(25 * time.Hour)
				if records, messages := w.store.Expire(w.now); records != 1 || messages != 0 {
					t.Fatalf("%d records and %d messages expire", records, messages)
				}
				_, err := w.desk.RefuseBefore(t.Context(), lost, because(""))
				w.ok(err)
				may := begun.Before(lost)
				story, err := w.desk.Inspect(t.Context(), string(m.ID))
				w.ok(err)
				if next := strings.Join(story.Next, "\n"); strings.Contains(next, "look: its record is not there, and data from before") != may || story.RecordMayBeLost != may {
					t.Errorf("%s, may be lost: %t", next, story.RecordMayBeLost)
				}
				seen := because(operator.SeenMessage(m, lost))
				dry := seen
				dry.DryRun = true
				changes := map[string]func(operator.Change) (operator.Result, error){
					"close": func(ch operator.Change) (operator.Result, error) { return w.desk.Close(t.Context(), m.ID, ch) },
				}
				if m.State == storage.MessageDead {
					changes["redrive"] = func(ch operator.Change) (operator.Result, error) { return w.desk.Redrive(t.Context(), m.ID, ch) }
				}
				for change, does := range changes {
					for _, ch := range []operator.Change{dry, seen} {
						_, err := does(ch)
						if named := errors.Is(err, operator.ErrRefused) && strings.Contains(err.Error(), "may have been lost"); named != may {
							t.Errorf("%s, dry run %t: %v", change, ch.DryRun, err)
						}
					}
				}
			})
		}
	}
}

// docs/operator.md "The desk": what somebody saw before a loss of data is not what is there, although nobody has written the row since. Lists
// and stories show what may be decided now.
func TestWhatWasSeenBeforeALossIsStale(t *testing.T) {
	w := newWorld(t)
	m := w.message("acme", func(m *storage.Message) { m.State, m.Unfailed = storage.MessageDead, true })
	r := w.record(idem.KindWrapped, storage.StateUnknown)
	changes := map[string]struct {
		subject string
		do      func(operator.Change) (operator.Result, error)
	}{
		"close":   {string(m.ID), func(ch operator.Change) (operator.Result, error) { return w.desk.Close(t.Context(), m.ID, ch) }},
		"redrive": {string(m.ID), func(ch operator.Change) (operator.Result, error) { return w.desk.Redrive(t.Context(), m.ID, ch) }},
		"resolve": {string(m.ID), func(ch operator.Change) (operator.Result, error) {
			return w.desk.Resolve(t.Context(), m.ID, outbox.Delivered{Reference: "ch_1"}, ch)
		}},
		"release": {string(r.OperationID), func(ch operator.Change) (operator.Result, error) {
			return w.desk.Release(t.Context(), r.OperationID, ch)
		}},
	}
	shown := func() map[string]operator.Seen {
		all := map[string]operator.Seen{}
		for _, queue := range operator.Queues() {
			list, err := w.desk.List(t.Context(), queue, "", 10, "")
			w.ok(err)
			for _, row := range list.Rows {
				if row.Message != nil {
					all[row.ID()] = row.Message.Seen
				} else {
					all[row.ID()] = row.Record.Seen
				}
			}
		}
		for _, id := range []string{string(m.ID), string(r.OperationID)} {
			story, err := w.desk.Inspect(t.Context(), id)
			w.ok(err)
			told := story.Record
			switch {
			case len(story.Messages) > 0 && story.Messages[0].Seen != all[id], len(story.Messages) == 0 && told.Seen != all[id]:
				t.Errorf("%s: a list and an inspection show %s and %+v", id, all[id], story)
			}
		}
		return all
	}
	before := shown()
	w.now = noon.Add(time.Hour)
	_, err := w.desk.RefuseBefore(t.Context(), noon.Add(time.Minute), because(""))
	w.ok(err)
	after := shown()
	for name, c := range changes {
		var stale *operator.StaleError
		result, err := c.do(because(before[c.subject]))
		if !errors.As(err, &stale) || stale.Now != after[c.subject] || before[c.subject] == after[c.subject] || result.State != operator.EntryRefused {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		dry := because(after[c.subject])
		dry.DryRun = true
		if _, err := c.do(dry); errors.As(err, &stale) {
			t.Errorf("%s of what is shown: %v", name, err)
		}
	}
	if got := w.stateOf(m.ID); got != storage.MessageDead {
		t.Errorf("it is %s", got)
	}
}

// The later of the table's instant and Config.RefuseBefore counts, at the desk too.
func TestALossThatTheConfigurationSaysCountsAtTheDesk(t *testing.T) {
	w := newWorld(t)
	m := w.recordless(dead)
	w.now = noon.Add(time.Hour)
	lost := noon.Add(time.Minute)
	engine, err := idem.New(w.store, idem.Config{Now: func() time.Time { return w.now }, Random: w.mint.Random, RefuseBefore: lost})
	w.ok(err)
	w.cfg.Engine = engine
	desk, err := operator.New(w.cfg)
	w.ok(err)
	for _, row := range []time.Time{{}, lost.Add(-time.Second), lost.Add(time.Second)} {
		if !row.IsZero() { // a row is set and moved whatever is configured: only the row tells every instance
			_, err := desk.RefuseBefore(t.Context(), row, because(""))
			w.ok(err)
		}
		later := map[bool]time.Time{true: lost, false: row}[row.Before(lost)]
		if loss, err := desk.Loss(t.Context()); err != nil || loss != (operator.Loss{RefuseBefore: row, Configured: lost}) || loss.Instant() != later || loss.ByConfiguration() != row.Before(lost) {
			t.Errorf("with %v in the table: %+v, %v", row, loss, err)
		}
	}
	lost = lost.Add(time.Second)
	story, err := desk.Inspect(t.Context(), string(m.ID))
	w.ok(err)
	if seen := story.Messages[0].Seen; !story.RecordMayBeLost || seen != operator.SeenMessage(m, lost) {
		t.Errorf("%+v", story)
	}
	if _, err := desk.Close(t.Context(), m.ID, because(operator.SeenMessage(m, lost))); !errors.Is(err, operator.ErrRefused) || w.stateOf(m.ID) != m.State {
		t.Errorf("%v, and it is %s", err, w.stateOf(m.ID))
	}
}
