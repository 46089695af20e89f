package sequences

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// kinds are the operations whose handlers write by their transaction only.
var kinds = []idem.Operation{{Kind: idem.KindAtomic}, {Kind: idem.KindAtomic, ReadFirst: true}, {Kind: idem.KindOptimistic}, {Kind: idem.KindDeferred}}

// endless is more tries than any write has.
const endless = 200

// resentCommits: the reply to a commit is lost, whether it landed or not, and its resends meet what judges nothing. That is no
// answer to bytes that may have landed: the same are sent again, and others are not made.
func resentCommits(faults Faults) []sequence {
	var all []sequence
	add := func(name string, op idem.Operation, lost, resend faulty.Fault, last int) {
		all = append(all, sequence{fmt.Sprintf("%s, read first %v, %s", op.Kind, op.ReadFirst, name), func(w *world) {
			orders := w.register(op)
			w.fail(faulty.Commit, 1, 1, lost)
			w.fail(faulty.Commit, 2, last, resend)
			w.want(w.do(orders, w.handler(201)), idem.OutcomeExecuted, 201, "1")
			w.want(w.do(orders, w.handler(201)), idem.OutcomeReplayed, 201, "1")
			w.ran(1)
			w.written(1)
			if n := w.store.prepared; n != 1 {
				w.Errorf("%d commits were made, want 1 that is sent again", n)
			}
		}})
	}
	for _, op := range kinds {
		for _, busy := range sorted(faults.Busy) {
			add("landed, then "+busy, op, faults.LoseReply, faults.Busy[busy], 9)
			add("landed, then "+busy+" to the end", op, faults.LoseReply, faults.Busy[busy], endless)
			add("lost, then "+busy, op, faults.LoseRequest, faults.Busy[busy], 9)
		}
		add("landed, then credentials have expired", op, faults.LoseReply, faults.CredentialsExpired, 9)
	}
	return all
}

// contended: another transaction or a throttle is in the way of a reserve or of a commit. Nothing has happened, and the same
// bytes are sent again.
func contended(faults Faults) []sequence {
	var all []sequence
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindWrapped} {
		for _, busy := range sorted(faults.Busy) {
			all = append(all, sequence{fmt.Sprintf("reserve of %s, %s", kind, busy), func(w *world) {
				orders := w.register(idem.Operation{Kind: kind})
				w.fail(faulty.Insert, 1, 3, faults.Busy[busy])
				w.want(w.do(orders, w.effect(201, "done")), idem.OutcomeExecuted, 201, "done")
				w.ran(1)
			}})
		}
	}
	for _, op := range kinds {
		for _, busy := range sorted(faults.Busy) {
			all = append(all, sequence{fmt.Sprintf("commit of %s, read first %v, %s", op.Kind, op.ReadFirst, busy), func(w *world) {
				orders := w.register(op)
				w.fail(faulty.Commit, 1, 3, faults.Busy[busy])
				w.want(w.do(orders, w.handler(201)), idem.OutcomeExecuted, 201, "1")
				w.ran(1)
				w.written(1)
				if n := w.store.prepared; n != 1 {
					w.Errorf("%d commits were made, want 1 that is sent again", n)
				}
			}})
		}
	}
	return all
}

// inlineClaims: a commit with a claimed message lands, its reply is lost, and its resend meets what judges nothing, or is lost.
// The provider honours no keys and nobody can ask it: it is called once, under the claim that is stored.
func inlineClaims(faults Faults) []sequence {
	var all []sequence
	add := func(name string, resend faulty.Fault) {
		all = append(all, sequence{name, func(w *world) {
			w.deliver(nil)
			orders := w.register(idem.Operation{Kind: idem.KindDeferred, Inline: w.inline})
			w.fail(faulty.Commit, 1, 1, faults.LoseReply)
			w.fail(faulty.Commit, 2, 9, resend)
			result := w.do(orders, w.handler(202))
			w.store.Clear()
			w.written(1)
			w.ran(1)
			w.want(result, idem.OutcomeExecuted, 201, string(charged.Evidence))
			w.called(1)
			id := result.OperationID.Message(1)
			time.Sleep(time.Minute)
			w.ok(w.worker.Deliver(w.Context(), id))
			w.want(w.do(orders, w.handler(202)), idem.OutcomeReplayed, 201, string(charged.Evidence))
			w.called(1)
			w.ended(id, storage.MessageDelivered, storage.StateCompleted, 1)
		}})
	}
	for _, busy := range sorted(faults.Busy) {
		add(busy, faults.Busy[busy])
		all = append(all, sequence{busy + " to the end", func(w *world) { w.unconfirmedClaim(faults.LoseReply, faults.Busy[busy]) }})
	}
	add("lost", faults.LoseRequest)
	return all
}

// unconfirmedClaim: the store confirms the claim when there is no time left to call. Once its lease is over nobody calls either,
// because nobody knows that it was not used.
func (w *world) unconfirmedClaim(lost, resend faulty.Fault) {
	w.Helper()
	w.deliver(nil)
	orders := w.register(idem.Operation{Kind: idem.KindDeferred, Inline: w.inline})
	w.fail(faulty.Commit, 1, 1, lost)
	w.fail(faulty.Commit, 2, endless, resend)
	result := w.do(orders, w.handler(202))
	w.want(result, idem.OutcomeExecuted, 202, "1")
	w.store.Clear()
	time.Sleep(time.Minute)
	id := result.OperationID.Message(1)
	w.ok(w.worker.Deliver(w.Context(), id))
	w.want(w.do(orders, w.handler(202)), idem.OutcomeReplayed, 202, "1")
	w.ended(id, storage.MessageUnknown, storage.StatePending, 0)
	w.called(0)
	w.ran(1)
	w.written(1)
}

// givenBack: a reserve lands, its reply is lost, and its resends meet what judges nothing. Nothing has run: the key is usable
// again, at once or when the lease is over, and never unknown.
func givenBack(faults Faults) []sequence {
	var all []sequence
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindWrapped} {
		for _, busy := range sorted(faults.Busy) {
			for _, wait := range []time.Duration{0, time.Minute} { // at once, and after the lease
				all = append(all, sequence{fmt.Sprintf("%s, %s, used again after %v", kind, busy, wait), func(w *world) {
					orders := w.register(idem.Operation{Kind: kind})
					w.fail(faulty.Insert, 1, 1, faults.LoseReply)
					w.fail(faulty.Insert, 2, endless, faults.Busy[busy])
					w.unavailable(orders, w.effect(201, ""))
					w.store.Clear()
					if time.Sleep(wait); wait > 0 {
						if state, err := w.engine.ParkDead(w.Context(), w.record().Key); state != "" || err != nil {
							w.Errorf("parked as %q, %v", state, err)
						}
					}
					w.want(w.do(orders, w.effect(201, "done")), idem.OutcomeExecuted, 201, "done")
					w.ran(1)
				}})
			}
		}
	}
	return all
}

// foundReserves: what becomes of a reserve whose reply was lost, however it ended.
func foundReserves(faults Faults) []sequence {
	var all []sequence
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindWrapped} {
		all = append(all, sequence{fmt.Sprintf("%s, its repetition finds it", kind), func(w *world) {
			orders := w.register(idem.Operation{Kind: kind})
			w.fail(faulty.Insert, 1, 1, faults.LoseReply)
			w.want(w.do(orders, w.effect(201, "done")), idem.OutcomeExecuted, 201, "done")
			w.want(w.do(orders, w.effect(201, "twice")), idem.OutcomeReplayed, 201, "done")
			w.ran(1)
		}}, sequence{fmt.Sprintf("%s, it arrives when it was given back", kind), func(w *world) {
			orders := w.register(idem.Operation{Kind: kind})
			late := new(faulty.Late)
			w.fail(faulty.Insert, 1, 1, late.Fault())
			w.fail(faulty.Insert, 2, endless, faults.LoseRequest)
			w.unavailable(orders, w.effect(201, ""))
			w.store.Clear()
			var conflict *storage.RecordConflictError
			if err := late.Deliver(w.Context()); !errors.As(err, &conflict) {
				w.Errorf("the late reserve: %v, want a RecordConflictError", err)
			}
			w.want(w.do(orders, w.effect(201, "done")), idem.OutcomeExecuted, 201, "done")
			w.ran(1)
		}})
	}
	return all
}

// unstoredAnswers: an answer that is not stored proves nothing for a handler that writes for itself, because its second step
// may have been turned away after its first one was taken. The operation may declare otherwise.
func unstoredAnswers() []sequence {
	var all []sequence
	for _, status := range []int{401, 403, 409, 425, 429, 503} {
		all = append(all, sequence{fmt.Sprint(status), func(w *world) {
			orders := w.register(idem.Operation{Kind: idem.KindWrapped})
			result := w.do(orders, w.effect(status, "no"))
			w.want(result, idem.OutcomeExecuted, status, "no")
			if r := w.record(); result.State != storage.StateUnknown || r.State != storage.StateUnknown {
				w.Errorf("the state is %s, stored %s, want unknown", result.State, r.State)
			}
			for range 2 {
				if again := w.do(orders, w.effect(201, "twice")); again.Outcome != idem.OutcomeUnknown || again.RetryAfter <= 0 {
					w.Errorf("%+v, want an unknown outcome with a Retry-After", again)
				}
				time.Sleep(48 * time.Hour)
			}
			w.ran(1)
		}}, sequence{fmt.Sprintf("%d, declared", status), func(w *world) {
			orders := w.register(idem.Operation{Kind: idem.KindWrapped, ReleaseOn: []int{status}})
			w.want(w.do(orders, w.effect(status, "no")), idem.OutcomeExecuted, status, "no")
			if r := w.record(); r.State != storage.StateFailedRetryable {
				w.Errorf("the state is %s, want failed_retryable", r.State)
			}
			w.want(w.do(orders, w.effect(201, "ok")), idem.OutcomeExecuted, 201, "ok")
		}})
	}
	return all
}

// completions: the answer of a wrapped handler is evidence. It is stored as long as the lease lives, however little time is
// left to answer in, and nothing that judges nothing is an answer.
func completions(faults Faults) []sequence {
	var all []sequence
	add := func(name string, kills bool, meet func(w *world)) {
		all = append(all, sequence{fmt.Sprintf("%s, the platform kills %v", name, kills), func(w *world) {
			var err error
			w.engine, err = idem.New(w.store, idem.Config{KillsAtDeadline: kills, Logger: slog.New(slog.DiscardHandler)})
			w.ok(err)
			orders := w.register(idem.Operation{Kind: idem.KindWrapped})
			meet(w)
			w.want(w.do(orders, func(context.Context, *idem.Tx) (idem.Response, error) {
				w.runs++
				time.Sleep(24600 * time.Millisecond) // the last write of others is at 24.5 s, the lease ends at 27 s
				return idem.Response{Status: 201, Body: []byte("late")}, nil
			}), idem.OutcomeExecuted, 201, "late")
			w.store.Clear()
			w.want(w.do(orders, w.effect(201, "twice")), idem.OutcomeReplayed, 201, "late")
			w.ran(1)
		}})
	}
	for _, kills := range []bool{true, false} {
		for _, busy := range sorted(faults.Busy) {
			add(busy, kills, func(w *world) {
				w.fail(faulty.Update, 1, 5, faults.Busy[busy])
				w.fail(faulty.Update, 6, 6, faults.CredentialsExpired)
			})
			add("reply lost, then "+busy, kills, func(w *world) {
				w.fail(faulty.Update, 1, 1, faults.LoseReply)
				w.fail(faulty.Update, 2, 5, faults.Busy[busy])
			})
		}
	}
	return all
}

// headers: those of a stored answer lie in its record's own row, whose size a store may bound. The work of a wrapped handler is done: that
// its headers do not fit is stored at once. What does fit is replayed whole.
func headers() []sequence {
	located := func(w *world, bytes int) idem.Handler {
		return func(context.Context, *idem.Tx) (idem.Response, error) {
			w.runs++
			const name = "Location"
			return idem.Response{Status: 201, Header: []idem.Field{{Name: name, Value: strings.Repeat("x", bytes-len(name))}}}, nil
		}
	}
	all := []sequence{{"wrapped, 500 KB", func(w *world) {
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		for _, outcome := range []idem.Outcome{idem.OutcomeExecuted, idem.OutcomeReplayed} {
			result := w.do(orders, located(w, 500<<10))
			if result.Outcome != outcome || result.Response.Status != 500 || !strings.Contains(string(result.Response.Body), `"idempotency_response_not_kept"`) {
				w.Errorf("%s %d %s, want %s and a 500 that says so", result.Outcome, result.Response.Status, result.Response.Body, outcome)
			}
		}
		w.ran(1)
		if n := w.store.Count(faulty.Update); n != 1 {
			w.Errorf("%d writes after the handler, want 1", n)
		}
	}}}
	for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindOptimistic, idem.KindWrapped} {
		all = append(all, sequence{fmt.Sprintf("%s, as much as fits", kind), func(w *world) {
			orders := w.register(idem.Operation{Kind: kind})
			for _, outcome := range []idem.Outcome{idem.OutcomeExecuted, idem.OutcomeReplayed} {
				result := w.do(orders, located(w, storage.ResponseHeaderBytesMax))
				w.want(result, outcome, 201, "")
				if n := result.Response.Bytes(); n != storage.ResponseHeaderBytesMax {
					w.Errorf("%s with %d bytes of headers", outcome, n)
				}
			}
			w.ran(1)
		}})
	}
	return all
}
