package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/storage"
)

// semantics.md "On the wire": each error of the engine has a stable code and a status, and says when to come again where it knows.
// The text of the error stays in the log.
func TestEachErrorOfTheEngineHasItsProblem(t *testing.T) {
	secret := errors.New("table shop-idempotency, key k-17")
	down := func(cause error) error { return &idem.UnavailableError{RetryAfter: 2 * time.Second, Cause: cause} }
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
		again  time.Duration
	}{
		"the store is down":   {down(secret), 503, header.CodeStoreUnavailable, 2 * time.Second},
		"no time":             {down(idem.ErrNoTime), 503, header.CodeNoTime, 2 * time.Second},
		"refused before":      {down(&idem.RefusedBeforeError{}), 503, header.CodeRefusedBefore, 2 * time.Second},
		"a quota":             {&idem.QuotaError{Limit: "new keys", RetryAfter: time.Second}, 429, header.CodeQuotaExceeded, time.Second},
		"expired":             {&idem.ExpiredError{}, 410, header.CodeKeyExpired, 0},
		"expired by its time": {&idem.ExpiredError{FirstSent: true}, 412, header.CodeKeyExpired, 0},
		"a time to come":      {&idem.KeyTimeError{Reason: idem.ReasonKeyFuture}, 400, header.CodeKeyInvalid, 0},
		"erased":              {fmt.Errorf("%w: %w", storage.ErrErased, secret), 410, header.CodeResponseErased, 0},
		"response too large":  {fmt.Errorf("%w: %w", idem.ErrResponseTooLarge, secret), 500, header.CodeResponseTooLarge, 0},
		"a rejection":         {&idem.RejectedError{Problem: idem.NewProblem(402, "no_funds", "No funds", "")}, 402, "no_funds", 0},
	} {
		t.Run(name, func(t *testing.T) {
			problem, again, ok := idem.ProblemOf(fmt.Errorf("request: %w", c.err))
			if !ok || problem.Status != c.status || problem.Code != c.code || again != c.again {
				t.Errorf("got %+v, %v, %v; want %d %s, %v", problem, again, ok, c.status, c.code, c.again)
			}
			if strings.Contains(string(problem.Response().Body), "k-17") {
				t.Errorf("the problem shows the cause: %s", problem.Response().Body)
			}
		})
	}
}

// What a handler's error wraps is the handler's: an engine that it called itself may have refused before the handler wrote.
func TestErrorOfTheHandlerHasNoProblem(t *testing.T) {
	for name, err := range map[string]error{
		"nothing":                  nil,
		"the handler's":            &idem.HandlerError{Cause: errors.New("no")},
		"of an engine it called":   &idem.HandlerError{Cause: &idem.UnavailableError{Cause: idem.ErrNoTime}},
		"a rejection it passes on": &idem.HandlerError{Cause: &idem.RejectedError{Problem: idem.NewProblem(402, "no_funds", "", "")}},
		"a rejection with a 200":   &idem.RejectedError{Problem: idem.NewProblem(200, "no_funds", "", "")},
		"one without a status":     &idem.RejectedError{Problem: idem.Problem{Code: "no_funds"}},
		"about the request":        canonical.ErrTooLarge,
		"any other":                context.DeadlineExceeded,
	} {
		if problem, again, ok := idem.ProblemOf(err); ok || again != 0 || problem.Code != "" {
			t.Errorf("%s: got %+v, %v, %v; want no problem", name, problem, again, ok)
		}
	}
}

// The engine's own errors, and not only values of their types, have a problem.
func TestRefusalOfTheEngineHasItsProblem(t *testing.T) {
	w := newWorld(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err := w.register(idem.Operation{Kind: idem.KindAtomic}).Do(ctx, request(`{}`), w.handler(http.StatusCreated))
	if problem, again, ok := idem.ProblemOf(err); !ok || problem.Status != http.StatusServiceUnavailable || problem.Code != header.CodeNoTime || again <= 0 {
		t.Errorf("%v: got %+v, %v, %v", err, problem, again, ok)
	}
	w.written(0)
}
