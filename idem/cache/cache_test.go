package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/cache"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var start = time.Date(2101, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a cache in front of the reference store, on a clock that the test moves.
type world struct {
	*testing.T
	now   time.Time
	inner *faulty.Store
	cache *cache.Store
}

func newWorld(t *testing.T, cfg cache.Config) *world {
	t.Helper()
	w := &world{T: t, now: start}
	cfg.Now = func() time.Time { return w.now }
	w.inner = faulty.New(must[*memstore.Store](t)(memstore.New(memstore.Config{InlineBytesMax: 1000})))
	w.cache = must[*cache.Store](t)(cache.New(w.inner, cfg))
	return w
}

// record is a completed record with a body of so many bytes, which expires in a day.
func record(key string, bodyBytes int) storage.Record {
	return storage.Record{
		Key: storage.RecordKey(key), State: storage.StateCompleted, OperationID: storage.OperationID("op_" + key), Epoch: 1, Owner: "owner",
		Revision: storage.Revision("first of " + key), Kind: storage.KindOptimistic, CreatedAt: start, DoneAt: start,
		ExpiresAt: start.Add(24 * time.Hour), FreeAt: start.Add(24 * time.Hour), Retention: 24 * time.Hour, SchemaVersion: storage.SchemaVersion,
		Response: storage.Response{Status: 201, Header: []storage.Field{{Name: "Content-Type", Value: "application/json"}}, Body: bytes.Repeat([]byte("b"), bodyBytes)},
	}
}

// put stores the record as another process does.
func (w *world) put(r storage.Record) {
	w.Helper()
	if err := w.inner.Insert(w.Context(), r, w.now); err != nil {
		w.Fatal(err)
	}
}

func (w *world) update(store interface {
	Update(context.Context, storage.Record, storage.Fence) error
}, r storage.Record) {
	w.Helper()
	if err := store.Update(w.Context(), r, storage.FenceOfHolder(r)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) get(key string) *storage.Record {
	w.Helper()
	return must[*storage.Record](w.T)(w.cache.Get(w.Context(), storage.RecordKey(key)))
}

// reads checks how often the store was asked so far: for the record and for its chunks.
func (w *world) reads(gets, loads int) {
	w.Helper()
	if g, l := w.inner.Count(faulty.Get), w.inner.Count(faulty.LoadResponse); g != gets || l != loads {
		w.Errorf("the store was asked %d times for the record and %d for its response, want %d and %d", g, l, gets, loads)
	}
}

// whole is a cache with what it leaves to the store behind it: messages and queues.
type whole struct {
	*cache.Store
	behind
}

type behind struct{ outbox.Store }

// Get and Postpone are the cache's.
func (w whole) Get(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	return w.Store.Get(ctx, key)
}

func (w whole) Postpone(ctx context.Context, r storage.Record, fence storage.Fence) error {
	return w.Store.Postpone(ctx, r, fence)
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		mem := must[*memstore.Store](t)(memstore.New(memstore.Config{}))
		once := func(row []byte) []byte { return append(row, '1') }
		return storetest.Harness{
			Store: whole{must[*cache.Store](t)(cache.New(mem, cache.Config{})), behind{mem}},
			InsertRow: func(key string, failure storage.Failure) storage.Write {
				return memstore.Write{Key: key, Condition: func(row []byte) bool { return row == nil }, Apply: once, Failure: failure}
			},
			AddRow:   func(key string) storage.Write { return memstore.Write{Key: key, Apply: once} },
			CountRow: func(_ context.Context, key string) (int, error) { return len(mem.Row(key)), nil },
		}
	})
}

// A held record whose chunks are another execution's by now is not told again: who asks next gets what is stored.
func TestARecordWithoutItsChunksIsReadAnew(t *testing.T) {
	w := newWorld(t, cache.Config{})
	w.put(record("k", 5000))
	seen := w.get("k")
	next := record("k", 6000)
	next.Epoch, next.Revision = 2, "of another execution"
	if err := w.inner.Update(t.Context(), next, storage.FenceOf(*seen)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.cache.LoadResponse(t.Context(), *seen); !errors.Is(err, storage.ErrChunksMissing) {
		t.Fatalf("got %v, want ErrChunksMissing", err)
	}
	if r := must[storage.Record](t)(w.cache.LoadResponse(t.Context(), *w.get("k"))); r.Epoch != 2 || len(r.Response.Body) != 6000 {
		t.Errorf("asked again: epoch %d, %d bytes", r.Epoch, len(r.Response.Body))
	}
}

func TestFinalRecordsAreReadOnceAMinute(t *testing.T) {
	w := newWorld(t, cache.Config{})
	w.put(record("k", 10))
	w.put(record("large", 5000))
	for range 3 {
		if r := w.get("k"); r == nil || r.Response.Status != 201 || len(r.Response.Body) != 10 {
			t.Fatalf("%+v", r)
		}
		r := must[storage.Record](t)(w.cache.LoadResponse(t.Context(), *w.get("large")))
		if len(r.Response.Body) != 5000 || r.Response.Status != 201 || r.Chunks != 0 {
			t.Fatalf("%d bytes, %d chunks", len(r.Response.Body), r.Chunks)
		}
	}
	w.reads(2, 1)
	w.now = start.Add(time.Minute - 1)
	w.get("k")
	w.reads(2, 1)
	w.now = start.Add(time.Minute)
	w.get("k")
	w.reads(3, 1)
	if s := w.cache.Stats(); s.Hits != 7 || s.Misses != 4 || s.Entries != 2 || s.Bytes < 5010 {
		t.Errorf("%+v", s)
	}
}

// semantics.md "What is never cached or trusted": completed records only.
func TestNothingElseIsHeld(t *testing.T) {
	for name, change := range map[string]func(*storage.Record){
		"pending":                 func(r *storage.Record) { r.State, r.ExpiresAt = storage.StatePending, time.Time{} },
		"in progress":             func(r *storage.Record) { r.State, r.ExpiresAt = storage.StateInProgress, time.Time{} },
		"unknown":                 func(r *storage.Record) { r.State, r.ExpiresAt = storage.StateUnknown, time.Time{} },
		"failed, retryable":       func(r *storage.Record) { r.State, r.ExpiresAt = storage.StateFailedRetryable, time.Time{} },
		"final without an expiry": func(r *storage.Record) { r.ExpiresAt = time.Time{} },
		"another release's":       func(r *storage.Record) { r.SchemaVersion = storage.SchemaVersion + 1 },
		"expired":                 func(r *storage.Record) { r.ExpiresAt = start },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cache.Config{})
			r := record("k", 5000)
			change(&r)
			w.put(r)
			for range 2 {
				must[storage.Record](t)(w.cache.LoadResponse(t.Context(), *w.get("k")))
			}
			w.reads(2, 2)
			for range 2 {
				if r := w.get("absent"); r != nil {
					t.Errorf("got %+v, there is no such record", r)
				}
			}
			w.reads(4, 2)
			if s := w.cache.Stats(); s.Entries != 0 || s.Bytes != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestNeverPastTheExpiry(t *testing.T) {
	w := newWorld(t, cache.Config{MaxAge: 48 * time.Hour, ClockSkew: 5 * time.Second})
	w.put(record("k", 10))
	w.get("k")
	w.now = start.Add(24*time.Hour - 5*time.Second - 1)
	w.get("k")
	w.reads(1, 0)
	w.now = w.now.Add(1)
	w.get("k")
	w.get("k")
	w.reads(3, 0)
	// Another process has reserved it anew: its record is what is read.
	w.now = start.Add(24 * time.Hour)
	anew := record("k", 20)
	anew.OperationID, anew.ExpiresAt = "op_anew", w.now.Add(time.Hour)
	w.put(anew)
	if r := w.get("k"); r.OperationID != "op_anew" {
		t.Errorf("%+v", r)
	}
}

// An operator changes a final record: the process that does sees it at once, another one within MaxAge.
func TestAnOperatorsChangeIsSeen(t *testing.T) {
	w := newWorld(t, cache.Config{})
	other := must[*cache.Store](t)(cache.New(w.inner, cache.Config{Now: func() time.Time { return w.now }}))
	r := record("k", 5000)
	w.put(r)
	first := must[*storage.Record](t)(other.Get(t.Context(), "k"))
	must[storage.Record](t)(other.LoadResponse(t.Context(), *first))
	w.get("k")
	longer := r
	longer.Revision, longer.ExpiresAt = "longer", start.Add(48*time.Hour)
	longer.FreeAt = longer.ExpiresAt
	w.update(w.cache, longer)
	if got := w.get("k"); !got.ExpiresAt.Equal(longer.ExpiresAt) {
		t.Errorf("expires %v after it was extended here", got.ExpiresAt)
	}

	// A cache-bust keeps the operation id; what is executed then must not be answered with the old response.
	bust := longer
	bust.Revision, bust.State, bust.ExpiresAt, bust.FreeAt = "bust", storage.StateFailedRetryable, time.Time{}, time.Time{}
	if err := w.inner.Update(t.Context(), bust, storage.FenceOf(longer)); err != nil {
		t.Fatal(err)
	}
	again := record("k", 6000)
	again.Revision, again.Epoch, again.Owner, again.DoneAt = "again", 2, "other", start.Add(time.Second)
	if err := w.inner.Update(t.Context(), again, storage.FenceOf(bust)); err != nil {
		t.Fatal(err)
	}
	if got := must[*storage.Record](t)(other.Get(t.Context(), "k")); got.Epoch != 1 {
		t.Errorf("epoch %d: the other process was expected not to see it yet", got.Epoch)
	}
	w.now = start.Add(time.Minute)
	seen := must[*storage.Record](t)(other.Get(t.Context(), "k"))
	if loaded := must[storage.Record](t)(other.LoadResponse(t.Context(), *seen)); seen.Epoch != 2 || len(loaded.Response.Body) != 6000 {
		t.Errorf("epoch %d with %d bytes, a minute later", seen.Epoch, len(loaded.Response.Body))
	}
	// Whoever meets the new record in a lost reserve does not get the old response either.
	if loaded := must[storage.Record](t)(w.cache.LoadResponse(t.Context(), *seen)); len(loaded.Response.Body) != 6000 {
		t.Errorf("%d bytes", len(loaded.Response.Body))
	}
}

// Two operators extend the same record. The second, who has not seen the first one's change yet, loses by the fence, and
// then reads what is stored.
func TestWhoLosesReadsAgain(t *testing.T) {
	w := newWorld(t, cache.Config{})
	r := record("k", 10)
	w.put(r)
	seen := *w.get("k")
	longer := r
	longer.Revision, longer.ExpiresAt = "longer", start.Add(48*time.Hour)
	longer.FreeAt = longer.ExpiresAt
	w.update(w.inner, longer)
	fence := storage.FenceOf(seen)
	var conflict *storage.RecordConflictError
	if err := w.cache.Update(t.Context(), seen, fence); !errors.As(err, &conflict) {
		t.Fatalf("got %v, want a conflict", err)
	}
	if got := w.get("k"); !got.ExpiresAt.Equal(longer.ExpiresAt) {
		t.Errorf("expires %v, want what the other made of it", got.ExpiresAt)
	}
}

// A write without a reply may have happened: what was held is read again. One that lost says what stands.
func TestWritesDropWhatIsHeld(t *testing.T) {
	for name, test := range map[string]struct {
		write func(w *world, r storage.Record) error
		gets  int
	}{
		"without a reply": {func(w *world, r storage.Record) error {
			w.inner.On(faulty.Update, 1, faulty.LoseRequest())
			return w.cache.Update(w.Context(), r, storage.FenceOf(r))
		}, 2},
		"a commit": {func(w *world, r storage.Record) error {
			fence := storage.FenceOfHolder(r)
			send, err := w.cache.Prepare(storage.Commit{Record: r, Fence: &fence, Now: w.now, Token: "token"})
			if err != nil {
				w.Fatal(err)
			}
			_ = send(w.Context())
			return errors.New("sent")
		}, 2},
		"lost against what is held": {func(w *world, r storage.Record) error { return w.cache.Insert(w.Context(), r, w.now) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cache.Config{})
			r := record("k", 10)
			w.put(r)
			w.get("k")
			if err := test.write(w, r); err == nil {
				t.Error("the write was expected to fail")
			}
			w.get("k")
			w.reads(test.gets, 0)
		})
	}
}

func TestBounds(t *testing.T) {
	t.Run("entries", func(t *testing.T) {
		w := newWorld(t, cache.Config{EntriesMax: 2})
		for _, key := range []string{"a", "b", "c"} {
			w.put(record(key, 10))
		}
		for _, key := range []string{"a", "b", "a", "c", "a", "b"} { // c drops b, which was used longest ago
			w.get(key)
		}
		w.reads(4, 0)
		if s := w.cache.Stats(); s.Entries != 2 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		const most = 20_000
		w := newWorld(t, cache.Config{BytesMax: most})
		for n := range 50 {
			key := fmt.Sprint(n)
			w.put(record(key, 4000))
			must[storage.Record](t)(w.cache.LoadResponse(t.Context(), *w.get(key)))
			if s := w.cache.Stats(); s.Bytes > most || s.Bytes < 4000*s.Entries || s.Entries == 0 {
				t.Fatalf("%+v", s)
			}
		}
		w.put(record("huge", most))
		for range 2 {
			must[storage.Record](t)(w.cache.LoadResponse(t.Context(), *w.get("huge")))
		}
		if s := w.cache.Stats(); s.Bytes > most || s.Entries < 2 {
			t.Errorf("%+v: one that is too large displaced the others", s)
		}
	})
}

// sealing opens what is sealed, as a store with a tenant's keys does.
type sealing struct {
	storage.Store
	opened int
	err    error
}

func (s *sealing) LoadResponse(_ context.Context, r storage.Record) (storage.Record, error) {
	s.opened++
	r.Sealed, r.Response.Body = false, []byte("plaintext")
	return r, s.err
}

// The store alone opens what is sealed, each time, so that nothing of it can be read once the tenant's key is erased.
func TestSealedResponsesStaySealed(t *testing.T) {
	for _, chunks := range []int{0, 2} {
		mem := must[*memstore.Store](t)(memstore.New(memstore.Config{}))
		inner := &sealing{Store: mem}
		store := must[*cache.Store](t)(cache.New(inner, cache.Config{Now: func() time.Time { return start }}))
		r := record("k", 0)
		r.Sealed, r.Chunks, r.Response.Body = true, chunks, []byte("sealed")
		if err := mem.Insert(t.Context(), r, start); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			read := must[*storage.Record](t)(store.Get(t.Context(), "k"))
			if !read.Sealed || strings.Contains(string(read.Response.Body), "plaintext") {
				t.Errorf("held in memory: %+v", read)
			}
			opened := must[storage.Record](t)(store.LoadResponse(t.Context(), *read))
			if string(opened.Response.Body) != "plaintext" {
				t.Errorf("opened: %q", opened.Response.Body)
			}
		}
		inner.err = storage.ErrErased
		if _, err := store.LoadResponse(t.Context(), r); !errors.Is(err, storage.ErrErased) || inner.opened != 3 {
			t.Errorf("%v after %d openings, want ErrErased", err, inner.opened)
		}
	}
}

// Callers own what they are given.
func TestNoMemoryIsShared(t *testing.T) {
	w := newWorld(t, cache.Config{})
	w.put(record("k", 10))
	w.put(record("large", 5000))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				r, err := w.cache.Get(t.Context(), "k")
				large, errLarge := w.cache.Get(t.Context(), "large")
				if err != nil || errLarge != nil {
					t.Errorf("%v, %v", err, errLarge)
					return
				}
				loaded, err := w.cache.LoadResponse(t.Context(), *large)
				if err != nil || r.Response.Body[0] != 'b' || loaded.Response.Body[0] != 'b' || r.Response.Header[0].Value != "application/json" || loaded.Response.Header[0].Value != "application/json" {
					t.Errorf("%v, %q %q %v", err, r.Response.Body[:1], loaded.Response.Body[:1], r.Response.Header)
					return
				}
				r.Response.Body[0], loaded.Response.Body[0] = 'x', 'x'
				r.Response.Header[0].Value, loaded.Response.Header[0].Value = "spoiled", "spoiled"
			}
		})
	}
	wg.Wait()
}

func TestNewNamesWhatItRefuses(t *testing.T) {
	mem := must[*memstore.Store](t)(memstore.New(memstore.Config{}))
	for field, cfg := range map[string]cache.Config{
		"Config.EntriesMax": {EntriesMax: -1}, "Config.BytesMax": {BytesMax: -1}, "Config.MaxAge": {MaxAge: -1}, "Config.ClockSkew": {ClockSkew: -1},
	} {
		var rejected *idem.ConfigError
		if _, err := cache.New(mem, cfg); !errors.As(err, &rejected) || rejected.Field != field {
			t.Errorf("got %v, want %s rejected", err, field)
		}
	}
	var rejected *idem.ConfigError
	if _, err := cache.New(nil, cache.Config{}); !errors.As(err, &rejected) {
		t.Errorf("no store: %v", err)
	}
}

func TestTheBoundOnAResponseIsTheStores(t *testing.T) {
	mem := must[*memstore.Store](t)(memstore.New(memstore.Config{ResponseBytesMax: 1000}))
	if got := must[*cache.Store](t)(cache.New(mem, cache.Config{})).ResponseBytesMax(); got != 1000 {
		t.Errorf("got %d", got)
	}
}
