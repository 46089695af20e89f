package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/breaker"
	"github.com/idem-go/idem-aws/idem/internal/timers"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// world is a breaker around a store that can be taken down, in a bubble whose clock moves both.
type world struct {
	*testing.T
	mem     *memstore.Store
	faults  *faulty.Store
	breaker *breaker.Store
}

func newWorld(t *testing.T, cfg breaker.Config) *world {
	t.Helper()
	mem := must[*memstore.Store](t)(memstore.New(memstore.Config{}))
	faults := faulty.New(mem)
	return &world{t, mem, faults, must[*breaker.Store](t)(breaker.New(faults, cfg))}
}

// get is the call that begins a request.
func (w *world) get() error {
	_, err := w.breaker.Get(w.Context(), "absent")
	return err
}

// trip takes the store down and calls until the breaker refuses.
func (w *world) trip() {
	w.Helper()
	w.faults.All(faulty.LoseRequest())
	for range 10 {
		if notAsked(w.get()) != nil {
			return
		}
	}
	w.Fatal("the breaker never opened")
}

func notAsked(err error) *storage.NotAskedError {
	var notAsked *storage.NotAskedError
	if errors.As(err, &notAsked) {
		return notAsked
	}
	return nil
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		mem := must[*memstore.Store](t)(memstore.New(memstore.Config{}))
		rows := func(key string) int { return len(mem.Row(key)) }
		once := func(row []byte) []byte { return append(row, '1') }
		return storetest.Harness{
			Store: must[*breaker.Store](t)(breaker.New(mem, breaker.Config{})),
			InsertRow: func(key string, failure storage.Failure) storage.Write {
				return memstore.Write{Key: key, Condition: func(row []byte) bool { return row == nil }, Apply: once, Failure: failure}
			},
			AddRow:   func(key string) storage.Write { return memstore.Write{Key: key, Apply: once} },
			CountRow: func(_ context.Context, key string) (int, error) { return rows(key), nil },
		}
	})
}

func TestOpensAfterFailuresInARowAndProbesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, breaker.Config{FailuresMax: 3, OpenFor: 10 * time.Second})
		w.faults.All(faulty.LoseRequest())
		for range 2 {
			_ = w.get()
		}
		w.faults.Clear()
		if err := w.get(); err != nil { // any answer begins the count anew
			t.Fatal(err)
		}
		w.faults.All(faulty.LoseRequest())
		for n := range 3 {
			if err := w.get(); err == nil || notAsked(err) != nil {
				t.Fatalf("failure %d: %v, want what the store said", n, err)
			}
		}
		asked := w.faults.Count(faulty.Get)
		time.Sleep(4 * time.Second)
		err := w.get()
		if refused := notAsked(err); refused == nil || refused.RetryAfter != 6*time.Second {
			t.Errorf("%v, want 6 s until it half-opens", err)
		}
		var unknown *storage.OutcomeUnknownError
		if errors.As(err, &unknown) || w.faults.Count(faulty.Get) != asked {
			t.Errorf("%v after %d calls more, want nothing sent and nothing unknown", err, w.faults.Count(faulty.Get)-asked)
		}

		// Half-open: one probe at a time, and a failing one opens it for as long again.
		time.Sleep(6*time.Second + 1)
		w.faults.Clear()
		gate := faulty.NewGate()
		w.faults.On(faulty.Get, 1, gate.Before())
		w.faults.On(faulty.Get, 1, faulty.LoseRequest())
		probed := make(chan error, 1)
		go func() { probed <- w.get() }()
		<-gate.Reached()
		if refused := notAsked(w.get()); refused == nil || refused.RetryAfter != time.Second {
			t.Errorf("beside the probe: %v, want to ask again after a second", refused)
		}
		gate.Release()
		if err := <-probed; err == nil || notAsked(err) != nil {
			t.Errorf("the probe got %v, want what the store said", err)
		}
		if refused := notAsked(w.get()); refused == nil || refused.RetryAfter != 10*time.Second {
			t.Errorf("after a failed probe: %v, want 10 s", refused)
		}

		time.Sleep(10*time.Second + 1)
		for range 2 {
			if err := w.get(); err != nil {
				t.Errorf("after the store is back: %v", err)
			}
		}
	})
}

// caller is what the context of a call carries, as a request's carries its id.
type caller struct{}

// callers notes for each line whose call it belongs to.
type callers struct {
	slog.Handler
	lines []string
}

func (c *callers) Handle(ctx context.Context, r slog.Record) error {
	whose, _ := ctx.Value(caller{}).(string)
	c.lines = append(c.lines, r.Message+" by "+whose)
	return nil
}

func (c *callers) Enabled(context.Context, slog.Level) bool { return true }

func TestEachChangeIsLoggedByTheCallThatMadeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &callers{}
		w := newWorld(t, breaker.Config{FailuresMax: 2, Logger: slog.New(log)})
		as := func(name string) { _, _ = w.breaker.Get(context.WithValue(t.Context(), caller{}, name), "absent") }
		w.faults.All(faulty.LoseRequest())
		as("first")
		as("second")
		as("refused")
		w.faults.Clear()
		time.Sleep(5*time.Second + 1)
		as("probe")
		as("after")
		want := []string{
			"the store is down: the circuit breaker opened by second", "circuit breaker by probe", "circuit breaker by probe",
		}
		if !slices.Equal(log.lines, want) {
			t.Errorf("logged %q, want %q", log.lines, want)
		}
	})
}

// A probe that panics or that proves nothing must not keep the breaker half-open.
func TestProbesAlwaysEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, breaker.Config{})
		w.trip()
		w.faults.Clear()
		time.Sleep(5*time.Second + 1)
		w.faults.On(faulty.Get, 1, func(context.Context, func(context.Context) error) error { panic("a bug") })
		func() {
			defer func() { _ = recover() }()
			_ = w.get()
		}()
		ctx, hangUp := context.WithCancel(t.Context())
		hangUp()
		if _, err := w.breaker.Get(ctx, "absent"); !errors.Is(err, context.Canceled) {
			t.Errorf("the probe of a caller that hung up: %v", err)
		}
		if err := w.get(); err != nil {
			t.Errorf("the next probe: %v", err)
		}
	})
}

type sdkError struct{ status int }

func (sdkError) Error() string         { return "operation error DynamoDB" }
func (e sdkError) HTTPStatusCode() int { return e.status }

func TestWhatCountsAsAFailure(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		down bool
	}{
		"a write without a reply":    {&storage.OutcomeUnknownError{Cause: io.EOF}, true},
		"a read that timed out":      {fmt.Errorf("get: %w", context.DeadlineExceeded), true},
		"a refused connection":       {fmt.Errorf("get: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), true},
		"a broken connection":        {io.ErrUnexpectedEOF, true},
		"a 503":                      {fmt.Errorf("get: %w", sdkError{503}), true},
		"a 400":                      {fmt.Errorf("get: %w", sdkError{400}), false},
		"a lost condition":           {&storage.RecordConflictError{}, false},
		"a business condition":       {&storage.WriteFailedError{Indexes: []int{0}}, false},
		"a running transaction":      {storage.ErrContention, false},
		"a throttle":                 {storage.ErrThrottled, false},
		"a row that can't be read":   {errors.New("the stored record can't be read"), false},
		"a response that is too big": {storage.ErrResponseTooLarge, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, breaker.Config{FailuresMax: 2})
			w.faults.All(faulty.Refuse(test.err))
			for range 3 {
				_ = w.get()
			}
			if opened := notAsked(w.get()) != nil; opened != test.down {
				t.Errorf("it opened: %v, want %v", opened, test.down)
			}
		})
	}
}

// What never left this process, because it was frozen or has no credentials, says nothing about the store.
func TestWhatNeverLeftIsNoFailure(t *testing.T) {
	w := newWorld(t, breaker.Config{FailuresMax: 2})
	w.faults.All(faulty.Refuse(&storage.NotAskedError{Cause: fmt.Errorf("late: %w", context.DeadlineExceeded)}))
	for range 5 {
		if refused := notAsked(w.get()); refused == nil || refused.Cause == nil {
			t.Fatalf("got %v, want what the store said", refused)
		}
	}
}

// A call that ends long after its time was over says nothing about the store: its process was frozen, or the machine had no time for it. All calls
// that were under way would count at once.
func TestACallThatAFreezeEndedIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, late := range []time.Duration{499 * time.Millisecond, 500 * time.Millisecond, time.Hour} {
			w := newWorld(t, breaker.Config{FailuresMax: 1})
			w.faults.All(func(ctx context.Context, _ func(context.Context) error) error {
				<-ctx.Done()
				time.Sleep(late)
				return ctx.Err()
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, _ = w.breaker.Get(ctx, "absent")
			cancel()
			if opened := notAsked(w.again()) != nil; opened != (late < 500*time.Millisecond) {
				t.Errorf("a call that ended %v after its time opened it: %v", late, opened)
			}
		}
	})
}

// A caller that hangs up, or that had no time to begin with, says nothing about the store.
func TestTheCallersOwnEndIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, breaker.Config{FailuresMax: 1, Patience: time.Second})
		hang := func(ctx context.Context, _ func(context.Context) error) error {
			<-ctx.Done()
			return ctx.Err()
		}
		w.faults.All(hang)
		ctx, cancel := context.WithTimeout(t.Context(), 999*time.Millisecond)
		defer cancel()
		_, _ = w.breaker.Get(ctx, "absent")
		if err := w.again(); err != nil {
			t.Errorf("a time-out after less than its patience opened it: %v", err)
		}
		w.faults.All(hang)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = w.breaker.Get(ctx, "absent")
		if notAsked(w.again()) == nil {
			t.Error("a time-out after 1 s of patience did not open it")
		}
	})
}

// The engine bounds a request's time by contexts of its own. One that package context makes of such a context says that it was cancelled when the
// time is over: a store that hangs until then is down, and only who hung up says nothing about it.
func TestATimeOutThatItsContextCallsACancellationIsAFailure(t *testing.T) {
	for name, hangs := range map[string]faulty.Fault{
		"a write": hang, "a read": func(ctx context.Context, _ func(context.Context) error) error { <-ctx.Done(); return ctx.Err() },
	} {
		for _, hangsUp := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, its caller hangs up: %v", name, hangsUp), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var set timers.Set
					w := newWorld(t, breaker.Config{FailuresMax: 1, Patience: time.Second})
					w.faults.All(hangs)
					bounded, cancel := set.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					ctx, end := context.WithTimeout(bounded, time.Minute)
					defer end()
					if hangsUp {
						time.AfterFunc(time.Second, cancel)
					}
					_, _ = w.breaker.Get(ctx, "absent")
					if opened := notAsked(w.again()) != nil; opened == hangsUp {
						t.Errorf("it opened: %v", opened)
					}
				})
			})
		}
	}
}

// again calls once the store is well.
func (w *world) again() error {
	w.faults.Clear()
	return w.get()
}

func TestNewNamesWhatItRefuses(t *testing.T) {
	mem := must[*memstore.Store](t)(memstore.New(memstore.Config{}))
	for field, cfg := range map[string]breaker.Config{
		"Config.FailuresMax": {FailuresMax: -1}, "Config.OpenFor": {OpenFor: time.Millisecond}, "Config.Patience": {Patience: -1},
	} {
		var rejected *idem.ConfigError
		if _, err := breaker.New(mem, cfg); !errors.As(err, &rejected) || rejected.Field != field {
			t.Errorf("got %v, want %s rejected", err, field)
		}
	}
	var rejected *idem.ConfigError
	if _, err := breaker.New(nil, breaker.Config{}); !errors.As(err, &rejected) {
		t.Errorf("no store: %v", err)
	}
}

func TestTheBoundOnAResponseIsTheStores(t *testing.T) {
	mem := must[*memstore.Store](t)(memstore.New(memstore.Config{ResponseBytesMax: 1000}))
	if got := must[*breaker.Store](t)(breaker.New(mem, breaker.Config{})).ResponseBytesMax(); got != 1000 {
		t.Errorf("got %d", got)
	}
}

// decrypting is a store that says that it decrypts.
type decrypting struct{ *memstore.Store }

func (decrypting) Decrypts() bool { return true }

// A desk resolves what stays sealed where its store decrypts: a breaker passes on what its own store says.
func TestABreakerTellsWhetherItsStoreDecrypts(t *testing.T) {
	within := must[*memstore.Store](t)(memstore.New(memstore.Config{}))
	for want, store := range map[bool]breaker.Inner{false: within, true: decrypting{within}} {
		if got := storage.Decrypts(must[*breaker.Store](t)(breaker.New(store, breaker.Config{}))); got != want {
			t.Errorf("%t, want %t", got, want)
		}
	}
}
