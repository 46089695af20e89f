package operator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// rehearsed tries a change dry, and makes it. It demands that the dry run writes nothing and tells nobody, and that it refuses what the change
// is refused, in the same words. It returns what each says.
func (w *world) rehearsed(do func(operator.Change) (operator.Result, error), seen operator.Seen) (would, made operator.Result, err error) {
	w.Helper()
	before, ch := w.everything(), because(seen)
	ch.DryRun = true
	would, dry := do(ch)
	if after := w.everything(); after != before || len(w.audit.entries)+len(w.queue.Take())+len(w.queue.Letters()) > 0 {
		w.Errorf("the dry run made of\n%s\n%s\nlog %+v", before, after, w.audit.entries)
	}
	ch.DryRun = false
	made, err = do(ch)
	if operator.Refused(dry) != operator.Refused(err) || operator.Refused(err) && dry.Error() != err.Error() {
		w.Errorf("dry: %q, %v\nmade: %+v, %v", would.Outcome, dry, made, err)
	}
	return would, made, err
}

// hasNext says whether a message follows.
func (w *world) hasNext(m storage.Message) bool {
	w.Helper()
	next, err := w.store.Message(w.Context(), m.OperationID.Message(m.Index+1))
	w.ok(err)
	return next != nil
}

func open(m *storage.Message) { dead(m) }
func closed(m *storage.Message) {
	dead(m)
	m.OpenSince, m.ClearedAt = time.Time{}, noon.Add(time.Minute)
}
func detached(m *storage.Message)  { m.Detached = true }
func undoing(m *storage.Message)   { m.Undoes = true }
func payout(m *storage.Message)    { m.Topic = payoutsName }
func keyless(m *storage.Message)   { m.Topic, m.Epoch = keylessName, 2 }
func sealed(m *storage.Message)    { m.Sealed = true }
func evidenced(m *storage.Message) { unknown(m); m.State = storage.MessageEvidenced }
func claimed(m *storage.Message)   { unknown(m); m.State = storage.MessageClaimed }
func waiting(*storage.Message)     {}
func claimedOnce(m *storage.Message) {
	m.FirstClaimedAt, m.Epoch, m.Owner = noon, 1, "worker"
}

func keepsDelivered(m *storage.Message) { m.KeptDelivered = &storage.Kept{Reference: "ch_1"} }
func keepsDeclined(m *storage.Message)  { m.KeptDeclined = &storage.Kept{Reference: "no"} }

func ended(state storage.MessageState) func(*storage.Message) {
	return func(m *storage.Message) { m.State, m.DoneAt = state, noon }
}

func both(changes ...func(*storage.Message)) func(*storage.Message) {
	return func(m *storage.Message) {
		for _, change := range changes {
			change(m)
		}
	}
}

// A dry run says of each message in each state what the change does, or refuses what it is refused: a person decides by it, and a change that
// moves money can't be taken back.
func TestADryRunIsTrueOfEachMessage(t *testing.T) {
	const anew, asked, settles = "start it anew: a worker calls the provider, under the same key", "make it unknown: a call is open, so that the provider is asked first", "settle what it keeps: it is "
	const unsettled, answered = "keep the evidence on the message, and settle nothing: it ", " dead, and an alarm rings. The cause: its record, or a message behind it, does not admit it"
	const sends = " then, and sends its next message: a worker calls the provider for it"
	for name, c := range map[string]struct {
		message func(*storage.Message)
		after   time.Duration
		final   bool   // of its record
		redrive string // what a dry run says; "" where it is refused
	}{
		"pending":                         {waiting, time.Hour, false, ""},
		"claimed before":                  {claimedOnce, time.Hour, false, ""},
		"claimed":                         {claimed, time.Hour, false, ""},
		"unknown, early":                  {unknown, time.Second, false, ""},
		"unknown":                         {unknown, time.Hour, false, ""},
		"unknown, with its answer":        {unknown, time.Hour, true, ""},
		"unknown, and sealed":             {both(unknown, sealed), time.Hour, false, ""},
		"dead, a call is open":            {open, time.Hour, false, asked},
		"dead, open, and nobody to ask":   {both(open, keyless), time.Hour, false, "make it unknown: a call is open, and its topic can't ask the provider: a webhook or an operator must decide"},
		"dead, a payout keeps delivered":  {both(open, payout, keepsDelivered), time.Hour, false, settles + "delivered" + sends},
		"dead, a payout keeps declined":   {both(open, payout, keepsDeclined), time.Hour, false, settles + "declined then, and nobody is called"},
		"evidenced, of a payout":          {both(evidenced, payout, keepsDelivered), time.Hour, false, settles + "delivered" + sends},
		"unknown, of a payout":            {both(unknown, payout), time.Hour, false, ""},
		"unknown, and undoes":             {both(unknown, undoing), time.Hour, false, ""},
		"dead, no call is open":           {closed, time.Hour, false, anew},
		"dead, with its answer":           {closed, time.Hour, true, ""},
		"dead, and open with its answer":  {open, time.Hour, true, ""},
		"dead, keeps delivered":           {both(open, keepsDelivered), time.Hour, false, settles + "delivered then, and nobody is called"},
		"dead, keeps delivered, answered": {both(open, keepsDelivered), time.Hour, true, unsettled + "stays" + answered},
		"dead, keeps declined":            {both(open, keepsDeclined), time.Hour, false, settles + "declined then, and nobody is called"},
		"dead, keeps a doubted decline":   {both(open, keyless, keepsDeclined), time.Hour, false, ""},
		"dead, keeps both":                {both(open, keepsDelivered, keepsDeclined), time.Hour, false, settles + "delivered then, and nobody is called"},
		"dead, undoes, keeps declined":    {both(open, undoing, keepsDeclined), time.Hour, false, unsettled + "stays dead, and an alarm rings. The cause: the message undoes an earlier step, and a decline leaves that step standing"},
		"dead, detached":                  {both(open, detached), time.Hour, true, asked},
		"dead, detached, given up":        {both(closed, detached), time.Hour, true, anew},
		"dead, detached, keeps delivered": {both(open, detached, keepsDelivered), time.Hour, true, settles + "delivered then, and nobody is called"},
		"dead, and sealed":                {both(open, sealed), time.Hour, false, ""},
		"evidenced":                       {both(evidenced, keepsDelivered), time.Hour, false, settles + "delivered then, and nobody is called"},
		"evidenced, answered":             {both(evidenced, keepsDelivered), time.Hour, true, unsettled + "becomes" + answered},
		"delivered":                       {ended(storage.MessageDelivered), time.Hour, true, ""},
		"declined":                        {ended(storage.MessageDeclined), time.Hour, true, ""},
		"cancelled":                       {ended(storage.MessageCancelled), time.Hour, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, change := range []string{"redrive", "close", "delivered", "declined"} {
				w := newWorld(t)
				leave := func(change func(*storage.Message)) storage.Message { return w.message("acme", change) }
				if c.final {
					leave = func(change func(*storage.Message)) storage.Message { return w.ended(change)[0] }
				}
				m := leave(c.message)
				w.now = noon.Add(c.after)
				would, made, err := w.rehearsed(func(ch operator.Change) (operator.Result, error) {
					switch change {
					case "redrive":
						return w.desk.Redrive(t.Context(), m.ID, ch)
					case "close":
						return w.desk.Close(t.Context(), m.ID, ch)
					case "declined":
						return w.desk.Resolve(t.Context(), m.ID, outbox.Declined{Reference: "no"}, ch)
					}
					return w.desk.Resolve(t.Context(), m.ID, outbox.Delivered{Reference: "ch_9"}, ch)
				}, operator.SeenMessage(m, time.Time{}))
				if operator.Refused(err) {
					would.Outcome = ""
				}
				if change == "redrive" && would.Outcome != c.redrive {
					t.Errorf("redrive: %q, want %q; it made %+v, %v", would.Outcome, c.redrive, made, err)
				}
				if kept := errors.Is(err, operator.ErrUnsettled); kept != would.Unsettled || kept != strings.HasPrefix(would.Outcome, unsettled) ||
					kept && !strings.Contains(would.Outcome, string(w.stateOf(m.ID))+", and") {
					t.Errorf("%s: %+v; it made %+v, %v", change, would, made, err)
				}
				calls := strings.Contains(would.Outcome, "a worker calls the provider")
				if woken := len(w.queue.Take()) > 0 || w.hasNext(m); calls != woken {
					t.Errorf("%s: %q; somebody is to call the provider: %v", change, would.Outcome, woken)
				}
			}
		})
	}
}

// A dry run says that a later message is undone, whichever change undoes it: what is sent then moves money.
func TestADryRunTellsOfWhatUndoesEarlierSteps(t *testing.T) {
	const undoes = " a message that undoes earlier steps: a worker calls the provider for it"
	first := both(ended(storage.MessageDelivered), payout, func(m *storage.Message) { m.FirstClaimedAt, m.LastOutcome = noon, "delivered" })
	for name, c := range map[string]struct {
		second func(*storage.Message)
		change func(*world, idem.MessageID, operator.Change) (operator.Result, error)
		would  string
	}{
		"a redrive of a kept decline": {both(open, payout, keepsDeclined), func(w *world, id idem.MessageID, ch operator.Change) (operator.Result, error) {
			return w.desk.Redrive(t.Context(), id, ch)
		}, "settle what it keeps: it is declined then, and sends" + undoes},
		"a decline": {both(unknown, payout), func(w *world, id idem.MessageID, ch operator.Change) (operator.Result, error) {
			return w.desk.Resolve(t.Context(), id, outbox.Declined{Reference: "no"}, ch)
		}, "settle it as declined, and send" + undoes},
		"a close": {both(unknown, payout), func(w *world, id idem.MessageID, ch operator.Change) (operator.Result, error) {
			return w.desk.Close(t.Context(), id, ch)
		}, "cancel it, and send" + undoes + ". Its operation fails once that has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.messages("acme", first, c.second)[1]
			w.now = noon.Add(time.Hour)
			would, made, err := w.rehearsed(func(ch operator.Change) (operator.Result, error) { return c.change(w, m.ID, ch) }, operator.SeenMessage(m, time.Time{}))
			if err != nil || would.Outcome != c.would || !w.hasNext(m) {
				t.Errorf("%q, want %q; it made %+v, %v", would.Outcome, c.would, made, err)
			}
		})
	}
}

// The same of records.
func TestADryRunIsTrueOfEachRecord(t *testing.T) {
	plus := func(at time.Duration) func(*storage.Record) {
		return func(r *storage.Record) { r.LeaseUntil = noon.Add(at) }
	}
	wrote := func(r *storage.Record) { r.RecordOnly = false }
	resource := func(r *storage.Record) { r.Expiry.ResourceBacked, r.ExpiresAt = true, time.Time{} }
	expired := func(r *storage.Record) { r.ExpiresAt = noon.Add(time.Minute) }
	safe := func(r *storage.Record) { r.SafeToRunAgain = true }
	for name, c := range map[string]struct {
		kind    idem.Kind
		state   storage.State
		changes []func(*storage.Record)
		after   time.Duration
	}{
		"atomic, held":               {idem.KindAtomic, storage.StateInProgress, []func(*storage.Record){living}, time.Minute},
		"atomic, left":               {idem.KindAtomic, storage.StateInProgress, nil, time.Hour},
		"wrapped, held":              {idem.KindWrapped, storage.StateInProgress, []func(*storage.Record){living}, time.Minute},
		"wrapped, left":              {idem.KindWrapped, storage.StateInProgress, nil, time.Hour},
		"unknown, early":             {idem.KindWrapped, storage.StateUnknown, []func(*storage.Record){plus(time.Hour)}, time.Minute},
		"unknown":                    {idem.KindWrapped, storage.StateUnknown, nil, time.Hour},
		"deferred":                   {idem.KindDeferred, storage.StatePending, nil, time.Hour},
		"failed":                     {idem.KindAtomic, storage.StateFailed, nil, time.Hour},
		"completed":                  {idem.KindAtomic, storage.StateCompleted, nil, time.Hour},
		"completed, wrote":           {idem.KindAtomic, storage.StateCompleted, []func(*storage.Record){wrote}, time.Hour},
		"completed, wrapped":         {idem.KindWrapped, storage.StateCompleted, nil, time.Hour},
		"completed, wrapped, safe":   {idem.KindWrapped, storage.StateCompleted, []func(*storage.Record){safe}, time.Hour},
		"completed, observed":        {idem.KindAtomic, storage.StateCompleted, []func(*storage.Record){observed}, time.Hour},
		"completed, with a resource": {idem.KindAtomic, storage.StateCompleted, []func(*storage.Record){resource}, time.Hour},
		"completed, expired":         {idem.KindAtomic, storage.StateCompleted, []func(*storage.Record){expired}, time.Hour},
		"released":                   {idem.KindAtomic, storage.StateFailedRetryable, nil, time.Hour},
		"released, observed":         {idem.KindAtomic, storage.StateFailedRetryable, []func(*storage.Record){observed}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			for _, change := range []string{"resolve", "resolve as nothing", "release", "cache-bust"} {
				w := newWorld(t)
				r := w.record(c.kind, c.state, c.changes...)
				w.now = noon.Add(c.after)
				would, made, err := w.rehearsed(func(ch operator.Change) (operator.Result, error) {
					switch change {
					case "release":
						return w.desk.Release(t.Context(), r.OperationID, ch)
					case "cache-bust":
						return w.desk.CacheBust(t.Context(), r.OperationID, ch)
					case "resolve":
						return w.desk.ResolveRecord(t.Context(), r.OperationID, idem.Response{Status: 201}, ch)
					}
					return w.desk.ResolveRecord(t.Context(), r.OperationID, idem.Response{Status: 99}, ch)
				}, operator.SeenRecord(r, time.Time{}))
				if nothing := made.Outcome == "unchanged"; err == nil && nothing != (would.Outcome == "leave it unchanged: no answer is given any more") {
					t.Errorf("%s: %q; it made %+v", change, would.Outcome, made)
				}
			}
		})
	}
}
