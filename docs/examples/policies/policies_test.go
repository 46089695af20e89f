package policies

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
)

// service protects POST /orders, which counts its executions, by the policy.
func service(t *testing.T, policy idem.Policy, now func() time.Time) (http.Handler, *int) {
	t.Helper()
	executed := new(int)
	return protect(t, policy, now, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*executed++
		w.Header().Set("X-Rate", "1.08")
		w.WriteHeader(http.StatusCreated)
	})), executed
}

func protect(t *testing.T, policy idem.Policy, now func() time.Time, handler http.Handler) http.Handler {
	t.Helper()
	store, err := memstore.New(memstore.Config{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	mw, err := middleware.New(engine, middleware.Config{Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "a"}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	protected, err := mw.Wrap(idem.Operation{Name: "orders.create", Policy: policy, UnknownToOperator: true}, middleware.Route{}, handler)
	if err != nil {
		t.Fatal(err)
	}
	return protected
}

func TestPaymentsNeverExecuteAKeyAgain(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	handler, executed := service(t, Payments(), func() time.Time { return at })
	check.Send(t, handler, "POST", "/orders", "order-17", "{}").Want(t, 201, "executed")
	at = at.Add(6 * 24 * time.Hour)
	if again := check.Send(t, handler, "POST", "/orders", "order-17", "{}").Want(t, 201, "replayed"); again.Header.Get("X-Rate") != "1.08" {
		t.Errorf("the replay has the headers %v", again.Header)
	}
	at = at.Add(30 * 24 * time.Hour)
	check.Send(t, handler, "POST", "/orders", "order-17", "{}").Want(t, 410, "")
	if *executed != 1 {
		t.Errorf("executed %d times", *executed)
	}
}

func TestADuplicateOfThePatientWaits(t *testing.T) { synctest.Test(t, duplicateWaits) }

func duplicateWaits(t *testing.T) {
	started, finish := make(chan struct{}), make(chan struct{})
	handler := protect(t, Patient(), time.Now, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-finish
		w.WriteHeader(http.StatusCreated)
	}))
	first, second := make(chan check.Answer, 1), make(chan check.Answer, 1)
	go func() { first <- check.Send(t, handler, "POST", "/orders", "order-17", "{}") }()
	<-started
	go func() { second <- check.Send(t, handler, "POST", "/orders", "order-17", "{}") }()
	synctest.Wait()
	select {
	case answer := <-second:
		t.Errorf("the duplicate got %+v at once", answer)
	default:
	}
	close(finish)
	(<-first).Want(t, 201, "executed")
	(<-second).Want(t, 201, "replayed")
}

func TestKeysAreIntroducedStepByStep(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) }
	for i, want := range []struct {
		withoutKey int
		executions int // of one without a key and two with the same one
	}{{201, 3}, {201, 2}, {400, 1}} {
		handler, executed := service(t, Introduced()[i], now)
		if got := check.Send(t, handler, "POST", "/orders", "", "{}"); got.Status != want.withoutKey {
			t.Errorf("step %d: without a key %d, want %d", i, got.Status, want.withoutKey)
		}
		for range 2 {
			check.Send(t, handler, "POST", "/orders", "order-17", "{}")
		}
		if *executed != want.executions {
			t.Errorf("step %d: executed %d times, want %d", i, *executed, want.executions)
		}
	}
}
