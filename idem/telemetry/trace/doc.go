// Package trace is the library's interface to distributed tracing. It has a position in a trace ([Context], in the
// form of W3C Trace Context), the span that a context.Context carries ([Span]), and the interface to what records
// spans ([Tracer]). It has no dependency.
//
// Use it to connect a tracing system, or to put spans around your own code ([Begin]). With OpenTelemetry use the
// module github.com/idem-go/idem-aws/idem/telemetry/otelidem, which implements Tracer. A service that records no
// traces does not need the package.
//
// Spans begin where a Tracer is configured: middleware.Config.Tracer, function.Config.Tracer and outbox.Config.Tracer. What
// happens below such a span (calls to DynamoDB, calls to a provider) begins its own spans by [Begin] without further
// configuration. Without a Tracer nothing is recorded, stored or sent, and nothing is allocated.
//
// A [Context] travels in the stored record and in the outbox message. It is never part of a fingerprint, and a malformed
// one is dropped: it is never a reason for a request to fail.
package trace
