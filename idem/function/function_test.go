package function_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/function"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// world is an engine on the reference store, whose calls a test can make fail.
type world struct {
	*testing.T
	mem    *memstore.Store
	store  *faulty.Store
	engine *idem.Engine

	mu   sync.Mutex
	runs int
}

func newWorld(t *testing.T, cfg idem.Config) *world {
	t.Helper()
	mem, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	store := faulty.New(mem)
	engine, err := idem.New(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, mem: mem, store: store, engine: engine}
}

// function registers a function whose key is "/id", unless the configuration says otherwise.
func (w *world) function(op idem.Operation, cfg function.Config) *function.Function {
	w.Helper()
	if op.Name == "" {
		op.Name = "charges.create"
	}
	if op.Policy.Name == "" {
		op.Policy = idem.IETF()
	}
	op.UnknownToOperator = op.Kind == idem.KindWrapped
	if cfg.TenantOf == nil {
		cfg.Tenant = "shop"
	}
	if cfg.Key.IsZero() {
		cfg.Key = function.JSONPointer("/id")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	fn, err := function.New(w.engine, op, cfg)
	if err != nil {
		w.Fatal(err)
	}
	return fn
}

// run counts an execution.
func (w *world) run() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs++
	return w.runs
}

func (w *world) ran(times int) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs != times {
		w.Errorf("the handler ran %d times, want %d", w.runs, times)
	}
}

// returning is a handler that writes a business row, unless it is wrapped's, and returns the output.
func (w *world) returning(kind idem.Kind, output string) function.Handler {
	return func(_ context.Context, tx *idem.Tx, _ []byte) ([]byte, error) {
		w.run()
		switch kind {
		case idem.KindAtomic, idem.KindOptimistic:
			tx.Write(memstore.Write{Key: "business", Apply: func(row []byte) []byte { return append(row, '1') }})
		case idem.KindDeferred:
			tx.Send("charges.call", []byte("charge"))
		}
		return []byte(output), nil
	}
}

func failing(w *world, err error) function.Handler {
	return func(_ context.Context, tx *idem.Tx, _ []byte) ([]byte, error) {
		w.run()
		return nil, err
	}
}

func (w *world) want(fn *function.Function, input string, h function.Handler, output string, replayed bool) function.Result {
	w.Helper()
	result, err := fn.Do(w.Context(), []byte(input), h)
	if err != nil || string(result.Output) != output || result.Replayed != replayed {
		w.Fatalf("%q, replayed %v, %v; want %q, replayed %v", result.Output, result.Replayed, err, output, replayed)
	}
	return result
}

// as finds the error of a type that a call has to end with.
func as[E error](t *testing.T, fn *function.Function, input string, h function.Handler) E {
	t.Helper()
	result, err := fn.Do(t.Context(), []byte(input), h)
	var wanted E
	if !errors.As(err, &wanted) {
		t.Fatalf("%+v, %v; want a %T", result, err, wanted)
	}
	return wanted
}

var kinds = []idem.Kind{idem.KindAtomic, idem.KindOptimistic, idem.KindDeferred, idem.KindWrapped}

// An output is stored however false it looks, and comes back byte for byte.
func TestOutputIsReplayed(t *testing.T) {
	for _, kind := range kinds {
		for _, output := range []string{`{"charge":1}`, `0`, `false`, `null`, `{}`, `""`, ``, " {\"b\":1, \"a\":2}\n", "\x00\xff"} {
			t.Run(fmt.Sprintf("%s %q", kind, output), func(t *testing.T) {
				w := newWorld(t, idem.Config{})
				fn := w.function(idem.Operation{Kind: kind}, function.Config{})
				h := w.returning(kind, output)
				first := w.want(fn, `{"id":"a"}`, h, output, false)
				again := w.want(fn, `{ "id": "a" }`, h, output, true)
				if first.OperationID == "" || first.OperationID != again.OperationID || first.Pending != (kind == idem.KindDeferred) || again.Pending != first.Pending {
					t.Errorf("%+v, then %+v", first, again)
				}
				w.ran(1)
				w.want(fn, `{"id":"b"}`, h, output, false)
				w.ran(2)
			})
		}
	}
}

func TestMismatch(t *testing.T) {
	w := newWorld(t, idem.Config{})
	fields, err := canonical.NewFields([]string{"/id", "/amount"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{Fields: fields})
	h := w.returning(idem.KindAtomic, "done")
	w.want(fn, `{"id":"a","amount":1,"sent":"now"}`, h, "done", false)
	w.want(fn, `{"sent":"later","amount":1.0,"id":"a"}`, h, "done", true)
	if _, err := fn.Do(t.Context(), []byte(`{"id":"a","amount":"1"}`), h); !errors.Is(err, function.ErrMismatch) {
		t.Errorf("got %v", err)
	}
	w.ran(1)
}

// What failed is not replayed for the whole window, nor is it done with (a marker that is set before handling
// loses what is not acknowledged). An error leaves nothing of an atomic function; a wrapped one may have had its
// effect, and is never executed again.
func TestErrorIsNotStored(t *testing.T) {
	trouble := errors.New("provider: 500")
	panicking := func(context.Context, *idem.Tx, []byte) ([]byte, error) { panic("boom") }
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t, idem.Config{})
			fn := w.function(idem.Operation{Kind: kind}, function.Config{})
			failed := as[*idem.HandlerError](t, fn, `{"id":"a"}`, failing(w, trouble))
			if !errors.Is(failed, trouble) {
				t.Errorf("the handler's error is lost: %v", failed)
			}
			if kind != idem.KindWrapped {
				as[*idem.HandlerError](t, fn, `{"id":"a"}`, panicking)
				w.want(fn, `{"id":"a"}`, w.returning(kind, "done"), "done", false)
				w.want(fn, `{"id":"a"}`, w.returning(kind, "done"), "done", true)
				w.ran(2)
				return
			}
			for range 2 {
				unknown := as[*function.UnknownError](t, fn, `{"id":"a"}`, w.returning(kind, "done"))
				if unknown.OperationID == "" || unknown.RetryAfter <= 0 {
					t.Errorf("%+v", unknown)
				}
			}
			w.ran(1)
		})
	}
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindWrapped, SafeToRunAgain: true}, function.Config{})
	as[*idem.HandlerError](t, fn, `{"id":"a"}`, failing(w, trouble))
	w.want(fn, `{"id":"a"}`, w.returning(idem.KindWrapped, "done"), "done", false)
}

// A rejection is a result: stored, whatever its status, for every kind.
func TestRejectionIsStored(t *testing.T) {
	for _, kind := range kinds {
		for _, status := range []int{402, 408, 409, 429} {
			w := newWorld(t, idem.Config{})
			fn := w.function(idem.Operation{Kind: kind}, function.Config{})
			h := failing(w, fmt.Errorf("charge: %w", &idem.RejectedError{Problem: idem.NewProblem(status, "declined", "Declined", "No funds.")}))
			for _, replayed := range []bool{false, true} {
				stored := as[*function.StoredError](t, fn, `{"id":"a"}`, h)
				problem, ok := stored.Problem()
				if !ok || problem.Code != "declined" || problem.Status != status || stored.Replayed != replayed || stored.OperationID == "" {
					t.Errorf("%s %d: %+v", kind, status, stored)
				}
				if errors.Is(stored, function.ErrOutputNotKept) || strings.Contains(stored.Error(), "funds") {
					t.Errorf("%s %d: %v", kind, status, stored)
				}
			}
			w.ran(1)
		}
	}
}

// A rejection without a 4xx is no output and no result: it is the handler's mistake, and what has run wrapped is unknown.
func TestRejectionThatIsNot4xxIsNoResult(t *testing.T) {
	for _, kind := range kinds {
		for _, status := range []int{0, 200, 503} {
			w := newWorld(t, idem.Config{})
			fn := w.function(idem.Operation{Kind: kind}, function.Config{})
			h := failing(w, &idem.RejectedError{Problem: idem.Problem{Status: status, Code: "declined", Title: "Declined"}})
			as[*idem.HandlerError](t, fn, `{"id":"a"}`, h)
			if kind == idem.KindWrapped {
				as[*function.UnknownError](t, fn, `{"id":"a"}`, h)
				continue
			}
			w.want(fn, `{"id":"a"}`, w.returning(kind, "done"), "done", false)
		}
	}
}

// An output that is too large fails before anything is committed; what has run wrapped is not run again, and its error is
// another one.
func TestOutputTooLarge(t *testing.T) {
	large := strings.Repeat("x", 101)
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t, idem.Config{ResponseBytesMax: 100})
			fn := w.function(idem.Operation{Kind: kind}, function.Config{})
			_, err := fn.Do(t.Context(), []byte(`{"id":"a"}`), w.returning(kind, large))
			var stored *function.StoredError
			wrapped := kind == idem.KindWrapped
			if errors.Is(err, idem.ErrResponseTooLarge) == wrapped || errors.Is(err, function.ErrOutputNotKept) != wrapped || errors.As(err, &stored) != wrapped {
				t.Fatalf("got %v", err)
			}
			if rows, messages := w.mem.Rows(), w.mem.Messages(); len(rows)+len(messages) > 0 {
				t.Errorf("committed %v %v", rows, messages)
			}
			if !wrapped {
				w.want(fn, `{"id":"a"}`, w.returning(kind, "small"), "small", false)
				return
			}
			again := as[*function.StoredError](t, fn, `{"id":"a"}`, w.returning(kind, "small"))
			if !errors.Is(again, function.ErrOutputNotKept) || !again.Replayed {
				t.Errorf("got %+v", again)
			}
			w.ran(1)
		})
	}
}

// An earlier release stored the same under the code by which nothing is committed: it is replayed as it is, and has run.
func TestAnOutputThatAnEarlierReleaseDidNotKeepHasRun(t *testing.T) {
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindWrapped}, function.Config{})
	kept := idem.NewProblem(http.StatusInternalServerError, header.CodeResponseTooLarge, "Response too large", "The request was executed.").Response()
	as[*idem.HandlerError](t, fn, `{"id":"a"}`, failing(w, errors.New("its process ends")))
	unknown := as[*function.UnknownError](t, fn, `{"id":"a"}`, w.returning(idem.KindWrapped, "run again"))
	found := func(context.Context, storage.Record) (idem.Response, bool, error) { return kept, false, nil }
	if state, err := w.engine.Reconcile(t.Context(), "shop", unknown.OperationID, 0, found); state != storage.StateCompleted {
		t.Fatal(state, err)
	}
	stored := as[*function.StoredError](t, fn, `{"id":"a"}`, w.returning(idem.KindWrapped, "run again"))
	if !bytes.Equal(stored.Response.Body, kept.Body) || !errors.Is(stored, function.ErrOutputNotKept) || !stored.Replayed {
		t.Errorf("got %+v", stored)
	}
	w.ran(1)
}

// A handler that changes its input in place changes neither the key nor the fingerprint, nor what its own
// next run reads.
func TestHandlerChangesItsInput(t *testing.T) {
	for _, kind := range kinds {
		w := newWorld(t, idem.Config{})
		fn := w.function(idem.Operation{Kind: kind}, function.Config{
			TenantOf: func(_ context.Context, input []byte) (string, error) { clear(input); return "shop", nil },
		})
		const original = `{"id":"a","amount":1}`
		input := []byte(original)
		result, err := fn.Do(t.Context(), input, func(ctx context.Context, tx *idem.Tx, input []byte) ([]byte, error) {
			if string(input) != original {
				t.Errorf("%s: the handler was given %s", kind, input)
			}
			copy(input, `{"id":"b","amount":2}`)
			return w.returning(kind, "done")(ctx, tx, input)
		})
		if err != nil || string(result.Output) != "done" || string(input) != original {
			t.Fatalf("%s: %+v, %v, input %s", kind, result, err, input)
		}
		w.want(fn, original, w.returning(kind, "done"), "done", true)
		w.want(fn, `{"id":"b","amount":2}`, w.returning(kind, "done"), "done", false)
	}
}

// Not even a handler that changes its caller's input, which it closes over, changes what the next run reads.
func TestEachRunHasItsOwnInput(t *testing.T) {
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{})
	const original = `{"id":"a"}`
	callers := []byte(original)
	result, err := fn.Do(t.Context(), callers, func(_ context.Context, tx *idem.Tx, input []byte) ([]byte, error) {
		output := bytes.Clone(input)
		clear(input)
		clear(callers)
		current := tx.Attempt() == 2
		tx.Write(memstore.Write{Key: "row", Condition: func([]byte) bool { return current }, Failure: idem.Retry()})
		return output, nil
	})
	if err != nil || string(result.Output) != original {
		t.Errorf("%s, %v", result.Output, err)
	}
	w.want(fn, original, nil, original, true)
}

// Nested functions share nothing, not even where their keys are equal; and the same function within itself
// meets its own key.
func TestNestedFunctions(t *testing.T) {
	w := newWorld(t, idem.Config{})
	outer := w.function(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic}, function.Config{})
	inner := w.function(idem.Operation{Name: "mails.send", Kind: idem.KindWrapped}, function.Config{Key: function.JSONPointer("/id")})
	const input = `{"id":"a"}`
	h := func(ctx context.Context, tx *idem.Tx, in []byte) ([]byte, error) {
		w.run()
		var running *function.InProgressError
		if _, err := outer.Do(ctx, in, nil); !errors.As(err, &running) || running.RetryAfter <= 0 {
			t.Errorf("the function within itself: %v", err)
		}
		mail, err := inner.Do(ctx, in, w.returning(idem.KindWrapped, "mail"))
		if err != nil {
			return nil, err
		}
		return append([]byte("order, "), mail.Output...), nil
	}
	w.want(outer, input, h, "order, mail", false)
	w.want(outer, input, h, "order, mail", true)
	w.want(inner, input, w.returning(idem.KindWrapped, "another"), "mail", true)
	w.ran(2)
}

// A rejection of an inner function is an error of the outer one, and not the outer one's own rejection.
func TestNestedRejectionIsNotTheOuterOnes(t *testing.T) {
	w := newWorld(t, idem.Config{})
	outer := w.function(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic}, function.Config{})
	inner := w.function(idem.Operation{Name: "mails.send", Kind: idem.KindAtomic}, function.Config{})
	rejecting := failing(w, &idem.RejectedError{Problem: idem.NewProblem(422, "no_address", "No address", "None.")})
	as[*idem.HandlerError](t, outer, `{"id":"a"}`, func(ctx context.Context, _ *idem.Tx, in []byte) ([]byte, error) {
		_, err := inner.Do(ctx, in, rejecting)
		return nil, err
	})
	w.want(outer, `{"id":"a"}`, w.returning(idem.KindAtomic, "done"), "done", false)
}

func TestTenantsDoNotMeet(t *testing.T) {
	type tenantKey struct{}
	w := newWorld(t, idem.Config{})
	fn := w.function(idem.Operation{Kind: idem.KindAtomic}, function.Config{TenantOf: func(ctx context.Context, _ []byte) (string, error) {
		tenant, _ := ctx.Value(tenantKey{}).(string)
		return tenant, nil
	}})
	for i, tenant := range []string{"alice", "bob"} {
		result, err := fn.Do(context.WithValue(t.Context(), tenantKey{}, tenant), []byte(`{"id":"a"}`), w.returning(idem.KindAtomic, tenant))
		if err != nil || string(result.Output) != tenant {
			t.Errorf("%d: %+v, %v", i, result, err)
		}
	}
	if _, err := fn.Do(t.Context(), []byte(`{"id":"a"}`), w.returning(idem.KindAtomic, "")); err == nil {
		t.Error("executed without a tenant")
	}
	w.ran(2)
}

// Expiry is the operation's: a key may be used again a retention after its end.
func TestExpiryPerOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, idem.Config{})
		retained := func(name string, retention time.Duration) *function.Function {
			policy := idem.IETF()
			policy.Retention = retention
			return w.function(idem.Operation{Name: name, Kind: idem.KindAtomic, Policy: policy}, function.Config{})
		}
		hour, week := retained("hours.count", time.Hour), retained("weeks.count", 7*24*time.Hour)
		h := w.returning(idem.KindAtomic, "done")
		for _, fn := range []*function.Function{hour, week} {
			w.want(fn, `{"id":"a"}`, h, "done", false)
		}
		time.Sleep(time.Hour - time.Millisecond)
		w.want(hour, `{"id":"a"}`, h, "done", true)
		time.Sleep(time.Millisecond + 2*time.Second) // and the default of Config.ClockSkew
		w.want(hour, `{"id":"a"}`, h, "done", false)
		w.want(week, `{"id":"a"}`, h, "done", true)
		time.Sleep(7 * 24 * time.Hour)
		w.want(week, `{"id":"a"}`, h, "done", false)
	})
}

// A deferred function's later calls get what its worker settled, success or not.
func TestDeferredEnds(t *testing.T) {
	for _, status := range []int{201, 402, 502} {
		w := newWorld(t, idem.Config{})
		fn := w.function(idem.Operation{Kind: idem.KindDeferred}, function.Config{})
		h := w.returning(idem.KindDeferred, "accepted")
		w.want(fn, `{"id":"a"}`, h, "accepted", false)
		m, now := w.mem.Messages()[0], time.Now()
		settle, err := w.mem.PrepareSettle(storage.Settlement{
			Message: storage.MessageEnd{ID: m.ID, State: storage.MessageDelivered, DoneAt: now}, Fence: storage.FenceOfMessage(m),
			Record: &storage.RecordEnd{
				Key: m.RecordKey, OperationID: m.OperationID, State: storage.StateCompleted, DoneAt: now, ExpiresAt: now.Add(m.Retention),
				Response: idem.Response{Status: status, Body: []byte(`{"code":"the end"}`)},
			},
			Token: "settle",
		})
		if err == nil {
			err = settle(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if status < 400 {
			if result := w.want(fn, `{"id":"a"}`, h, `{"code":"the end"}`, true); result.Pending {
				t.Error("still pending")
			}
			continue
		}
		stored := as[*function.StoredError](t, fn, `{"id":"a"}`, h)
		if _, isProblem := stored.Problem(); isProblem || stored.Response.Status != status || string(stored.Response.Body) != `{"code":"the end"}` {
			t.Errorf("%d: %+v", status, stored)
		}
	}
}
