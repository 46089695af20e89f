package outbox_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A settlement ends the record by the policy that its message carries, through every phase of the chain: only a success
// lives as long as its resource.
func TestSettlementsEndTheRecordByItsPolicy(t *testing.T) {
	two := func(m storage.Message, o outbox.Outcome, said *outbox.Settlement) error {
		if _, ok := o.(outbox.Delivered); ok && m.Index == 1 {
			said.Next = &outbox.Next{Topic: topicName, Payload: []byte("second")}
		}
		return nil
	}
	const kept = 72 * time.Hour
	for name, expiry := range map[string]storage.Expiry{
		"plain": {}, "audit": {KeepFor: kept}, "tombstone": {KeepFor: kept, Gone: true}, "resource": {KeepFor: kept, ResourceBacked: true},
	} {
		for script, status := range map[string]int{"": 201, "402": 402, "400": 502} {
			t.Run(name+" "+script, func(t *testing.T) {
				w := newWorld(t, options{topic: settling(two)})
				id := w.accept(func(m *storage.Message) { m.Expiry = expiry })
				w.deliver(id)
				if script != "" {
					w.provider.script = []string{script}
				}
				second := w.message(id).OperationID.Message(2)
				w.deliver(second)
				r := w.record(second)
				want := r.DoneAt.Add(24 * time.Hour)
				if expiry.ResourceBacked && status == 201 {
					want = time.Time{}
				}
				if r.Response.Status != status || !r.ExpiresAt.Equal(want) || r.Expiry != expiry {
					t.Fatalf("status %d, done %v, expires %v, %+v; want %d and %v", r.Response.Status, r.DoneAt, r.ExpiresAt, r.Expiry, status, want)
				}
				const late = 16 * time.Minute // a request may be that late on the wire
				w.inner.Expire(want.Add(expiry.KeepFor + late - time.Millisecond))
				w.record(second) // still there
				if records, _ := w.inner.Expire(r.DoneAt.Add(24*time.Hour + expiry.KeepFor + skew + late)); (records == 1) == want.IsZero() {
					t.Errorf("TTL removed %d records", records)
				}
			})
		}
	}
}

// docs/semantics.md "Expiry": the key of an expired record is free ClockSkew after it has expired, so that nobody executes it while
// another instance still promises a replay. That holds for what a settlement ends, too.
func TestTheKeyOfWhatASettlementEndedIsFreeOnEveryClock(t *testing.T) {
	const kept = 72 * time.Hour
	for name, c := range map[string]struct {
		expiry storage.Expiry
		held   time.Duration
	}{
		"plain": {storage.Expiry{}, 0}, "audit": {storage.Expiry{KeepFor: kept}, 0}, "tombstone": {storage.Expiry{KeepFor: kept, Gone: true}, kept},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, options{})
			id := w.accept(func(m *storage.Message) { m.Expiry = c.expiry })
			w.deliver(id)
			if r := w.record(id); !r.FreeAt.Equal(r.ExpiresAt.Add(c.held + skew)) {
				t.Errorf("expires %v, and its key is free %v later; want %v", r.ExpiresAt, r.FreeAt.Sub(r.ExpiresAt), c.held+skew)
			}
		})
	}
}
