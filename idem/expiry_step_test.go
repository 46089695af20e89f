package idem_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

const expiryProse = `# How the life of a final record ends (docs/semantics.md "expired", docs/design.md "Tables").
#
# The record was completed or failed at noon, with a retention of 24 h and, where it is kept, for another 48 h. Each line
# is one call of Step: what the policy said, the time since noon, the event, and what came of it. Proves that
#   - an expired record frees its key at once, or answers 410 as long as it is kept, and frees it then,
#   - one that is backed by a resource has no end until it is ended,
#   - an extension never shortens, never wakes what has expired, and ends 90 days after completion,
#   - an answer is busted only where nothing else came of its execution, and only the one that is meant.
# Rewrite with: go test ./idem -run TestStep -update
`

// finals are final records as their policies make them.
func finals() []struct {
	name   string
	record idem.Record
} {
	final := func(change func(*idem.Record)) idem.Record {
		r := stepRecord(idem.KindAtomic, idem.StateCompleted, false)
		r.Retention, r.DoneAt, r.ExpiresAt = 24*time.Hour, noon, noon.Add(24*time.Hour)
		change(&r)
		r.FreeAt = r.Expiry.FreeAt(r.ExpiresAt)
		return r
	}
	return []struct {
		name   string
		record idem.Record
	}{
		{"plain", final(func(*idem.Record) {})},
		{"alone", final(func(r *idem.Record) { r.Alone = true })},
		{"failed", final(func(r *idem.Record) { r.State = idem.StateFailed })},
		{"kept", final(func(r *idem.Record) { r.Expiry.KeepFor = 48 * time.Hour })},
		{"gone", final(func(r *idem.Record) { r.Expiry = idem.Expiry{KeepFor: 48 * time.Hour, Gone: true} })},
		{"resource", final(func(r *idem.Record) { r.Expiry.ResourceBacked, r.ExpiresAt = true, time.Time{} })},
		{"resource, declined", final(func(r *idem.Record) { r.Expiry.ResourceBacked = true })},
		{"opaque", final(func(r *idem.Record) { r.Kind = idem.KindOpaque })},
		{"opaque, safe", final(func(r *idem.Record) { r.Kind, r.SafeToRunAgain = idem.KindOpaque, true })},
	}
}

func TestStepEndOfLife(t *testing.T) {
	same := idem.Arrived{Owner: "guest", Operation: "a.b", Fingerprint: stepRecord(idem.KindAtomic, idem.StateCompleted, false).Fingerprint}
	other := same
	other.Fingerprint.Sum[0] = 1
	events := []struct {
		name  string
		event idem.Event
	}{
		{"same request", same},
		{"other payload", other},
		{"extended to 12 h", idem.Extended{Until: noon.Add(12 * time.Hour)}},
		{"extended to 90 d", idem.Extended{Until: noon.Add(idem.RetentionMax)}},
		{"extended past 90 d", idem.Extended{Until: noon.Add(idem.RetentionMax + time.Millisecond)}},
		{"ended", idem.Ended{}},
		{"cache-busted", idem.CacheBusted{Owner: "holder", Reason: "wrong"}},
		{"cache-busted, other", idem.CacheBusted{Owner: "earlier", Reason: "wrong"}},
	}
	var out strings.Builder
	out.WriteString(expiryProse)
	for _, f := range finals() {
		for _, since := range []time.Duration{24*time.Hour - time.Millisecond, 24 * time.Hour, 72*time.Hour - time.Millisecond, 72 * time.Hour} {
			out.WriteByte('\n')
			for _, e := range events {
				next, effect, err := idem.Step(f.record, e.event, noon.Add(since))
				fmt.Fprintf(&out, "%-18s +%-13v %-19s → %s\n", f.name, since, e.name, endOfLife(next, effect, err))
			}
		}
	}
	golden(t, "testdata/expiry.txt", out.String())
}

func endOfLife(next idem.Record, effect idem.Effect, err error) string {
	switch {
	case err != nil:
		return "refused: " + strings.TrimPrefix(err.Error(), "idem: ")
	case effect != idem.EffectStore:
		return effect.String()
	}
	after, goes := next.RemoveAfter()
	line := fmt.Sprintf("store: %s, removed +%v %v", next.State, after.Sub(noon), goes)
	if !next.ExpiresAt.IsZero() {
		line += fmt.Sprintf(", expires +%v, free +%v", next.ExpiresAt.Sub(noon), next.FreeAt.Sub(noon))
	}
	return line
}

// A commit without a reply may be on its way for as long as a request lives on the wire: its record stays for that time
// even where its resource was deleted at once (design.md "Commit").
func TestAnEndedRecordStaysForItsRetention(t *testing.T) {
	r := finals()[5].record
	next, _, err := idem.Step(r, idem.Ended{}, noon.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	after, goes := next.RemoveAfter()
	if !next.KeyFree(noon.Add(time.Minute)) || !goes || !after.Equal(noon.Add(24*time.Hour)) {
		t.Errorf("free %v, removed after %v %v; want free at once, removed after the retention", next.FreeAt, after, goes)
	}
}
