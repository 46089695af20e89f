package idem_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
)

const recordProse = "`expired` is derived when a record is read, and never stored. What a settlement makes of a pending record comes from its\n" +
	"message's step, below. In brackets is what an arrow depends on; \"safe\" is an opaque operation that was declared safe to run\n" +
	"again. \"TTL\" is native TTL, which may come days late.\n"

const (
	begin   = "[*]"
	expired = "expired"
)

var (
	allStates = []idem.State{idem.StateInProgress, idem.StatePending, idem.StateCompleted, idem.StateFailed, idem.StateFailedRetryable, idem.StateUnknown}
	allKinds  = []idem.Kind{idem.KindAtomic, idem.KindExpress, idem.KindDeferred, idem.KindOpaque}
)

// recordDimensions are the situations that a record can be in besides its state.
var recordDimensions = []dimension{
	{"kind", []string{"atomic", "express", "deferred", "opaque", "safe"}, sayKinds},
	{"lease", []string{"live", "dead"}, func(seen []string) string { return "lease " + seen[0] }},
	{"life", []string{"retention", "gone", "resource", "ended"}, sayLife},
	{"commit", []string{"alone", "with writes"}, only("nothing else was written", "alone")},
}

func sayKinds(seen []string) string {
	if slices.Equal(seen, []string{"atomic", "express", "deferred", "safe"}) {
		return "not opaque, or safe"
	}
	if slices.Equal(seen, []string{"opaque", "safe"}) {
		return "opaque"
	}
	if slices.Equal(seen, []string{"opaque"}) {
		return "opaque, not safe"
	}
	return strings.Join(seen, ", ")
}

func sayLife(seen []string) string {
	switch {
	case slices.Equal(seen, []string{"gone"}):
		return "410 after expiry"
	case slices.Equal(seen, []string{"resource"}):
		return "backed by a resource"
	case slices.Equal(seen, []string{"retention", "gone"}):
		return "not backed by a resource"
	}
	return ""
}

func recordIn(state idem.State, situation map[string]string) idem.Record {
	kind, safe := idem.Kind(situation["kind"]), false
	if kind == "safe" {
		kind, safe = idem.KindOpaque, true
	}
	r := stepRecord(kind, state, situation["lease"] == "dead")
	r.SafeToRunAgain, r.Alone = safe, situation["commit"] == "alone"
	switch situation["life"] {
	case "gone":
		r.Expiry = idem.Expiry{KeepFor: time.Hour, Gone: true}
	case "resource", "ended":
		r.Expiry = idem.Expiry{ResourceBacked: true}
	}
	if state.Final() {
		r.DoneAt = noon.Add(-time.Minute)
		r.ExpiresAt = map[string]time.Time{"resource": {}, "ended": noon.Add(-time.Second)}[situation["life"]]
		if !r.Expiry.ResourceBacked {
			r.ExpiresAt = noon.Add(time.Minute)
		}
		r.FreeAt = r.Expiry.FreeAt(r.ExpiresAt)
	}
	return r
}

// recordEvents are the events in each of their forms.
func recordEvents() map[string]idem.Event {
	same := canonical.Fingerprint{Version: 1}
	arrived := idem.Arrived{Owner: "guest", LeaseUntil: noon.Add(time.Minute), Kind: idem.KindAtomic, Operation: "a.b", Fingerprint: same}
	lost, other, lenient, elsewhere, newer := arrived, arrived, arrived, arrived, arrived
	lost.Owner = "holder"
	other.Fingerprint = canonical.Fingerprint{Version: 1, Sum: [32]byte{1}}
	lenient.Fingerprint, lenient.AnyPayload = other.Fingerprint, true
	elsewhere.Operation, newer.Fingerprint = "a.c", canonical.Fingerprint{Version: 2}
	return map[string]idem.Event{
		"a request": arrived, "a request (own lost reply)": lost, "a request (other payload)": other, "a request (any payload)": lenient,
		"a request (other operation)": elsewhere, "a request (other version)": newer,
		"accepted": idem.Accepted{Owner: "holder"}, "accepted (stranger)": idem.Accepted{Owner: "guest"},
		"completed": idem.Completed{Owner: "holder"}, "completed (stranger)": idem.Completed{Owner: "guest"},
		"released": idem.Released{Owner: "holder"}, "released (stranger)": idem.Released{Owner: "guest"},
		"fenced off": idem.FencedOff{Owner: "holder"}, "fenced off (stranger)": idem.FencedOff{Owner: "guest"},
		"parked": idem.Parked{}, "resolved": idem.Resolved{}, "freed": idem.Freed{}, "extended": idem.Extended{Until: noon.Add(time.Hour)}, "ended": idem.Ended{},
		"cache-busted": idem.CacheBusted{Owner: "holder"}, "cache-busted (stranger)": idem.CacheBusted{Owner: "guest"},
	}
}

func recordDiagram(t *testing.T) string {
	events := recordEvents()
	types, constants := declared(t, ".", "event", "State", "Kind")
	all := []string{}
	for _, s := range allStates {
		all = append(all, string(s))
	}
	for _, k := range allKinds {
		all = append(all, string(k))
	}
	wantAll(t, "states and kinds of a record", constants, all, func(s string) string { return s })
	wantAll(t, "events of a record", types, values(events), typeName[idem.Event])

	d := &diagram{dimensions: recordDimensions}
	insertions(t, d)
	product(recordDimensions, func(situation map[string]string) {
		for _, state := range allStates {
			r := recordIn(state, situation)
			for name, event := range events {
				if to, effect := recordStep(t, r, event, noon); to != "" {
					d.add(string(state), to, shortened(name)+effect, relevant(situation, state))
				}
			}
			lives(t, d, r, situation)
		}
	})
	settlements(d)
	return d.mermaid(append([]string{begin, "in_progress", "pending", "completed", "failed", "failed_retryable", "unknown"}, expired))
}

func values(events map[string]idem.Event) (all []idem.Event) {
	for _, e := range events {
		all = append(all, e)
	}
	return all
}

// shortened drops a form that makes no difference to where an arrow goes: a request under any payload is a request.
func shortened(name string) string {
	form := strings.Index(name, " (")
	if form < 0 {
		return name
	}
	return name[:form]
}

// relevant drops what a state can't depend on: only a record in progress, or parked, has a lease, only a final one a life.
func relevant(situation map[string]string, state idem.State) map[string]string {
	dimensions := map[string]string{"kind": situation["kind"]}
	if state == idem.StateInProgress || state == idem.StateUnknown {
		dimensions["lease"] = situation["lease"]
	}
	if state.Final() {
		dimensions["life"], dimensions["commit"] = situation["life"], situation["commit"]
	}
	return dimensions
}

// recordStep returns where the event leads and the effect, "" where it leads nowhere; and checks that a record is changed
// only where it is to be written.
func recordStep(t *testing.T, r idem.Record, event idem.Event, now time.Time) (to, effect string) {
	t.Helper()
	next, does, err := idem.Step(r, event, now)
	var unreadable *idem.UnreadableError
	if errors.As(err, &unreadable) || err == nil && does == 0 {
		t.Fatalf("%s %T: effect %v, %v", r.State, event, does, err)
	}
	if err == nil && (does == idem.EffectStore || does == idem.EffectTakeOver) {
		return string(next.State), " / " + does.String()
	}
	if !reflect.DeepEqual(next, r) {
		t.Errorf("%s %T changes a record that is not to be written, effect %v, %v", r.State, event, does, err)
	}
	return "", ""
}

// lives draws how a record's life ends: by the time, and for whom the key is free then.
func lives(t *testing.T, d *diagram, r idem.Record, situation map[string]string) {
	t.Helper()
	if _, goes := r.RemoveAfter(); goes && !r.State.Final() {
		d.add(string(r.State), begin, "TTL, a retention after the lease", map[string]string{"kind": situation["kind"]})
	}
	later := noon.Add(30 * time.Minute)
	if !r.Expired(later) {
		return
	}
	d.add(string(r.State), expired, "expires_at", map[string]string{"life": situation["life"]})
	if _, goes := r.RemoveAfter(); goes {
		d.add(expired, begin, "TTL", nil)
	}
	for name, event := range recordEvents() {
		switch _, effect, _ := idem.Step(r, event, later); effect {
		case idem.EffectReserve:
			d.add(expired, begin, shortened(name)+" / "+effect.String(), map[string]string{"life": situation["life"]})
		case idem.EffectGone:
			d.add(expired, expired, shortened(name)+" / "+effect.String(), map[string]string{"life": situation["life"]})
		case idem.EffectStore, idem.EffectTakeOver:
			t.Errorf("an expired record that is %s is written by %s", r.State, name)
		}
	}
}

// insertions draws the states in which the engine inserts the records of each kind.
func insertions(t *testing.T, d *diagram) {
	t.Helper()
	for _, kind := range allKinds {
		inserting := &inserting{}
		w := newWorld(t, func(store idem.Store) idem.Store { inserting.Store = store; return inserting })
		handler := w.handler(201)
		switch kind {
		case idem.KindOpaque:
			handler = w.effect(201, "")
		case idem.KindDeferred:
			handler = w.handler(202)
		}
		w.do(w.register(idem.Operation{Kind: kind}), request(`{}`), handler)
		for _, state := range inserting.states {
			d.add(begin, string(state), "a request / insert", map[string]string{"kind": string(kind)})
			if kind == idem.KindOpaque {
				d.add(begin, string(state), "a request / insert", map[string]string{"kind": "safe"})
			}
		}
	}
}

// inserting notes the states of the records that are inserted.
type inserting struct {
	idem.Store
	states []idem.State
}

func (s *inserting) Insert(ctx context.Context, r idem.Record, now time.Time) error {
	s.states = append(s.states, r.State)
	return s.Store.Insert(ctx, r, now)
}

func (s *inserting) Prepare(c idem.Commit) (func(context.Context) error, error) {
	if c.Fence == nil {
		s.states = append(s.states, c.Record.State)
	}
	return s.Store.Prepare(c)
}

// settlements draws what messages make of their pending record: in one transaction each, with EffectSettle the answer that
// Settle makes of the evidence, unless another message follows, with EffectFail the answer of what did not happen.
func settlements(d *diagram) {
	for e := range drawnMessages().edges {
		switch _, effect, _ := strings.Cut(e.label, " / "); effect {
		case "settle":
			d.add(string(idem.StatePending), string(idem.StateCompleted), "its message is "+e.to, nil)
		case "fail":
			d.add(string(idem.StatePending), string(idem.StateFailed), "its message is "+e.to+", nothing happened", nil)
		}
	}
}
