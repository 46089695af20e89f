//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/localstack/provider"
)

// duplicateCount is how many clients send the same request at once.
const duplicateCount = 20

// storm sends the requests at the same moment, and each again until its final answer by Retry-After; it returns the first
// and the final answers.
func storm(t *testing.T, requests []request) (first, final []reply) {
	t.Helper()
	first = burst(t, requests)
	return first, together(t, requests, deployed.tenantA.resolve)
}

// burst sends the requests at the same moment and returns their answers.
func burst(t *testing.T, requests []request) []reply {
	t.Helper()
	return together(t, requests, deployed.tenantA.send)
}

func together(t *testing.T, requests []request, send func(context.Context, request) (reply, error)) []reply {
	t.Helper()
	answers, start, ctx := make([]reply, len(requests)), make(chan struct{}), t.Context()
	var group errgroup.Group
	for i, r := range requests {
		group.Go(func() (err error) {
			<-start
			answers[i], err = send(ctx, r)
			return err
		})
	}
	close(start)
	must(t, group.Wait())
	return answers
}

// copies are n requests; the bodies of the second half of them are spelled otherwise.
func copies(t *testing.T, r request, n int) []request {
	t.Helper()
	spellings := rewritten(t, r.body)
	requests := make([]request, n)
	for i := range requests {
		requests[i] = r
		if i >= n/2 {
			requests[i].body = spellings[i%len(spellings)]
		}
	}
	return requests
}

// oneExecuted judges what simultaneous duplicates got at first: one executed, and each other got the replay, the 202 or
// 409 with Retry-After. On a busy machine a few may find the store too slow, which is an honest 503 with Retry-After, or the API
// keys' table, which is the gateway's 500; the one that executed may be among the first.
func oneExecuted(t *testing.T, first []reply, final int) {
	t.Helper()
	executed, unavailable := 0, 0
	for _, got := range first {
		switch status := got.header.Get("Idempotency-Status"); {
		case status == "executed" && (got.status == final || got.status == http.StatusAccepted):
			executed++
		case status == "replayed" && got.status == final && got.header.Get("Idempotent-Replayed") == "true":
		case status == "replayed" && got.status == http.StatusAccepted && got.header.Get("Idempotent-Replayed") == "true":
			got.comesBack(t)
		case status == "in_progress" && got.status == http.StatusConflict:
			got.isProblem(t, http.StatusConflict, "idempotency_key_in_progress")
			got.comesBack(t)
		case got.status == http.StatusServiceUnavailable:
			unavailable++
			got.isProblem(t, http.StatusServiceUnavailable, "idempotency_store_unavailable")
			got.comesBack(t)
		case got.keysUnread():
			unavailable++
		default:
			t.Errorf("a duplicate got %v", got)
		}
	}
	if executed > 1 || executed == 0 && unavailable == 0 || unavailable > len(first)/2 {
		t.Errorf("%d of the duplicates say that they executed, want one; %d of %d found no store", executed, unavailable, len(first))
	}
}

func TestTwentySimultaneousPaymentsAreOne(t *testing.T) { // semantics.md: in flight 409 + Retry-After, or the 202; one executes
	t.Parallel()
	r := pay("twenty-payments", card("twenty"))
	first, final := storm(t, copies(t, r, 2*duplicateCount))
	oneExecuted(t, first, http.StatusCreated)
	var pending reply
	for _, got := range first {
		if got.status == http.StatusAccepted && pending.status == 0 {
			pending = got
		} else if got.status == http.StatusAccepted {
			same(t, got, pending)
		}
	}
	for _, got := range final {
		same(t, got.is(t, http.StatusCreated), final[0])
	}
	if charge := chargedOnce(t, r, provider.Succeeded); charge.Attempts != 1 {
		t.Errorf("the charge took %d requests, want one", charge.Attempts)
	}
}

func TestTwentySimultaneousTransfersAreOne(t *testing.T) { // as above, for an atomic operation
	t.Parallel()
	from, to := open(t, "twenty-from", 1000), open(t, "twenty-to", 0)
	first, final := storm(t, copies(t, move("twenty-transfers", from, to, 7), 2*duplicateCount))
	oneExecuted(t, first, http.StatusCreated)
	for _, got := range final {
		same(t, got.is(t, http.StatusCreated), final[0])
	}
	movedOnce(t, from, to, 1000, 7)
}
