package idem_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
)

var update = flag.Bool("update", false, "rewrite golden files")

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const stepGolden = "testdata/step.txt"

const stepProse = `# Every transition of a record, and no other (docs/semantics.md "States of a record", docs/design.md "Reserve", "Commit").
#
# Each line is one call of Step: the record's kind, state and lease, the event, and what came of it. Proves that
#   - the fingerprint is judged before the state in every unexpired state,
#   - only a dead lease of a kind that may run again, and failed_retryable, are taken over, epoch + 1,
#   - a dead opaque lease becomes unknown, and unknown is left by evidence or proof only: its own holder's, or another's,
#   - an opaque lease is freed by nobody while it lives, parked or not; any other is fenced off, epoch + 1,
#   - nobody but the owner completes, accepts, releases or fences off,
#   - only final records are extended; how their life ends is told in expiry.txt.
# Rewrite with: go test ./idem -run TestStep -update
`

func stepRecord(kind idem.Kind, state idem.State, dead bool) idem.Record {
	r := idem.Record{
		State: state, Kind: kind, OperationID: "op_1", Epoch: 3, Owner: "holder", Operation: "a.b", Retention: time.Hour,
		Attempts: 2, SchemaVersion: idem.SchemaVersion, LeaseUntil: noon.Add(time.Second), Fingerprint: canonical.Fingerprint{Version: 1},
	}
	if dead {
		r.LeaseUntil = noon
	}
	if state.Final() {
		r.LeaseUntil, r.ExpiresAt = time.Time{}, noon.Add(time.Millisecond)
		r.FreeAt = r.ExpiresAt
	}
	return r
}

func stepLine(r idem.Record, lease, name string, event idem.Event) string {
	next, effect, err := idem.Step(r, event, noon)
	line := fmt.Sprintf("%-8s %-16s %-4s %-22s → ", r.Kind, r.State, lease, name)
	switch {
	case err != nil:
		return line + "refused"
	case effect == idem.EffectStore || effect == idem.EffectTakeOver:
		line += fmt.Sprintf("%s: %s epoch %+d owner %s", effect, next.State, next.Epoch-r.Epoch, next.Owner)
		if next.State.Final() {
			line += fmt.Sprintf(" expires in %v", next.ExpiresAt.Sub(noon))
		}
		return line
	}
	return line + effect.String()
}

func TestStepEveryTransitionAndNoOther(t *testing.T) {
	same := canonical.Fingerprint{Version: 1}
	other := canonical.Fingerprint{Version: 1, Sum: [32]byte{1}}
	arrive := func(f canonical.Fingerprint, operation string, any bool) idem.Event {
		return idem.Arrived{Owner: "guest", LeaseUntil: noon.Add(time.Minute), Kind: idem.KindAtomic, Operation: operation, Fingerprint: f, AnyPayload: any}
	}
	events := []struct {
		name  string
		event idem.Event
	}{
		{"same request", arrive(same, "a.b", false)},
		{"own lost reply", idem.Arrived{Owner: "holder", Kind: idem.KindAtomic, Operation: "a.b", Fingerprint: same}},
		{"other payload", arrive(other, "a.b", false)},
		{"other payload, lenient", arrive(other, "a.b", true)},
		{"other operation", arrive(same, "a.c", true)},
		{"other version", arrive(canonical.Fingerprint{Version: 2}, "a.b", false)},
		{"other secret", arrive(canonical.Fingerprint{Version: 1, KeyID: "k"}, "a.b", false)},
		{"accepted by holder", idem.Accepted{Owner: "holder"}},
		{"accepted by other", idem.Accepted{Owner: "guest"}},
		{"completed by holder", idem.Completed{Owner: "holder"}},
		{"completed by other", idem.Completed{Owner: "guest"}},
		{"released by holder", idem.Released{Owner: "holder"}},
		{"released by other", idem.Released{Owner: "guest"}},
		{"fenced off by holder", idem.FencedOff{Owner: "holder"}},
		{"fenced off by other", idem.FencedOff{Owner: "guest"}},
		{"parked", idem.Parked{}},
		{"resolved", idem.Resolved{Response: idem.Response{Status: 201}}},
		{"freed", idem.Freed{Reason: "proven"}},
		{"extended", idem.Extended{Until: noon.Add(time.Hour)}},
		{"ended", idem.Ended{}},
		{"cache-busted", idem.CacheBusted{Owner: "holder"}},
	}
	var out strings.Builder
	out.WriteString(stepProse)
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindExpress, idem.KindDeferred, idem.KindOpaque} {
		for _, state := range []idem.State{idem.StateInProgress, idem.StatePending, idem.StateCompleted, idem.StateFailed, idem.StateFailedRetryable, idem.StateUnknown} {
			for _, lease := range []string{"live", "dead"} {
				if lease == "dead" && state != idem.StateInProgress && state != idem.StateUnknown {
					continue
				}
				out.WriteByte('\n')
				for _, e := range events {
					out.WriteString(stepLine(stepRecord(kind, state, lease == "dead"), lease, e.name, e.event) + "\n")
				}
			}
		}
	}
	golden(t, stepGolden, out.String())
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at the difference after running with -update:\n%s", path, got)
	}
}

func TestStepExpiryIsDerivedAtTheExactMillisecond(t *testing.T) {
	for _, state := range []idem.State{idem.StateCompleted, idem.StateFailed} {
		r := stepRecord(idem.KindAtomic, state, false)
		event := idem.Arrived{Owner: "guest", Operation: "a.b", Fingerprint: r.Fingerprint}
		if _, effect, _ := idem.Step(r, event, r.ExpiresAt.Add(-time.Millisecond)); effect != idem.EffectReplay {
			t.Errorf("%s, 1 ms before expiry: %s, want replay", state, effect)
		}
		if _, effect, _ := idem.Step(r, event, r.ExpiresAt); effect != idem.EffectReserve {
			t.Errorf("%s, at expiry: %s, want reserve", state, effect)
		}
	}
}

func TestStepRefusesRecordsOfAnotherRelease(t *testing.T) { // peers.md H17
	for name, change := range map[string]func(*idem.Record){
		"schema": func(r *idem.Record) { r.SchemaVersion++ },
		"state":  func(r *idem.Record) { r.State = "hibernating" },
		"kind":   func(r *idem.Record) { r.Kind = "psychic" },
	} {
		r := stepRecord(idem.KindAtomic, idem.StateCompleted, false)
		change(&r)
		_, _, err := idem.Step(r, idem.Arrived{Operation: "a.b", Fingerprint: r.Fingerprint}, noon)
		if _, ok := err.(*idem.UnreadableError); !ok {
			t.Errorf("unknown %s: %v, want an UnreadableError", name, err)
		}
	}
}

func TestRecordStandsInTheSweepIndexOnlyWhereNobodyElseResolvesIt(t *testing.T) { // ADR 0009
	for _, c := range []struct {
		kind  idem.Kind
		safe  bool
		state idem.State
		queue string
	}{
		{idem.KindAtomic, false, idem.StateInProgress, ""}, {idem.KindOpaque, false, idem.StateInProgress, idem.QueueLease},
		{idem.KindOpaque, true, idem.StateInProgress, ""}, {idem.KindOpaque, false, idem.StateUnknown, idem.QueueUnknown},
		{idem.KindOpaque, false, idem.StateCompleted, ""}, {idem.KindDeferred, false, idem.StatePending, ""},
	} {
		r := stepRecord(c.kind, c.state, false)
		r.SafeToRunAgain = c.safe
		queue, _, ok := r.Queue()
		_, goes := r.RemoveAfter()
		if queue != c.queue || ok != (c.queue != "") {
			t.Errorf("%s %s safe %v: queue %q, want %q", c.kind, c.state, c.safe, queue, c.queue)
		}
		if !c.state.Final() && c.state != idem.StatePending && goes == ok {
			t.Errorf("%s %s safe %v: removed by TTL %v and in a queue %v; it must be one of both", c.kind, c.state, c.safe, goes, ok)
		}
	}
}

// docs/design.md "Tables"; peers.md, seen elsewhere: "unfinished keys deleted by the reaper".
func TestRecordRemovedByTTLOnlyWhereNothingCanHaveHappenedUntold(t *testing.T) {
	for _, c := range []struct {
		kind  idem.Kind
		state idem.State
		goes  bool
	}{
		{idem.KindAtomic, idem.StateInProgress, true}, {idem.KindAtomic, idem.StateFailedRetryable, true},
		{idem.KindAtomic, idem.StateCompleted, true}, {idem.KindDeferred, idem.StatePending, false},
		{idem.KindDeferred, idem.StateFailed, true}, {idem.KindOpaque, idem.StateInProgress, false},
		{idem.KindOpaque, idem.StateUnknown, false}, {idem.KindOpaque, idem.StateFailedRetryable, true},
		{idem.KindOpaque, idem.StateCompleted, true},
	} {
		if _, goes := stepRecord(c.kind, c.state, false).RemoveAfter(); goes != c.goes {
			t.Errorf("%s %s: removed by TTL = %v, want %v", c.kind, c.state, goes, c.goes)
		}
	}
}
