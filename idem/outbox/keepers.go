package outbox

import (
	"context"
	"sync"
)

// keepers are the deliveries that go on after their callers were answered. Unlike with a sync.WaitGroup, more may come while
// somebody waits. The zero value has none.
type keepers struct {
	mu sync.Mutex
	n  int
	// none is closed when the last one has ended; nil where there was never one.
	none chan struct{}
}

// goes runs the rest of a delivery.
func (k *keepers) goes(rest func()) {
	k.mu.Lock()
	if k.n++; k.n == 1 {
		k.none = make(chan struct{})
	}
	k.mu.Unlock()
	go func() {
		defer k.ended()
		rest()
	}()
}

func (k *keepers) ended() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.n--; k.n == 0 {
		close(k.none)
	}
}

// wait waits until there are none, or returns [ErrUndrained] when ctx ends.
func (k *keepers) wait(ctx context.Context) error {
	for {
		k.mu.Lock()
		n, none := k.n, k.none
		k.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-none:
		case <-ctx.Done():
			return ErrUndrained
		}
	}
}
