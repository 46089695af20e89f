//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// One payment is one trace at the collector: from the client through the API and the worker to the provider. What the client
// recorded is the API's parent, and the provider was sent what the worker recorded.
func TestPaymentIsOneTraceFromTheClientToTheProvider(t *testing.T) { // operator.md "Traces"
	t.Parallel()
	oneOf(t, func(n int) (missing string) {
		spans, charge, missing := tracePayment(t, fmt.Sprintf("traced-%d", n))
		if missing != "" {
			return missing
		}
		return linesNameTheTrace(t, charge, spans) // LocalStack has lost what an invocation logged, once
	})
}

// tracedTries is how many payments are traced where something is missing. An answer waits for its spans to be sent, but not for long
// (TRACES_FLUSH_MAX), and what was not sent then is lost: of a machine that stands still nothing is learnt. What is there must be right.
const tracedTries = 3

// oneOf fails the test unless nothing is missing in one of its tries, from 0.
func oneOf(t *testing.T, try func(n int) (missing string)) {
	t.Helper()
	for n := range tracedTries {
		missing := try(n)
		if missing == "" {
			return
		}
		t.Log(missing)
	}
	t.Errorf("in each of %d tries something is missing", tracedTries)
}

// tracePayment pays under a key of that name, and holds the trace of it against what it must be. It returns what the collector does not
// have of it.
func tracePayment(t *testing.T, name string) (all []span, charge provider.Object, missing string) {
	t.Helper()
	tenant, recorded := tracedTenant(t)
	r := pay(name, card(name))
	tenant.do(t, r).is(t, http.StatusAccepted)
	sent := recorded.Ended()[len(recorded.Ended())-1].SpanContext()
	_, charge = settledOnce(t, r)

	want := []string{"idem.request", "  dynamodb", "  idem.deliver", "    dynamodb", "    idem.call"}
	var spans []span
	var got []string
	missing = within(delivered, func() string {
		all = ofTrace(collected(t), sent.TraceID().String())
		spans = withoutRepeated(all)
		if got = tree(spans, sent.SpanID().String()); !slices.Equal(got, want) {
			return "the trace is\n" + strings.Join(got, "\n") + "\nwant\n" + strings.Join(want, "\n")
		}
		return ""
	})
	if missing != "" {
		if !partOf(got, want) {
			t.Fatal(missing)
		}
		return all, charge, missing
	}
	for _, s := range spans {
		function := "FUNCTION_WORKER"
		if s.Name == "idem.request" || s.Parent == one(t, spans, "idem.request").ID && s.Name != "idem.deliver" {
			function = "FUNCTION_API"
		}
		if s.Service != deployed.variables[function] {
			t.Errorf("%s is of %s, want %s", s.Name, s.Service, deployed.variables[function])
		}
	}
	request, deliver, call := one(t, spans, "idem.request"), one(t, spans, "idem.deliver"), one(t, spans, "idem.call")
	for of, attributes := range map[*span]map[string]string{
		&request: {"idem.operation": "payments.create", "idem.kind": "deferred", "idem.outcome": "executed", "idem.replayed": "false", "http.response.status_code": "202", "http.route": "POST /v1/payments"},
		&deliver: {"idem.topic": "payments.charges", "idem.errand": "deliver", "idem.message.state": "delivered"},
		&call:    {"idem.outcome": "delivered"},
	} {
		for name, want := range attributes {
			if got := of.says(name); got != want {
				t.Errorf("%s: %s is %q, want %q", of.Name, name, got, want)
			}
		}
	}
	if want := "00-" + call.TraceID + "-" + call.ID + "-01"; charge.Traceparent != want {
		t.Errorf("the provider was sent %q, want %q", charge.Traceparent, want)
	}
	tellsNobody(t, all, r)
	return all, charge, ""
}

// partOf says that lines are some of all, in their order.
func partOf(lines, all []string) bool {
	for _, line := range all {
		if len(lines) > 0 && lines[0] == line {
			lines = lines[1:]
		}
	}
	return len(lines) == 0
}

// withoutRepeated leaves out deliveries that found the message delivered: a wake-up may come twice, and does where a machine is so busy
// that the sweep offers a message too.
func withoutRepeated(all []span) []span {
	var repeated []string
	for _, s := range all {
		calls := slices.ContainsFunc(all, func(of span) bool { return of.Parent == s.ID && of.Name == "idem.call" })
		if s.Name == "idem.deliver" && !calls {
			repeated = append(repeated, s.ID)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(s span) bool {
		return slices.Contains(repeated, s.ID) || slices.Contains(repeated, s.Parent)
	})
}

// linesNameTheTrace demands that whatever API and worker have logged about a payment names its trace and one of its spans, and the
// invocation, with the gateway's request where there is one. It returns which line was not logged within a minute. The client's
// replays are in traces of their own.
func linesNameTheTrace(t *testing.T, charge provider.Object, spans []span) (missing string) {
	t.Helper()
	message := idem.MessageID(charge.Key)
	operation, _, err := message.Operation()
	must(t, err)
	for function, last := range map[string]string{"FUNCTION_API": "idempotency.reserve.created", "FUNCTION_WORKER": "outbox.delivered"} {
		missing = within(soon, func() string {
			logged, err := logOf(t.Context(), deployed.variables[function])
			must(t, err)
			told := false
			for _, text := range logged {
				var line struct {
					Said      string           `json:"msg"`
					Operation idem.OperationID `json:"operation_id"`
					Message   idem.MessageID   `json:"message"`
					Trace     string           `json:"trace_id"`
					Span      string           `json:"span_id"`
					Request   string           `json:"request_id"`
					Gateway   string           `json:"gateway_request_id"`
				}
				if json.Unmarshal([]byte(text), &line) != nil || line.Operation != operation && line.Message != message ||
					line.Said == "idempotency.reserve.replay" {
					continue
				}
				told = told || line.Said == last
				if !slices.ContainsFunc(spans, func(s span) bool { return s.TraceID == line.Trace && s.ID == line.Span }) {
					t.Fatalf("a line of %s names none of the payment's spans: %s", function, text)
				}
				if line.Request == "" || (line.Gateway != "") != (function == "FUNCTION_API") {
					t.Fatalf("a line of %s does not name its request: %s", function, text)
				}
			}
			if !told {
				return function + " has not logged " + last
			}
			return ""
		})
		if missing != "" {
			return missing
		}
	}
	return ""
}

// A duplicate has its own trace, and its request is linked to the one that made the record.
func TestReplaysTraceIsLinkedToTheFirst(t *testing.T) { // operator.md "Traces"
	t.Parallel()
	oneOf(t, func(n int) (missing string) {
		tenant, recorded := tracedTenant(t)
		name := fmt.Sprintf("traced-twice-%d", n)
		r := pay(name, card(name))
		tenant.do(t, r).is(t, http.StatusAccepted)
		first := recorded.Ended()[len(recorded.Ended())-1].SpanContext().TraceID().String()
		settledOnce(t, r)
		tenant.do(t, r).says(t, "replayed")
		second := recorded.Ended()[len(recorded.Ended())-1].SpanContext().TraceID().String()
		return within(delivered, func() string {
			all := collected(t)
			made, replayed := named1(ofTrace(all, first), "idem.request"), named1(ofTrace(all, second), "idem.request")
			if made == nil || replayed == nil {
				return fmt.Sprintf("the collector has the first request: %t, and the replay's: %t", made != nil, replayed != nil)
			}
			if !replayed.linksTo(*made) || replayed.says("idem.replayed") != "true" {
				t.Fatalf("the replay's request %+v is not linked to the first, %+v", replayed, made)
			}
			return ""
		})
	})
}

// keptBack are sources whose charge is made, and its answer kept back from whoever asks.
var keptBack = func() (sources [tracedTries]string) {
	for n := range sources {
		sources[n] = troubled(fmt.Sprintf("card_traced_hook_%d", n), provider.Rule{On: provider.Charge, Fault: provider.HangAfter})
	}
	return sources
}()

// A charge whose answer never came is found by a webhook: the webhook's request has its own trace, and what it settles is in
// the payment's, linked both ways.
func TestWebhooksTraceIsLinkedWithThePayments(t *testing.T) { // operator.md "Traces"
	t.Parallel()
	oneOf(t, func(n int) (missing string) {
		tenant, recorded := tracedTenant(t)
		r := pay(fmt.Sprintf("traced-hook-%d", n), keptBack[n])
		tenant.do(t, r).is(t, http.StatusAccepted)
		trace := recorded.Ended()[len(recorded.Ended())-1].SpanContext().TraceID().String()
		tell(t, charged(chargeOf(t, r)))
		return within(delivered, func() string {
			all := collected(t)
			i := slices.IndexFunc(all, func(s span) bool {
				return s.TraceID == trace && s.Name == "idem.deliver" && s.says("idem.errand") == "webhook"
			})
			if i < 0 {
				return "the webhook's evidence is not in the payment's trace"
			}
			evidence := all[i]
			hook := slices.IndexFunc(all, func(s span) bool { return s.Name == "idem.function" && evidence.linksTo(s) })
			switch {
			case len(evidence.Links) == 0:
				t.Fatalf("the webhook's evidence %+v is linked with nothing", evidence)
			case hook < 0:
				return "the collector does not have the webhook's request"
			case !all[hook].linksTo(evidence) || all[hook].TraceID == trace || all[hook].Service != deployed.variables["FUNCTION_WEBHOOK"]:
				t.Fatalf("the webhook's request %+v is not linked with the payment's trace, %+v", all[hook], evidence)
			}
			return ""
		})
	})
}

// tellsNobody fails where a span shows what no span may show.
func tellsNobody(t *testing.T, spans []span, r request) {
	t.Helper()
	for _, s := range spans {
		for _, a := range s.Attributes {
			for _, secret := range []string{r.key, run, "op_", "tenant"} {
				if text := s.says(a.Key); strings.Contains(text, secret) {
					t.Errorf("%s shows %s = %q", s.Name, a.Key, text)
				}
			}
		}
	}
}

// one is the only span of a name.
func one(t *testing.T, spans []span, name string) span {
	t.Helper()
	found := named1(spans, name)
	if found == nil {
		t.Fatalf("no span, or several, of the name %s", name)
	}
	return *found
}

// named1 is the only span of a name, nil where there is none or another.
func named1(spans []span, name string) *span {
	named := slices.DeleteFunc(slices.Clone(spans), func(s span) bool { return s.Name != name })
	if len(named) != 1 {
		return nil
	}
	return &named[0]
}
