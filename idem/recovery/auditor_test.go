package recovery_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// auditor is a store that judges every transition by what the row was just before: what must happen once, and what takes a
// lease from a holder that has it.
type auditor struct {
	faulty.Inner

	mu sync.Mutex
	// parked and settled count by record and epoch, and by message.
	parked, settled map[string]int
	seen            map[string]int
	wrong           []string
}

func newAuditor(inner faulty.Inner) *auditor {
	return &auditor{Inner: inner, parked: map[string]int{}, settled: map[string]int{}, seen: map[string]int{}}
}

func (a *auditor) blame(format string, args ...any) {
	a.wrong = append(a.wrong, fmt.Sprintf(format, args...))
}

// Update implements storage.Store.
func (a *auditor) Update(ctx context.Context, r storage.Record, fence storage.Fence) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, err := a.Inner.Get(context.WithoutCancel(ctx), r.Key)
	if err != nil {
		return err
	}
	now := time.Now()
	if err := a.Inner.Update(ctx, r, fence); err != nil {
		return err
	}
	a.record(*before, r, now)
	return nil
}

func (a *auditor) record(before, after storage.Record, now time.Time) {
	a.seen[fmt.Sprintf("%s → %s", before.State, after.State)]++
	live := before.State == storage.StateInProgress && now.Before(before.LeaseUntil)
	switch {
	case before.State.Final():
		a.blame("%s: %s → %s", before.OperationID, before.State, after.State)
	case live && after.Owner != before.Owner:
		a.blame("%s: its lease was taken %v before its end", before.OperationID, before.LeaseUntil.Sub(now))
	case live && after.State == storage.StateUnknown && strings.Contains(after.LastError, "lease"):
		a.blame("%s: it was parked %v before its lease's end", before.OperationID, before.LeaseUntil.Sub(now))
	case before.State == storage.StateInProgress && before.Kind == idem.KindWrapped && after.Epoch != before.Epoch && after.State != storage.StateCompleted:
		a.blame("%s: it was freed while in progress", before.OperationID)
	case before.State == storage.StateUnknown && after.State == storage.StateFailedRetryable && now.Before(before.LeaseUntil.Add(longestRequest+clockSkew)):
		a.blame("%s: it was freed %v after its lease, which proves nothing", before.OperationID, now.Sub(before.LeaseUntil))
	case before.State == storage.StateUnknown && after.State == storage.StateInProgress:
		a.blame("%s: it was executed although unknown", before.OperationID)
	}
	if after.State == storage.StateUnknown {
		id := fmt.Sprintf("%s epoch %d", after.OperationID, after.Epoch)
		if a.parked[id]++; a.parked[id] > 1 {
			a.blame("%s: it was parked twice", id)
		}
	}
}

// UpdateMessage implements outbox.Store.
func (a *auditor) UpdateMessage(ctx context.Context, m storage.Message, fence storage.MessageFence) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, err := a.Inner.Message(context.WithoutCancel(ctx), m.ID)
	if err != nil {
		return err
	}
	now := time.Now()
	if err := a.Inner.UpdateMessage(ctx, m, fence); err != nil {
		return err
	}
	a.seen[fmt.Sprintf("message %s → %s", before.State, m.State)]++
	switch {
	case before.State.Final():
		a.blame("%s: %s → %s", m.ID, before.State, m.State)
	case before.State == storage.MessageClaimed && m.Owner != before.Owner && now.Before(before.LeaseUntil):
		a.blame("%s: its claim was taken %v before its end", m.ID, before.LeaseUntil.Sub(now))
	}
	return nil
}

// PrepareSettle implements outbox.Store.
func (a *auditor) PrepareSettle(s storage.Settlement) (func(context.Context) error, error) {
	send, err := a.Inner.PrepareSettle(s)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if err := send(ctx); err != nil {
			return err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.settled[string(s.Message.ID)]++; a.settled[string(s.Message.ID)] > 1 && s.Message.State.Final() {
			a.blame("%s: it was settled twice", s.Message.ID)
		}
		return nil
	}, nil
}
