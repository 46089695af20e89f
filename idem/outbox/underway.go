package outbox

import (
	"context"
	"sync"
)

// underWay counts inline deliveries: those of a request, and those that go on after theirs was answered. Unlike with a
// sync.WaitGroup, more may begin while somebody waits. The zero value has none.
type underWay struct {
	mu sync.Mutex
	n  int
	// none is closed when the last one has ended; nil where there was never one.
	none chan struct{}
}

func (u *underWay) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n++; u.n == 1 {
		u.none = make(chan struct{})
	}
}

func (u *underWay) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n--; u.n == 0 {
		close(u.none)
	}
}

// wait waits until there are none, or returns [ErrUndrained] when ctx ends.
func (u *underWay) wait(ctx context.Context) error {
	for {
		u.mu.Lock()
		n, none := u.n, u.none
		u.mu.Unlock()
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
