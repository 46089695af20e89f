package seal_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/storage"
)

// releaseKeys has one key for everybody, always the same.
type releaseKeys struct{}

func releaseKey(id uint32) seal.Key {
	key := seal.Key{ID: id, Current: true}
	for i := range key.Secret {
		key.Secret[i] = byte(i)
	}
	return key
}

func (releaseKeys) Current(context.Context, string) (seal.Key, error) { return releaseKey(7), nil }

func (releaseKeys) Open(_ context.Context, _ string, id uint32) (seal.Key, error) {
	if id != 7 {
		return seal.Key{}, fmt.Errorf("no key %d", id)
	}
	return releaseKey(id), nil
}

// released are the envelopes of testdata/release-1.
func released(t *testing.T) map[string][]byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/release-1/envelopes.txt")
	ok(t, err)
	envelopes := map[string][]byte{}
	for line := range strings.Lines(string(raw)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		envelopes[name] = must(hex.DecodeString(text))(t)
	}
	return envelopes
}

// releaseID is an operation id without randomness.
func releaseID(t *testing.T, key storage.RecordKey) storage.OperationID {
	t.Helper()
	return must(storage.IDGenerator{Random: bytes.NewReader(make([]byte, 64))}.OperationID(key))(t)
}

// releaseRows are a record and a message as they are before they are sealed. Short texts can't be compressed.
func releaseRows(t *testing.T, text string) (storage.Record, storage.Message) {
	t.Helper()
	r := completed(t, "tenant-a", text)
	r.Key = idem.Scope{Tenant: "tenant-a", Operation: "orders.create", Key: "release 1"}.RecordKey()
	r.OperationID, r.Owner = releaseID(t, r.Key), "owner"
	_, m := accepted(t, "tenant-a", text)
	m.ID, m.OperationID, m.RecordKey = r.OperationID.Message(1), r.OperationID, r.Key
	m.State, m.KeptDelivered = storage.MessageDead, &storage.Kept{Evidence: []byte("evidence of " + text)}
	return r, m
}

const short = "short"

var long = strings.Repeat("long and repetitive ", 100)

// What release 1 sealed opens in every later one: the envelope, the derivation of its keys, what it is bound to, and how a
// response is packed never change.
func TestWhatRelease1SealedStillOpens(t *testing.T) {
	envelopes := released(t)
	mem := must(memstore.New(memstore.Config{}))(t)
	store := must(seal.New(mem, seal.Config{Keys: releaseKeys{}, SealedOnly: true}))(t)
	for kind, text := range map[string]string{"raw": short, "compressed": long} {
		r, m := releaseRows(t, text)
		sealed := r
		sealed.Sealed, sealed.Response = true, storage.Response{Status: 201, Body: envelopes["response-"+kind]}
		opened, err := store.LoadResponse(t.Context(), sealed)
		if err != nil || fmt.Sprint(opened.Response) != fmt.Sprint(r.Response) {
			t.Errorf("response, %s: %+v, %v", kind, opened.Response, err)
		}
		m.Sealed, m.Payload, m.KeptDelivered = true, envelopes["payload-"+kind], &storage.Kept{Evidence: envelopes["evidence-"+kind]}
		message, err := store.OpenMessage(t.Context(), m)
		if err != nil || message.Sealed || string(message.Payload) != text || string(message.KeptDelivered.Evidence) != "evidence of "+text {
			t.Errorf("message, %s: %+v, %v", kind, message, err)
		}
	}
	r, _ := releaseRows(t, short)
	r.Sealed, r.Response = true, storage.Response{Status: 201, Body: envelopes["erased"]}
	if _, err := store.LoadResponse(t.Context(), r); !errors.Is(err, storage.ErrErased) {
		t.Errorf("erased: %v", err)
	}
	secret := releaseKey(1).Secret
	wrapper := must(seal.NewStatic(secret[:]))(t)
	if got, err := wrapper.Unwrap(t.Context(), "tenant-a", envelopes["data-key"]); err != nil || string(got) != "a data key of 32 bytes for tests" {
		t.Errorf("data key: %q, %v", got, err)
	}
}

// This release still seals what can't be compressed to the very same bytes: so an older one that runs beside it opens them.
func TestThisReleaseSealsAsRelease1Did(t *testing.T) {
	envelopes := released(t)
	mem := must(memstore.New(memstore.Config{}))(t)
	store := must(seal.New(mem, seal.Config{Keys: releaseKeys{}}))(t)
	r, m := releaseRows(t, short)
	commit(t, store, r, m)
	record, message := mem.Records()[0], must(mem.Message(t.Context(), m.ID))(t)
	for name, got := range map[string][]byte{
		"response-raw": record.Response.Body, "payload-raw": message.Payload, "evidence-raw": message.KeptDelivered.Evidence,
	} {
		if !bytes.Equal(got, envelopes[name]) {
			t.Errorf("%s: %x, want %x", name, got, envelopes[name])
		}
	}
}
