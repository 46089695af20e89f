package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// compares runs the command drift as a shell does.
func compares(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	if got := idemctl.Run(t.Context(), app(), append([]string{"drift"}, args...), &out, &errs); got != want {
		t.Errorf("drift %v exits with %d, want %d\n%s%s", args, got, want, &out, &errs)
	}
	return out.String(), errs.String()
}

func TestDriftsExitCodes(t *testing.T) {
	s := lambdatest.New(t)
	t.Setenv("DRIFT_GRACE", "1ms")
	s.Accept(t, time.Hour)
	out, errs := compares(t, idemctl.ExitOK)
	if !strings.Contains(out, "drift           0\n") || !strings.Contains(out, "1 rows") {
		t.Errorf("%s%s", out, errs)
	}
	stray(t, s)
	out, _ = compares(t, idemctl.ExitRefused)
	if !strings.Contains(out, "missing_here") {
		t.Error(out)
	}
	compares(t, idemctl.ExitOK, "--tenant", lambdatest.Tenant)
	compares(t, idemctl.ExitOK, "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z")

	if out, errs = compares(t, idemctl.ExitUsage, "--from", "2026-01-02T00:00:00Z", "--to", "2026-01-01T00:00:00Z"); out != "" || !strings.Contains(errs, "Window") {
		t.Error(out, errs)
	}
	compares(t, idemctl.ExitUsage, "--from", "yesterday")
	compares(t, idemctl.ExitUsage, "--unknown")
	if _, errs = compares(t, idemctl.ExitTrouble, "--within", "1ns"); !strings.Contains(errs, context.DeadlineExceeded.Error()) {
		t.Error(errs)
	}
	if out, _ = compares(t, idemctl.ExitOK, "--help"); !strings.Contains(out, "--tenant") {
		t.Error(out)
	}
}

// stray makes a charge that nobody here has asked for. It returns when the charge is older than the grace, to the
// millisecond in which windows end.
func stray(t *testing.T, s *lambdatest.Stage) {
	t.Helper()
	body := strings.NewReader(`{"amount":1999,"currency":"EUR","source":"card_ok","reference":"order-17"}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Provider.URL+"/charges", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		t.Fatal(res.Status)
	}
	<-time.After(3 * time.Millisecond)
}

func TestDriftAsJSON(t *testing.T) {
	s := lambdatest.New(t)
	t.Setenv("DRIFT_GRACE", "1ms")
	stray(t, s)
	out, errs := compares(t, idemctl.ExitRefused, "--output", "json")
	var report drift.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Drift[drift.MissingHere] != 1 || len(report.Drifts) != 1 || errs == "" {
		t.Errorf("%v: %s%s", err, out, errs)
	}
}

// What could not be compared is not clean.
func TestWhatCantBeComparedIsTrouble(t *testing.T) {
	for name, broken := range map[string]func(t *testing.T, s *lambdatest.Stage){
		"the tables can't be reached": func(t *testing.T, _ *lambdatest.Stage) { lambdatest.Unreachable(t) },
		"the provider does not list": func(t *testing.T, s *lambdatest.Stage) {
			if err := s.Provider.Faults(t.Context(), provider.Rule{On: provider.List, Fault: provider.ErrorBefore}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := lambdatest.New(t)
			broken(t, s)
			if _, errs := compares(t, idemctl.ExitTrouble); errs == "" {
				t.Error("nothing says why")
			}
		})
	}
}

// A variable that can't be read is told from trouble: nothing was compared.
func TestWhatCantBeReadIsUsage(t *testing.T) {
	for name, value := range map[string]string{"PAYMENTS_TABLE": "", "DRIFT_GRACE": "soon"} {
		t.Run(name, func(t *testing.T) {
			lambdatest.New(t)
			t.Setenv(name, value)
			if _, errs := compares(t, idemctl.ExitUsage); !strings.Contains(errs, name) {
				t.Errorf("it does not name the variable: %s", errs)
			}
		})
	}
}
