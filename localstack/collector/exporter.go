package main

import (
	"context"
	"net/http"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// batchesMax bounds what is kept: the oldest goes first. A chaos run records many more spans than anybody reads.
const batchesMax = 20_000

// spans is what the collector has exported: a batch each, in OTLP's JSON form.
type spans struct {
	mu      sync.Mutex
	batches [][]byte
}

type noConfig struct{}

// newFactory makes the exporter "kept" of the collector's pipeline.
func newFactory(kept *spans) exporter.Factory {
	return exporter.NewFactory(component.MustNewType("kept"), func() component.Config { return &noConfig{} },
		exporter.WithTraces(func(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
			return exporterhelper.NewTraces(ctx, set, cfg, kept.keep)
		}, component.StabilityLevelDevelopment))
}

func (s *spans) keep(_ context.Context, batch ptrace.Traces) error {
	line, err := (&ptrace.JSONMarshaler{}).MarshalTraces(batch)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.batches) == batchesMax {
		s.batches = s.batches[1:]
	}
	s.batches = append(s.batches, line)
	return nil
}

// ServeHTTP writes one batch a line.
func (s *spans) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	batches := s.batches
	s.mu.Unlock()
	for _, line := range batches {
		_, _ = w.Write(append(line[:len(line):len(line)], '\n'))
	}
}
