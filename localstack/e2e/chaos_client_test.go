//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/idem/client"
	"github.com/idem-go/idem-aws/localstack/chaos"
)

// client sends the story's request as its temper is.
func (l *loop) client(ctx context.Context, s *story) {
	switch c := s.plan.Client; c.Temper {
	case chaos.Follows:
		s.follow(ctx)
	case chaos.Trusts:
		s.library(ctx, false)
	case chaos.Retries:
		s.insist(ctx, finally)
	case chaos.Leaves:
		s.hangUp(ctx, c.Patience)
	case chaos.Returns:
		s.hangUp(ctx, c.Patience)
		idle(ctx, c.Patience)
		s.insist(ctx, finally)
	case chaos.Crowds:
		var crowd errgroup.Group
		for range c.Copies {
			crowd.Go(func() error { s.insist(ctx, finally); return nil })
		}
		_ = crowd.Wait() // never fails
	case chaos.Muddles:
		if s.insist(ctx, reply.stored) {
			s.muddle(ctx)
		}
	}
}

// idle lets time pass, unless the clients have to go.
func idle(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// hangUp sends once, and waits for an answer no longer than that.
func (s *story) hangUp(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, _ = s.api(s.hear).send(ctx, s.request) // what was heard was judged
}

// sendingsMax is how often a client of the loop asks for one thing.
const sendingsMax = 10

// finally says that an answer is the last one.
func finally(got reply) bool { return got.stored() && got.status != http.StatusAccepted }

// insist sends again until the answer is good enough, by Retry-After where there is one. It says whether it was.
func (s *story) insist(ctx context.Context, enough func(reply) bool) bool {
	a := s.api(s.hear)
	for range sendingsMax {
		got, err := a.send(ctx, s.request)
		if err == nil && enough(got) {
			return true
		}
		pause := 300 * time.Millisecond
		if wait, wrong := got.retryAfter(); err == nil && wrong == nil {
			pause = min(wait, 3*time.Second)
		}
		if idle(ctx, pause); ctx.Err() != nil {
			return false
		}
	}
	return false
}

// muddle sends something else under the same key until somebody says what becomes of that.
func (s *story) muddle(ctx context.Context) {
	other := s.request
	other.body = strings.Replace(other.body, `"currency":"EUR"`, `"currency":"USD"`, 1)
	a := s.api(s.hearMuddled)
	for range sendingsMax {
		if got, err := a.send(ctx, other); err == nil && got.status < http.StatusInternalServerError {
			s.loop.figures.add(tableChecks, "other payloads under a used key that were refused", 1)
			return
		}
		if idle(ctx, 300*time.Millisecond); ctx.Err() != nil {
			return
		}
	}
}

// follow takes the request to its end by idem/client, and then gives the money back, where that is planned.
func (s *story) follow(ctx context.Context) {
	final := s.library(ctx, true)
	if s.plan.Refund == 0 || final.status != http.StatusCreated {
		return
	}
	var paid payment
	if json.Unmarshal(final.body, &paid) == nil {
		s.refunding(paid.ID).library(ctx, true)
	}
}

// library sends the request by idem/client, and follows a 202 to the end where asked to. What it returns is the zero reply
// where the client gave up.
func (s *story) library(ctx context.Context, await bool) reply {
	a := s.api(s.hear)
	transport, err := client.New(client.Config{
		Base: a.http.Transport, BaseURL: a.url, ElapsedMax: 30 * time.Second, AwaitMax: 20 * time.Second, RetryAfterMax: 10 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.blame("idem/client: %v", err)
		return reply{}
	}
	req, err := http.NewRequestWithContext(client.WithKey(ctx, s.request.key), s.request.method, a.url+s.request.path, strings.NewReader(s.request.body))
	if err != nil {
		s.blame("idem/client: %v", err)
		return reply{}
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := transport.RoundTrip(req)
	if err == nil && await {
		res, err = transport.Await(ctx, res)
	}
	if err != nil {
		s.loop.figures.add(tableRequests, "clients of idem/client that gave up, or were cut off", 1)
		return reply{}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, replyBytesMax))
	if err != nil {
		return reply{}
	}
	got := reply{res.StatusCode, res.Header, body}
	if await {
		s.followed(got)
	}
	return got
}

// followed judges the final answer that the Location of a 202 showed: the same as every other way to ask tells.
func (s *story) followed(got reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case got.status == http.StatusAccepted:
		s.blame("I4: a 202 was awaited and became %v", got)
	case s.final == nil:
		s.final, s.ended = &got, time.Now()
	case got.status != s.final.status || !bytes.Equal(got.body, s.final.body):
		s.blame("I4: the operation shows %v, the answer was %v", got, *s.final)
	}
}
