package stack

import (
	"strconv"

	"github.com/aws/jsii-runtime-go"
)

// tracesEnvironment tells a function where its traces go, if anywhere. Whether a trace is kept depends on its id alone: all
// functions decide alike, and a client's sampled flag decides nothing.
func tracesEnvironment(config Config) map[string]*string {
	if config.OTLPEndpoint == "" {
		return nil
	}
	return map[string]*string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": jsii.String(config.OTLPEndpoint),
		"OTEL_TRACES_SAMPLER":         jsii.String("traceidratio"),
		"OTEL_TRACES_SAMPLER_ARG":     jsii.String(strconv.FormatFloat(float64(config.TracesPercent)/100, 'g', -1, 64)),
	}
}
