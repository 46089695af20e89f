package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// scopeSecret is a secret that its name makes.
func scopeSecret(name string) []byte { return bytes.Repeat([]byte(name), 32)[:32] }

// payments is the operation in a process of its own.
func payments(t *testing.T, store storage.Store, cfg idem.Config) (*idem.Engine, *idem.Registered) {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	engine, err := idem.New(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	op, err := engine.Register(idem.Operation{Name: "payments.create", Kind: idem.KindAtomic, Policy: idem.IETF()})
	if err != nil {
		t.Fatal(err)
	}
	return engine, op
}

// Operation ids go to providers, logs and clients. Client's keys are often order numbers: whoever has an id must not find out
// which one by trying.
func TestAGuessedKeyIsConfirmedByAnOperationIDOnlyWithoutASecret(t *testing.T) {
	guess := idem.Scope{Tenant: "t", Operation: "payments.create", Key: "k"}
	for name, secret := range map[string][]byte{"without": nil, "with": scopeSecret("a")} {
		w := newWorld(t, nil)
		engine, op := payments(t, w.mem, idem.Config{ScopeSecret: secret})
		result := w.do(op, request("{}"), w.handler(201))
		shown, err := result.OperationID.RecordKey()
		if err != nil {
			t.Fatal(err)
		}
		if confirmed := shown == guess.RecordKey(); confirmed != (secret == nil) {
			t.Errorf("%s a secret the guess is confirmed: %v", name, confirmed)
		}
		if key, err := engine.RecordKey(t.Context(), guess); err != nil || key != shown || op.RecordKey(request("{}")) != shown {
			t.Errorf("%s a secret the engine names the record %s, %v, and the log %s; want %s", name, key, err, op.RecordKey(request("{}")), shown)
		}
	}
}

func TestTheSameSecretFindsTheSameRecord(t *testing.T) {
	w := newWorld(t, nil)
	_, one := payments(t, w.mem, idem.Config{ScopeSecret: scopeSecret("a")})
	_, other := payments(t, w.mem, idem.Config{ScopeSecret: scopeSecret("a")})
	w.want(w.do(one, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
	w.want(w.do(other, request("{}"), w.handler(201)), idem.OutcomeReplayed, 201, "1")
}

// Under another secret every key would be new: a retry would charge again.
func TestAnotherSecretExecutesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		first, then []byte
		told        string
	}{
		"another":                  {scopeSecret("a"), scopeSecret("b"), "give the engine the one that was made for these tables"},
		"none any more":            {scopeSecret("a"), nil, "give the engine the one that was made for these tables"},
		"one where there was none": {nil, scopeSecret("a"), "it cannot be added later: run without it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			_, before := payments(t, w.mem, idem.Config{ScopeSecret: c.first})
			w.want(w.do(before, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
			engine, op := payments(t, w.mem, idem.Config{ScopeSecret: c.then})
			_, executed := op.Do(t.Context(), request("{}"), w.handler(201))
			_, found := op.Lookup(t.Context(), request("{}"))
			_, named := engine.RecordKey(t.Context(), idem.Scope{Tenant: "t", Operation: "payments.create", Key: "k"})
			for what, err := range map[string]error{"Do": executed, "Lookup": found, "RecordKey": named, "CheckScopeSecret": engine.CheckScopeSecret(t.Context())} {
				var unavailable *idem.UnavailableError
				if !errors.Is(err, idem.ErrScopeSecret) || !errors.As(err, &unavailable) || !strings.Contains(err.Error(), c.told) {
					t.Errorf("%s: %v, want ErrScopeSecret and %q", what, err, c.told)
				}
			}
			w.ran(1)
			w.want(w.do(before, request("{}"), w.handler(201)), idem.OutcomeReplayed, 201, "1")
		})
	}
}

// Two deployments that begin on an empty table at once, each with a secret of its own: one of them executes.
func TestOfTwoSecretsAtOnceOneExecutes(t *testing.T) {
	w := newWorld(t, nil)
	executed := make([]bool, 40)
	var group sync.WaitGroup
	for i := range executed {
		_, op := payments(t, w.mem, idem.Config{ScopeSecret: scopeSecret([]string{"a", "b"}[i%2])})
		group.Go(func() {
			_, err := op.Do(t.Context(), request("{}"), func(context.Context, *idem.Tx) (idem.Response, error) {
				return idem.Response{Status: 201}, nil
			})
			executed[i] = !errors.Is(err, idem.ErrScopeSecret)
		})
	}
	group.Wait()
	for i := range executed {
		if executed[i] != executed[i%2] {
			t.Fatalf("engine %d: %v, another with its secret: %v", i, executed[i], executed[i%2])
		}
	}
	if executed[0] == executed[1] {
		t.Errorf("both secrets: %v", executed[0])
	}
}

// Nothing is executed before the store has said which secret it has; once it has, nobody asks again.
func TestTheSecretIsAskedForOnceAndBeforeAnythingElse(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{
		"refused": faulty.Refuse(storage.ErrThrottled), "without a reply": faulty.LoseReply(),
		"down": faulty.Refuse(&storage.NotAskedError{RetryAfter: time.Second}),
	} {
		w, store := newFaultyWorld(t)
		_, op := payments(t, store, idem.Config{ScopeSecret: scopeSecret("a")})
		store.On(faulty.ScopeMark, 1, fault)
		w.unavailable(op, w.handler(201))
		w.ran(0)
		if n := store.Count(faulty.Insert) + store.Count(faulty.Get) + store.Count(faulty.Commit); n > 0 {
			t.Errorf("%s: %d other calls", name, n)
		}
		w.want(w.do(op, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
		w.want(w.do(op, request("{}"), w.handler(201)), idem.OutcomeReplayed, 201, "1")
		if n := store.Count(faulty.ScopeMark); n != 2 {
			t.Errorf("%s: asked %d times, want 2", name, n)
		}
	}
}

// A process that starts while the store is down: those who come at once share one question and its answer, and don't wait for
// each other's. One that gave up says nothing to the others.
func TestRequestsThatComeAtOnceShareOneQuestion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, store := newFaultyWorld(t)
		engine, op := payments(t, store, idem.Config{ScopeSecret: scopeSecret("a")})
		down := func(ctx context.Context, _ func(context.Context) error) error {
			<-ctx.Done()
			return &storage.OutcomeUnknownError{Cause: ctx.Err()}
		}
		store.On(faulty.ScopeMark, 1, down)
		store.On(faulty.ScopeMark, 2, down)
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		var group sync.WaitGroup
		group.Go(func() { w.refusesIn(engine.CheckScopeSecret(impatient), began, time.Second) })
		synctest.Wait()
		for range 50 {
			group.Go(func() { w.refusesIn(engine.CheckScopeSecret(t.Context()), began, 6*time.Second) })
		}
		group.Wait()
		if n := store.Count(faulty.ScopeMark); n != 2 {
			t.Errorf("asked %d times, want once by the one that gave up and once for all others", n)
		}
		w.want(w.do(op, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
	})
}

func (w *world) refusesIn(err error, began time.Time, within time.Duration) {
	var unavailable *idem.UnavailableError
	if took := time.Since(began); !errors.As(err, &unavailable) || took > within {
		w.Errorf("%v after %v, want an UnavailableError within %v", err, took, within)
	}
}

// An operator's look at a key never makes the desk's secret the store's.
func TestNamingARecordKeepsNoMark(t *testing.T) {
	w := newWorld(t, nil)
	desk, _ := payments(t, w.mem, idem.Config{})
	if _, err := desk.RecordKey(t.Context(), idem.Scope{Tenant: "t", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	_, op := payments(t, w.mem, idem.Config{ScopeSecret: scopeSecret("a")})
	w.want(w.do(op, request("{}"), w.handler(201)), idem.OutcomeExecuted, 201, "1")
}

func TestAStartWithoutASecretSaysSoOnce(t *testing.T) {
	for name, c := range map[string]struct {
		secret     []byte
		operations int
		want       int
	}{
		"without": {nil, 3, 1}, "with": {scopeSecret("a"), 3, 0}, "a sweep's, which names nothing": {nil, 0, 0},
	} {
		mem, err := memstore.New(memstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		engine, err := idem.New(mem, idem.Config{ScopeSecret: c.secret, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		for n := range c.operations {
			if _, err := engine.Register(idem.Operation{Name: fmt.Sprint("orders.create", n), Kind: idem.KindAtomic, Policy: idem.IETF()}); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(log.String(), "Config.ScopeSecret is not set"); n != c.want {
			t.Errorf("%s: said %d times, want %d", name, n, c.want)
		}
	}
}

func TestAShortSecretIsRefusedAndNotShown(t *testing.T) {
	mem, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range [][]byte{{}, []byte("guessable"), scopeSecret("a")[:31]} {
		var broken *idem.ConfigError
		_, err := idem.New(mem, idem.Config{ScopeSecret: secret})
		if !errors.As(err, &broken) || broken.Field != "Config.ScopeSecret" || strings.Contains(err.Error(), "guessable") {
			t.Errorf("a secret of %d bytes: %v", len(secret), err)
		}
	}
}
