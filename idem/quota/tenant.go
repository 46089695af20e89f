package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/idem-go/idem-aws/idem"
)

// tenant is what an instance knows of one.
type tenant struct {
	// busy is held while the counters are asked, so that simultaneous requests share a block.
	busy          chan struct{}
	keys, lookUps rate
	waits         rate
	active        active
	// failure is the last of so many failures to ask.
	failure  error
	failures atomic.Int64

	// mu guards what was given back and waits for the next request: giving back waits for no call.
	mu   sync.Mutex
	back []right
}

// right is one that was taken: the window and the hour that it belongs to.
type right struct{ window, hour int64 }

// none is the window or hour of what is not limited.
const none = -1

func newTenant() *tenant { return &tenant{busy: make(chan struct{}, 1)} }

// alone asks while nobody else does. Who has waited for somebody to fail shares the failure: counters that don't answer
// cost each request one time-out, not one after the other's.
func (t *tenant) alone(ctx context.Context, ask func() error) error {
	failures := t.failures.Load()
	select {
	case t.busy <- struct{}{}:
		defer func() { <-t.busy }()
	case <-ctx.Done():
		return fmt.Errorf("quota: wait for another request's call: %w", ctx.Err())
	}
	if t.failures.Load() != failures {
		return t.failure
	}
	err := ask()
	var over *idem.QuotaError
	if err != nil && !errors.As(err, &over) && ctx.Err() == nil {
		t.failure = err
		t.failures.Add(1)
	}
	return err
}

func (t *tenant) giveBack(r right) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.back = append(t.back, r)
}

// collect puts what was given back into hand.
func (t *tenant) collect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.back {
		t.keys.giveBack(r.window)
		t.active.giveBack(r.hour)
	}
	t.back = t.back[:0]
}
