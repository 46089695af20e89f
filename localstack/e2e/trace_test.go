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
	"github.com/idem-go/idem-aws/localstack/stack"
)

// One payment is one trace at the collector: from the client through the API and the worker to the provider. What the client
// recorded is the API's parent, and the provider was sent what the worker recorded.
func TestPaymentIsOneTraceFromTheClientToTheProvider(t *testing.T) { // operator.md "Traces"
	t.Parallel()
	payments := 1
	if deployed.variables["EMULATOR"] == string(stack.LocalStack) { // it has lost what an invocation logged, once
		payments = 3
	}
	for n := range payments {
		spans, charge := tracePayment(t, fmt.Sprintf("traced-%d", n+1))
		missing := linesNameTheTrace(t, charge, spans)
		if missing == "" {
			return
		}
		t.Log(missing)
	}
	t.Errorf("of %d payments, each lacks a line", payments)
}

// tracePayment pays under a key of that name, and holds the trace of it against what it must be.
func tracePayment(t *testing.T, name string) ([]span, provider.Object) {
	t.Helper()
	tenant, recorded := tracedTenant(t)
	r := pay(name, card(name))
	tenant.do(t, r).is(t, http.StatusAccepted)
	sent := recorded.Ended()[len(recorded.Ended())-1].SpanContext()
	_, charge := settledOnce(t, r)

	const want = `
idem.request
  dynamodb
  idem.deliver
    dynamodb
    idem.call`
	var all, spans []span
	eventually(t, delivered, func() string {
		all = ofTrace(collected(t), sent.TraceID().String())
		spans = withoutRepeated(all)
		if got := "\n" + strings.Join(tree(spans, sent.SpanID().String()), "\n"); got != want {
			return "the trace is" + got + "\nwant" + want
		}
		return ""
	})
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
	return all, charge
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
	tenant, recorded := tracedTenant(t)
	r := pay("traced-twice", card("traced-twice"))
	tenant.do(t, r).is(t, http.StatusAccepted)
	settledOnce(t, r)
	first := recorded.Ended()[0].SpanContext().TraceID().String()
	tenant.do(t, r).says(t, "replayed")
	second := recorded.Ended()[len(recorded.Ended())-1].SpanContext().TraceID().String()
	eventually(t, delivered, func() string {
		all := collected(t)
		made, replayed := named1(ofTrace(all, first), "idem.request"), named1(ofTrace(all, second), "idem.request")
		if made == nil || replayed == nil || !replayed.linksTo(*made) || replayed.says("idem.replayed") != "true" {
			return "the replay's request is not linked to the first"
		}
		return ""
	})
}

// keptBack is a source whose charge is made, and its answer kept back.
var keptBack = troubled("card_traced_hook", provider.Rule{On: provider.Charge, Fault: provider.HangAfter, Times: 1})

// A charge whose answer never came is found by a webhook: the webhook's request has its own trace, and what it settles is in
// the payment's, linked both ways.
func TestWebhooksTraceIsLinkedWithThePayments(t *testing.T) { // operator.md "Traces"
	t.Parallel()
	tenant, recorded := tracedTenant(t)
	r := pay("traced-hook", keptBack)
	tenant.do(t, r).is(t, http.StatusAccepted)
	trace := recorded.Ended()[len(recorded.Ended())-1].SpanContext().TraceID().String()
	tell(t, charged(chargeOf(t, r)))
	eventually(t, delivered, func() string {
		all := collected(t)
		i := slices.IndexFunc(all, func(s span) bool {
			return s.TraceID == trace && s.Name == "idem.deliver" && s.says("idem.errand") == "webhook"
		})
		if i < 0 {
			return "the webhook's evidence is not in the payment's trace"
		}
		hook := slices.IndexFunc(all, func(s span) bool { return s.Name == "idem.function" && s.linksTo(all[i]) && all[i].linksTo(s) })
		if hook < 0 || all[hook].TraceID == trace || all[hook].Service != deployed.variables["FUNCTION_WEBHOOK"] {
			return "the webhook's trace is not linked with the payment's"
		}
		return ""
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
