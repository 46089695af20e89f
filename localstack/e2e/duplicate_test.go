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

// oneStorm sends many copies of one request at once, and judges what they got.
func oneStorm(t *testing.T, size int, another func(name string) request) (r request, first, final []reply) {
	t.Helper()
	r = another("twenty")
	first, final = storm(t, copies(t, r, size))
	oneExecuted(t, first)
	for _, got := range final {
		same(t, got.is(t, http.StatusCreated), final[0])
	}
	return r, first, final
}

// oneExecuted judges what simultaneous duplicates got at first: one executed, and each other got the replay, the 202 or 409 with
// Retry-After. No fault is injected; some, but not all, may find no store all the same, where the burst holds the emulator up for longer than a
// function waits. How soon such an answer may be there, and how often in a whole run, is judged at its end.
func oneExecuted(t *testing.T, first []reply) {
	t.Helper()
	executed, starved := 0, 0
	for _, got := range first {
		switch status := got.header.Get("Idempotency-Status"); {
		case status == "executed" && (got.status == http.StatusCreated || got.status == http.StatusAccepted):
			executed++
		case status == "replayed" && got.status == http.StatusCreated && got.header.Get("Idempotent-Replayed") == "true":
		case status == "replayed" && got.status == http.StatusAccepted && got.header.Get("Idempotent-Replayed") == "true":
			got.comesBack(t)
		case status == "in_progress" && got.status == http.StatusConflict:
			got.isProblem(t, http.StatusConflict, "idempotency_key_in_progress")
			got.comesBack(t)
		case got.starved():
			starved++
		default:
			t.Errorf("a duplicate got %v", got)
		}
	}
	// One that found no store may have executed: what its reply would have said each other is told.
	if executed > 1 || executed == 0 && starved == 0 || starved == len(first) {
		t.Errorf("%d of %d duplicates say that they executed, want one; %d found no store", executed, len(first), starved)
	}
}

func TestTwentySimultaneousPaymentsAreOne(t *testing.T) { // semantics.md: in flight 409 + Retry-After, or the 202; one executes
	t.Parallel()
	r, first, _ := oneStorm(t, 2*duplicateCount, func(name string) request { return pay(name+"-payments", card(name)) })
	var pending reply
	for _, got := range first {
		if got.status == http.StatusAccepted && pending.status == 0 {
			pending = got
		} else if got.status == http.StatusAccepted {
			same(t, got, pending)
		}
	}
	if charge := chargedOnce(t, r, provider.Succeeded); charge.Attempts != 1 {
		t.Errorf("the charge took %d requests, want one", charge.Attempts)
	}
}

func TestTwentySimultaneousTransfersAreOne(t *testing.T) { // as above, for an atomic operation
	t.Parallel()
	var from, to string
	oneStorm(t, 2*duplicateCount, func(name string) request {
		from, to = open(t, name+"-from", 1000), open(t, name+"-to", 0)
		return move(name+"-transfers", from, to, 7)
	})
	movedOnce(t, from, to, 1000, 7)
}
