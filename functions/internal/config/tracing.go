package config

import (
	"fmt"
	"time"
)

// Tracing says where traces go: to a collector that takes OTLP over HTTP. The names are OpenTelemetry's own, and so are those that
// its SDK reads besides, such as OTEL_TRACES_SAMPLER.
type Tracing struct {
	// OTLPEndpoint is the collector's base URL, OTLPTracesEndpoint the whole URL for traces, which counts where both are set.
	// Default: none, and nothing is traced.
	OTLPEndpoint       string `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	OTLPTracesEndpoint string `env:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"`
	// OTLPHeaders are sent to the collector: name=value, separated by commas, values percent-encoded. For local stacks and
	// collectors that need no secret: anybody who may read a function's configuration reads them.
	OTLPHeaders string `env:"OTEL_EXPORTER_OTLP_HEADERS"`
	// OTelDisabled turns tracing off, whatever else is set.
	OTelDisabled bool `env:"OTEL_SDK_DISABLED"`
	// TracesFlushMax is for how long an answer may wait for its trace to be sent. Default 100 ms; at most 1 s.
	TracesFlushMax time.Duration `env:"TRACES_FLUSH_MAX" envDefault:"100ms"`
	// FunctionName is the service's name in traces, unless OTEL_SERVICE_NAME gives another one.
	FunctionName string `env:"AWS_LAMBDA_FUNCTION_NAME" envDefault:"idem"`
}

// On says that traces are sent.
func (t Tracing) On() bool {
	return !t.OTelDisabled && (t.OTLPEndpoint != "" || t.OTLPTracesEndpoint != "")
}

// tracesFlushBound keeps a collector that hangs from being felt as more than a slow request.
const tracesFlushBound = time.Second

func (t Tracing) check() error {
	if t.TracesFlushMax <= 0 || t.TracesFlushMax > tracesFlushBound {
		return fmt.Errorf("configuration: TRACES_FLUSH_MAX = %v: must be more than 0 and at most %v", t.TracesFlushMax, tracesFlushBound)
	}
	return nil
}
