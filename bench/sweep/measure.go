package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
)

// meter sums up what the store says of its calls.
type meter struct {
	mu            sync.Mutex
	calls         map[string]int
	reads, writes float64
}

func (m *meter) count(u dynamo.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls == nil {
		m.calls = map[string]int{}
	}
	m.calls[u.Operation]++
	r, w := u.Units()
	m.reads, m.writes = m.reads+r, m.writes+w
}

// stage is what one step of the way cost.
type stage struct {
	name string
	// did is the report: what was done for the cost.
	did           string
	calls         map[string]int
	reads, writes float64
}

// take returns what was counted since the last take.
func (m *meter) take(name, did string) stage {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := stage{name, did, m.calls, m.reads, m.writes}
	m.calls, m.reads, m.writes = nil, 0, 0
	return s
}

func (s stage) equal(other stage) bool {
	return s.name == other.name && s.did == other.did && maps.Equal(s.calls, other.calls) && s.reads == other.reads && s.writes == other.writes
}

func (s stage) told() string {
	var calls []string
	for _, name := range slices.Sorted(maps.Keys(s.calls)) {
		calls = append(calls, fmt.Sprintf("%d %s", s.calls[name], name))
	}
	return strings.Join(calls, ", ")
}

// measure fills the tables of an endpoint and brings what is stuck to its end. The last stages are those of a system in
// which nothing is stuck any more.
func measure(ctx context.Context, url string, rows int, told func(done int)) ([]stage, error) {
	a, err := newApp(ctx, url, rows)
	if err != nil {
		return nil, err
	}
	if err := a.fill(ctx, rows, told); err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	a.meter.take("", "")
	var stages []stage
	for _, step := range []struct {
		name string
		run  func(context.Context) (any, error)
	}{
		{"sweep", func(ctx context.Context) (any, error) { return a.runner.Sweep(ctx) }},
		{"worker", a.deliver},
		{"reconcile", func(ctx context.Context) (any, error) { a.now = a.now.Add(time.Hour); return a.runner.Reconcile(ctx) }},
		{"nothing stuck: sweep", func(ctx context.Context) (any, error) { return a.runner.Sweep(ctx) }},
		{"reconcile", func(ctx context.Context) (any, error) { return a.runner.Reconcile(ctx) }},
		{"request, new key", func(ctx context.Context) (any, error) { return a.request(ctx, "new") }},
		{"request, expired key", func(ctx context.Context) (any, error) { return a.request(ctx, fmt.Sprint(expiredRow)) }},
	} {
		report, err := step.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		stages = append(stages, a.meter.take(step.name, fmt.Sprintf("%+v", report)))
	}
	return stages, nil
}

// request sends a request that nobody has sent, or none whose record still answers.
func (a *app) request(ctx context.Context, key string) (any, error) {
	result, err := a.requests.Do(ctx, idem.Request{Tenant: tenant, Key: key}, func(context.Context, *idem.Tx) (idem.Response, error) {
		return idem.Response{Status: 201, Body: []byte(`{"id":"order"}`)}, nil
	})
	if err != nil {
		return nil, err
	}
	return struct{ Outcome idem.Outcome }{result.Outcome}, nil
}

// deliver serves the wake-ups that the sweep asked for.
func (a *app) deliver(ctx context.Context) (any, error) {
	ids := a.queue.Take()
	for _, id := range ids {
		if err := a.worker.Deliver(ctx, id); err != nil {
			return nil, err
		}
	}
	return struct{ Delivered int }{len(ids)}, nil
}
