package seal_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
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

// replaced puts a payload in the open in the place of what the message holds.
func replaced(t *testing.T, v *vault, id storage.MessageID, flagged bool) {
	t.Helper()
	stored, err := v.inner.Message(t.Context(), id)
	ok(t, err)
	forged := *stored
	forged.Payload, forged.Sealed = []byte("pay eve"), flagged
	ok(t, v.inner.UpdateMessage(t.Context(), forged, storage.FenceOfMessage(*stored)))
}

// A payload in the open is not delivered where its row says that it is sealed; nor, with SealedOnly, where it does not.
func TestAPayloadInThePlaceOfASealedOneIsNotDelivered(t *testing.T) {
	for name, row := range map[string]struct{ flagged, sealedOnly bool }{
		"the row says that it is sealed": {true, false}, "the row says nothing, sealed only": {false, true}, "both": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShipping(t)
			s.cfg.SealedOnly = row.sealedOnly
			s.restart(t)
			r, m := s.accept(t)
			replaced(t, s.vault, m.ID, row.flagged)
			ok(t, s.worker.Deliver(t.Context(), m.ID))
			s.want(t, m, storage.MessageDead, storage.StateFailed, 0)
			s.alarms(t, "outbox.dead")
			s.alarms(t, "seal.not_authentic")
			if stored, err := s.inner.Message(t.Context(), m.ID); err != nil || string(stored.Payload) != "pay eve" {
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

// Evidence in the open is taken where a process that seals nothing may have written it, and not with SealedOnly.
func TestSealedOnlyRefusesEvidenceInTheOpen(t *testing.T) {
	v := newVault(t, seal.Config{})
	r, m := accepted(t, "ada", "pay ada")
	commit(t, v, r, m)
	send, err := v.with(t, seal.Config{OpenOnly: true}).PrepareSettle(storage.Settlement{Token: "token", Fence: storage.MessageFence{Open: true}, Message: storage.MessageEnd{
		ID: m.ID, Tenant: "ada", State: storage.MessageDead, SweepAt: base, KeptDelivered: &storage.Kept{Evidence: []byte("charged ada")},
	}})
	ok(t, err)
	ok(t, send(t.Context()))
	got, err := v.Message(t.Context(), m.ID)
	if err != nil || got.Sealed || string(got.KeptDelivered.Evidence) != "charged ada" || string(got.Payload) != "pay ada" {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = v.with(t, seal.Config{SealedOnly: true}).Message(t.Context(), m.ID)
	if err != nil || !got.Sealed || bytes.Contains(got.Payload, []byte("pay")) {
		t.Errorf("got %+v, %v, want a message that can't be opened", got, err)
	}
}
