// Package tracing sends the functions' traces to an OpenTelemetry collector, where one is configured.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/telemetry/otelidem"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// Tracing is a function's traces. The zero value records nothing.
type Tracing struct {
	// Tracer records spans; nil where no collector is configured.
	Tracer   trace.Tracer
	provider *sdktrace.TracerProvider
	flushMax time.Duration
}

// New returns the tracing that is configured: none without an endpoint. Nothing is sent before the first flush.
//
// OpenTelemetry's own variables count for the rest: OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_*,
// and the limits of spans.
func New(ctx context.Context, cfg config.Tracing, logger *slog.Logger) (Tracing, error) {
	if !cfg.On() {
		return Tracing{}, nil
	}
	exporter, err := newExporter(cfg)
	if err != nil {
		return Tracing{}, err
	}
	described, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", cfg.FunctionName)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return Tracing{}, fmt.Errorf("configuration: OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("traces.lost", "error", err) }))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(described))
	return Tracing{Tracer: otelidem.New(provider), provider: provider, flushMax: cfg.TracesFlushMax}, nil
}

// HTTP records a span for each request that the handler serves.
func (t Tracing) HTTP(next http.Handler) http.Handler { return trace.Handler(t.Tracer, next) }

// Lambda flushes after each invocation of the handler.
func (t Tracing) Lambda(next awslambda.Handler) awslambda.Handler {
	if t.provider == nil {
		return next
	}
	return func(ctx context.Context, event []byte) ([]byte, error) {
		defer t.Flush(ctx)
		return next(ctx, event)
	}
}

// Scheduled flushes after each run of the handler.
func (t Tracing) Scheduled(next lambdaapp.Scheduled) lambdaapp.Scheduled {
	return func(ctx context.Context, run lambdaapp.Run) (outbox.Report, error) {
		defer t.Flush(ctx)
		return next(ctx, run)
	}
}

// Flush sends what was recorded, for at most the configured time: the answer waits for it, because a function is frozen once
// it has answered. What has not been sent by then is lost, with a line in the log.
func (t Tracing) Flush(ctx context.Context) {
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.flushMax)
	defer cancel()
	if err := t.provider.ForceFlush(ctx); err != nil {
		otel.Handle(err)
	}
}

const (
	spanBatch         = "idem.batch"
	attributeMessages = "idem.messages"
)

// Batch is an awslambda.Config.Batch: it records a span for an invocation of several records, which is linked with the
// delivery of each. A single one needs none.
func (t Tracing) Batch(ctx context.Context, records int) (context.Context, func()) {
	if records < 2 {
		return ctx, func() {}
	}
	ctx, span := trace.BeginBatch(ctx, t.Tracer, spanBatch)
	if span != nil {
		span.Set(trace.Attribute{Name: attributeMessages, Value: records})
	}
	return ctx, span.End
}
