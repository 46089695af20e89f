package lambdatest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Line is a line of a function's log. Metrics are those that CloudWatch extracts of it, by name.
type Line struct {
	Message, Tenant string
	Namespace       string
	Dimensions      [][]string
	Service         string
	Metrics         map[string]float64
}

// Log keeps what functions that start from now on print, and returns what they have printed since it was last asked.
func Log(t *testing.T) func() []Line {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = file
	t.Cleanup(func() {
		os.Stdout = stdout
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	read := 0
	return func() []Line {
		t.Helper()
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		var lines []Line
		for raw := range bytes.Lines(text[read:]) {
			lines = append(lines, line(t, raw))
		}
		read = len(text)
		return lines
	}
}

func line(t *testing.T, raw []byte) Line {
	t.Helper()
	var said struct {
		Msg, Tenant, Service string
		AWS                  struct {
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name string }
			}
		} `json:"_aws"`
	}
	var members map[string]any
	for _, to := range []any{&said, &members} {
		if err := json.Unmarshal(raw, to); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
	}
	l := Line{Message: said.Msg, Tenant: said.Tenant, Service: said.Service, Metrics: map[string]float64{}}
	for _, directive := range said.AWS.CloudWatchMetrics {
		l.Namespace, l.Dimensions = directive.Namespace, directive.Dimensions
		for _, metric := range directive.Metrics {
			value, ok := members[metric.Name].(float64)
			if !ok {
				t.Errorf("metric %s has no value: %s", metric.Name, raw)
			}
			l.Metrics[metric.Name] = value
		}
	}
	return l
}
