package outbox

import (
	"context"

	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// Names of spans.
const (
	spanDeliver   = "idem.deliver"
	spanCall      = "idem.call"
	spanProbe     = "idem.probe"
	spanSweep     = "idem.sweep"
	spanReconcile = "idem.reconcile"
)

// Names of attributes.
const (
	attributeTopic    = "idem.topic"
	attributeErrand   = "idem.errand"
	attributeIndex    = "idem.message.index"
	attributeState    = "idem.message.state"
	attributeAttempts = "idem.attempts"
	attributeOutcome  = "idem.outcome"
	attributeFinding  = "idem.finding"
	attributeMessages = "idem.messages"
	attributeRecords  = "idem.records"
	attributeErrors   = "idem.errors"
)

// errandNames are the values of attributeErrand.
var errandNames = map[protocol.MessageErrand]string{
	protocol.Wake: "deliver", protocol.Offer: "sweep", protocol.Carry: "inline", protocol.Question: "reconcile", protocol.Tidings: "webhook",
	protocol.Judgement: "resolve", protocol.Close: "close", protocol.Redrive: "redrive", protocol.Remind: "remind",
}

// beginSpan begins the delivery's span, once: in the trace that sent the message, however long ago that was.
func (x *delivery) beginSpan(ctx context.Context) context.Context {
	if x.span != nil {
		return ctx
	}
	if ctx, x.span = trace.Begin(ctx, x.cfg.Tracer, spanDeliver, trace.Options{Kind: trace.Consumer, Parent: x.row.Trace}); x.span != nil {
		x.span.Set(
			trace.Attribute{Name: attributeTopic, Value: x.row.Topic}, trace.Attribute{Name: attributeErrand, Value: errandNames[x.machine.Errand]},
			trace.Attribute{Name: attributeIndex, Value: x.row.Index},
		)
	}
	return ctx
}

// endSpan ends the delivery's span with what the message is now.
func (x *delivery) endSpan(err error) {
	if x.span == nil {
		return
	}
	m := x.row
	x.span.Set(
		trace.Attribute{Name: attributeState, Value: string(m.State)}, trace.Attribute{Name: attributeAttempts, Value: m.Attempts},
		trace.Attribute{Name: attributeOutcome, Value: m.LastOutcome},
	)
	switch {
	case err != nil:
		x.span.Fail("failed")
	case m.State == storage.MessageDead:
		x.span.Fail("dead")
	}
	x.span.End()
}

// position is where in the trace the delivery stands; where nobody traces it, where its message was sent.
func (x *delivery) position() trace.Context {
	if position := x.span.Context(); position != "" {
		return position
	}
	return x.row.Trace
}

// endCall ends the span of a call to the provider.
func (x *delivery) endCall(span *trace.Span, outcome Outcome) {
	if span == nil {
		return
	}
	span.Set(trace.Attribute{Name: attributeTopic, Value: x.row.Topic}, trace.Attribute{Name: attributeOutcome, Value: outcome.Name()})
	if !definite(outcome) {
		span.Fail(outcome.Name())
	}
	span.End()
}

// tracedProbe asks a probe under a span of its own: in the trace of what it is about.
func (d *desk) tracedProbe(ctx context.Context, about trace.Context, ask func(context.Context) Finding) (finding Finding) {
	ctx, span := trace.Begin(ctx, d.cfg.Tracer, spanProbe, trace.Options{Kind: trace.Client, Parent: about})
	if span == nil {
		return ask(ctx)
	}
	defer func() {
		name := "unclear"
		switch finding.(type) {
		case Found:
			name = "found"
		case Executed:
			name = "executed"
		case Absent:
			name = "absent"
		}
		span.Set(trace.Attribute{Name: attributeFinding, Value: name})
		span.End()
	}()
	return ask(ctx)
}

// tracedRun is [Runner.run] under the span of a batch: what it looks at belongs to traces of its own.
func (r *Runner) tracedRun(
	ctx context.Context, name string, shards []int, records *walk[storage.RecordRef], messages ...*walk[storage.MessageRef],
) (Report, error) {
	ctx, span := trace.BeginBatch(ctx, r.cfg.Tracer, name)
	did, err := r.run(ctx, shards, records, messages...)
	if span == nil {
		return did, err
	}
	span.Set(
		trace.Attribute{Name: attributeMessages, Value: did.Messages.all()}, trace.Attribute{Name: attributeRecords, Value: did.Records.all()},
		trace.Attribute{Name: attributeErrors, Value: did.Messages.Errors + did.Records.Errors},
	)
	if err != nil {
		span.Fail("failed")
	}
	span.End()
	return did, err
}

// all is how many were looked at, and gave no error.
func (c Counts) all() int {
	return c.Offered + c.Settled + c.Completed + c.Freed + c.Parked + c.Undecided + c.Unasked + c.Abandoned + c.Dead + c.Reminded + c.Skipped
}
