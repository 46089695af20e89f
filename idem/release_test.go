package idem_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Whatever a later release has left in the way, whoever meets it executes nothing, changes nothing and
// answers 503; the release that wrote it goes on where it stopped.
func TestRecordsOfALaterReleaseAreUnavailable(t *testing.T) {
	for name, change := range map[string]func(*storage.Record){
		"schema":              func(r *storage.Record) { r.SchemaVersion++ },
		"state":               func(r *storage.Record) { r.State = "suspended" },
		"kind":                func(r *storage.Record) { r.Kind = "durable" },
		"fingerprint version": func(r *storage.Record) { r.Fingerprint.Version = canonical.Version + 1 },
		"fingerprint secret":  func(r *storage.Record) { r.Fingerprint.KeyID = "2027-01" },
	} {
		for _, op := range append([]idem.Operation{{Kind: idem.KindWrapped}}, kinds...) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				orders, handler := w.register(op), w.handler(201)
				if op.Kind == idem.KindWrapped {
					handler = w.effect(201, "")
				}
				w.do(orders, request(`{}`), handler)
				later := w.mem.Records()[0]
				fence := storage.FenceOf(later)
				change(&later)
				if err := w.mem.Update(w.Context(), later, fence); err != nil {
					w.Fatal(err)
				}
				var unavailable *idem.UnavailableError
				if result, err := orders.Do(w.Context(), request(`{}`), handler); !errors.As(err, &unavailable) || unavailable.RetryAfter < time.Second {
					t.Errorf("%s, %s: %+v, %v, want an UnavailableError", name, op.Kind, result, err)
				}
				if records := w.mem.Records(); w.runs != 1 || len(records) != 1 || !reflect.DeepEqual(records[0], later) {
					t.Errorf("%s, %s: %d runs, records %+v", name, op.Kind, w.runs, records)
				}
			})
		}
	}
}

// What a later release wrote may have another meaning of when its key is free: whoever can't judge it executes nothing after
// its apparent end either.
func TestExpiredRecordsOfALaterReleaseFreeNoKey(t *testing.T) {
	for name, change := range map[string]func(*storage.Record){
		"schema": func(r *storage.Record) { r.SchemaVersion++ },
		"kind":   func(r *storage.Record) { r.Kind = "durable" },
	} {
		for _, op := range append([]idem.Operation{{Kind: idem.KindWrapped}}, kinds...) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				orders, handler := w.register(op), w.handler(201)
				if op.Kind == idem.KindWrapped {
					handler = w.effect(201, "")
				}
				w.do(orders, request(`{}`), handler)
				later := w.mem.Records()[0]
				end := time.Now().UTC().Round(0).Add(time.Hour)
				later.State, later.FreeAt, later.ExpiresAt = storage.StateCompleted, end, end
				fence := storage.FenceOf(later)
				change(&later)
				if err := w.mem.Update(w.Context(), later, fence); err != nil {
					w.Fatal(err)
				}
				time.Sleep(365 * 24 * time.Hour)
				var unreadable *idem.UnreadableError
				if result, err := orders.Do(w.Context(), request(`{}`), handler); !errors.As(err, &unreadable) {
					t.Errorf("%s, %s: %+v, %v, want an UnreadableError", name, op.Kind, result, err)
				}
				if records := w.mem.Records(); w.runs != 1 || len(records) != 1 || !reflect.DeepEqual(records[0], later) {
					t.Errorf("%s, %s: %d runs, records %+v", name, op.Kind, w.runs, records)
				}
			})
		}
	}
}
