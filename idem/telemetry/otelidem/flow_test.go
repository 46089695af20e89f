package otelidem_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// One payment is one trace, from the client's span to the provider, over a chain of two messages.
func TestOnePaymentIsOneTrace(t *testing.T) {
	w := newWorld(t, true)
	if status := w.post("/payments", http.Header{"Traceparent": {parent}, "Tracestate": {state}}); status != http.StatusAccepted {
		t.Fatalf("status %d", status)
	}
	w.ok(w.worker.Deliver(t.Context(), w.message().ID))
	w.ok(w.worker.Deliver(t.Context(), w.message().ID))

	request, deliveries, calls := w.one("idem.request"), w.named("idem.deliver"), w.named("idem.call")
	if len(deliveries) != 2 || len(calls) != 2 || len(w.calls) != 2 {
		t.Fatalf("%v", w.tree())
	}
	if request.SpanContext().TraceID().String() != parent[3:35] || request.Parent().SpanID().String() != parent[36:52] {
		t.Errorf("the request is not below the client: %v", w.tree())
	}
	w.below(deliveries[0], request)
	w.below(deliveries[1], deliveries[0])
	for i, sent := range w.calls {
		w.below(calls[i], deliveries[i])
		at := trace.FromHeader(sent)
		if id := calls[i].SpanContext().SpanID(); at.SpanID() != string(id[:]) || at.State() != state {
			t.Errorf("call %d was sent %v", i, sent)
		}
	}
	w.has(request, map[string]any{
		"idem.operation": "payments.create", "idem.kind": "deferred", "idem.outcome": "executed", "idem.replayed": false, "idem.status": "executed",
		"http.request.method": "POST", "http.route": "POST /payments", "http.response.status_code": int64(http.StatusAccepted),
	})
	w.has(deliveries[1], map[string]any{"idem.errand": "deliver", "idem.message.index": int64(2), "idem.message.state": "delivered", "idem.outcome": "delivered"})
	w.documented()
}

// A duplicate has a trace of its own, linked to that of the request whose answer it got.
func TestReplayLinksToTheFirstRequest(t *testing.T) {
	w := newWorld(t, true)
	w.post("/payments", nil)
	w.post("/payments", nil)
	requests := w.named("idem.request")
	if requests[0].SpanContext().TraceID() == requests[1].SpanContext().TraceID() {
		t.Fatal("both requests are in one trace, which no client asked for")
	}
	w.linked(requests[1], requests[0])
	w.has(requests[1], map[string]any{"idem.outcome": "replayed", "idem.replayed": true})
	if len(requests[0].Links()) != 0 {
		t.Errorf("the first request has links: %v", w.tree())
	}
	w.documented()
}

// A delivery within the request is below it, and so is the next message of its chain.
func TestInlineDeliveryIsBelowItsRequest(t *testing.T) {
	w := newWorld(t, true)
	if status := w.post("/transfers", nil); status != http.StatusCreated {
		t.Fatalf("status %d: %v", status, w.tree())
	}
	request, deliveries := w.one("idem.request"), w.named("idem.deliver")
	if len(deliveries) != 2 {
		t.Fatalf("%v", w.tree())
	}
	w.below(deliveries[0], request)
	w.has(deliveries[0], map[string]any{"idem.errand": "inline"})
	if deliveries[1].SpanContext().TraceID() != request.SpanContext().TraceID() {
		t.Errorf("the second message is in another trace: %v", w.tree())
	}
	w.documented()
}

// A message that a sweep offers minutes later is delivered in the trace of the request that sent it.
func TestDeliveryAfterASweepBelongsToItsRequest(t *testing.T) {
	w := newWorld(t, true)
	w.post("/payments", nil)
	w.pass(5 * time.Minute)
	did, err := w.runner.Sweep(t.Context())
	w.ok(err)
	if did.Messages.Offered != 1 {
		t.Fatalf("%+v", did)
	}
	for _, id := range w.queue.Take() {
		w.ok(w.worker.Deliver(t.Context(), id))
	}
	w.below(w.one("idem.deliver"), w.one("idem.request"))
	sweep := w.one("idem.sweep")
	w.has(sweep, map[string]any{"idem.messages": int64(1), "idem.records": int64(0), "idem.errors": int64(0)})
	if sweep.SpanContext().TraceID() == w.one("idem.request").SpanContext().TraceID() {
		t.Error("a sweep, which looks at many messages, is in the trace of one")
	}
	w.documented()
}

// A message that an operator redrives after its death goes on in its trace.
func TestRedriveBelongsToItsRequest(t *testing.T) {
	w := newWorld(t, true)
	w.unsettled.Store(true)
	w.post("/payments", nil)
	w.ok(w.worker.Deliver(t.Context(), w.message().ID))
	dead := w.message()
	if dead.State != storage.MessageDead {
		t.Fatalf("the message is %s: %v", dead.State, w.tree())
	}
	w.pass(10 * time.Minute)
	w.unsettled.Store(false)
	_, err := w.person.Redrive(t.Context(), dead.ID, outbox.Seen{Revision: dead.Revision})
	w.ok(err)
	w.ok(w.worker.Deliver(t.Context(), w.message().ID)) // the next of its chain
	deliveries := w.named("idem.deliver")
	if len(deliveries) != 3 || len(w.calls) != 2 {
		t.Fatalf("%v", w.tree())
	}
	w.has(deliveries[0], map[string]any{"idem.message.state": "dead"})
	w.below(deliveries[1], w.one("idem.request"))
	w.has(deliveries[1], map[string]any{"idem.errand": "redrive", "idem.message.state": "delivered"})
	w.below(deliveries[2], deliveries[1])
	w.documented()
}

// A webhook's request has a trace of its own: what it settles is in the payment's, and the two are linked, both ways.
func TestWebhookIsLinkedWithThePayment(t *testing.T) {
	w := newWorld(t, true)
	w.post("/payments", nil)
	webhook := trace.Handler(w.tracer, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := w.worker.Settle(r.Context(), w.message().ID, outbox.Delivered{Reference: "ch_1"})
		w.ok(err)
	}))
	w.api = webhook
	w.post("/webhooks", nil)
	requests, delivery := w.named("idem.request"), w.one("idem.deliver")
	w.below(delivery, requests[0])
	w.linked(delivery, requests[1])
	w.linked(requests[1], delivery)
	w.has(delivery, map[string]any{"idem.errand": "webhook"})
	w.documented()
}

// The deliveries of a batch are in their requests' traces. The batch has one of its own, linked with each.
func TestBatchIsLinkedWithItsDeliveries(t *testing.T) {
	w := newWorld(t, true)
	w.post("/payments", nil)
	w.post("/imports", nil) // a wrapped record, which is unknown now
	ctx, batch := trace.BeginBatch(t.Context(), w.tracer, "idem.batch")
	w.ok(w.worker.Deliver(ctx, w.message().ID))
	batch.End()
	w.below(w.one("idem.deliver"), w.named("idem.request")[0])
	w.linked(w.one("idem.deliver"), w.one("idem.batch"))
	w.linked(w.one("idem.batch"), w.one("idem.deliver"))
	w.documented()
}

// The probe of a wrapped record is in the trace of the request that made it, and linked with the reconciliation.
func TestProbeOfARecordBelongsToItsRequest(t *testing.T) {
	w := newWorld(t, true)
	w.post("/imports", nil)
	w.pass(10 * time.Minute)
	did, err := w.runner.Reconcile(t.Context())
	w.ok(err)
	if did.Records.Completed != 1 {
		t.Fatalf("%+v", did)
	}
	w.below(w.one("idem.probe"), w.one("idem.request"))
	w.linked(w.one("idem.probe"), w.one("idem.reconcile"))
	w.has(w.one("idem.probe"), map[string]any{"idem.finding": "executed"})
	w.documented()
}

// Without a tracer nothing is stored of a trace, and nothing sent, whatever the client sends.
func TestWithoutATracerNothingIsStoredOrSent(t *testing.T) {
	w := newWorld(t, false)
	w.post("/payments", http.Header{"Traceparent": {parent}, "Tracestate": {state}})
	w.ok(w.worker.Deliver(t.Context(), w.message().ID))
	for _, m := range w.store.Messages() {
		if m.Trace != "" {
			t.Errorf("message %d has the trace %v", m.Index, m.Trace)
		}
	}
	if len(w.calls) != 1 || w.calls[0].Get("Traceparent") != "" || w.calls[0].Get("Tracestate") != "" || len(w.spans.Ended()) != 0 {
		t.Errorf("%v, %d spans", w.calls, len(w.spans.Ended()))
	}
}

// A worker without a tracer passes on where the message was sent: the next message of the chain stays in the trace.
func TestChainCarriesTheTraceThroughAnUntracedWorker(t *testing.T) {
	w := newWorld(t, false)
	w.api = trace.Handler(w.tracer, w.api)
	w.post("/payments", nil)
	first := w.message()
	w.ok(w.worker.Deliver(t.Context(), first.ID))
	if second := w.message(); second.Index != 2 || second.Trace != first.Trace || first.Trace == "" {
		t.Errorf("message %d has %v, the first %v", second.Index, second.Trace, first.Trace)
	}
}

// Whatever a client sends as its trace, the request is answered, and a malformed position begins a new trace.
func TestMalformedTraceparentChangesNothing(t *testing.T) {
	for _, header := range []http.Header{
		{"Traceparent": {"00-zz"}}, {"Traceparent": {parent, parent}}, {"Traceparent": {"ff" + parent[2:]}},
		{"Traceparent": {"00-00000000000000000000000000000000-b7ad6b7169203331-01"}}, {"Tracestate": {state}},
	} {
		w := newWorld(t, true)
		if status := w.post("/payments", header); status != http.StatusAccepted {
			t.Errorf("%v: status %d", header, status)
		}
		if request := w.one("idem.request"); request.Parent().IsValid() || !request.SpanContext().IsValid() {
			t.Errorf("%v: below %v", header, request.Parent())
		}
	}
}

// A traceparent is no part of what is asked for: a retry with another one is the same request.
func TestTraceparentIsNoPartOfTheFingerprint(t *testing.T) {
	w := newWorld(t, true)
	w.post("/payments", http.Header{"Traceparent": {parent}})
	if status := w.post("/payments", nil); status != http.StatusAccepted {
		t.Errorf("the retry's status is %d", status)
	}
	w.has(w.named("idem.request")[1], map[string]any{"idem.outcome": "replayed"})
}
