package seal_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/cache"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// A record that is copied to another tenant, or to another scope of its own, does not open.
func TestACopiedRecordDoesNotOpen(t *testing.T) {
	var log bytes.Buffer
	v := newVault(t, seal.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	r, other := completed(t, "ada", "ada's answer"), completed(t, "bob", "bob's answer")
	ok(t, v.Insert(t.Context(), r, base))
	ok(t, v.Insert(t.Context(), other, base))
	stored, err := v.inner.Get(t.Context(), r.Key)
	ok(t, err)
	for name, to := range map[string]storage.Record{
		"another tenant": other, "another scope": completed(t, "ada", ""), "another incarnation": {Tenant: r.Tenant, Key: r.Key, OperationID: other.OperationID},
	} {
		copied := *stored
		copied.Tenant, copied.Key, copied.OperationID = to.Tenant, to.Key, to.OperationID
		if got, err := v.LoadResponse(t.Context(), copied); !errors.Is(err, seal.ErrNotAuthentic) {
			t.Errorf("%s: %q, %v", name, got.Response.Body, err)
		}
	}
	if !strings.Contains(log.String(), "seal.not_authentic") || !strings.Contains(log.String(), "alarm=true") {
		t.Errorf("no alarm: %s", log.String())
	}
	wantBody(t, v, r.Key, "ada's answer")
}

// A payload that is copied to another message is not delivered there.
func TestACopiedPayloadDoesNotOpen(t *testing.T) {
	v := newVault(t, seal.Config{})
	r, m := accepted(t, "ada", "pay ada")
	commit(t, v, r, m)
	ok(t, v.Insert(t.Context(), completed(t, "bob", "{}"), base))
	stored, err := v.inner.Message(t.Context(), m.ID)
	ok(t, err)
	_, elsewhere := accepted(t, "bob", "")
	elsewhere.Payload, elsewhere.Sealed = stored.Payload, true
	opened, err := v.OpenMessage(t.Context(), elsewhere)
	if err != nil || !opened.Sealed || !bytes.Equal(opened.Payload, stored.Payload) {
		t.Errorf("got %q, sealed %v, %v", opened.Payload, opened.Sealed, err)
	}
	if opened, err = v.OpenMessage(t.Context(), *stored); err != nil || opened.Sealed || string(opened.Payload) != "pay ada" {
		t.Errorf("at its own place: %q, %v", opened.Payload, err)
	}
}

// What is sealed tells the state machines all they need: everything but headers, body, payload and evidence.
func TestOnlyContentIsSealed(t *testing.T) {
	v := newVault(t, seal.Config{})
	r := completed(t, "ada", "secret")
	ok(t, v.Insert(t.Context(), r, base))
	got, err := v.Get(t.Context(), r.Key)
	ok(t, err)
	if !got.Sealed || len(got.Response.Header) != 0 || got.Response.Status != 201 || got.State != r.State || got.Fingerprint != r.Fingerprint {
		t.Errorf("got %+v", got)
	}
	reserved := completed(t, "ada", "")
	reserved.State, reserved.Response = storage.StateInProgress, storage.Response{}
	ok(t, v.Insert(t.Context(), reserved, base))
	if got, err = v.Get(t.Context(), reserved.Key); err != nil || got.Sealed || len(got.Response.Body) != 0 {
		t.Errorf("no response was sealed as %+v, %v", got, err)
	}
}

// A record that nobody opened goes back as it was; a response that follows one is sealed anew, whatever the flag says.
func TestWhatIsSealedIsNotSealedTwice(t *testing.T) {
	v := newVault(t, seal.Config{})
	r := completed(t, "ada", "secret")
	ok(t, v.Insert(t.Context(), r, base))
	got, err := v.Get(t.Context(), r.Key)
	ok(t, err)
	asked := v.keys.count()
	later := *got
	later.Attempts++
	ok(t, v.Update(t.Context(), later, storage.FenceOf(*got)))
	wantBody(t, v, r.Key, "secret")
	later.Response = storage.Response{Status: 200, Body: []byte("another")}
	ok(t, v.Update(t.Context(), later, storage.FenceOf(later)))
	wantBody(t, v, r.Key, "another")
	if stored, err := v.inner.Get(t.Context(), r.Key); err != nil || bytes.Contains(stored.Response.Body, []byte("another")) {
		t.Errorf("stored as %q, %v", stored.Response.Body, err)
	}
	if v.keys.count() != asked {
		t.Errorf("keys were fetched %d times more", v.keys.count()-asked)
	}
}

// Sending again sends identical bytes (design.md "What a lost reply means"), and the same amendment writes the same
// chunks, so that none is ever torn under a reader.
func TestTheSameIsSealedToTheSameBytes(t *testing.T) {
	v := newVault(t, seal.Config{})
	r := completed(t, "ada", strings.Repeat("secret", 1000))
	send, err := v.Prepare(storage.Commit{Record: r, Now: base, Token: "token"})
	ok(t, err)
	ok(t, send(t.Context()))
	first := v.inner.Records()[0].Response.Body
	ok(t, send(t.Context())) // the reference store compares a token's content
	loaded, err := load(t, v, r.Key)
	ok(t, err)
	ok(t, v.Update(t.Context(), loaded, storage.FenceOf(loaded)))
	if again := v.inner.Records()[0].Response.Body; !bytes.Equal(first, again) {
		t.Error("sealed again it differs")
	}
}

// After a rotation the old opens and the new is sealed under the new key.
func TestRotation(t *testing.T) {
	v := newVault(t, seal.Config{})
	old, next := completed(t, "ada", "old"), completed(t, "ada", "new")
	ok(t, v.Insert(t.Context(), old, base))
	v.keys.rotate("ada")
	v.clock.Advance(3 * time.Minute)
	ok(t, v.Insert(t.Context(), next, base))
	restarted := v.with(t, seal.Config{})
	wantBody(t, restarted, old.Key, "old")
	wantBody(t, restarted, next.Key, "new")
	one, two := stored(t, v, old.Key), stored(t, v, next.Key)
	if keyID(one) != 1 || keyID(two) != 2 {
		t.Errorf("sealed under keys %d and %d", keyID(one), keyID(two))
	}
}

func stored(t *testing.T, v *vault, key storage.RecordKey) []byte {
	t.Helper()
	r, err := v.inner.Get(t.Context(), key)
	ok(t, err)
	return r.Response.Body
}

// keyID is the last byte of an envelope's header.
func keyID(envelope []byte) byte { return envelope[9] }

// Sealing is switched on over what was stored before, and off again by a release that still opens.
func TestSwitchingItOnAndOff(t *testing.T) {
	v := newVault(t, seal.Config{})
	r, m := accepted(t, "ada", "pay ada")
	commit(t, v.inner, r, m)
	wantBody(t, v, r.Key, "accepted")
	got, err := v.Message(t.Context(), m.ID)
	if err != nil || got.Sealed || string(got.Payload) != "pay ada" {
		t.Fatalf("got %+v, %v", got, err)
	}
	claimed := *got
	claimed.State, claimed.Epoch = storage.MessageClaimed, 1
	ok(t, v.UpdateMessage(t.Context(), claimed, storage.FenceOfMessage(*got)))
	if sealed, err := v.inner.Message(t.Context(), m.ID); err != nil || !sealed.Sealed || bytes.Contains(sealed.Payload, []byte("pay")) {
		t.Errorf("after a claim: %q, %v", sealed.Payload, err)
	}

	off := v.with(t, seal.Config{OpenOnly: true})
	got, err = off.Message(t.Context(), m.ID)
	if err != nil || got.Sealed || string(got.Payload) != "pay ada" {
		t.Errorf("got %+v, %v", got, err)
	}
	plain := completed(t, "bob", "bob's answer")
	ok(t, off.Insert(t.Context(), plain, base))
	if body := stored(t, v, plain.Key); string(body) != "bob's answer" {
		t.Errorf("stored as %q", body)
	}
}

// Without this package what is sealed is not mistaken for an answer.
func TestAPlainStoreReplaysNothingSealed(t *testing.T) {
	v := newVault(t, seal.Config{})
	r := completed(t, "ada", "secret")
	ok(t, v.Insert(t.Context(), r, base))
	if got, err := load(t, v.inner, r.Key); err == nil {
		t.Errorf("got %q", got.Response.Body)
	}
}

// Evidence is sealed as it is kept, in a transaction or by itself, opens with its message as what it is, and is told to
// whoever meets it.
func TestEvidenceIsSealed(t *testing.T) {
	v := newVault(t, seal.Config{})
	open := storage.MessageFence{Open: true}
	settle := func(end storage.MessageEnd) error {
		send, err := v.PrepareSettle(storage.Settlement{Message: end, Fence: open, Token: string(owner(t))})
		ok(t, err)
		return send(t.Context())
	}
	patch := func(end storage.MessageEnd) error { return v.PatchMessage(t.Context(), end, open) }
	for name, write := range map[string]func(storage.MessageEnd) error{"settled": settle, "patched": patch} {
		r, m := accepted(t, "ada", "pay ada")
		commit(t, v, r, m)
		dead := storage.MessageEnd{
			ID: m.ID, Tenant: "ada", Topic: m.Topic, State: storage.MessageDead, SweepAt: base,
			KeptDelivered: &storage.Kept{Evidence: []byte("charged ada")}, KeptDeclined: &storage.Kept{Evidence: []byte("refused ada")},
		}
		ok(t, write(dead))
		stored, err := v.inner.Message(t.Context(), m.ID)
		if err != nil || bytes.Contains(stored.KeptDelivered.Evidence, []byte("ada")) || bytes.Contains(stored.KeptDeclined.Evidence, []byte("ada")) {
			t.Errorf("%s: stored as %+v, %+v, %v", name, stored.KeptDelivered, stored.KeptDeclined, err)
		}
		got, err := v.Message(t.Context(), m.ID)
		if err != nil || string(got.KeptDelivered.Evidence) != "charged ada" || string(got.KeptDeclined.Evidence) != "refused ada" {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		stored.KeptDelivered, stored.KeptDeclined = stored.KeptDeclined, stored.KeptDelivered
		if swapped, err := v.OpenMessage(t.Context(), *stored); err != nil || !swapped.Sealed {
			t.Errorf("%s: what was kept as declined opens as delivered: %+v, %v", name, swapped, err)
		}
		final := dead
		final.State, final.KeptDelivered, final.KeptDeclined = storage.MessageCancelled, nil, nil
		ok(t, write(final))
		var conflict *storage.MessageConflictError
		if err := write(dead); !errors.As(err, &conflict) || string(conflict.Existing.KeptDelivered.Evidence) != "charged ada" || string(conflict.Existing.Payload) != "pay ada" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestNothingIsSealedForNobody(t *testing.T) {
	v := newVault(t, seal.Config{})
	if err := v.Insert(t.Context(), completed(t, "", "{}"), base); err == nil {
		t.Error("a record without a tenant was sealed")
	}
	kept := storage.MessageEnd{ID: "m", Tenant: "ada", Topic: "orders.charge", State: storage.MessageDead, KeptDelivered: &storage.Kept{Evidence: []byte("charged")}}
	if _, err := v.PrepareSettle(storage.Settlement{Message: kept, Fence: storage.MessageFence{Open: true}, Token: "t"}); !errors.Is(err, storage.ErrOperationID) {
		t.Errorf("a message without an operation: %v", err)
	}
	kept.Topic = ""
	if _, err := v.PrepareSettle(storage.Settlement{Message: kept, Fence: storage.MessageFence{Open: true}, Token: "t"}); err == nil {
		t.Error("evidence was sealed for no topic")
	}
}

func TestNewNamesWhatItRefuses(t *testing.T) {
	v := newVault(t, seal.Config{})
	for field, cfg := range map[string]seal.Config{
		"Config.Keys": {}, "Config.KeyAgeMax": {Keys: v.keys, KeyAgeMax: time.Second}, "Config.KeysMax": {Keys: v.keys, KeysMax: -1},
		"Config.KeyTimeout": {Keys: v.keys, KeyTimeout: -1}, "Config.SealedOnly": {Keys: v.keys, SealedOnly: true, OpenOnly: true},
	} {
		var rejected *idem.ConfigError
		if _, err := seal.New(v.inner, cfg); !errors.As(err, &rejected) || rejected.Field != field {
			t.Errorf("got %v, want %s rejected", err, field)
		}
	}
	var rejected *idem.ConfigError
	if _, err := seal.New(nil, seal.Config{Keys: v.keys}); !errors.As(err, &rejected) {
		t.Errorf("no store: %v", err)
	}
}

// A message in the way of a commit that can't be opened for want of a key leaves the caller to try again.
func TestAConflictWithoutAKeyIsTriedAgain(t *testing.T) {
	v := newVault(t, seal.Config{})
	r, m := accepted(t, "ada", "pay ada")
	commit(t, v, r, m)
	restarted := v.with(t, seal.Config{})
	v.keys.answers(false)
	bare := *must(v.inner.Message(t.Context(), m.ID))(t) // sealed still, it needs no key
	bare.Revision = "another"
	wantNoKey(t, restarted.UpdateMessage(context.Background(), bare, storage.FenceOfMessage(bare)))
	v.keys.answers(true)
	var conflict *storage.MessageConflictError
	if err := restarted.UpdateMessage(context.Background(), bare, storage.FenceOfMessage(bare)); !errors.As(err, &conflict) || string(conflict.Existing.Payload) != "pay ada" {
		t.Errorf("got %v", err)
	}
}

// A lease is renewed, and a record postponed, whatever became of the tenant's key: a handler runs under it.
func TestARenewalNeedsNoKey(t *testing.T) {
	v := newVault(t, seal.Config{})
	r := completed(t, "ada", "")
	r.State, r.Kind, r.Response, r.LeaseUntil = storage.StateInProgress, storage.KindWrapped, storage.Response{}, base
	ok(t, v.Insert(t.Context(), r, base))
	restarted := v.with(t, seal.Config{})
	v.keys.answers(false)
	r.LeaseUntil, r.LookAt = base.Add(time.Minute), base.Add(time.Hour)
	ok(t, restarted.Renew(t.Context(), r, storage.FenceOf(r)))
	ok(t, restarted.Postpone(t.Context(), r, storage.FenceOf(r)))
	if got := v.inner.Records()[0]; !got.LeaseUntil.Equal(r.LeaseUntil) || !got.LookAt.Equal(r.LookAt) {
		t.Errorf("the lease ends at %v, looked at %v", got.LeaseUntil, got.LookAt)
	}
}

// A record's conflict decides although the message that was in the way too can't be opened for want of a key.
func TestARecordsConflictHoldsWithoutAKey(t *testing.T) {
	v := newVault(t, seal.Config{})
	r, m := accepted(t, "ada", "pay ada")
	commit(t, v, r, m)
	bare := r
	bare.Response = storage.Response{}
	again := *must(v.inner.Message(t.Context(), m.ID))(t) // sealed still, it needs no key
	restarted := v.with(t, seal.Config{})
	v.keys.answers(false)
	send, err := restarted.Prepare(storage.Commit{Record: bare, Now: base, Token: "token", Messages: []storage.Message{again}})
	ok(t, err)
	var conflict *storage.RecordConflictError
	if err := send(t.Context()); !errors.As(err, &conflict) || conflict.Message == nil || !conflict.Message.Sealed {
		t.Errorf("got %v", err)
	}
	v.keys.answers(true)
	if err := send(t.Context()); !errors.As(err, &conflict) || conflict.Message.Sealed || string(conflict.Message.Payload) != "pay ada" {
		t.Errorf("got %v", err)
	}
}

// The largest response that the engine may let pass still fits when it is sealed.
func TestTheLargestResponseFitsSealed(t *testing.T) {
	for name, inner := range map[string]func(*bank) seal.Inner{
		"DynamoDB": func(b *bank) seal.Inner { return b.plain(t, dynamo.Config{}) },
		"bounded":  func(b *bank) seal.Inner { return b.plain(t, dynamo.Config{ResponseBytesMax: 100 << 10}) },
		"memory":   func(*bank) seal.Inner { return must(memstore.New(memstore.Config{}))(t) },
	} {
		b := newBank(t, dynamotest.Endpoint(t, dynamotest.Dynoxide))
		within := inner(b)
		store := must(seal.New(within, seal.Config{Keys: b.keys}))(t)
		if got, want := store.ResponseBytesMax(), storage.ResponseBytesMaxOf(within)-seal.OverheadBytes; got != want {
			t.Errorf("%s: the bound is %d, want %d", name, got, want)
		}
		if most := store.ResponseBytesMax(); name != "bounded" && most < 3<<20 {
			t.Errorf("%s: the bound is %d, below the engine's default", name, most)
		}
		r := completed(t, "ada", "")
		noise := make([]byte, min(store.ResponseBytesMax(), 3<<20))
		rand.NewChaCha8([32]byte{}).Read(noise)
		r.Response = storage.Response{Status: 201, Body: noise}
		ok(t, store.Insert(t.Context(), r, base))
	}
}

// A desk resolves what stays sealed where its store decrypts: it must be told through whatever stands between.
func TestDecoratorsTellThatTheStoreDecrypts(t *testing.T) {
	within := must(memstore.New(memstore.Config{}))(t)
	store := must(seal.New(within, seal.Config{Keys: newKeyring()}))(t)
	for name, c := range map[string]struct {
		store any
		want  bool
	}{
		"memory": {within, false}, "a cache before memory": {must(cache.New(within, cache.Config{}))(t), false},
		"the keys": {store, true}, "a cache": {must(cache.New(store, cache.Config{}))(t), true}, "faults": {faulty.New(store), true},
	} {
		if got := storage.Decrypts(c.store); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
