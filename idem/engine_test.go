package idem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
)

// world is an engine on the reference store, in a bubble whose clock the test owns.
type world struct {
	*testing.T
	mem    *memstore.Store
	engine *idem.Engine
	// runs counts executions of the handler that world.handler makes.
	runs int
	mu   sync.Mutex
}

func newWorld(t *testing.T, wrap func(storage.Store) storage.Store) *world {
	t.Helper()
	mem, err := memstore.New(memstore.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	var store storage.Store = mem
	if wrap != nil {
		store = wrap(store)
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, mem: mem, engine: engine}
}

// declaration says of a wrapped operation what a test does not care about: that its unknown waits for an operator.
func declaration(op idem.Operation) idem.Operation {
	op.UnknownToOperator = op.Kind == idem.KindWrapped
	return op
}

func (w *world) register(op idem.Operation) *idem.Registered {
	w.Helper()
	if op.Policy.Name == "" {
		op.Policy = idem.IETF()
	}
	if op.Name == "" {
		op.Name = "orders.create"
	}
	registered, err := w.engine.Register(declaration(op))
	if err != nil {
		w.Fatal(err)
	}
	return registered
}

// request asks with the key "k" for what the body says.
func request(body string) idem.Request {
	return idem.Request{Tenant: "t", Key: "k", Input: canonical.Input{MediaType: "application/json", Body: []byte(body)}}
}

// count is a business row that counts how often it was written.
func count(key string) memstore.Write {
	return memstore.Write{Key: key, Apply: func(row []byte) []byte { return append(row, '1') }}
}

// handler writes one business row and answers with the number of its run.
func (w *world) handler(status int) idem.Handler {
	return func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		w.mu.Lock()
		w.runs++
		run := w.runs
		w.mu.Unlock()
		tx.Write(count("business"))
		if status == 202 {
			tx.Send("orders.ship", []byte("parcel"))
		}
		return idem.JSON(status, run)
	}
}

func (w *world) do(op *idem.Registered, req idem.Request, h idem.Handler) *idem.Result {
	w.Helper()
	result, err := op.Do(w.Context(), req, h)
	if err != nil {
		w.Fatalf("Do: %v", err)
	}
	return result
}

func (w *world) want(result *idem.Result, outcome idem.Outcome, status int, body string) {
	w.Helper()
	if result.Outcome != outcome || result.Response.Status != status || string(result.Response.Body) != body {
		w.Errorf("%s %d %s, want %s %d %s", result.Outcome, result.Response.Status, result.Response.Body, outcome, status, body)
	}
}

// written checks how often the business row was written: I1.
func (w *world) written(times int) {
	w.Helper()
	if got := len(w.mem.Row("business")); got != times {
		w.Errorf("the business write happened %d times, want %d", got, times)
	}
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// kinds are the operations whose handler answers with a final response.
var kinds = []idem.Operation{{Kind: idem.KindAtomic}, {Kind: idem.KindAtomic, ReadFirst: true}, {Kind: idem.KindOptimistic}, {Kind: idem.KindDeferred}}

func TestDoExecutesOnceThenReplaysByteForByte(t *testing.T) { // I1, I4
	for _, op := range kinds {
		t.Run(fmt.Sprintf("%s read first %v", op.Kind, op.ReadFirst), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				orders := w.register(op)
				w.want(w.do(orders, request(`{"a":1}`), w.handler(201)), idem.OutcomeExecuted, 201, "1")
				for range 3 {
					result := w.do(orders, request(`{ "a" : 1.0 }`), w.handler(201))
					w.want(result, idem.OutcomeReplayed, 201, "1")
					if result.ExpiresAt.IsZero() || result.RetryAfter != 0 {
						t.Errorf("expires %v, retry after %v; want an expiry and no retry", result.ExpiresAt, result.RetryAfter)
					}
				}
				w.written(1)
			})
		})
	}
}

func TestDoDeferredAnswersTheSame202UntilItIsSettled(t *testing.T) { // semantics.md "States": pending
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindDeferred})
		first := w.do(orders, request("{}"), w.handler(202))
		w.want(first, idem.OutcomeExecuted, 202, "1")
		again := w.do(orders, request("{}"), w.handler(202))
		w.want(again, idem.OutcomeReplayed, 202, "1")
		if first.State != storage.StatePending || again.OperationID != first.OperationID || again.RetryAfter == 0 || !again.ExpiresAt.IsZero() {
			t.Errorf("first %+v, again %+v: want pending, one operation, a Retry-After and no expiry", first, again)
		}
		w.written(1)
		m, err := w.mem.Message(t.Context(), first.OperationID.Message(1))
		if err != nil || m == nil || m.State != storage.MessagePending || string(m.Payload) != "parcel" || m.Detached {
			t.Errorf("message %+v, %v: want it pending with its payload", m, err)
		}
	})
}

func TestDoMismatchInEveryState(t *testing.T) { // semantics.md: the fingerprint is compared first
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		other := request(`{"a":2}`)
		inside := func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
			if result := w.do(orders, other, w.handler(201)); result.Outcome != idem.OutcomeMismatch || result.OperationID != "" {
				t.Errorf("while in progress: %+v, want a mismatch that tells nothing", result)
			}
			return w.handler(201)(ctx, tx)
		}
		w.want(w.do(orders, request(`{"a":1}`), inside), idem.OutcomeExecuted, 201, "1")
		if result := w.do(orders, other, w.handler(201)); result.Outcome != idem.OutcomeMismatch {
			t.Errorf("when completed: %+v, want a mismatch", result)
		}
		w.written(1)
	})
}

func TestDoScopesKeysByTenantAndOperation(t *testing.T) { // I5
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		create := w.register(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic})
		cancel := w.register(idem.Operation{Name: "orders.cancel", Kind: idem.KindAtomic})
		req, theirs := request("{}"), request("{}")
		theirs.Tenant = "u"
		w.want(w.do(create, req, w.handler(201)), idem.OutcomeExecuted, 201, "1")
		w.want(w.do(create, theirs, w.handler(201)), idem.OutcomeExecuted, 201, "2")
		w.want(w.do(cancel, req, w.handler(201)), idem.OutcomeExecuted, 201, "3")
		w.want(w.do(create, req, w.handler(201)), idem.OutcomeReplayed, 201, "1")
	})
}

func TestDoRefusesAnEmptyKeyOrTenant(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		for _, change := range []func(*idem.Request){func(r *idem.Request) { r.Key = "" }, func(r *idem.Request) { r.Tenant = "" }} {
			req := request("{}")
			change(&req)
			if _, err := orders.Do(t.Context(), req, w.handler(201)); err == nil {
				t.Errorf("%+v is accepted: all such callers would share one record", req)
			}
		}
		w.written(0)
	})
}

// One write decides who executes: who looks first and writes then executes twice.
func TestDoTwentySimultaneousDuplicates(t *testing.T) {
	for _, op := range kinds {
		t.Run(fmt.Sprintf("%s read first %v", op.Kind, op.ReadFirst), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				orders := w.register(op)
				slow := func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
					time.Sleep(100 * time.Millisecond)
					tx.Write(count("business"))
					return idem.Response{Status: 201, Body: []byte("done")}, nil
				}
				var wg sync.WaitGroup
				results := make([]*idem.Result, 20)
				for i := range results {
					wg.Go(func() {
						for {
							results[i] = w.do(orders, request("{}"), slow)
							if results[i].Outcome != idem.OutcomeInProgress {
								return
							}
							time.Sleep(results[i].RetryAfter)
						}
					})
				}
				wg.Wait()
				executed := 0
				for _, result := range results {
					if result.Outcome == idem.OutcomeExecuted {
						executed++
					}
					if result.Response.Status != 201 || string(result.Response.Body) != "done" {
						t.Errorf("%+v, want the one answer", result)
					}
				}
				if executed != 1 {
					t.Errorf("%d executed, want 1", executed)
				}
				w.written(1)
			})
		})
	}
}

func TestDoStoresByPolicy(t *testing.T) { // semantics.md "Policies": 4xx and 5xx results
	for name, c := range map[string]struct {
		policy idem.Policy
		status int
		stored bool
	}{
		"ietf 404":    {idem.IETF(), 404, true},
		"ietf 402":    {idem.IETF(), 402, true},
		"ietf 401":    {idem.IETF(), 401, false},
		"ietf 429":    {idem.IETF(), 429, false},
		"ietf 500":    {idem.IETF(), 500, false},
		"stripe 500":  {idem.Stripe(), 500, true},
		"stripe 409":  {idem.Stripe(), 409, false},
		"lenient 409": {idem.Lenient(), 409, true},
		"lenient 503": {idem.Lenient(), 503, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []idem.Kind{idem.KindAtomic, idem.KindOptimistic} {
				bubble(t, func(t *testing.T) {
					w := newWorld(t, nil)
					orders := w.register(idem.Operation{Kind: kind, Policy: c.policy})
					w.want(w.do(orders, request("{}"), w.handler(c.status)), idem.OutcomeExecuted, c.status, "1")
					second := w.do(orders, request("{}"), w.handler(201))
					if c.stored {
						w.want(second, idem.OutcomeReplayed, c.status, "1")
						w.written(1)
					} else {
						w.want(second, idem.OutcomeExecuted, 201, "2")
						w.written(1) // what an answer that is not stored wrote is not written either
					}
				})
			}
		})
	}
}

// reference/http.md "After an attempt without an answer": an answer that is not stored says what became of its own run. Without a
// lease another run with the key goes on, and commits after its client was told 409.
func TestAnAnswerThatIsNotStoredExcludesNoOtherRunWithoutALease(t *testing.T) {
	for _, op := range kinds {
		t.Run(fmt.Sprintf("%s read first %v", op.Kind, op.ReadFirst), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				orders := w.register(op)
				var wg sync.WaitGroup
				release := make(chan struct{})
				wg.Go(func() {
					w.want(w.do(orders, request("{}"), func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
						<-release
						return w.handler(201)(ctx, tx)
					}), idem.OutcomeExecuted, 201, "1")
				})
				synctest.Wait() // the first run is in its handler
				second := w.do(orders, request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
					return idem.Response{Status: 409, Body: []byte("account busy")}, nil
				})
				if op.Kind == idem.KindAtomic {
					if second.Outcome != idem.OutcomeInProgress {
						t.Errorf("beside a lease: %s %d, want in_progress", second.Outcome, second.Response.Status)
					}
				} else {
					w.want(second, idem.OutcomeExecuted, 409, "account busy")
					if second.State.Final() || !second.ExpiresAt.IsZero() {
						t.Errorf("%+v: want an answer that is marked by nothing as stored", second)
					}
				}
				w.written(0)
				close(release)
				wg.Wait()
				w.written(1)
			})
		})
	}
}

// reference/http.md, the same section: from 300 on an answer that is stored has an expiry, by which a client knows it, also where
// the record of a success would live as long as its resource.
func TestEachStoredAnswerFrom300OnHasAnExpiry(t *testing.T) {
	for _, op := range append(kinds, idem.Operation{Kind: idem.KindWrapped}) {
		for _, backed := range []bool{false, true} {
			for _, status := range []int{303, 400, 403, 404, 409, 422, 500, 503} {
				if op.Kind == idem.KindWrapped && status >= 500 {
					continue // of a wrapped operation they are never stored
				}
				t.Run(fmt.Sprintf("%s read first %v, backed %v, %d", op.Kind, op.ReadFirst, backed, status), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						w := newWorld(t, nil)
						orders := w.register(withPolicy(op, func(p *idem.Policy) {
							p.StoreClientErrors, p.StoreServerErrors, p.ResourceBacked = true, op.Kind != idem.KindWrapped, backed
						}))
						result := w.do(orders, request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
							return idem.Response{Status: status}, nil
						})
						w.want(result, idem.OutcomeExecuted, status, "")
						if result.ExpiresAt.IsZero() {
							t.Errorf("%+v: want an expiry", result)
						}
					})
				})
			}
		}
	}
}

func TestDoRejectIsStoredAndReplayed(t *testing.T) { // design.md "What a write is"
	problem := idem.NewProblem(402, "insufficient_funds", "Insufficient funds", "The account does not hold the amount.")
	full := memstore.Write{Key: "guard", Condition: func(row []byte) bool { return row == nil }, Failure: idem.Reject(problem)}
	for name, handler := range map[string]idem.Handler{
		"by a write": func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(count("business"), full)
			return idem.Response{Status: 201}, nil
		},
		"by the handler": func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(count("business"))
			return idem.Response{}, &idem.RejectedError{Problem: problem}
		},
	} {
		for _, op := range kinds {
			t.Run(fmt.Sprintf("%s, %s", name, op.Kind), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t, nil)
					w.mem.PutRow("guard", []byte("taken"))
					orders := w.register(op)
					body := string(problem.Response().Body)
					w.want(w.do(orders, request("{}"), handler), idem.OutcomeExecuted, 402, body)
					w.mem.PutRow("guard", nil) // the world changes; the answer does not
					w.want(w.do(orders, request("{}"), handler), idem.OutcomeReplayed, 402, body)
					w.written(0)
				})
			})
		}
	}
}

// Nothing of a wrapped handler's is taken back: a rejection is its answer, and not told to its client alone while the key is unknown to all that
// come after. It is stored also where the policy would not store another answer with its status.
func TestARejectionOfAWrappedHandlerIsItsAnswer(t *testing.T) {
	for _, status := range []int{402, 409} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, nil)
			problem := idem.NewProblem(status, "refused", "Refused", "The account does not hold the amount.")
			body := string(problem.Response().Body)
			rejects := func(context.Context, *idem.Tx) (idem.Response, error) {
				return idem.Response{}, fmt.Errorf("pay: %w", &idem.RejectedError{Problem: problem})
			}
			orders := w.register(idem.Operation{Kind: idem.KindWrapped, Probed: true})
			w.want(w.do(orders, request("{}"), rejects), idem.OutcomeExecuted, status, body)
			w.want(w.do(orders, request("{}"), rejects), idem.OutcomeReplayed, status, body)
			frees := w.register(idem.Operation{Name: "orders.free", Kind: idem.KindWrapped, ReleaseOn: []int{status}})
			for range 2 { // by this status nothing has happened, and its key is free
				w.want(w.do(frees, request("{}"), rejects), idem.OutcomeExecuted, status, body)
			}
		})
	}
}

func TestDoRetryReadsAndRunsAgain(t *testing.T) { // A lost optimistic lock is never stored
	reject := idem.Reject(idem.NewProblem(402, "no", "No", "No."))
	for _, op := range kinds {
		t.Run(string(op.Kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				orders := w.register(op)
				handler := func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					version := w.mem.Row("version")
					if tx.Attempt() < 3 { // somebody is faster, twice
						w.mem.PutRow("version", append(version, 'v'))
					}
					same := func(row []byte) bool { return len(row) == len(version) }
					tx.Write(
						memstore.Write{Key: "other", Condition: func([]byte) bool { return tx.Attempt() >= 3 }, Failure: reject},
						memstore.Write{Key: "version", Condition: same, Failure: idem.Retry()},
						count("business"),
					)
					return idem.JSON(201, tx.Attempt())
				}
				w.want(w.do(orders, request("{}"), handler), idem.OutcomeExecuted, 201, "3")
				w.written(1)
			})
		})
	}
}

func TestDoRetryIsBoundedAndStoresNothing(t *testing.T) {
	for _, op := range kinds {
		t.Run(string(op.Kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				orders := w.register(op)
				never := func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
					tx.Write(memstore.Write{Key: "v", Condition: func([]byte) bool { return false }, Failure: idem.Retry()})
					return idem.Response{Status: 201}, nil
				}
				_, err := orders.Do(t.Context(), request("{}"), never)
				var unavailable *idem.UnavailableError
				if !errors.As(err, &unavailable) || unavailable.RetryAfter <= 0 {
					t.Fatalf("%v, want an UnavailableError with a Retry-After", err)
				}
				w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
			})
		})
	}
}

func TestDoHandlerErrorOrPanicReleases(t *testing.T) {
	for name, fail := range map[string]idem.Handler{
		"error": func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(count("business"))
			return idem.Response{}, errors.New("disk on fire")
		},
		"panic": func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(count("business"))
			panic("disk on fire")
		},
		"write without a declaration fails": func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Write(count("business"), memstore.Write{Key: "x", Condition: func([]byte) bool { return false }})
			return idem.Response{Status: 201}, nil
		},
	} {
		for _, op := range kinds {
			t.Run(fmt.Sprintf("%s, %s", name, op.Kind), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t, nil)
					orders := w.register(op)
					_, err := orders.Do(t.Context(), request("{}"), fail)
					var handler *idem.HandlerError
					if !errors.As(err, &handler) {
						t.Fatalf("%v, want a HandlerError", err)
					}
					w.written(0)
					w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
					w.written(1)
				})
			})
		}
	}
}

// A rejection is a 4xx: with any other status it is a mistake of the handler's, of which nothing is stored or promised.
func TestDoStoresNoRejectionThatIsNot4xx(t *testing.T) {
	for _, status := range []int{0, 200, 202, 399, 500, 503, 999} {
		for _, op := range kinds {
			t.Run(fmt.Sprintf("%d, %s", status, op.Kind), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t, nil)
					orders := w.register(op)
					_, err := orders.Do(t.Context(), request("{}"), func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
						tx.Write(count("business"))
						return idem.Response{}, fmt.Errorf("declined: %w", &idem.RejectedError{Problem: idem.Problem{Status: status, Code: "declined", Title: "Declined"}})
					})
					var handler *idem.HandlerError
					if !errors.As(err, &handler) || !strings.Contains(err.Error(), fmt.Sprintf("status %d", status)) {
						t.Fatalf("%v, want a HandlerError that names the status", err)
					}
					if errors.As(err, new(*idem.RejectedError)) {
						t.Error("the error still is an answer to the client")
					}
					w.written(0)
					w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
				})
			})
		}
	}
}

// A message keeps its provider's answer in the same item: a payload that leaves no room for that is refused before anything happens.
func TestDoRefusesAPayloadThatLeavesNoRoomForEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		op     idem.Operation
		status int
	}{
		"deferred": {idem.Operation{Kind: idem.KindDeferred}, 202}, "atomic": {idem.Operation{Kind: idem.KindAtomic}, 201},
		"optimistic": {idem.Operation{Kind: idem.KindOptimistic}, 201},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, nil)
				orders := w.register(c.op)
				sending := func(size int) idem.Handler {
					return func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
						tx.Write(count("business"))
						tx.Send("orders.ship", make([]byte, size))
						return idem.Response{Status: c.status}, nil
					}
				}
				_, err := orders.Do(t.Context(), request("{}"), sending(storage.PayloadBytesMax+1))
				if err == nil || !strings.Contains(err.Error(), fmt.Sprint(storage.PayloadBytesMax)) {
					t.Fatalf("%v, want an error that names the bound", err)
				}
				w.written(0)
				w.want(w.do(orders, request("{}"), sending(storage.PayloadBytesMax)), idem.OutcomeExecuted, c.status, "")
				w.written(1)
			})
		})
	}
}

func TestDoResponseTooLargeBeforeAnythingIsCommitted(t *testing.T) {
	for name, response := range map[string]idem.Response{
		"body":    {Status: 201, Body: make([]byte, 4<<20)},
		"headers": {Status: 201, Header: []idem.Field{{Name: "Location", Value: strings.Repeat("x", storage.ResponseHeaderBytesMax)}}},
	} {
		for _, op := range kinds {
			t.Run(fmt.Sprintf("%s, %s read first %v", name, op.Kind, op.ReadFirst), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t, nil)
					orders := w.register(op)
					huge := func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
						tx.Write(count("business"))
						return response, nil
					}
					if _, err := orders.Do(t.Context(), request("{}"), huge); !errors.Is(err, idem.ErrResponseTooLarge) {
						t.Fatalf("%v, want ErrResponseTooLarge", err)
					}
					w.written(0)
					w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
				})
			})
		}
	}
}

func TestDoExpiryStartsANewIncarnation(t *testing.T) { // semantics.md: expired is derived; TTL is late
	for _, removed := range []bool{false, true} {
		for _, op := range kinds {
			t.Run(fmt.Sprintf("%s removed by TTL %v", op.Kind, removed), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t, nil)
					orders := w.register(op)
					first := w.do(orders, request("{}"), w.handler(201))
					time.Sleep(24*time.Hour + skew - time.Millisecond)
					w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeReplayed, 201, "1")
					time.Sleep(time.Millisecond)
					if removed {
						w.mem.Expire(time.Now().Add(late))
					}
					second := w.do(orders, request(`{"other":true}`), w.handler(201))
					w.want(second, idem.OutcomeExecuted, 201, "2")
					if second.OperationID == first.OperationID {
						t.Error("both incarnations have one operation id")
					}
				})
			})
		}
	}
}

func TestDoWithoutTimeLeftReservesNothing(t *testing.T) { // 0 ms left is not "no deadline"
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		for _, left := range []time.Duration{0, time.Millisecond, 700 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(t.Context(), left)
			_, err := orders.Do(ctx, request("{}"), w.handler(201))
			cancel()
			if !errors.Is(err, idem.ErrNoTime) {
				t.Errorf("%v left: %v, want ErrNoTime", left, err)
			}
		}
		if result := w.do(orders, request("{}"), w.handler(201)); result.Outcome != idem.OutcomeExecuted {
			t.Errorf("%+v: something was reserved", result)
		}
	})
}

func TestLookupNeverExecutes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		if result, err := orders.Lookup(t.Context(), request("{}")); result != nil || err != nil {
			t.Fatalf("absent: %+v, %v; want nothing", result, err)
		}
		w.do(orders, request("{}"), w.handler(201))
		result, err := orders.Lookup(t.Context(), request("{}"))
		if err != nil {
			t.Fatal(err)
		}
		w.want(result, idem.OutcomeReplayed, 201, "1")
		if result, err = orders.Lookup(t.Context(), request(`{"a":2}`)); err != nil || result.Outcome != idem.OutcomeMismatch {
			t.Errorf("%+v, %v; want a mismatch", result, err)
		}
	})
}

// another is the id of another incarnation of the same scope.
func another(id idem.OperationID) idem.OperationID {
	last := byte('A')
	if id[len(id)-1] == last {
		last = 'B'
	}
	return id[:len(id)-1] + idem.OperationID(last)
}

func TestStatusShowsOnlyTheTenantsOwnOperation(t *testing.T) { // I5
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		id := w.do(orders, request("{}"), w.handler(201)).OperationID
		r, err := w.engine.Status(t.Context(), "t", id)
		if err != nil || r == nil || string(r.Response.Body) != "1" {
			t.Fatalf("%+v, %v; want the record with its response", r, err)
		}
		for tenant, id := range map[string]idem.OperationID{"u": id, "t": another(id), "t ": "op_nonsense"} {
			if r, err := w.engine.Status(t.Context(), tenant, id); r != nil || err != nil {
				t.Errorf("tenant %q, id %q: %+v, %v; want nothing", tenant, id, r, err)
			}
		}
	})
}

func TestAwaitHoldsForTheWholeWaitAndLooksOnceMore(t *testing.T) { // payments-api.md "Prefer: wait"
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindDeferred})
		id := w.do(orders, request("{}"), w.handler(202)).OperationID
		start := time.Now()
		r, err := w.engine.Await(t.Context(), "t", id, time.Second)
		if took := time.Since(start); err != nil || r == nil || r.State != storage.StatePending || took < time.Second || took > time.Second+10*time.Millisecond {
			t.Errorf("%+v, %v after %v; want it pending after 1 s", r, err, took)
		}
	})
}

// A clock that is set back holds nobody for longer than they asked for.
func TestAwaitHoldsForNoLongerWhereTheClockIsSetBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		var set atomic.Int64
		w.engineOf(store, idem.Config{Now: func() time.Time { return time.Now().Add(time.Duration(set.Load())) }})
		id := w.do(w.register(idem.Operation{Kind: idem.KindDeferred}), request("{}"), w.handler(202)).OperationID
		start := time.Now()
		time.AfterFunc(time.Second, func() { set.Store(int64(-time.Hour)) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := w.engine.Await(ctx, "t", id, 2*time.Second)
		if took := time.Since(start); err != nil || r == nil || r.State != storage.StatePending || took > 2*time.Second+10*time.Millisecond {
			t.Errorf("%+v, %v after %v; want it pending after 2 s", r, err, took)
		}
	})
}

// An operation inside another's handler, on the same engine, has settings, key and answer of its own.
func TestNestedOperationsDoNotShareAnything(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		outer := w.register(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic})
		inner := w.register(idem.Operation{Name: "orders.number", Kind: idem.KindOptimistic, Policy: idem.Lenient()})
		nested := func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
			number := w.do(inner, request(`{"inner":true}`), func(context.Context, *idem.Tx) (idem.Response, error) {
				return idem.Response{Status: 200, Body: []byte("inner")}, nil
			})
			tx.Write(count("business"))
			return idem.Response{Status: 201, Body: append([]byte("outer around "), number.Response.Body...)}, nil
		}
		w.want(w.do(outer, request("{}"), nested), idem.OutcomeExecuted, 201, "outer around inner")
		w.want(w.do(outer, request("{}"), nested), idem.OutcomeReplayed, 201, "outer around inner")
		w.want(w.do(inner, request(`{"another":"payload"}`), nested), idem.OutcomeReplayed, 200, "inner")
		w.written(1)
	})
}

// Spans are time.Duration throughout, so a lease ends after the execution's time and its margin.
func TestLeaseEndsWhenItShould(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		crash := func(context.Context, *idem.Tx) (idem.Response, error) {
			lease := 27 * time.Second // Config.ExecutionMax + Config.LeaseMargin
			time.Sleep(lease - time.Millisecond)
			if result := w.do(orders, request("{}"), w.handler(201)); result.Outcome != idem.OutcomeInProgress {
				t.Errorf("1 ms before the lease ends: %+v, want in progress", result)
			}
			time.Sleep(time.Millisecond)
			w.want(w.do(orders, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
			return idem.Response{}, errors.New("gone")
		}
		if _, err := orders.Do(t.Context(), request("{}"), crash); err == nil {
			t.Error("the holder that overstayed succeeded")
		}
		w.written(1)
	})
}
