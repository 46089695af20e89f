package seal_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/storage"
)

// use reads one record of the tenant.
func use(t *testing.T, v *vault, r storage.Record) error {
	t.Helper()
	_, err := load(t, v, r.Key)
	return err
}

// A key is fetched once, however many need it, and again at half its age.
func TestAKeyIsFetchedRarely(t *testing.T) {
	v := newVault(t, seal.Config{KeyAgeMax: 10 * time.Minute})
	r := completed(t, "ada", "{}")
	ok(t, v.Insert(t.Context(), r, base))
	asked := v.keys.count()
	for _, step := range []struct {
		pass time.Duration
		more int
	}{{0, 0}, {5*time.Minute - time.Millisecond, 0}, {time.Millisecond, 1}, {time.Minute, 0}} {
		v.clock.Advance(step.pass)
		ok(t, use(t, v, r))
		if more := v.keys.count() - asked; more != step.more {
			t.Errorf("after %v: fetched %d times, want %d", step.pass, more, step.more)
		}
		asked = v.keys.count()
	}
}

func TestWhoeverNeedsAKeyAtOnceFetchesItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(t, seal.Config{KeyTimeout: time.Minute})
		v.keys.takes = time.Second
		hurried, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var all sync.WaitGroup
		for n := range 20 {
			r := completed(t, "ada", "{}")
			all.Go(func() {
				if n == 0 { // its giving up is nobody else's
					wantNoKey(t, v.Insert(hurried, r, base))
				} else if err := v.Insert(t.Context(), r, base); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := v.keys.count(); n != 1 {
			t.Errorf("fetched %d times", n)
		}
	})
}

func TestAKeyThatTakesTooLongIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(t, seal.Config{})
		v.keys.takes = time.Hour
		began := time.Now()
		_, err := v.Prepare(storage.Commit{Record: completed(t, "ada", "{}"), Now: base, Token: "token"})
		wantNoKey(t, err)
		if took := time.Since(began); took != time.Second {
			t.Errorf("given up after %v", took)
		}
	})
}

// From half its age on a key is used only because no other can be had; past it, not at all.
func TestAKeyOutlivesTroubleUntilItsAge(t *testing.T) {
	v := newVault(t, seal.Config{KeyAgeMax: 10 * time.Minute})
	r := completed(t, "ada", "{}")
	ok(t, v.Insert(t.Context(), r, base))
	v.keys.answers(false)
	v.clock.Advance(10*time.Minute - time.Millisecond)
	ok(t, use(t, v, r))
	ok(t, v.Insert(t.Context(), completed(t, "ada", "{}"), base))
	v.clock.Advance(time.Millisecond)
	wantNoKey(t, use(t, v, r))
	wantNoKey(t, v.Insert(t.Context(), completed(t, "ada", "{}"), base))
	v.keys.answers(true)
	ok(t, use(t, v, r))
}

// A process that is frozen while it asks uses no key past its age: neither the one that it had, nor the one that it is told.
func TestAKeyThatGrewTooOldWhileItWasAskedForIsNotUsed(t *testing.T) {
	for name, refuse := range map[string]bool{"the keys fail then": true, "an erased key is told": false} {
		t.Run(name, func(t *testing.T) {
			v := newVault(t, seal.Config{KeyAgeMax: 10 * time.Minute})
			r := completed(t, "ada", "{}")
			ok(t, v.Insert(t.Context(), r, base))
			v.clock.Advance(6 * time.Minute)
			v.keys.answers(!refuse)
			v.keys.overtake = func() {
				v.clock.Advance(time.Hour)
				v.keys.erase("ada")
			}
			if err := use(t, v, r); refuse {
				wantNoKey(t, err)
			} else {
				wantErased(t, err)
			}
		})
	}
}

// Keys that don't answer are not waited for by everybody: a key that is held is asked for again once in ten seconds.
func TestTroubleIsWaitedForOnceInAWhile(t *testing.T) {
	v := newVault(t, seal.Config{KeyAgeMax: 10 * time.Minute})
	r := completed(t, "ada", "{}")
	ok(t, v.Insert(t.Context(), r, base))
	v.clock.Advance(5 * time.Minute)
	v.keys.answers(false)
	asked := func(after time.Duration, want int) {
		t.Helper()
		v.clock.Advance(after)
		before := v.keys.count()
		for range 5 {
			ok(t, use(t, v, r))
		}
		if got := v.keys.count() - before; got != want {
			t.Errorf("asked %d times, want %d", got, want)
		}
	}
	asked(0, 1)
	asked(10*time.Second-time.Millisecond, 0)
	asked(time.Millisecond, 1)
	v.keys.answers(true)
	asked(10*time.Second, 1)
	asked(5*time.Minute-time.Millisecond, 0)
	asked(time.Millisecond, 1)
}

// An erasure is seen within the age of a key: at once by who has to fetch it, and by half its age where the keys answer.
func TestAnErasureTakesEffectWithinAKeysAge(t *testing.T) {
	v := newVault(t, seal.Config{KeyAgeMax: 10 * time.Minute})
	r := completed(t, "ada", "{}")
	ok(t, v.Insert(t.Context(), r, base))
	v.keys.erase("ada")
	wantErased(t, func() error { _, err := load(t, v.with(t, seal.Config{}), r.Key); return err }())
	v.clock.Advance(5*time.Minute - time.Millisecond)
	ok(t, use(t, v, r))
	v.clock.Advance(time.Millisecond)
	wantErased(t, use(t, v, r))

	other := newVault(t, seal.Config{KeyAgeMax: 10 * time.Minute})
	ok(t, other.Insert(t.Context(), r, base))
	other.keys.erase("ada")
	other.keys.answers(false) // nobody can be told
	other.clock.Advance(10 * time.Minute)
	wantNoKey(t, use(t, other, r))
}

// sealedUnder inserts a record of ada's and returns the key that it was sealed under.
func sealedUnder(t *testing.T, v *vault, store storage.Store) byte {
	t.Helper()
	r := completed(t, "ada", "{}")
	ok(t, store.Insert(t.Context(), r, base))
	return keyID(stored(t, v, r.Key))
}

// An older key's reply that comes late does not bring that key back, whatever it was when the reply was made.
func TestASlowReplyBringsNoOlderKeyBack(t *testing.T) {
	for name, erased := range map[string]bool{"after a rotation": false, "after an erasure and a renewal": true} {
		t.Run(name, func(t *testing.T) {
			v := newVault(t, seal.Config{})
			r := completed(t, "ada", "{}")
			ok(t, v.Insert(t.Context(), r, base))
			other := v.with(t, seal.Config{})
			v.keys.overtake = func() {
				if erased {
					v.keys.erase("ada")
				}
				v.keys.rotate("ada")
				if id := sealedUnder(t, v, other); id != 2 {
					t.Errorf("sealed under key %d, want 2", id)
				}
			}
			_, err := load(t, other, r.Key) // Open(1) is answered before the new key is there, and heard of after
			ok(t, err)
			if id := sealedUnder(t, v, other); id != 2 {
				t.Errorf("sealed under key %d, want 2", id)
			}
		})
	}
}

// Once a process was told of a newer key, no reply that is older makes it seal under the one before.
func TestASlowReplyDoesNotSealUnderAnOlderKey(t *testing.T) {
	v := newVault(t, seal.Config{})
	ok(t, v.Insert(t.Context(), completed(t, "ada", "{}"), base))
	other := v.with(t, seal.Config{})
	v.keys.overtake = func() {
		v.keys.rotate("ada")
		r := completed(t, "ada", "{}")
		ok(t, v.with(t, seal.Config{}).Insert(t.Context(), r, base))
		_, err := load(t, other, r.Key) // Open(2) tells that it is current
		ok(t, err)
	}
	if id := sealedUnder(t, v, other); id != 2 { // Current is answered before the rotation, and heard of after
		t.Errorf("sealed under key %d, want 2", id)
	}
}

// Once a process was told of an erasure, no reply that is older makes it seal or open under an erased key.
func TestAnErasureIsNotForgottenForASlowReply(t *testing.T) {
	open := func(v *vault, store storage.Store, key storage.RecordKey) error {
		r, err := v.inner.Get(context.Background(), key)
		if err == nil {
			_, err = store.LoadResponse(context.Background(), *r)
		}
		return err
	}
	for name, row := range map[string]struct {
		slow, told func(*testing.T, *vault, storage.Store, storage.RecordKey) error
	}{
		"to seal, told by opening": {
			slow: func(t *testing.T, v *vault, s storage.Store, _ storage.RecordKey) error {
				return s.Insert(t.Context(), completed(t, "ada", "{}"), base)
			},
			told: func(_ *testing.T, v *vault, s storage.Store, key storage.RecordKey) error { return open(v, s, key) },
		},
		"to open, told by sealing": {
			slow: func(_ *testing.T, v *vault, s storage.Store, key storage.RecordKey) error { return open(v, s, key) },
			told: func(t *testing.T, v *vault, s storage.Store, _ storage.RecordKey) error {
				return s.Insert(t.Context(), completed(t, "ada", "{}"), base)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVault(t, seal.Config{})
			r := completed(t, "ada", "{}")
			ok(t, v.Insert(t.Context(), r, base))
			other := v.with(t, seal.Config{})
			v.keys.overtake = func() {
				v.keys.erase("ada")
				wantErased(t, row.told(t, v, other, r.Key))
			}
			wantErased(t, row.slow(t, v, other, r.Key))
			wantErased(t, other.Insert(t.Context(), completed(t, "ada", "{}"), base))
		})
	}
}

// What was erased long ago is asked for in vain, and costs the tenant's present key nothing.
func TestAnOlderErasureLeavesTheCurrentKey(t *testing.T) {
	v := newVault(t, seal.Config{})
	r := completed(t, "ada", "{}")
	ok(t, v.Insert(t.Context(), r, base))
	v.keys.erase("ada")
	v.keys.rotate("ada")
	other := v.with(t, seal.Config{})
	ok(t, other.Insert(t.Context(), completed(t, "ada", "{}"), base))
	asked := v.keys.count()
	_, err := load(t, other, r.Key)
	wantErased(t, err)
	if id := sealedUnder(t, v, other); id != 2 || v.keys.count() != asked+1 {
		t.Errorf("sealed under key %d after %d more replies, want 2 after 1", id, v.keys.count()-asked)
	}
}

func TestKeysAreBounded(t *testing.T) {
	v := newVault(t, seal.Config{KeysMax: 2}) // one tenant's: its current one, and the same by its id
	first := completed(t, "tenant-0", "{}")
	ok(t, v.Insert(t.Context(), first, base))
	for n := range 5 {
		ok(t, v.Insert(t.Context(), completed(t, fmt.Sprint("tenant-", n), "{}"), base))
	}
	asked := v.keys.count()
	ok(t, use(t, v, first))
	if v.keys.count() != asked+1 {
		t.Error("a key that was dropped was not fetched again")
	}
}
