package idem_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

const recordProse = "`[*]` is a key without a record. `expired` is derived when a record is read, and is never stored. In\n" +
	"brackets is what an arrow depends on: the kind of the operation, and whether the lease is alive.\n" +
	"`safe` is a wrapped operation that is declared `SafeToRunAgain`, `wrapped` is any other. The holder\n" +
	"is the request that holds the lease, or held it last. An operator cache-busts only an answer with\n" +
	"which nothing else was written. `expires_at` and native TTL are no writes of a machine. Records of\n" +
	"observe mode are left out: one that has not ended may be resolved or released besides, and nobody\n" +
	"who enforces takes it over. The table lists the same arrows by who moves the record.\n"

// recordStates are the states of a record, and how a row names them.
var recordStates = map[protocol.State]storage.State{
	protocol.InProgress: storage.StateInProgress, protocol.Pending: storage.StatePending, protocol.Completed: storage.StateCompleted,
	protocol.Failed: storage.StateFailed, protocol.Retryable: storage.StateFailedRetryable, protocol.Unknown: storage.StateUnknown,
}

const expired = "expired"

// drawnRecords are the states in the order in which they are drawn.
var drawnRecords = []string{begin, "in_progress", "pending", "unknown", "completed", "failed", "failed_retryable", expired}

// recordKinds are the kinds of operation, by the name that the diagram has for them.
var recordKinds = map[string]protocol.Config{
	"atomic": {Kind: protocol.Atomic}, "optimistic": {Kind: protocol.Optimistic}, "deferred": {Kind: protocol.Deferred},
	"wrapped": {Kind: protocol.Wrapped}, "safe": {Kind: protocol.Wrapped, Safe: true},
}

var recordDimensions = []dimension{
	{"kind", []string{"atomic", "optimistic", "deferred", "wrapped", "safe"}, sayKinds},
	{"lease", []string{"alive", "over"}, func(seen []string) string { return "lease " + seen[0] }},
	{"message", []string{"plain", "undoes an earlier one", "cannot be opened"}, func(seen []string) string {
		if seen[0] == "plain" {
			return ""
		}
		return "the message " + strings.Join(seen, " or ")
	}},
}

func sayKinds(seen []string) string {
	if len(seen) == len(recordKinds)-1 && !slices.Contains(seen, "wrapped") {
		return "all but wrapped"
	}
	return strings.Join(seen, " or ")
}

// stepsOfRequests are the steps in which an execution writes.
var stepsOfRequests = map[protocol.Phase]string{
	protocol.Reserving: "reserves", protocol.TakingOver: "takes over", protocol.ParkingOther: "parks a dead lease",
	protocol.GivingBack: "releases a reserve that had no reply", protocol.Renewing: "renews its lease", protocol.Committing: "commits",
	protocol.Storing: "stores an answer", protocol.Completing: "completes", protocol.FencingOff: "fences off a commit that had no reply",
	protocol.Releasing: "releases", protocol.Parking: "parks",
}

// errandsOnRecords are the errands on a record, by who runs them.
var errandsOnRecords = map[protocol.Errand]string{
	protocol.ParkDead: "the sweep / parks a dead lease", protocol.Reconcile: "the reconciler / ", protocol.Resolve: "an operator / resolves",
	protocol.Free: "an operator / releases", protocol.Extend: "the application / extends", protocol.EndLife: "the application / ends the resource",
	protocol.Bust: "an operator / cache-busts",
}

func recordConfig(kind string) *protocol.Config {
	c := recordKinds[kind]
	c.Life, c.ExecutionMax, c.HandlerMargin, c.FenceMargin = protocol.Life{Retention: hour}, 25*second, 3*second, second
	c.AnswerMargin, c.LeaseMargin, c.WorkMin, c.ReserveFor = second/2, 2*second, second/2, 4*second
	c.CompleteFor, c.RunMax, c.AbsentAfter, c.Skew, c.CacheAge = 10*second, hour, minute, 2*second, minute
	c.TriesMax, c.ContentionMax, c.RunsMax, c.LoopsMax = 2, 1, 2, 2
	return &c
}

// has says whether a record of the operation can be in the state. Only a chain of messages is pending or fails, and only what may
// not run again is parked.
func has(c *protocol.Config, s protocol.State) bool {
	switch s {
	case protocol.Pending, protocol.Failed:
		return c.Kind == protocol.Deferred
	case protocol.Unknown:
		return c.Kind == protocol.Wrapped && !c.Safe
	}
	return true
}

// recordsOf are the records that can be there for an operation of the kind.
func recordsOf(c *protocol.Config) []protocol.Record {
	of := func(s protocol.State, change ...func(*protocol.Record)) protocol.Record {
		r := protocol.Record{
			State: s, Kind: c.Kind, Safe: c.Safe, Epoch: 3, Op: protocol.ID{1, 1}, Owner: protocol.ID{2, 2}, RecordOnly: true,
			Free: atNoon + hour,
		}
		if s.Final() {
			r.Expires = r.Free
		}
		for _, f := range change {
			f(&r)
		}
		return r
	}
	ends := func(at protocol.Instant) func(*protocol.Record) {
		return func(r *protocol.Record) { r.Lease = at }
	}
	gone := func(r *protocol.Record) { r.Expires, r.Free = atNoon-minute, atNoon-second }
	endless := func(r *protocol.Record) { r.Expires, r.Free = 0, 0 }
	all := []protocol.Record{
		{}, of(protocol.InProgress, ends(atNoon+minute)), of(protocol.InProgress, ends(atNoon-hour)), of(protocol.Completed),
		of(protocol.Completed, gone), of(protocol.Completed, endless), of(protocol.Retryable), of(protocol.Retryable, gone),
	}
	if has(c, protocol.Pending) {
		all = append(all, of(protocol.Pending), of(protocol.Failed), of(protocol.Failed, gone), of(protocol.Failed, endless))
	}
	if has(c, protocol.Unknown) {
		all = append(all, of(protocol.Unknown, ends(atNoon+minute)), of(protocol.Unknown, ends(atNoon-hour)))
	}
	for i := range all[1:] {
		all[i+1].Revision = protocol.ID{3, uint64(i)}
	}
	return all
}

// stateOf is the state that a record is drawn in.
func stateOf(r protocol.Record) string {
	switch {
	case r.State == protocol.Absent:
		return begin
	case r.State.Final() && r.Expires != 0 && r.Expires <= atNoon:
		return expired
	}
	return string(recordStates[r.State])
}

// addRecord draws what a write makes of a record.
func (d *diagram) addRecord(kind string, r protocol.Record, to protocol.State, label string) {
	situation := map[string]string{"kind": kind}
	if r.State == protocol.InProgress || r.State == protocol.Unknown {
		situation["lease"] = map[bool]string{true: "alive", false: "over"}[r.Lease > atNoon]
	}
	d.add(stateOf(r), string(recordStates[to]), label, situation)
}

// inputsTo are the answers that an action can get.
func inputsTo(a protocol.Action, records []protocol.Record) (inputs []protocol.Input) {
	replied := func(r protocol.Reply) {
		inputs = append(inputs, protocol.Input{What: protocol.Replied, Now: atNoon, Reply: r})
	}
	ended := func() {
		for _, r := range []protocol.Result{
			{Code: protocol.Responded, Answer: 1, Slot: 1}, {Code: protocol.Stored, Answer: 1}, {Code: protocol.Unstored}, {Code: protocol.Broke},
			{Code: protocol.NothingHappened},
		} {
			inputs = append(inputs, protocol.Input{What: protocol.HandlerEnded, Now: atNoon, Result: r})
		}
	}
	switch a.Do {
	case protocol.Read:
		for _, r := range records {
			replied(protocol.Reply{Code: protocol.OK, Rec: r})
		}
	case protocol.Send:
		for _, code := range []protocol.Code{protocol.OK, protocol.Contention, protocol.Broken, protocol.Lost} {
			replied(protocol.Reply{Code: code})
		}
		if a.Write.Slot != 0 {
			replied(protocol.Reply{Code: protocol.Refused, Conds: protocol.CondReject})
			replied(protocol.Reply{Code: protocol.Refused, Conds: protocol.CondRetry})
		}
		for _, r := range records {
			replied(protocol.Reply{Code: protocol.Refused, Conds: protocol.CondRecord, Rec: r})
		}
	case protocol.Admit:
		inputs = append(inputs, protocol.Input{What: protocol.Admitted, Now: atNoon})
	case protocol.Run:
		inputs = append(inputs, protocol.Input{What: protocol.Woke, Now: atNoon})
		ended()
	case protocol.Wait:
		ended()
	}
	return inputs
}

// requestDepth is how many inputs an execution is given at most: enough for every step that writes.
const requestDepth = 9

// drawRequests gives an execution every answer in every order, and draws what each write makes of the records that its fence
// admits.
func (d *diagram) drawRequests(kind string, drawn map[protocol.Phase]bool) {
	c := recordConfig(kind)
	records := recordsOf(c)
	seen := map[protocol.Execution]int{} // at which depth
	var next func(x protocol.Execution, in protocol.Input, depth int)
	next = func(x protocol.Execution, in protocol.Input, depth int) {
		if in.Result.Code == protocol.Responded {
			in.Result.Chain = c.Kind == protocol.Deferred
		}
		x, a := x.Next(in, c)
		if a.Do == protocol.Send {
			drawn[x.Phase] = true
			for _, r := range append(rowsOfHolder(a.Write.RecIf, c), records...) {
				if a.Write.RecIf.AdmitsRecord(r) {
					to := a.Write.Rec.State
					if a.Write.RecAs == protocol.Renew {
						to = r.State
					}
					who := "a request / "
					if !a.Write.RecIf.Owner.None() && r.Owner == a.Write.RecIf.Owner {
						who = "the holder / "
					}
					d.addRecord(kind, r, to, who+stepsOfRequests[x.Phase])
				}
			}
		}
		if before := seen[x]; before != 0 && before <= depth || depth == requestDepth {
			return
		}
		seen[x] = depth
		for _, in := range inputsTo(a, records) {
			next(x, in, depth+1)
		}
	}
	next(protocol.NewExecution(protocol.Request{Seed: protocol.ID{9, 9}, Incarnation: protocol.ID{7, 7}}), protocol.Input{What: protocol.Begin, Now: atNoon}, 1)
}

// rowsOfHolder are the records of the holder that a fence names.
func rowsOfHolder(f protocol.Fence, c *protocol.Config) (held []protocol.Record) {
	for state := range recordStates {
		if !has(c, state) {
			continue
		}
		r := protocol.Record{State: state, Kind: c.Kind, Safe: c.Safe, Op: f.Op, Owner: f.Owner, Epoch: f.Epoch, Lease: atNoon + 1, Free: atNoon + hour}
		held = append(held, r)
		if r.Lease = atNoon; f.LeaseBelow == 0 {
			held = append(held, r)
		}
	}
	return held
}

// drawErrands runs every errand about every record.
func (d *diagram) drawErrands(kind string) {
	c := recordConfig(kind)
	for _, r := range recordsOf(c) {
		for errand, label := range errandsOnRecords {
			for said, outcome := range map[string]protocol.Outcome{
				"completes what the probe found": protocol.OutDelivered, "releases what is proven absent": protocol.OutAbsent,
			} {
				if errand != protocol.Reconcile {
					said = ""
				}
				x := protocol.Change{Errand: errand, Seed: protocol.ID{9, 9}, Answer: 1, Until: atNoon + 2*hour, Owner: r.Owner}
				x, _ = x.Next(protocol.Input{What: protocol.Begin, Now: atNoon}, c)
				x, a := x.Next(protocol.Input{What: protocol.Replied, Now: atNoon, Reply: protocol.Reply{Code: protocol.OK, Rec: r}}, c)
				if a.Do == protocol.Probe {
					_, a = x.Next(protocol.Input{What: protocol.Probed, Now: atNoon, Outcome: outcome}, c)
				}
				if a.Do == protocol.Send {
					d.addRecord(kind, r, a.Write.Rec.State, label+said)
				}
			}
		}
	}
}

// drawSettlements draws the ends that messages bring to their record.
func (d *diagram) drawSettlements() {
	who := map[protocol.MessageErrand]string{
		protocol.Wake: "a worker or the sweep", protocol.Question: "the reconciler", protocol.Tidings: "a webhook",
		protocol.Close: "an operator", protocol.Redrive: "an operator",
	}
	eachFirstWrite(func(_ protocol.MessageState, situation map[string]string, _ string, s stimulus, w protocol.Write) {
		if w.RecAs != protocol.End {
			return
		}
		message := "plain"
		if situation["place"] == "undoes" {
			message = "undoes an earlier one"
		} else if situation["sealed"] == "yes" {
			message = "cannot be opened"
		}
		d.add("pending", string(recordStates[w.Rec.State]), who[s.errand]+" / "+endOf(w), map[string]string{"message": message})
	})
}

// endOf says how a message ended that ends its record.
func endOf(w protocol.Write) string {
	switch w.Msg.State {
	case protocol.Delivered, protocol.Declined:
		return "settles its message"
	}
	return "ends its message as " + string(messageStates[w.Msg.State]) + ", of which nothing happened"
}

// recordDiagram draws the states of a record, and lists the arrows.
func recordDiagram(t *testing.T) string {
	_, constants := declared(t, "storage", "event", "State")
	wantAll(t, "states of a record", constants, slices.Collect(maps.Values(recordStates)), func(s storage.State) string { return string(s) })
	d := &diagram{dimensions: recordDimensions}
	drawn := map[protocol.Phase]bool{}
	for kind := range recordKinds {
		d.drawRequests(kind, drawn)
		d.drawErrands(kind)
	}
	for phase, label := range stepsOfRequests {
		if !drawn[phase] {
			t.Errorf("no execution came to the step %q", label)
		}
	}
	d.drawSettlements()
	for _, final := range []string{"completed", "failed"} {
		d.add(final, expired, "nobody / expires_at goes by", nil)
		d.add(expired, begin, "native TTL / removes the row", nil)
	}
	d.add("failed_retryable", begin, "native TTL / removes the row", nil)
	for _, kind := range []string{"atomic", "optimistic", "deferred", "safe"} {
		d.add("in_progress", begin, "native TTL / removes the row", map[string]string{"kind": kind, "lease": "over"})
	}
	return d.mermaid(drawnRecords) + "\n" + d.table(drawnRecords)
}

// table lists the edges, whose labels are "who / what".
func (d *diagram) table(states []string) string {
	var b strings.Builder
	b.WriteString("| from | to | who | what | where |\n|---|---|---|---|---|\n")
	d.between(states, func(edges []edge) {
		for _, e := range edges {
			who, what, _ := strings.Cut(e.label, " / ")
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", e.from, e.to, who, what, d.when(e))
		}
	})
	return b.String()
}
