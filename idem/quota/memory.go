package quota

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Memory has counters for one process: a container that runs alone, and the reference that others are compared with. It
// is safe for concurrent use. Counters that may be removed go when others are added.
type Memory struct {
	now func() time.Time

	mu       sync.Mutex
	counters map[string]*counter
	sweepAt  time.Time
}

type counter struct {
	fields      map[string]int64
	removeAfter time.Time
}

// sweepEvery is how often counters that are over are looked for.
const sweepEvery = time.Minute

// NewMemory returns empty counters on the clock; nil is time.Now.
func NewMemory(now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{now: now, counters: map[string]*counter{}}
}

// Add implements [Counters].
func (m *Memory) Add(_ context.Context, name, field string, n int64, removeAfter time.Time) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	c := m.counters[name]
	if c == nil {
		c = &counter{fields: map[string]int64{}}
		m.counters[name] = c
	}
	c.removeAfter = removeAfter
	c.fields[field] += n
	return c.fields[field], nil
}

// Read implements [Counters].
func (m *Memory) Read(_ context.Context, names []string) ([]map[string]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]map[string]int64, len(names))
	for i, name := range names {
		if c := m.counters[name]; c != nil {
			all[i] = maps.Clone(c.fields)
		}
	}
	return all, nil
}

func (m *Memory) sweep() {
	now := m.now()
	if now.Before(m.sweepAt) {
		return
	}
	m.sweepAt = now.Add(sweepEvery)
	maps.DeleteFunc(m.counters, func(_ string, c *counter) bool { return now.After(c.removeAfter) })
}
