//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// laidOut are the faults of tests that run beside each other. Each is made for one source, or for one scope, before the
// first test runs, so that no test replaces another's.
var laidOut struct {
	provider []provider.Rule
	dynamodb []faultproxy.Rule
}

// layOutFaults arms provider and fault proxy.
func layOutFaults(ctx context.Context) error {
	if err := deployed.provider.Faults(ctx, laidOut.provider...); err != nil {
		return err
	}
	if err := deployed.dynamodb.Reset(ctx); err != nil {
		return err
	}
	return deployed.dynamodb.Faults(ctx, laidOut.dynamodb...)
}

// troubled is a source that the provider's faults meet. The name's prefix "legacy_" leads to the keyless endpoint.
func troubled(name string, rules ...provider.Rule) string {
	source := name + "_" + run
	for _, rule := range rules {
		rule.Source = source
		laidOut.provider = append(laidOut.provider, rule)
	}
	return source
}

// hindered is a destination that the provider's faults meet; the prefix means the same.
func hindered(name string, rules ...provider.Rule) string {
	destination := name + "_" + run
	for _, rule := range rules {
		rule.Destination = destination
		laidOut.provider = append(laidOut.provider, rule)
	}
	return destination
}

// lossy lays out faults that meet the DynamoDB requests about tenant A's key of that name, and returns the name.
func lossy(operation, name string, rules ...faultproxy.Rule) string {
	touch(trace(operation, name))
	for _, rule := range rules {
		rule.Contains = trace(operation, name)
		laidOut.dynamodb = append(laidOut.dynamodb, rule)
	}
	return name
}

// scopeOf is the record's key of tenant A's key of that name.
func scopeOf(operation, name string) storage.RecordKey {
	return idem.Scope{Tenant: "tenant-a", Operation: operation, Key: named(name)}.RecordKey()
}

// trace is what every DynamoDB request about a scope contains, whichever table it goes to: operation and message ids
// begin with the bytes of the record's key, and so with all but the last character of its base64.
func trace(operation, name string) string { return traceOf(scopeOf(operation, name)) }

func traceOf(key storage.RecordKey) string { return string(key[:len(key)-1]) }

// met returns how often the faults of requests that contain text have applied.
func met(t *testing.T, text string) int {
	t.Helper()
	rules, err := deployed.dynamodb.Rules(t.Context())
	must(t, err)
	applied := 0
	for _, rule := range rules {
		if rule.Contains == text {
			applied += rule.Applied
		}
	}
	return applied
}

// providerMet returns how often the provider's faults for a source or destination have applied.
func providerMet(t *testing.T, who string) int {
	t.Helper()
	rules, err := deployed.provider.Rules(t.Context())
	must(t, err)
	applied := 0
	for _, rule := range rules {
		if who == rule.Source || who == rule.Destination {
			applied += rule.Applied
		}
	}
	return applied
}

// providerMetBy returns how often that fault has applied for a destination.
func providerMetBy(t *testing.T, destination string, fault provider.Fault) int {
	t.Helper()
	rules, err := deployed.provider.Rules(t.Context())
	must(t, err)
	applied := 0
	for _, rule := range rules {
		if rule.Destination == destination && rule.Fault == fault {
			applied += rule.Applied
		}
	}
	return applied
}

// disturb puts rules in front of those laid out, for a test that runs alone. What it returns takes them back and throws
// away what waits; that must be done before the test lets others run beside it, and is done at its end at the latest.
func disturb(t *testing.T, rules ...faultproxy.Rule) (calm func()) {
	t.Helper()
	quiet := during(ofTheStore)
	must(t, deployed.dynamodb.Faults(t.Context(), slices.Concat(rules, laidOut.dynamodb)...))
	over := false
	calm = func() {
		if over {
			return
		}
		over = true
		defer quiet()
		ctx := context.WithoutCancel(t.Context())
		must(t, deployed.dynamodb.Reset(ctx))
		must(t, deployed.dynamodb.Faults(ctx, laidOut.dynamodb...))
	}
	t.Cleanup(calm)
	return calm
}

// stalledSince says that the emulator has stalled: that a request to DynamoDB, whosever it was, took over a second without a fault.
func stalledSince(t *testing.T, began time.Time) bool {
	t.Helper()
	log, err := deployed.dynamodb.Log(t.Context())
	must(t, err)
	return slices.ContainsFunc(log, func(e faultproxy.Entry) bool {
		return e.Fault == "" && e.StartedAt.After(began) && e.EndedAt != nil && e.EndedAt.Sub(e.StartedAt) > time.Second
	})
}

// held waits until the fault proxy holds a request back.
func held(t *testing.T) {
	t.Helper()
	eventually(t, soon, func() string { return notHeld(t) })
}

func notHeld(t *testing.T) string {
	t.Helper()
	waiting, err := deployed.dynamodb.Waiting(t.Context())
	if err == nil && waiting.Paused > 0 {
		return ""
	}
	return fmt.Sprintf("no request is held: %+v %v", waiting, err)
}

// hold sends a request, and waits until the fault proxy holds the API function back: a request that the function has not seen is sent again.
func (a api) hold(t *testing.T, r request) (answer <-chan outcome) {
	t.Helper()
	answer = a.begin(t, r)
	attempt := 1
	eventually(t, soon, func() string {
		missing := notHeld(t)
		if missing == "" {
			return ""
		}
		select {
		case got := <-answer:
			if !got.unseen() || attempt == attemptsMax {
				t.Fatalf("it was answered before it was held: %v %v", got.reply, got.err)
			}
			attempt, answer = attempt+1, a.begin(t, r)
		default:
		}
		return missing
	})
	return answer
}
