package cache_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/cache"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// during runs the hook once the store has answered the next read, before the cache is given the answer.
func (w *world) during(call faulty.Call, hook func()) {
	w.inner.On(call, 1, faulty.After(func(error) { hook() }))
}

// bust frees the record's key through the store that is given, as an operator does.
func (w *world) bust(store storage.Store, r storage.Record) {
	w.Helper()
	freed := r
	freed.State, freed.ExpiresAt = storage.StateFailedRetryable, time.Time{}
	if err := store.Update(w.Context(), freed, storage.FenceOf(r)); err != nil {
		w.Fatal(err)
	}
}

// A read that was under way when this process freed the key brings the old answer: it must not be answered afterwards.
func TestAReadThatOverlapsACacheBustIsNotHeld(t *testing.T) {
	for name, test := range map[string]struct {
		call faulty.Call
		read func(w *world, r storage.Record)
	}{
		"of the record": {faulty.Get, func(w *world, _ storage.Record) { w.get("k") }},
		"of the chunks": {faulty.LoadResponse, func(w *world, r storage.Record) {
			must[storage.Record](w.T)(w.cache.LoadResponse(w.Context(), r))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cache.Config{})
			w.put(record("k", 5000))
			stored := *must[*storage.Record](t)(w.inner.Get(t.Context(), "k"))
			w.during(test.call, func() { w.bust(w.cache, stored) })
			test.read(w, stored)
			if s := w.cache.Stats(); s.Entries != 0 {
				t.Errorf("%d records are held", s.Entries)
			}
			if r := w.get("k"); r.State != storage.StateFailedRetryable {
				t.Errorf("the record reads as %s after its key was freed", r.State)
			}
		})
	}
}

// Whoever lost against a newer record is told what stands; a read that was under way may have seen what stood before.
func TestAReadThatOverlapsALostWriteIsHeldOnlyIfItReadWhatStands(t *testing.T) {
	for name, changed := range map[string]bool{"the record stands": false, "another process freed its key": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cache.Config{})
			r := record("k", 10)
			w.put(r)
			w.during(faulty.Get, func() {
				if changed {
					w.bust(w.inner, r)
				}
				fence := storage.FenceOf(r)
				fence.Revision = "another"
				if err := w.cache.Update(t.Context(), r, fence); err == nil {
					t.Error("the write was expected to lose")
				}
			})
			w.get("k")
			want := storage.StateCompleted
			if changed {
				want = storage.StateFailedRetryable
			}
			if got := w.get("k"); got.State != want {
				t.Errorf("the record reads as %s, want %s", got.State, want)
			}
			if held := w.cache.Stats().Entries == 1; held == changed {
				t.Errorf("held: %v", held)
			}
		})
	}
}

// Two reads overlap: what the later one brought is not replaced by what the earlier one did.
func TestAnEarlierReadReplacesNoLaterOne(t *testing.T) {
	w := newWorld(t, cache.Config{})
	r := record("k", 10)
	w.put(r)
	later := r
	later.Epoch, later.Owner, later.DoneAt = 2, "other", start.Add(time.Second)
	w.during(faulty.Get, func() {
		w.bust(w.inner, r)
		freed := *must[*storage.Record](t)(w.inner.Get(t.Context(), "k"))
		if err := w.inner.Update(t.Context(), later, storage.FenceOf(freed)); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(time.Second)
		w.get("k")
	})
	w.get("k")
	if got := w.get("k"); got.Epoch != 2 {
		t.Errorf("epoch %d is answered after epoch 2 was", got.Epoch)
	}
}

// A record and its chunks are read apart. They are held together only if both are of one execution.
func TestChunksOfAnotherExecutionAreNeverJoined(t *testing.T) {
	w := newWorld(t, cache.Config{})
	old := record("k", 5000)
	w.put(old)
	first := *w.get("k")
	w.bust(w.inner, old)
	anew := record("k", 6000)
	anew.Epoch, anew.Owner, anew.DoneAt = 2, "other", start.Add(time.Second)
	freed := *must[*storage.Record](t)(w.inner.Get(t.Context(), "k"))
	if err := w.inner.Update(t.Context(), anew, storage.FenceOf(freed)); err != nil {
		t.Fatal(err)
	}
	second := *must[*storage.Record](t)(w.inner.Get(t.Context(), "k"))
	// The record that is held is of the first execution; the chunks that are read now are of the second.
	if loaded := must[storage.Record](t)(w.cache.LoadResponse(t.Context(), second)); len(loaded.Response.Body) != 6000 {
		t.Errorf("%d bytes, want the second execution's 6000", len(loaded.Response.Body))
	}
	asked := w.inner.Count(faulty.LoadResponse)
	_, _ = w.cache.LoadResponse(t.Context(), first) // what became of its chunks is the store's to tell
	if w.inner.Count(faulty.LoadResponse) != asked+1 {
		t.Error("the first execution's chunks were answered from memory, which holds the second's")
	}
	if got := w.get("k"); got.Epoch != 2 {
		t.Errorf("epoch %d, want the one whose chunks are held", got.Epoch)
	}
}

// What is joined is as old as its older half.
func TestJoinedChunksAreNotHeldPastTheAgeOfEitherHalf(t *testing.T) {
	half := 30 * time.Second
	for name, test := range map[string]struct {
		first, second func(w *world, r storage.Record)
	}{
		"record first": {readRecord, readChunks},
		"chunks first": {readChunks, readRecord},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cache.Config{})
			w.put(record("k", 5000))
			stored := *must[*storage.Record](t)(w.inner.Get(t.Context(), "k"))
			test.first(w, stored)
			w.now = start.Add(half)
			test.second(w, stored)
			w.now = start.Add(2*half - 1)
			readRecord(w, stored)
			readChunks(w, stored)
			w.reads(2, 1) // the one of this test, and one of the cache
			w.now = start.Add(2 * half)
			readRecord(w, stored)
			readChunks(w, stored)
			w.reads(3, 2) // both again
		})
	}
}

func readRecord(w *world, _ storage.Record) { w.get("k") }

func readChunks(w *world, r storage.Record) {
	w.Helper()
	if loaded := must[storage.Record](w.T)(w.cache.LoadResponse(w.Context(), r)); len(loaded.Response.Body) != 5000 {
		w.Errorf("%d bytes", len(loaded.Response.Body))
	}
}
