package seal

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/codec"
	"github.com/idem-go/idem-aws/idem/storage"
)

func newEnvelope(t testing.TB) envelope {
	t.Helper()
	c, err := codec.New(plainBytesMax)
	if err != nil {
		t.Fatal(err)
	}
	return envelope{c}
}

func newKey(id uint32) Key {
	key := Key{ID: id}
	rand.Read(key.Secret[:])
	return key
}

var here = responsePlace("tenant", "record", "op_1", storage.StateCompleted, 201)

func sealedAt(t testing.TB, key Key, p place, plain []byte) []byte {
	t.Helper()
	b, err := newEnvelope(t).seal(key, p, plain)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// texts are of every size and kind that is treated differently.
func texts() map[string][]byte {
	noise := make([]byte, 1<<20)
	rand.Read(noise)
	return map[string][]byte{
		"empty": {}, "short": []byte("{}"), "compressible": bytes.Repeat([]byte("idem "), 10_000), "noise": noise,
		"like an envelope": append(header(encodedRaw, 1), "and no more of it"...),
	}
}

func TestWhatIsSealedOpensWhereItWasSealed(t *testing.T) {
	e, key := newEnvelope(t), newKey(7)
	for name, plain := range texts() {
		b := sealedAt(t, key, here, plain)
		id, err := keyOf(b)
		if !sealed(b) || id != 7 || err != nil {
			t.Errorf("%s: key %d, %v", name, id, err)
		}
		if over := len(b) - len(plain); over > headerBytes+nonceBytes+tagBytes {
			t.Errorf("%s: %d bytes more", name, over)
		}
		got, err := e.open(key, here, b)
		if err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: opens as %d bytes, %v", name, len(got), err)
		}
	}
}

// Nothing opens under another tenant, record, operation or message, nor as something else, nor under another key.
func TestNothingOpensElsewhere(t *testing.T) {
	e, key := newEnvelope(t), newKey(1)
	b := sealedAt(t, key, here, []byte("secret"))
	for name, other := range map[string]place{
		"tenant":       responsePlace("tenanT", "record", "op_1", storage.StateCompleted, 201),
		"record":       responsePlace("tenant", "recorD", "op_1", storage.StateCompleted, 201),
		"incarnation":  responsePlace("tenant", "record", "op_2", storage.StateCompleted, 201),
		"state":        responsePlace("tenant", "record", "op_1", storage.StateFailed, 201),
		"status":       responsePlace("tenant", "record", "op_1", storage.StateCompleted, 200),
		"payload":      {aPayload, "tenant", "record", "op_1", here.beside},
		"evidence":     {aDelivery, "tenant", "record", "op_1", here.beside},
		"moved border": responsePlace("tenantr", "ecord", "op_1", storage.StateCompleted, 201),
	} {
		if got, err := e.open(key, other, b); !errors.Is(err, ErrNotAuthentic) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := e.open(newKey(1), here, b); !errors.Is(err, ErrNotAuthentic) {
		t.Errorf("another tenant's key: %q, %v", got, err)
	}
}

func TestNoBitMayChange(t *testing.T) {
	e, key := newEnvelope(t), newKey(1)
	b := sealedAt(t, key, here, []byte("secret"))
	for i := range b {
		changed := bytes.Clone(b)
		changed[i] ^= 1
		if got, err := e.open(key, here, changed); !errors.Is(err, ErrNotAuthentic) {
			t.Errorf("byte %d: %q, %v", i, got, err)
		}
	}
	for size := range b {
		if got, err := e.open(key, here, b[:size]); !errors.Is(err, ErrNotAuthentic) {
			t.Errorf("%d bytes: %q, %v", size, got, err)
		}
	}
}

// The same text at the same place is the same bytes, however often it is sealed; anything else has another nonce.
func TestTheNonceIsOfAllThatIsSealed(t *testing.T) {
	key := newKey(1)
	nonces := map[string]string{}
	for _, p := range []place{
		here, {aPayload, "tenant", "record", "op_1", here.beside}, responsePlace("other", "record", "op_1", storage.StateCompleted, 201),
	} {
		for _, id := range []uint32{1, 2} {
			key.ID = id
			for name, plain := range texts() {
				if name == "noise" {
					continue
				}
				b := sealedAt(t, key, p, plain)
				if !bytes.Equal(b, sealedAt(t, key, p, plain)) {
					t.Errorf("%s at %v: sealed twice it differs", name, p)
				}
				nonce, at := string(b[headerBytes:headerBytes+nonceBytes]), fmt.Sprint(name, p, id)
				if earlier, ok := nonces[nonce]; ok {
					t.Errorf("%s has the nonce of %s", at, earlier)
				}
				nonces[nonce] = at
			}
		}
	}
}

func TestWhatIsNoEnvelopeOfThisRelease(t *testing.T) {
	later := header(encodedRaw, 1)
	later[len(mark)] = version + 1
	for name, row := range map[string]struct {
		bytes []byte
		is    error
	}{
		"nothing": {nil, ErrNotAuthentic}, "JSON": {[]byte(`{"an":"ordinary response"}`), ErrNotAuthentic},
		"erased": {header(erased, currentKey), storage.ErrErased}, "of a later release": {later, ErrVersion},
	} {
		if _, err := keyOf(row.bytes); !errors.Is(err, row.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// It is not judged: neither erased nor forged.
	if _, err := keyOf(later); err == nil || errors.Is(err, ErrNotAuthentic) || errors.Is(err, storage.ErrErased) {
		t.Errorf("a later version: %v", err)
	}
}

func TestWhatIsTooLargeIsNotSealed(t *testing.T) {
	if _, err := newEnvelope(t).seal(newKey(1), here, make([]byte, plainBytesMax+1)); !errors.Is(err, storage.ErrResponseTooLarge) {
		t.Errorf("got %v", err)
	}
	large := make([]byte, plainBytesMax) // what is sealed must open, however well it compresses
	key := newKey(1)
	if got, err := newEnvelope(t).open(key, here, sealedAt(t, key, here, large)); err != nil || len(got) != len(large) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestResponsesArePackedWhole(t *testing.T) {
	for name, r := range map[string]storage.Response{
		"no body": {Status: 204}, "body": {Status: 200, Body: []byte("\x00\xff")},
		"headers": {Status: 201, Header: []storage.Field{{Name: "X-B", Value: "\xff"}, {Name: "X-B", Value: ""}, {Name: "", Value: "x"}}, Body: []byte("{}")},
	} {
		got, err := unpack(r.Status, pack(r))
		if err != nil || got.Status != r.Status || fmt.Sprint(got.Header) != fmt.Sprint(r.Header) || !bytes.Equal(got.Body, r.Body) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	for _, damaged := range [][]byte{nil, {9}, {1, 200}, {1, 1, 'x'}, {1, 1, 'x', 5, 'y'}, bytes.Repeat([]byte{0xff}, 11)} {
		if got, err := unpack(200, damaged); err == nil {
			t.Errorf("%v became %+v", damaged, got)
		}
	}
}

func TestAStaticWrapperBindsToTheTenant(t *testing.T) {
	w, err := NewStatic(bytes.Repeat([]byte{1}, KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(1)
	secret := key.Secret[:]
	wrapped, err := w.Wrap(context.Background(), "ada", secret)
	if err != nil || bytes.Contains(wrapped, secret) {
		t.Fatalf("%x, %v", wrapped, err)
	}
	if got, err := w.Unwrap(context.Background(), "ada", wrapped); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("got %x, %v", got, err)
	}
	if got, err := w.Unwrap(context.Background(), "bob", wrapped); !errors.Is(err, ErrNotAuthentic) {
		t.Errorf("another tenant: %x, %v", got, err)
	}
	var rejected *idem.ConfigError
	if _, err := NewStatic([]byte("short secret")); !errors.As(err, &rejected) || bytes.Contains([]byte(err.Error()), []byte("short secret")) {
		t.Errorf("a short secret: %v", err)
	}
}

// FuzzOpen: nothing that anybody writes to a table opens or panics.
func FuzzOpen(f *testing.F) {
	e, key := newEnvelope(f), newKey(1)
	genuine := sealedAt(f, key, here, []byte("secret"))
	for _, plain := range texts() {
		f.Add(sealedAt(f, newKey(1), here, plain[:min(len(plain), 4<<10)]))
	}
	f.Add(header(erased, 0))
	f.Add(genuine)
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = keyOf(b)
		if plain, err := e.open(key, here, b); err == nil && !bytes.Equal(b, genuine) {
			t.Errorf("%x opens as %x", b, plain)
		}
		_, _ = unpack(200, b)
	})
}

func BenchmarkSeal(b *testing.B) {
	e, key := newEnvelope(b), newKey(1)
	for _, size := range []int{300, 10 << 10, 1 << 20} {
		plain := bytes.Repeat([]byte(`{"id":"pay_1","amount":500}     `), size/32)
		noise := make([]byte, size)
		rand.Read(noise)
		for name, text := range map[string][]byte{"JSON": plain, "noise": noise} {
			b.Run(fmt.Sprintf("%d B of %s", size, name), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := e.seal(key, here, text); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("open %d B of %s", size, name), func(b *testing.B) {
				sealed := sealedAt(b, key, here, text)
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := e.open(key, here, sealed); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
