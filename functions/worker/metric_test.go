package main

import (
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// told demands that the log holds these metrics' lines and, the level being above them all, no other.
func told(t *testing.T, lines []lambdatest.Line, names ...string) {
	t.Helper()
	if len(lines) != len(names) {
		t.Fatalf("lines %+v, want %q", lines, names)
	}
	for i, l := range lines {
		if l.Message != names[i] || l.Metrics[names[i]] != 1 || l.Tenant != lambdatest.Tenant {
			t.Errorf("line %+v, want %s", l, names[i])
		}
	}
}

// semantics.md "Metrics": what becomes of a message is a metric, whatever LOG_LEVEL says.
func TestWorkerPrintsMetrics(t *testing.T) {
	for name, c := range map[string]struct {
		fault    provider.Fault
		attempts string
		want     string
	}{
		"delivered": {want: "outbox.delivered"},
		"declined":  {fault: provider.Decline, want: "outbox.declined"},
		"retried":   {fault: provider.RateLimit, want: "outbox.retried"},
		"dead":      {fault: provider.RateLimit, attempts: "1", want: "outbox.dead"},
	} {
		t.Run(name, func(t *testing.T) {
			s := lambdatest.New(t)
			t.Setenv("METRICS_SERVICE", "idem-test")
			if c.attempts != "" {
				t.Setenv("ATTEMPTS_MAX", c.attempts)
			}
			if c.fault != "" {
				if err := s.Provider.Faults(t.Context(), provider.Rule{On: provider.Charge, Fault: c.fault}); err != nil {
					t.Fatal(err)
				}
			}
			log := lambdatest.Log(t)
			a, h := s.Accept(t, time.Minute), started(t)
			none(t, failures(t, h, a.Stream))
			lines := log()
			told(t, lines, c.want)
			if l := lines[0]; l.Namespace != "idem" || l.Service != "idem-test" || len(l.Dimensions) != 1 || len(l.Dimensions[0]) != 1 || l.Dimensions[0][0] != "service" {
				t.Errorf("%+v", l)
			}
			age, settled := lines[0].Metrics["outbox.age"]
			if want := c.fault != provider.RateLimit; settled != want || settled && (age < 60_000 || age > 90_000) {
				t.Errorf("outbox.age %v, %v", age, settled)
			}
		})
	}
}
