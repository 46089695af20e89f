package stack

import (
	"strconv"

	"github.com/aws/jsii-runtime-go"
)

// localFlush is for how long an answer of a local stack may wait for its trace to be sent: what was not sent then is lost, and a machine
// that does everything at once stands still for longer than the time that is right on AWS.
const localFlush = "1s"

// tracesEnvironment tells a function where its traces go, if anywhere. Whether a trace is kept depends on its id alone: all
// functions decide alike, and a client's sampled flag decides nothing.
func tracesEnvironment(config Config) map[string]*string {
	if config.OTLPEndpoint == "" {
		return nil
	}
	environment := map[string]*string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": jsii.String(config.OTLPEndpoint),
		"OTEL_TRACES_SAMPLER":         jsii.String("traceidratio"),
		"OTEL_TRACES_SAMPLER_ARG":     jsii.String(strconv.FormatFloat(float64(config.TracesPercent)/100, 'g', -1, 64)),
	}
	if config.Local {
		environment["TRACES_FLUSH_MAX"] = jsii.String(localFlush)
	}
	return environment
}
