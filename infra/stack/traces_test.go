package stack_test

import (
	"maps"
	"testing"
)

// What a function of a local stack could not send in time is lost, and its machine stands still; on AWS the functions' default counts.
func TestALocalStackWaitsLongerForItsTraces(t *testing.T) {
	for name, want := range map[string]any{"http-function": "1s", "http-gateway": nil} {
		traced := maps.Clone(variants[name])
		traced["otlpEndpoint"] = "http://localhost:4318"
		if _, ok := traced["providerUrl"]; !ok {
			traced["providerUrl"] = "https://provider.example"
		}
		variables := environment(synthesizeContext(t, traced, buildFolder(t)).only(t, "AWS::Lambda::Function", "WorkerFunction").Properties)
		if got := variables["TRACES_FLUSH_MAX"]; got != want {
			t.Errorf("%s: TRACES_FLUSH_MAX is %v, want %v", name, got, want)
		}
		if variables["OTEL_EXPORTER_OTLP_ENDPOINT"] != "http://localhost:4318" {
			t.Errorf("%s: no traces: %v", name, variables)
		}
	}
}
