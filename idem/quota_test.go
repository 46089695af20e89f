package idem_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// counted is a quota of so many keys and look-ups.
type counted struct {
	keys, lookUps int
	err           error
	// asked is how often a key was asked for.
	asked int
}

func (c *counted) NewKey(context.Context, string) (func(), error) {
	c.asked++
	if c.err != nil {
		return nil, c.err
	}
	if c.keys == 0 {
		return nil, &idem.QuotaError{Limit: "new keys", RetryAfter: 3 * time.Second}
	}
	c.keys--
	return func() { c.keys++ }, nil
}

func (c *counted) LookUp(context.Context, string) error {
	if c.lookUps == 0 {
		return &idem.QuotaError{Limit: "look-ups", RetryAfter: time.Second}
	}
	c.lookUps--
	return nil
}

func (w *world) limited(quota idem.Quota) *world {
	w.Helper()
	engine, err := idem.New(w.mem, idem.Config{Quota: quota})
	if err != nil {
		w.Fatal(err)
	}
	return &world{T: w.T, mem: w.mem, engine: engine}
}

// A quota bounds new keys, never a replay, of whatever kind.
func TestQuotaBoundsNewKeysAndNeverReplays(t *testing.T) {
	for _, op := range kinds {
		t.Run(string(op.Kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				quota := &counted{keys: 1}
				w := newWorld(t, nil).limited(quota)
				registered := w.register(op)
				w.want(w.do(registered, request(`1`), w.handler(200)), idem.OutcomeExecuted, 200, "1")
				for range 3 {
					w.want(w.do(registered, request(`1`), w.handler(200)), idem.OutcomeReplayed, 200, "1")
				}
				other := request(`1`)
				other.Key = "other"
				var over *idem.QuotaError
				if _, err := registered.Do(t.Context(), other, w.handler(200)); !errors.As(err, &over) || over.RetryAfter != 3*time.Second {
					t.Errorf("a second key: %v, want a QuotaError", err)
				}
				w.written(1)
				if n := len(w.mem.Records()); n != 1 {
					t.Errorf("%d records, want 1: nothing is written for what is refused", n)
				}
			})
		})
	}
}

// An expired record's key is a new key; a released one's is not.
func TestQuotaCountsIncarnations(t *testing.T) {
	bubble(t, func(t *testing.T) {
		quota := &counted{keys: 1}
		w := newWorld(t, nil).limited(quota)
		op := w.register(idem.Operation{Kind: idem.KindAtomic})
		w.do(op, request(`1`), w.handler(503)) // not stored: released
		w.want(w.do(op, request(`1`), w.handler(200)), idem.OutcomeExecuted, 200, "2")
		time.Sleep(25 * time.Hour)
		var over *idem.QuotaError
		if _, err := op.Do(t.Context(), request(`1`), w.handler(200)); !errors.As(err, &over) {
			t.Errorf("an expired key: %v, want a QuotaError", err)
		}
		quota.keys = 1
		w.want(w.do(op, request(`1`), w.handler(200)), idem.OutcomeExecuted, 200, "3")
	})
}

// A reserve that loses needs no new key and gives its right back.
func TestQuotaGivesBackWhatALostReserveTook(t *testing.T) {
	bubble(t, func(t *testing.T) {
		quota := &counted{keys: 5}
		w := newWorld(t, nil).limited(quota)
		op := w.register(idem.Operation{Kind: idem.KindAtomic})
		for range 4 {
			w.do(op, request(`1`), w.handler(200))
		}
		if quota.keys != 4 {
			t.Errorf("%d rights left of 5 after one key and three replays, want 4", quota.keys)
		}
	})
}

// A replay whose record is read first takes no right, be it for a moment: the others could lack it. Where it is not, each takes one and
// gives it back.
func TestAReplayThatIsReadAsksForNoRight(t *testing.T) {
	for _, op := range kinds {
		t.Run(fmt.Sprintf("%s read first %v", op.Kind, op.ReadFirst), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				quota := &counted{keys: 5}
				w := newWorld(t, nil).limited(quota)
				registered := w.register(op)
				for range 4 {
					w.do(registered, request(`1`), w.handler(200))
				}
				want := 1
				if op.Kind == idem.KindAtomic && !op.ReadFirst {
					want = 4
				}
				if quota.asked != want || quota.keys != 4 {
					t.Errorf("asked %d times, %d rights left; want %d and 4", quota.asked, quota.keys, want)
				}
			})
		})
	}
}

// Nobody to ask is no permission: 503.
func TestQuotaFailsClosed(t *testing.T) {
	w := newWorld(t, nil).limited(&counted{err: errors.New("down")})
	op := w.register(idem.Operation{Kind: idem.KindAtomic})
	var unavailable *idem.UnavailableError
	if _, err := op.Do(t.Context(), request(`1`), w.handler(200)); !errors.As(err, &unavailable) {
		t.Errorf("%v, want an UnavailableError", err)
	}
	w.written(0)
}

func TestQuotaBoundsLookUps(t *testing.T) {
	quota := &counted{keys: 1, lookUps: 1}
	w := newWorld(t, nil).limited(quota)
	id := w.do(w.register(idem.Operation{Kind: idem.KindAtomic}), request(`1`), w.handler(200)).OperationID
	if r, err := w.engine.Status(t.Context(), "t", id); err != nil || r == nil {
		t.Fatalf("%v, %v", r, err)
	}
	var over *idem.QuotaError
	if _, err := w.engine.Status(t.Context(), "t", id); !errors.As(err, &over) {
		t.Errorf("the second look-up: %v, want a QuotaError", err)
	}
}
