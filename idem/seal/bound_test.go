package seal_test

import (
	"bytes"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/storage"
)

// The state and the HTTP status lie in the open beside a sealed response, and are replayed with it: neither can be changed
// under it, or a decline could be made a success.
func TestAResponseOpensOnlyBesideItsStateAndStatus(t *testing.T) {
	v := newVault(t, seal.Config{})
	accepted, m := accepted(t, "ada", "pay ada")
	commit(t, v, accepted, m)
	declined := completed(t, "ada", "declined")
	declined.Response.Status = 402
	ok(t, v.Insert(t.Context(), declined, base))
	for name, row := range map[string]struct {
		key    storage.RecordKey
		change func(*storage.Record)
	}{
		"a decline becomes a success":    {declined.Key, func(r *storage.Record) { r.Response.Status = 201 }},
		"a decline becomes an error":     {declined.Key, func(r *storage.Record) { r.State = storage.StateFailed }},
		"a 202 becomes the final answer": {accepted.Key, func(r *storage.Record) { r.State = storage.StateCompleted }},
	} {
		r, err := v.Get(t.Context(), row.key)
		ok(t, err)
		_, err = v.LoadResponse(t.Context(), *r)
		ok(t, err)
		row.change(r)
		if got, err := v.LoadResponse(t.Context(), *r); !errors.Is(err, seal.ErrNotAuthentic) {
			t.Errorf("%s: %d %q, %v", name, got.Response.Status, got.Response.Body, err)
		}
	}
}

// A sealed payload is sent to the topic that it was written for, and ends the record that it was written for.
func TestAPayloadOpensOnlyBesideItsTopicAndFlag(t *testing.T) {
	v := newVault(t, seal.Config{})
	r, m := accepted(t, "ada", "pay ada")
	commit(t, v, r, m)
	stored, err := v.inner.Message(t.Context(), m.ID)
	ok(t, err)
	for name, change := range map[string]func(*storage.Message){
		"another topic": func(m *storage.Message) { m.Topic = "orders.refund" }, "detached": func(m *storage.Message) { m.Detached = true },
	} {
		changed := *stored
		change(&changed)
		if got, err := v.OpenMessage(t.Context(), changed); err != nil || !got.Sealed || !bytes.Equal(got.Payload, stored.Payload) {
			t.Errorf("%s: %q, sealed %v, %v", name, got.Payload, got.Sealed, err)
		}
	}
}

// Evidence is read by the Settle of the topic that it was given to, and is about one message: it opens neither under another topic,
// also where no payload shows that the topic was changed, nor in another message's row.
func TestEvidenceOpensOnlyInItsRowAndUnderItsTopic(t *testing.T) {
	v := newVault(t, seal.Config{})
	r, m := accepted(t, "ada", "")
	other, second := accepted(t, "ada", "")
	commit(t, v, r, m)
	commit(t, v, other, second)
	ok(t, v.PatchMessage(t.Context(), storage.MessageEnd{
		ID: m.ID, Tenant: "ada", Topic: m.Topic, State: storage.MessageDead, SweepAt: base,
		KeptDelivered: &storage.Kept{Evidence: []byte("charged ada")}, KeptDeclined: &storage.Kept{Evidence: []byte("refused ada")},
	}, storage.MessageFence{Open: true}))
	stored, err := v.inner.Message(t.Context(), m.ID)
	ok(t, err)
	if got, err := v.OpenMessage(t.Context(), *stored); err != nil || got.Sealed || string(got.KeptDelivered.Evidence) != "charged ada" {
		t.Fatalf("where it was kept: %+v, %v", got, err)
	}
	for name, change := range map[string]func(*storage.Message){
		"another topic":             func(m *storage.Message) { m.Topic = "orders.refund" },
		"another topic, a delivery": func(m *storage.Message) { m.Topic, m.KeptDeclined = "orders.refund", nil },
		"another topic, a decline":  func(m *storage.Message) { m.Topic, m.KeptDelivered = "orders.refund", nil },
		"another message's row": func(m *storage.Message) {
			m.ID, m.OperationID, m.RecordKey = second.ID, second.OperationID, second.RecordKey
		},
	} {
		moved := *stored
		change(&moved)
		if got, err := v.OpenMessage(t.Context(), moved); err != nil || !got.Sealed {
			t.Errorf("%s: opened as %+v, %v", name, got, err)
		}
	}
}

// forge changes a message as somebody does who can write the table and has no key.
func forge(t *testing.T, v *vault, id storage.MessageID, change func(*storage.Message)) {
	t.Helper()
	stored, err := v.inner.Message(t.Context(), id)
	ok(t, err)
	forged := *stored
	change(&forged)
	ok(t, v.inner.UpdateMessage(t.Context(), forged, storage.FenceOfMessage(*stored)))
}

// A payload in the open is not delivered where its row says that it is sealed; nor, with SealedOnly, where it does not. One that was
// taken away lies in the open, too.
func TestAPayloadInThePlaceOfASealedOneIsNotDelivered(t *testing.T) {
	for name, row := range map[string]struct {
		payload             string
		flagged, sealedOnly bool
	}{
		"the row says that it is sealed": {"pay eve", true, false}, "the row says nothing, sealed only": {"pay eve", false, true}, "both": {"pay eve", true, true},
		"taken away": {"", true, false}, "taken away with its mark, sealed only": {"", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShipping(t)
			s.cfg.SealedOnly = row.sealedOnly
			s.restart(t)
			r, m := s.accept(t)
			forge(t, s.vault, m.ID, func(m *storage.Message) { m.Payload, m.Sealed = []byte(row.payload), row.flagged })
			ok(t, s.worker.Deliver(t.Context(), m.ID))
			s.want(t, m, storage.MessageDead, storage.StateFailed, 0)
			s.alarms(t, "outbox.dead")
			s.alarms(t, "seal.not_authentic")
			if stored, err := s.inner.Message(t.Context(), m.ID); err != nil || string(stored.Payload) != row.payload {
				t.Errorf("the forged payload was sealed: %q, %v", stored.Payload, err)
			}
			if got, err := load(t, s, r.Key); err != nil || !strings.Contains(string(got.Response.Body), "Nothing was executed") {
				t.Errorf("answer %s, %v", got.Response.Body, err)
			}
		})
	}
}

func wantNotSealed(t *testing.T, err error, what string) {
	t.Helper()
	var open *seal.NotSealedError
	if !errors.As(err, &open) || open.What != what || !errors.Is(err, seal.ErrNotAuthentic) {
		t.Errorf("got %v, want a NotSealedError about the %s", err, what)
	}
}

// With SealedOnly an answer in the open is never replayed, however the record is met; without it, it is.
func TestSealedOnlyRefusesAnAnswerInTheOpen(t *testing.T) {
	for name, body := range map[string]string{"in the record": "{}", "in chunks": strings.Repeat("{}", 500<<10), "empty": ""} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			v := newVault(t, seal.Config{})
			strict := v.with(t, seal.Config{SealedOnly: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			r := completed(t, "ada", "")
			r.Response = storage.Response{Status: 201, Body: []byte(body)}
			ok(t, v.inner.Insert(t.Context(), r, base))

			wantBody(t, v, r.Key, body)
			_, err := load(t, strict, r.Key)
			wantNotSealed(t, err, "response")
			for call, write := range map[string]func() error{
				"insert": func() error { return strict.Insert(t.Context(), r, base) },
				"update": func() error {
					fence := storage.FenceOf(r)
					fence.Revision = "another"
					return strict.Update(t.Context(), r, fence)
				},
				"commit": func() error {
					send, err := strict.Prepare(storage.Commit{Record: r, Now: base, Token: "token"})
					ok(t, err)
					return send(t.Context())
				},
			} {
				var conflict *storage.RecordConflictError
				if err := write(); !errors.As(err, &conflict) {
					t.Fatalf("%s: %v", call, err)
				}
				_, err := strict.LoadResponse(t.Context(), *conflict.Existing)
				wantNotSealed(t, err, "response")
				if !conflict.Existing.Sealed {
					t.Errorf("%s: the record that was met does not say that its answer can't be read", call)
				}
			}
			if !strings.Contains(log.String(), "seal.not_authentic") || !strings.Contains(log.String(), "alarm=true") {
				t.Errorf("no alarm: %s", log.String())
			}
		})
	}
}

// With SealedOnly a retry of a request whose answer lies in the open is answered 503, and nothing is executed.
func TestSealedOnlyReplaysNothingInTheOpen(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			a := newApp(t)
			a.cfg.OpenOnly = true
			a.restart(t)
			a.want(t, kind, "ada", idem.OutcomeExecuted)
			a.cfg = seal.Config{SealedOnly: true}
			a.restart(t)
			_, err := a.do(t, kind, "ada")
			wantUnavailable(t, err)
			wantNotSealed(t, err, "response")
			a.want(t, kind, "bob", idem.OutcomeExecuted)
			a.want(t, kind, "bob", idem.OutcomeReplayed)
			if a.runs != 2 {
				t.Errorf("%d runs, want 2", a.runs)
			}
		})
	}
}

// Evidence that nobody has sealed settles nothing, be it empty: the provider was not called, or nobody knows whether it was. The message
// waits for a person, with its record.
func TestPlantedEvidenceSettlesNothing(t *testing.T) {
	open := func(evidence []byte) func(*testing.T, *shipping, *storage.Message) {
		return func(_ *testing.T, _ *shipping, m *storage.Message) {
			m.KeptDelivered = &storage.Kept{Reference: "ch_eve", Evidence: evidence}
		}
	}
	for name, row := range map[string]struct {
		sealedOnly bool
		plant      func(*testing.T, *shipping, *storage.Message)
	}{
		"empty":     {true, open(nil)},
		"not empty": {true, open([]byte("charged eve"))},
		"a decline, empty": {true, func(_ *testing.T, _ *shipping, m *storage.Message) {
			m.KeptDeclined = &storage.Kept{}
		}},
		"beside a payload that does not open": {true, func(t *testing.T, s *shipping, m *storage.Message) {
			open(nil)(t, s, m)
			m.Payload = nil
		}},
		"another message's": {false, func(t *testing.T, s *shipping, m *storage.Message) {
			r, other := accepted(t, "ada", "pay ada")
			other.State, other.KeptDelivered = storage.MessageDead, &storage.Kept{Evidence: []byte("charged ada")}
			commit(t, s, r, other)
			m.KeptDelivered = must(s.inner.Message(t.Context(), other.ID))(t).KeptDelivered
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShipping(t)
			s.cfg.SealedOnly = row.sealedOnly
			s.restart(t)
			_, m := s.accept(t)
			var planted storage.Message
			forge(t, s.vault, m.ID, func(m *storage.Message) {
				m.State = storage.MessageEvidenced
				row.plant(t, s, m)
				planted = *m
			})
			s.clock.Advance(time.Minute)
			ok(t, s.worker.Deliver(t.Context(), m.ID))
			s.want(t, m, storage.MessageDead, storage.StatePending, 0)
			s.alarms(t, "seal.not_authentic")
			s.alarms(t, "outbox.dead")
			stored := must(s.inner.Message(t.Context(), m.ID))(t)
			if !reflect.DeepEqual(stored.KeptDelivered, planted.KeptDelivered) || !reflect.DeepEqual(stored.KeptDeclined, planted.KeptDeclined) || stored.EvidenceRefused {
				t.Errorf("what was planted is stored as %+v, %+v", stored.KeptDelivered, stored.KeptDeclined)
			}
			if stored.OpenSince.IsZero() {
				t.Error("it says that no call is open")
			}
			// What the provider says itself ends it, and its client is not told of what eve planted.
			decision, err := s.worker.Settle(t.Context(), m.ID, outbox.Delivered{Reference: "ch_1", Evidence: []byte("charged ada")})
			if err != nil || decision != outbox.DecisionSettled {
				t.Errorf("settled: %s, %v", decision, err)
			}
			s.want(t, m, storage.MessageDelivered, storage.StateFailed, 0)
		})
	}
}

// What is empty is sealed as anything else is, and opens.
func TestWhatIsEmptyIsSealed(t *testing.T) {
	v := newVault(t, seal.Config{SealedOnly: true})
	r, m := accepted(t, "ada", "")
	m.State, m.KeptDelivered, m.KeptDeclined = storage.MessageDead, &storage.Kept{}, &storage.Kept{Reference: "ch_1"}
	commit(t, v, r, m)
	stored := must(v.inner.Message(t.Context(), m.ID))(t)
	if len(stored.Payload) == 0 || len(stored.KeptDelivered.Evidence) == 0 || len(stored.KeptDeclined.Evidence) == 0 || !stored.Sealed {
		t.Errorf("stored in the open: %+v", stored)
	}
	got := must(v.Message(t.Context(), m.ID))(t)
	if got.Sealed || len(got.Payload) != 0 || got.KeptDelivered == nil || len(got.KeptDelivered.Evidence) != 0 || got.KeptDeclined.Reference != "ch_1" {
		t.Errorf("got %+v", got)
	}
}

// Without SealedOnly what is empty and in the open is read as what it is: a process that seals nothing may have written it.
func TestWhatIsEmptyInTheOpenIsRead(t *testing.T) {
	v := newVault(t, seal.Config{})
	r, m := accepted(t, "ada", "")
	m.State, m.KeptDelivered = storage.MessageDead, &storage.Kept{}
	commit(t, v.inner, r, m)
	got := must(v.Message(t.Context(), m.ID))(t)
	if got.Sealed || got.EvidenceRefused || got.KeptDelivered == nil {
		t.Errorf("got %+v", got)
	}
}

// Evidence in the open is taken where a process that seals nothing may have written it, and not with SealedOnly.
func TestSealedOnlyRefusesEvidenceInTheOpen(t *testing.T) {
	v := newVault(t, seal.Config{})
	r, m := accepted(t, "ada", "pay ada")
	commit(t, v, r, m)
	send, err := v.with(t, seal.Config{OpenOnly: true}).PrepareSettle(storage.Settlement{Token: "token", Fence: storage.MessageFence{Open: true}, Message: storage.MessageEnd{
		ID: m.ID, Tenant: "ada", Topic: m.Topic, State: storage.MessageDead, SweepAt: base, KeptDelivered: &storage.Kept{Evidence: []byte("charged ada")},
	}})
	ok(t, err)
	ok(t, send(t.Context()))
	got, err := v.Message(t.Context(), m.ID)
	if err != nil || got.Sealed || string(got.KeptDelivered.Evidence) != "charged ada" || string(got.Payload) != "pay ada" {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = v.with(t, seal.Config{SealedOnly: true}).Message(t.Context(), m.ID)
	if err != nil || !got.Sealed || !got.EvidenceRefused || bytes.Contains(got.Payload, []byte("pay")) {
		t.Errorf("got %+v, %v, want a message that can't be opened", got, err)
	}
}
