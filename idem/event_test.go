package idem_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// told is a world whose engine logs into a buffer.
type told struct {
	*world
	store *faulty.Store
	log   *bytes.Buffer
}

const (
	secretKey  = "the-client-s-own-key"
	secretBody = `{"card":"4242"}`
)

func newTold(t *testing.T, quota idem.Quota) *told {
	t.Helper()
	w, store := newFaultyWorld(t)
	log := &bytes.Buffer{}
	var err error
	w.engine, err = idem.New(store, idem.Config{Quota: quota, Logger: slog.New(slog.NewJSONHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return &told{w, store, log}
}

func secret() idem.Request {
	return idem.Request{Tenant: "acme", Key: secretKey, Input: canonical.Input{MediaType: "application/json", Body: []byte(secretBody)}}
}

// do asks and leaves the judgement to the log.
func (w *told) do(op *idem.Registered, req idem.Request, h idem.Handler) (*idem.Result, error) {
	return op.Do(w.Context(), req, h)
}

// event is an event line.
type event struct {
	Level       string            `json:"level"`
	Msg         string            `json:"msg"`
	Operation   string            `json:"operation"`
	Tenant      string            `json:"tenant"`
	KeyHash     storage.RecordKey `json:"key_hash"`
	OperationID idem.OperationID  `json:"operation_id"`
	Outcome     string            `json:"outcome"`
	TookMillis  *int64            `json:"took_ms"`
	Attempts    *int              `json:"attempts"`
	Error       string            `json:"error"`
}

// events returns the event lines since the last call, and fails where any line tells a secret.
func (w *told) events() []event {
	w.Helper()
	text := w.log.String()
	w.log.Reset()
	for _, s := range []string{secretKey, "4242"} {
		if strings.Contains(text, s) {
			w.Errorf("the log tells %q:\n%s", s, text)
		}
	}
	var events []event
	for line := range strings.Lines(text) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.Fatal(err)
		}
		if strings.HasPrefix(e.Msg, "idempotency.") {
			events = append(events, e)
		}
	}
	return events
}

// told demands exactly these events, "message outcome" each.
func (w *told) told(want ...string) []event {
	w.Helper()
	events := w.events()
	got := make([]string, len(events))
	for i, e := range events {
		got[i] = e.Msg + " " + e.Outcome
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return events
}

// semantics.md "Metrics": one event line for each request, whatever its operation's kind.
func TestDoTellsOneEvent(t *testing.T) {
	for _, op := range append(kinds, idem.Operation{Kind: idem.KindWrapped}) {
		t.Run(string(op.Kind), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newTold(t, nil)
				orders := w.register(op)
				result, _ := w.do(orders, secret(), w.effect(201, "made"))
				first := w.told("idempotency.reserve.created executed")[0]
				if first.Operation != "orders.create" || first.Tenant != "acme" || first.KeyHash != orders.RecordKey(secret()) || first.Level != "INFO" ||
					first.OperationID != result.OperationID || first.TookMillis == nil || first.Attempts == nil || *first.Attempts != 1 {
					t.Errorf("%+v", first)
				}
				w.do(orders, secret(), w.effect(201, "made"))
				if again := w.told("idempotency.reserve.replay replayed")[0]; again.OperationID != result.OperationID || *again.Attempts != 1 {
					t.Errorf("%+v", again)
				}
				other := secret()
				other.Input.Body = []byte(`{"card":"4242","amount":1}`)
				w.do(orders, other, w.effect(201, "made"))
				if misuse := w.told("idempotency.reserve.key_misuse mismatch")[0]; misuse.Level != "WARN" || misuse.OperationID != "" {
					t.Errorf("%+v", misuse)
				}
			})
		})
	}
}

func TestDoTellsRetriesOfWhatDidNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTold(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		w.do(orders, secret(), w.handler(503)) // not stored: released
		w.told("idempotency.reserve.created executed")
		w.do(orders, secret(), func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{}, errors.New(secretBody) })
		w.told("idempotency.reserve.failed_retry handler_failed")
		w.do(orders, secret(), w.handler(201))
		if third := w.told("idempotency.reserve.failed_retry executed")[0]; *third.Attempts != 3 {
			t.Errorf("%+v", third)
		}
	})
}

// A holder that sleeps through its lease is robbed, and learns it when it commits.
func TestDoTellsZombies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTold(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		w.do(orders, secret(), func(ctx context.Context, tx *idem.Tx) (idem.Response, error) {
			w.do(orders, secret(), w.handler(201))
			w.told("idempotency.reserve.in_progress in_progress")
			time.Sleep(time.Minute)
			w.do(orders, secret(), w.handler(201))
			w.told("idempotency.reserve.failed_retry executed")
			return idem.JSON(201, "late")
		})
		zombie := w.told("idempotency.zombie_key ", "idempotency.reserve.replay replayed")[0]
		if zombie.Level != "WARN" || zombie.Tenant != "acme" || zombie.KeyHash != orders.RecordKey(secret()) || zombie.OperationID == "" {
			t.Errorf("%+v", zombie)
		}
		w.written(1)
	})
}

// One that gives up in the end learns it when it releases; one that was not robbed is none.
func TestDoTellsZombiesThatRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTold(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		failing := func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{}, errors.New("failed") }
		w.do(orders, secret(), failing)
		w.told("idempotency.reserve.created handler_failed")
		w.store.On(faulty.Update, 2, freeze(time.Minute, func() { // the release, delayed past the lease
			w.do(orders, secret(), w.handler(201))
			w.told("idempotency.reserve.failed_retry executed")
		}))
		w.do(orders, secret(), failing)
		w.told("idempotency.zombie_key ", "idempotency.reserve.failed_retry handler_failed")
	})
}

func TestDoTellsUnknown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTold(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindWrapped})
		w.do(orders, secret(), w.effect(500, ""))
		w.do(orders, secret(), w.effect(201, ""))
		if unknown := w.told("idempotency.reserve.created executed", "idempotency.reserve.unknown unknown")[1]; unknown.Level != "WARN" || unknown.OperationID == "" {
			t.Errorf("%+v", unknown)
		}
	})
}

func TestDoTellsStoreErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTold(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		for n := 1; n <= 500; n++ {
			w.store.On(faulty.Insert, n, faulty.LoseRequest())
			w.store.On(faulty.Get, n, faulty.LoseRequest())
		}
		w.do(orders, secret(), w.handler(201))
		if down := w.told("idempotency.store.error unavailable")[0]; down.Level != "ERROR" || down.Error == "" {
			t.Errorf("%+v", down)
		}
		if _, err := orders.Lookup(t.Context(), secret()); err == nil {
			t.Error("looked up")
		}
		w.told("idempotency.store.error unavailable")
		if _, err := w.engine.Status(t.Context(), "acme", idem.OperationID("op_"+strings.Repeat("A", 64))); err == nil {
			t.Error("status was read")
		}
		w.told("idempotency.store.error unavailable")
	})
}

func TestDoTellsQuotas(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTold(t, &counted{keys: 1})
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		result, _ := w.do(orders, secret(), w.handler(201))
		other := secret()
		other.Key += "2"
		w.do(orders, other, w.handler(201))
		if _, err := w.engine.Status(t.Context(), "acme", result.OperationID); err == nil {
			t.Error("status was read")
		}
		other.OneOff = true
		w.do(orders, other, w.handler(201))
		events := w.told("idempotency.reserve.created executed", "idempotency.quota.rejected quota_exceeded",
			"idempotency.quota.rejected quota_exceeded", "idempotency.quota.rejected quota_exceeded")
		for _, e := range events[1:] {
			if e.Tenant != "acme" {
				t.Errorf("%+v", e)
			}
		}
	})
}

// What never got to a reserve is told too, and is no metric.
func TestDoTellsRefusals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTold(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		malformed := secret()
		malformed.Input.Body = []byte(`{"card":"4242"`)
		w.do(orders, malformed, w.handler(201))
		if _, err := orders.Lookup(t.Context(), malformed); err == nil {
			t.Error("looked up")
		}
		w.told("idempotency.refused failed", "idempotency.refused failed")

		hurried, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		defer cancel()
		if _, err := orders.Do(hurried, secret(), w.handler(201)); !errors.Is(err, idem.ErrNoTime) {
			t.Error(err)
		}
		w.told("idempotency.refused no_time")

		future := secret()
		future.FirstSent = new(time.Now().Add(time.Hour))
		w.do(orders, future, w.handler(201))
		old := secret()
		old.FirstSent = new(time.Now().Add(-48 * time.Hour))
		w.do(orders, old, w.handler(201))
		w.told("idempotency.refused key_time", "idempotency.refused expired")
		w.ran(0)

		large := func(context.Context, *idem.Tx) (idem.Response, error) {
			return idem.Response{Status: 201, Body: make([]byte, 4<<20)}, nil
		}
		w.do(orders, secret(), large)
		w.told("idempotency.reserve.created response_too_large")
	})
}

func TestLookupTellsWhatItAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTold(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindAtomic})
		if result, err := orders.Lookup(t.Context(), secret()); result != nil || err != nil {
			t.Errorf("%+v, %v", result, err)
		}
		w.told()
		w.do(orders, secret(), w.handler(201))
		if result, err := orders.Lookup(t.Context(), secret()); result == nil || err != nil {
			t.Errorf("%+v, %v", result, err)
		}
		w.told("idempotency.reserve.created executed", "idempotency.reserve.replay replayed")
	})
}

// Requests without protection are package middleware's to tell of, which knows why.
func TestDoDoesNotTellOfUnprotectedRequests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTold(t, nil)
		policy := idem.Observe(idem.IETF())
		orders := w.register(idem.Operation{Kind: idem.KindAtomic, Policy: policy})
		oneOff := secret()
		oneOff.OneOff = true
		w.do(orders, oneOff, w.handler(201))
		w.told()
		other := secret()
		other.Key += "2"
		w.do(orders, other, w.handler(201))
		w.told("idempotency.reserve.created executed")
		w.do(orders, other, w.handler(201))
		other.Input.Body = []byte(`{}`)
		w.do(orders, other, w.handler(201))
		w.told()
		for n := 1; n <= 500; n++ {
			w.store.On(faulty.Insert, n, faulty.LoseRequest())
		}
		w.do(orders, oneOff, w.handler(201))
		w.told("idempotency.store.error unavailable") // which is not theirs alone
		w.ran(2)
	})
}

// A client that hangs up is no trouble of the store's.
func TestDoTellsHangUpsApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTold(t, nil)
		orders := w.register(idem.Operation{Kind: idem.KindOptimistic})
		ctx, hangUp := context.WithCancel(t.Context())
		w.store.On(faulty.Get, 1, func(ctx context.Context, run func(context.Context) error) error {
			hangUp()
			return ctx.Err()
		})
		if _, err := orders.Do(ctx, secret(), w.handler(201)); err == nil {
			t.Error("executed")
		}
		w.told("idempotency.refused canceled")
	})
}

// hangingQuota answers nothing. As package quota, it bounds its calls by a context that package context makes of the request's.
type hangingQuota struct{}

func (q hangingQuota) NewKey(ctx context.Context, tenant string) (func(), error) {
	return nil, q.LookUp(ctx, tenant)
}

func (hangingQuota) LookUp(ctx context.Context, _ string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	<-ctx.Done()
	return ctx.Err()
}

// What hangs until the request's time is over is in trouble: contexts that are made of one that the engine has bounded say that they were
// cancelled, and nobody hung up.
func TestWhatHangsIsToldFromAHangUp(t *testing.T) {
	for name, c := range map[string]struct {
		quota idem.Quota
		hangs []faulty.Call
	}{
		"the mark of the secret": {nil, []faulty.Call{faulty.ScopeMark, faulty.Get}}, "the record": {nil, []faulty.Call{faulty.Get}}, "the quota": {hangingQuota{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newTold(t, c.quota)
				orders := w.register(idem.Operation{Kind: idem.KindOptimistic})
				w.store.Each(func(made faulty.Call) faulty.Fault {
					if slices.Contains(c.hangs, made) {
						return hang
					}
					return faulty.Before(func() {})
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := orders.Do(ctx, secret(), w.handler(201)); err == nil {
					t.Error("executed")
				}
				w.told("idempotency.store.error unavailable")
				ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				if _, err := w.engine.Status(ctx, "acme", idem.OperationID("op_"+strings.Repeat("A", 64))); err == nil {
					t.Error("status was read")
				}
				w.told("idempotency.store.error unavailable")
			})
		})
	}
}

// levels is a handler of one level that counts what it is given.
type levels struct {
	level slog.Level
	lines int
}

func (l *levels) Enabled(_ context.Context, level slog.Level) bool { return level >= l.level }
func (l *levels) Handle(context.Context, slog.Record) error        { l.lines++; return nil }
func (l *levels) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *levels) WithGroup(string) slog.Handler                    { return l }

// Nothing is made for a logger that does not want it.
func TestEventsAskTheLoggerFirst(t *testing.T) {
	mem, err := memstore.New(memstore.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for level, want := range map[slog.Level]int{slog.LevelInfo: 1, slog.LevelWarn: 0} {
		lines := &levels{level: level}
		engine, err := idem.New(mem, idem.Config{Logger: slog.New(lines), ScopeSecret: make([]byte, 32)})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{T: t, mem: mem, engine: engine}
		req := secret()
		req.Key = level.String()
		w.want(w.do(w.register(idem.Operation{Kind: idem.KindAtomic}), req, w.handler(200)), idem.OutcomeExecuted, 200, "1")
		if lines.lines != want {
			t.Errorf("%s: %d lines, want %d", level, lines.lines, want)
		}
	}
}

// The alarm about a key that was only observed is an error: a logger that wants nothing less gets it, without the request's own line.
func TestTheAlarmOfAnObservedKeyReachesALoggerOfErrors(t *testing.T) {
	for level, want := range map[slog.Level]int{slog.LevelInfo: 2, slog.LevelWarn: 2, slog.LevelError: 1} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t, nil)
			lines := &levels{level: level}
			config := idem.Config{Logger: slog.New(lines), ScopeSecret: make([]byte, 32)}
			w.engineOf(w.mem, config)
			observed := w.register(idem.Operation{Kind: idem.KindAtomic, Policy: idem.Observe(idem.IETF())})
			_, _ = observed.Do(t.Context(), secret(), func(context.Context, *idem.Tx) (idem.Response, error) {
				return idem.Response{}, errors.New("nothing happened")
			})
			lines.lines = 0
			w.engineOf(w.mem, config)
			w.want(w.do(w.register(idem.Operation{Kind: idem.KindAtomic}), secret(), w.handler(201)), idem.OutcomeUnknown, 0, "")
			if lines.lines != want {
				t.Errorf("%s: %d lines, want %d", level, lines.lines, want)
			}
		})
	}
}
