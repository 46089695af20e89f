package payments_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// revocable is the credential of an application. While it is revoked its requests are answered 401, or 403, and execute nothing.
type revocable struct {
	status atomic.Int64
}

func (c *revocable) transport(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		status := int(c.status.Load())
		if status == 0 {
			return next.RoundTrip(r)
		}
		_ = r.Body.Close()
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// docs/operator.md "Rotate the provider's credential": while a credential is revoked nothing is executed and nothing is given up. What
// waits goes on with the next one.
func TestWhatWaitsForACredentialGoesOnOnceThereIsOne(t *testing.T) {
	for name, status := range map[string]int64{"401": 401, "403": 403} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				credential := &revocable{}
				w.serve(options{workerOnly: true, authorize: credential.transport})
				var screened accepted
				w.payOut("out", "iban_ok").want(202).decode(&screened)
				w.deliver(screened.Operation)
				credential.status.Store(status)
				charged := w.pay("in", "card_ok")
				w.deliver(charged.Operation)
				w.deliverMessage(screened.Operation, 2)
				w.drain(5 * time.Minute)
				w.swept()
				w.charged(0)
				w.status(charged, "pending", "pending")
				w.made(1, 0, 500)
				credential.status.Store(0)
				w.drain(time.Minute)
				w.charged(1)
				w.status(charged, "succeeded", "completed")
				w.made(1, 1, 500)
				if p, o := w.payout(screened.Payout.ID), w.operation(screened.Operation); p.Status != "succeeded" || o.State != "completed" {
					w.Errorf("payout is %s, its operation %s", p.Status, o.State)
				}
				if letters := w.queue.Letters(); len(letters) != 0 {
					w.Errorf("dead: %+v", letters)
				}
			})
		})
	}
}
