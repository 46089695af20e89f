package idem_test

import (
	"context"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// slow executes for as long as it is told to.
func slow(d time.Duration) idem.Handler {
	return func(context.Context, *idem.Tx) (idem.Response, error) {
		time.Sleep(d)
		return idem.Response{Status: 200}, nil
	}
}

// semantics.md "On the wire": Retry-After of a 409 is derived from the lease and from observed durations.
func TestRetryAfterOfARunningRequestFollowsItsPace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		op := w.register(idem.Operation{Kind: idem.KindAtomic})
		duplicate := func(after, want time.Duration) {
			t.Helper()
			ended := make(chan struct{})
			req := request(`1`)
			req.Key = want.String() + after.String()
			go func() {
				defer close(ended)
				w.do(op, req, slow(10*time.Second))
			}()
			time.Sleep(after)
			if result := w.do(op, req, slow(0)); result.Outcome != idem.OutcomeInProgress || result.RetryAfter != want {
				t.Errorf("after %v: %s, Retry-After %v, want %v", after, result.Outcome, result.RetryAfter, want)
			}
			<-ended
		}
		for n := range 3 { // too little is known yet
			duplicate(time.Second+time.Duration(n)*time.Millisecond, time.Second)
		}
		duplicate(time.Second, 9*time.Second)
		duplicate(9500*time.Millisecond, time.Second)
	})
}

// Whatever was observed, a duplicate is not sent away for longer than the lease of a holder that may be dead.
func TestRetryAfterEndsWithTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		op := w.register(idem.Operation{Kind: idem.KindAtomic})
		for _, key := range []string{"a", "b", "c"} {
			before := request(`1`)
			before.Key = key
			w.do(op, before, slow(20*time.Second))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		defer cancel()
		req := request(`1`)
		req.Key = "short"
		go func() { _, _ = op.Do(ctx, req, slow(2*time.Second)) }()
		time.Sleep(time.Second)
		if result := w.do(op, req, slow(0)); result.Outcome != idem.OutcomeInProgress || result.RetryAfter != 7*time.Second { // 6 s + 2 s margin − 1 s
			t.Errorf("%s, Retry-After %v, want 7 s", result.Outcome, result.RetryAfter)
		}
		time.Sleep(10 * time.Second)
	})
}

// A key that was freed by hand is taken again once no cache can have its answer any more; until then nobody is at work.
func TestRetryAfterOfAKeyThatIsNotFreeYetIsItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		op := w.register(idem.Operation{Kind: idem.KindAtomic})
		first := w.do(op, request(`1`), func(context.Context, *idem.Tx) (idem.Response, error) { return idem.Response{Status: 201}, nil })
		time.Sleep(time.Hour)
		if _, err := w.engine.CacheBust(t.Context(), "t", first.OperationID, "", "the rate was wrong"); err != nil {
			t.Fatal(err)
		}
		left := time.Until(w.mem.Records()[0].LeaseUntil)
		if result := w.do(op, request(`1`), slow(0)); result.Outcome != idem.OutcomeInProgress || result.RetryAfter != min(left, 30*time.Second) || left <= 2*time.Second {
			t.Errorf("%s, Retry-After %v, want at most 30 s of %v", result.Outcome, result.RetryAfter, left)
		}
	})
}

// A 202 says when its operation will be final, as earlier ones were.
func TestRetryAfterOfAPendingOperationFollowsItsPace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		op := w.register(idem.Operation{Kind: idem.KindDeferred})
		for _, key := range []string{"a", "b", "c"} {
			r := request(`1`)
			r.Key = key
			first := w.do(op, r, w.handler(202))
			if first.RetryAfter != time.Second {
				t.Errorf("too little known: Retry-After %v, want 1 s", first.RetryAfter)
			}
			time.Sleep(8 * time.Second)
			w.settle(first.OperationID)
			w.do(op, r, w.handler(202)) // the replay tells
		}
		second := request(`1`)
		second.Key = "second"
		if result := w.do(op, second, w.handler(202)); result.RetryAfter != 8*time.Second {
			t.Errorf("Retry-After %v, want 8 s", result.RetryAfter)
		}
		time.Sleep(3 * time.Second)
		if result := w.do(op, second, w.handler(202)); result.RetryAfter != 5*time.Second {
			t.Errorf("3 s later: Retry-After %v, want 5 s", result.RetryAfter)
		}
	})
}

// One operation that waited for an operator tells nothing about the next ones, however often its answer is replayed.
func TestRetryAfterIsNotThatOfAnOutlier(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		op := w.register(idem.Operation{Kind: idem.KindDeferred})
		begin := func(key string) (idem.Request, *idem.Result) {
			r := request(`1`)
			r.Key = key
			return r, w.do(op, r, w.handler(202))
		}
		settled := func(key string, after time.Duration) idem.Request {
			r, accepted := begin(key)
			time.Sleep(after)
			w.settle(accepted.OperationID)
			w.do(op, r, w.handler(202)) // the replay tells
			return r
		}
		settled("first", time.Hour)
		if _, result := begin("alone"); result.RetryAfter != time.Second {
			t.Errorf("after an hour's wait of the first: Retry-After %v, want 1 s", result.RetryAfter)
		}
		for _, key := range []string{"a", "b", "c"} {
			settled(key, 2*time.Second)
		}
		slow := settled("slow", time.Hour)
		if _, result := begin("next"); result.RetryAfter != 2*time.Second {
			t.Errorf("after an hour's wait of another: Retry-After %v, want 2 s", result.RetryAfter)
		}
		for range 20 { // its client asks again and again
			time.Sleep(time.Minute)
			w.do(op, slow, w.handler(202))
		}
		if _, result := begin("last"); result.RetryAfter != 2*time.Second {
			t.Errorf("after 20 replays of it: Retry-After %v, want 2 s", result.RetryAfter)
		}
	})
}

// settle ends the operation's message as a worker does.
func (w *world) settle(id idem.OperationID) {
	w.Helper()
	key, err := id.RecordKey()
	if err != nil {
		w.Fatal(err)
	}
	now := time.Now().UTC()
	send, err := w.mem.PrepareSettle(storage.Settlement{
		Message: storage.MessageEnd{ID: id.Message(1), State: storage.MessageDelivered, DoneAt: now}, Fence: storage.MessageFence{Open: true},
		Record: &storage.RecordEnd{
			Key: key, OperationID: id, State: storage.StateCompleted, Response: idem.Response{Status: 201}, DoneAt: now, ExpiresAt: now.Add(24 * time.Hour), FreeAt: now.Add(24 * time.Hour),
		},
		Token: string(id[len(id)-20:]),
	})
	if err != nil {
		w.Fatal(err)
	}
	if err := send(w.Context()); err != nil {
		w.Fatal(err)
	}
}
