package protocol

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of testdata anew")

// table compares what was written with the file of this name in testdata. The file is written by what it judges: it shows in review what
// a change of the protocol means, and proves nothing. So -update writes it only where its second sources have passed.
func table(t *testing.T, name, about string, rows func(row func(format string, args ...any))) {
	t.Helper()
	var out bytes.Buffer
	for _, line := range strings.Split(strings.TrimSpace(about), "\n") {
		fmt.Fprintf(&out, "# %s\n", strings.TrimSpace(line))
	}
	rows(func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) })
	path := filepath.Join("testdata", name)
	want, err := os.ReadFile(path)
	switch {
	case err != nil && !(*update && os.IsNotExist(err)):
		t.Fatal(err)
	case bytes.Equal(want, out.Bytes()):
	case *update:
		if err := confirmed(t, name); err != nil {
			t.Fatalf("%s is not written: %v", path, err)
		}
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s is written. Its sources by behaviour pass; the checker is asked by make prove", path)
	default:
		t.Errorf("%s differs from what the machines do; -update runs the tests of the same by behaviour, and then writes:\n%s", path, out.Bytes())
	}
}

const tableNow = 1_000_000

// tableConfig is a configuration of round figures.
func tableConfig(kind Kind) *Config {
	return &Config{
		Kind: kind, Life: Life{Retention: 100_000}, ExecutionMax: 25_000, HandlerMargin: 3_000, FenceMargin: 1_000, AnswerMargin: 500,
		LeaseMargin: 2_000, WorkMin: 500, ReserveFor: 4_000, CompleteFor: 10_000, RunMax: 900_000, AbsentAfter: 60_000, Skew: 2_000,
		CacheAge: 60_000, ContentionMax: 3, RunsMax: 2, LoopsMax: 3,
		Topic: Topic{
			KeyRetention: 90_000, Margin: 20_000, AbsentAfter: 60_000, AttemptsMax: 3, AgeMax: 500_000, AbandonAfter: 400_000,
			UnknownMax: 500_000, ClaimLease: 10_000, SettleMargin: 2_000, SettleFor: 10_000, KeepFor: 60_000, SweepGrace: 15_000,
		},
	}
}

var (
	tableOp    = ID{7, 1}
	tableOther = ID{8, 1}
	tableSeed  = ID{9, 1 << 32}
)

// met are the records that a request can meet.
func met() []struct {
	name string
	r    Record
} {
	held := Record{State: InProgress, Kind: Atomic, Epoch: 1, Op: tableOp, Owner: tableOther, Revision: ID{1}, Lease: tableNow + 5_000}
	with := func(change func(*Record)) Record { r := held; change(&r); return r }
	c := tableConfig(Atomic)
	final := func(s State) Record {
		return with(func(r *Record) { r.State, r.Lease, r.Expires, r.Free = s, 0, tableNow+50_000, tableNow+52_000 })
	}
	return []struct {
		name string
		r    Record
	}{
		{"nothing", Record{}},
		{"in_progress, its lease alive", held},
		{"in_progress, its lease over", with(func(r *Record) { r.Lease = tableNow })},
		{"in_progress, wrapped, its lease over", with(func(r *Record) { r.Kind, r.Lease = Wrapped, tableNow-2_000 })},
		{"in_progress, wrapped and safe to run again, its lease over", with(func(r *Record) { r.Kind, r.Safe, r.Lease = Wrapped, true, tableNow })},
		{"in_progress, only observed, its lease over", with(func(r *Record) { r.Observed, r.Lease = true, tableNow })},
		{"in_progress, only observed, its lease over for a retention", with(func(r *Record) {
			r.Observed, r.Lease = true, tableNow-c.Life.Retention-c.Skew
		})},
		{"in_progress, this request's", with(func(r *Record) { r.Owner = tableSeed })},
		{"pending", with(func(r *Record) { r.State, r.Lease = Pending, 0 })},
		{"completed", final(Completed)},
		{"failed", final(Failed)},
		{"completed, expired an instant ago", with(func(r *Record) { r.State, r.Expires, r.Free = Completed, tableNow, tableNow+2_000 })},
		{"completed, expired and free", with(func(r *Record) { r.State, r.Expires, r.Free = Completed, tableNow-2_000, tableNow })},
		{"completed, expired, a tombstone", with(func(r *Record) {
			r.State, r.Tombstone, r.Expires, r.Free = Completed, true, tableNow, tableNow+9_000
		})},
		{"failed_retryable", with(func(r *Record) { r.State, r.Lease, r.Free = Retryable, 0, tableNow+9_000 })},
		{"failed_retryable, only observed", with(func(r *Record) { r.State, r.Observed, r.Lease, r.Free = Retryable, true, 0, tableNow+9_000 })},
		{"failed_retryable, only observed, its retention over", with(func(r *Record) { r.State, r.Observed, r.Lease, r.Free = Retryable, true, 0, tableNow })},
		{"failed_retryable, its retention over", with(func(r *Record) { r.State, r.Lease, r.Free = Retryable, 0, tableNow })},
		{"failed_retryable, cache-busted just now", with(func(r *Record) { r.State, r.Lease, r.Free = Retryable, tableNow+60_000, tableNow+99_000 })},
		{"unknown", with(func(r *Record) { r.State, r.Kind = Unknown, Wrapped })},
		{"completed, of another payload", with(func(r *Record) {
			r.State, r.Match, r.Expires, r.Free = Completed, Different, tableNow+50_000, tableNow+52_000
		})},
		{"failed_retryable, of another payload", with(func(r *Record) { r.State, r.Match, r.Lease, r.Free = Retryable, Different, 0, tableNow+9_000 })},
	}
}

// TestRequestMeetsRecord is what a request does about the record in its way.
func TestRequestMeetsRecord(t *testing.T) {
	table(t, "request_meets_record.txt", `
		What a request does about the record that it meets (Execution.judge). The kind is the request's; an operation
		that is leased meets it when its reserve fails, the others when they read first.
	`, func(row func(string, ...any)) {
		for _, kind := range []Kind{Atomic, Optimistic, Wrapped} {
			row("\n%s", kindNames[kind])
			for _, m := range met() {
				c := tableConfig(kind)
				x := NewExecution(Request{Seed: tableSeed, Incarnation: tableOp.Plus(9)})
				x, _ = x.Next(Input{What: Begin, Now: tableNow}, c)
				x, _ = x.look(Looking, tableNow, c)
				_, a := x.Next(Input{What: Replied, Now: tableNow, Reply: Reply{Code: OK, Rec: m.r}}, c)
				row("  %-58s → %s", m.name, a.told())
			}
		}
	})
}

// running is an execution whose handler is running.
func running(t *testing.T, c *Config) Execution {
	t.Helper()
	x := NewExecution(Request{Seed: tableSeed, Incarnation: tableOp})
	x, a := x.Next(Input{What: Begin, Now: tableNow}, c)
	for range 5 {
		switch a.Do {
		case Run:
			return x
		case Read:
			x, a = x.Next(Input{What: Replied, Now: tableNow, Reply: Reply{Code: OK}}, c)
		case Admit:
			x, a = x.Next(Input{What: Admitted, Now: tableNow}, c)
		case Send:
			x, a = x.Next(Input{What: Replied, Now: tableNow, Reply: Reply{Code: OK}}, c)
		}
	}
	t.Fatalf("the handler does not start: %s", a.told())
	return x
}

var results = []struct {
	name string
	r    Result
}{
	{"an answer", Result{Code: Responded, Answer: 5, Slot: 1}},
	{"a 202 and a message", Result{Code: Responded, Answer: 5, Slot: 1, Chain: true}},
	{"a rejection, or a stored 500", Result{Code: Stored, Answer: 5}},
	{"an answer that is not stored", Result{Code: Unstored}},
	{"an error or a panic", Result{Code: Broke}},
	{"the word that nothing happened", Result{Code: NothingHappened}},
}

// TestHandlerEnds is what follows from what the handler ended with.
func TestHandlerEnds(t *testing.T) {
	table(t, "handler_ends.txt", `
		What is sent when the handler has ended (Execution.handled).
	`, func(row func(string, ...any)) {
		for _, kind := range []Kind{Atomic, Optimistic, Deferred, Wrapped} {
			for _, safe := range []bool{false, true} {
				if safe && kind != Wrapped {
					continue
				}
				c := tableConfig(kind)
				c.Safe = safe
				row("\n%s%s", kindNames[kind], map[bool]string{true: ", safe to run again"}[safe])
				for _, result := range results {
					if result.r.Chain != (kind == Deferred) && result.r.Code == Responded {
						continue
					}
					_, a := running(t, c).Next(Input{What: HandlerEnded, Now: tableNow + 100, Result: result.r}, c)
					row("  %-32s → %s", result.name, a.told())
				}
			}
		}
	})
}

// replies are what a store can say of a write.
func replies(own Record) []struct {
	name string
	r    Reply
} {
	other := Record{State: Completed, Op: tableOp, Owner: tableOther, Epoch: 2, Expires: tableNow + 50_000, Free: tableNow + 52_000}
	refused := func(conds Conds, rec Record) Reply { return Reply{Code: Refused, Conds: conds, Rec: rec} }
	return []struct {
		name string
		r    Reply
	}{
		{"ok", Reply{Code: OK}},
		{"this request's record, final", refused(CondRecord|CondReject, own)},
		{"the record is another's and final", refused(CondRecord, other)},
		{"Reject failed", refused(CondReject, Record{})},
		{"Retry failed, Reject too", refused(CondReject|CondRetry, Record{})},
		{"Reject failed, another item was not judged", refused(CondReject|Unjudged, Record{})},
		{"Reject failed, a Retry was not judged", refused(CondReject|Unjudged|UnjudgedRetry, Record{})},
		{"a condition of which nothing was declared", refused(CondUndeclared, Record{})},
		{"contention", Reply{Code: Contention}},
		{"throttled", Reply{Code: Throttled}},
		{"contention" + lastTry, Reply{Code: Contention}},
		{"throttled" + lastTry, Reply{Code: Throttled}},
		{"it never left", Reply{Code: NotSent}},
		{"it can't be done", Reply{Code: Broken}},
		{"no reply", Reply{Code: Lost}},
	}
}

// lastTry ends the name of a reply to the last try that contention is allowed.
const lastTry = ", after the last allowed try"

// TestReplyToWrite is what follows from each reply, for a write whose tries all had one and for one that lost a reply.
func TestReplyToWrite(t *testing.T) {
	table(t, "reply_to_write.txt", `
		What follows from the reply to a write (Attempt.Judge and Execution.decided): for bytes whose every try had a
		reply; for bytes of which a try had none; and once their time is over, as well.
	`, func(row func(string, ...any)) {
		for _, of := range []struct {
			kind   Kind
			result Result
		}{{Atomic, results[0].r}, {Optimistic, results[0].r}, {Wrapped, results[0].r}} {
			c := tableConfig(of.kind)
			x, a := running(t, c).Next(Input{What: HandlerEnded, Now: tableNow + 100, Result: of.result}, c)
			for _, tainted := range []string{"", ", after a try without a reply", ", after a try without a reply, at the end of its time"} {
				row("\n%s: %s%s", kindNames[of.kind], phaseNames[x.Phase], tainted)
				for _, reply := range replies(a.Write.Rec) {
					x, now := x, Instant(tableNow+200)
					if tainted != "" {
						x, _ = x.Next(Input{What: Replied, Now: now, Reply: Reply{Code: Lost}}, c)
					}
					if strings.Contains(tainted, "end") {
						now = x.At.Until
					}
					if strings.HasSuffix(reply.name, lastTry) {
						x.At.Contended = c.ContentionMax - 1
					}
					_, next := x.Next(Input{What: Replied, Now: now, Reply: reply.r}, c)
					told := next.told()
					if next.Do == Send && next.Write == x.At.W {
						told = "send the same bytes again"
					}
					row("  %-44s → %s", reply.name, told)
				}
			}
		}
	})
}
