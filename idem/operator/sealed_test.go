package operator_test

import (
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

// What this desk can't open it must not give up: a worker with the keys can.
func TestWhatIsSealedIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	sealed := func(m *storage.Message) { m.Sealed = true }
	both := func(a, b func(*storage.Message)) func(*storage.Message) {
		return func(m *storage.Message) { a(m); b(m) }
	}
	waiting, parked, buried := w.message("acme", sealed), w.message("acme", both(unknown, sealed)), w.message("acme", both(dead, sealed))
	w.now = noon.Add(time.Hour)
	before := w.everything()
	for name, try := range map[string]func() (operator.Result, error){
		"resolve": func() (operator.Result, error) {
			return w.desk.Resolve(t.Context(), parked.ID, outbox.Delivered{}, because(operator.SeenMessage(parked, time.Time{})))
		},
		"redrive": func() (operator.Result, error) {
			return w.desk.Redrive(t.Context(), buried.ID, because(operator.SeenMessage(buried, time.Time{})))
		},
		"reconcile": func() (operator.Result, error) {
			return w.desk.ReconcileMessage(t.Context(), parked.ID, because(""))
		},
	} {
		if got, err := try(); !errors.Is(err, operator.ErrSealed) || got.State != operator.EntryRefused {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	var refusal *outbox.RefusalError
	if _, err := w.desk.Close(t.Context(), parked.ID, because(operator.SeenMessage(parked, time.Time{}))); !errors.As(err, &refusal) {
		t.Errorf("close: %v, want a refusal", err)
	}
	var swept *operator.SweepError
	if got, err := w.desk.Sweep(t.Context(), because("")); !errors.As(err, &swept) || swept.Report.Messages.Errors != 2 {
		t.Errorf("sweep: %+v, %v", got, err)
	}
	if after := w.everything(); after != before || w.stateOf(waiting.ID) != storage.MessagePending {
		t.Errorf("%s\nbecame\n%s", before, after)
	}
}

// opening is a store with the tenants' keys: what it returns as sealed nobody can open any more.
type opening struct{ *memstore.Store }

func (opening) Decrypts() bool { return true }

// withKeys is a desk whose store decrypts.
func (w *world) withKeys() *operator.Desk {
	w.Helper()
	cfg := w.cfg
	cfg.Store = opening{w.store}
	desk, err := operator.New(cfg)
	w.ok(err)
	return desk
}

// semantics.md "What is never cached or trusted": a tenant's key that was erased, or a ciphertext that is not authentic, leaves no operation
// that nothing ends. A person says what the provider has; the topic is not asked, and the operation fails.
func TestWhatNobodyCanOpenIsEndedByAPerson(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*storage.Message)
		evidence outbox.Outcome
		state    storage.MessageState
	}{
		"dead, and nothing happened": {dead, outbox.Declined{}, storage.MessageDeclined},
		"dead, and delivered":        {dead, outbox.Delivered{Reference: "ch_1"}, storage.MessageDelivered},
		"unknown":                    {unknown, outbox.Declined{}, storage.MessageDeclined},
		"an undoing":                 {func(m *storage.Message) { dead(m); m.Undoes = true }, outbox.Delivered{Reference: "by hand"}, storage.MessageDelivered},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.message("acme", func(m *storage.Message) { c.change(m); m.Sealed = true })
			w.now = noon.Add(time.Hour)
			desk := w.withKeys()
			story, err := desk.Inspect(t.Context(), string(m.ID))
			w.ok(err)
			if len(story.Steps) != 1 || story.Steps[0].Action != "resolve" || !strings.Contains(story.Next[0], "correct its rows by hand") {
				t.Errorf("advised %q, want resolve alone: nothing else is admitted", story.Next)
			}
			tried := because(operator.SeenMessage(m, time.Time{}))
			tried.DryRun = true
			if would, err := desk.Resolve(t.Context(), m.ID, c.evidence, tried); err != nil || !strings.Contains(would.Outcome, "the operation fails") {
				t.Errorf("a dry run says %+v, %v", would, err)
			}
			got, err := desk.Resolve(t.Context(), m.ID, c.evidence, because(operator.SeenMessage(m, time.Time{})))
			if err != nil || got.State != operator.EntryDone || w.stateOf(m.ID) != c.state || w.recordState(m.RecordKey) != storage.StateFailed {
				t.Fatalf("%+v, %v; the message is %s, the record %s", got, err, w.stateOf(m.ID), w.recordState(m.RecordKey))
			}
			r, err := w.store.Get(t.Context(), m.RecordKey)
			w.ok(err)
			if r.Response.Status != 410 || !strings.Contains(string(r.Response.Body), "idempotency_response_erased") {
				t.Errorf("its client gets %d %s", r.Response.Status, r.Response.Body)
			}
		})
	}
}

// After a loss of data nothing settles such a decline, and the provider is not asked about what nobody can open: a person says what it has.
func TestADoubtedDeclineThatNobodyCanOpenIsResolved(t *testing.T) {
	w := newWorld(t)
	m := w.message("acme", func(m *storage.Message) {
		dead(m)
		m.State, m.KeptDeclined, m.Topic, m.Sealed = storage.MessageEvidenced, &storage.Kept{}, probedName, true
	})
	_, err := w.store.SetRefuseBefore(t.Context(), noon.Add(time.Hour))
	w.ok(err)
	desk := w.withKeys()
	story, err := desk.Inspect(t.Context(), string(m.ID))
	if err != nil || len(story.Steps) != 1 || story.Steps[0].Action != "resolve" {
		t.Fatalf("advised %q, %v, want resolve alone", story.Next, err)
	}
	ch := because(story.Messages[0].Seen)
	if got, err := desk.Resolve(t.Context(), m.ID, outbox.Declined{}, ch); err != nil || got.State != operator.EntryDone || w.stateOf(m.ID) != storage.MessageDeclined {
		t.Errorf("%+v, %v; the message is %s", got, err, w.stateOf(m.ID))
	}
}

// Everything else would ask the topic, or leave the message as it is: it is refused, and not advised.
func TestWhatNobodyCanOpenIsOnlyResolved(t *testing.T) {
	w := newWorld(t)
	sealed := func(change func(*storage.Message)) func(*storage.Message) {
		return func(m *storage.Message) { change(m); m.Sealed = true }
	}
	buried, waiting := w.message("acme", sealed(dead)), w.message("acme", sealed(func(*storage.Message) {}))
	detached := w.ended(sealed(func(m *storage.Message) { dead(m); m.Detached = true }))[0]
	w.now = noon.Add(time.Hour)
	desk := w.withKeys()
	if got, err := desk.Redrive(t.Context(), buried.ID, because(operator.SeenMessage(buried, time.Time{}))); !errors.Is(err, operator.ErrSealed) {
		t.Errorf("redrive: %+v, %v", got, err)
	}
	var refusal *outbox.RefusalError
	if _, err := desk.Close(t.Context(), buried.ID, because(operator.SeenMessage(buried, time.Time{}))); !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, "resolve it") {
		t.Errorf("close: %v, want a refusal that says what to do", err)
	}
	for id, want := range map[idem.MessageID]string{waiting.ID: "wait", detached.ID: "resolve close"} {
		story, err := desk.Inspect(t.Context(), string(id))
		w.ok(err)
		var actions []string
		for _, s := range story.Steps {
			actions = append(actions, s.Action)
		}
		if got := strings.Join(actions, " "); got != want {
			t.Errorf("advised %q, want %s", story.Next, want)
		}
	}
	if _, err := desk.Close(t.Context(), detached.ID, because(operator.SeenMessage(detached, time.Time{}))); err != nil || w.stateOf(detached.ID) != storage.MessageCancelled {
		t.Errorf("a detached message is %s, %v", w.stateOf(detached.ID), err)
	}
	tried := because(operator.SeenMessage(buried, time.Time{})) // a desk without keys says no in its dry run, too
	tried.DryRun = true
	if _, err := w.desk.Resolve(t.Context(), buried.ID, outbox.Declined{}, tried); !errors.Is(err, operator.ErrSealed) {
		t.Errorf("a dry run without keys: %v", err)
	}
}

// Evidence that is not authentic says nothing of what the provider did: nobody is told to settle it, or to undo what it claims.
func TestEvidenceThatIsNotAuthenticIsNoAdvice(t *testing.T) {
	w := newWorld(t)
	refused := func(change func(*storage.Message)) func(*storage.Message) {
		return func(m *storage.Message) {
			change(m)
			m.Sealed, m.EvidenceRefused, m.KeptDelivered = true, true, &storage.Kept{Reference: "ch_eve"}
		}
	}
	waiting := w.message("acme", refused(func(m *storage.Message) { m.State = storage.MessageEvidenced }))
	buried := w.message("acme", refused(dead))
	desk := w.withKeys()
	for id, want := range map[idem.MessageID]string{waiting.ID: "not authentic", buried.ID: "resolve: with evidence from the provider's own books"} {
		story, err := desk.Inspect(t.Context(), string(id))
		w.ok(err)
		if advice := strings.Join(story.Next, "\n"); !strings.Contains(advice, want) || strings.Contains(advice, "undo") {
			t.Errorf("advised %q, want %q", advice, want)
		}
		if kept := story.Messages[0].Kept; len(kept) > 0 {
			t.Errorf("it keeps %v", kept)
		}
	}
}
