package quota_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/quota"
)

// lost adds, and loses the reply.
type lost struct {
	quota.Counters
	rights int64
}

func (l *lost) Add(ctx context.Context, counter, field string, n int64, removeAfter time.Time) (int64, error) {
	l.rights += n
	_, err := l.Counters.Add(ctx, counter, field, n, removeAfter)
	return 0, errors.Join(errors.New("the reply is lost"), err)
}

// silent never answers.
type silent struct{}

func (silent) Add(ctx context.Context, _, _ string, _ int64, _ time.Time) (int64, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func (silent) Read(ctx context.Context, _ []string) ([]map[string]int64, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func newSilent(t *testing.T) *quota.Quota {
	t.Helper()
	q, err := quota.New(silent{}, quota.Config{Limits: func(string) quota.Limits { return quota.Limits{NewKeysPerSecond: 5, ActiveKeys: 5} }})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// Counters that don't answer cost every request one time-out, however many there are: they don't queue for theirs.
func TestCountersThatDoNotAnswerAreWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newSilent(t)
		began := time.Now()
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() {
				_, err := q.NewKey(t.Context(), "a")
				var over *idem.QuotaError
				if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &over) {
					t.Errorf("%v, want a time-out", err)
				}
			})
		}
		group.Wait()
		if took := time.Since(began); took > time.Second {
			t.Errorf("100 requests took %v at a time-out of 1 s", took)
		}
		if _, err := q.NewKey(t.Context(), "a"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
			t.Errorf("the next: %v after %v, want it to ask anew", err, time.Since(began))
		}
	})
}

// A request that is cancelled waits no longer, and fails nobody but itself.
func TestACancelledRequestFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newSilent(t)
		began := time.Now()
		impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var group sync.WaitGroup
		ask := func(ctx context.Context, ends time.Duration) {
			group.Go(func() {
				if _, err := q.NewKey(ctx, "a"); err == nil || time.Since(began) != ends {
					t.Errorf("%v after %v, want an error after %v", err, time.Since(began), ends)
				}
			})
			synctest.Wait()
		}
		ask(impatient, 100*time.Millisecond)                         // asks, and gives up
		ask(impatient, 100*time.Millisecond)                         // waits for it, and gives up too
		ask(t.Context(), 1100*time.Millisecond)                      // then asks itself
		ask(context.WithoutCancel(impatient), 1100*time.Millisecond) // and fails this one with it
		group.Wait()
	})
}
