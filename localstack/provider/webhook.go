package provider

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// SignatureHeader carries the signature of a webhook.
const SignatureHeader = "Provider-Signature"

// deliveriesMax bounds the record of deliveries; the oldest go first.
const deliveriesMax = 10_000

// deliveryTimeout bounds one post of a webhook.
const deliveryTimeout = 10 * time.Second

// Event is the body of a webhook. One event is posted with the same bytes each time.
type Event struct {
	// ID is opaque, with the prefix evt_.
	ID string `json:"id"`
	// Type is charge.succeeded, charge.declined, refund.succeeded, refund.declined, payout.succeeded or payout.declined.
	Type    string `json:"type"`
	Created Time   `json:"created"`
	// Key is the Idempotency-Key that the object was made under.
	Key  string `json:"key"`
	Data Object `json:"data"`
}

// Delivery is one post of an event.
type Delivery struct {
	Event string `json:"event"`
	Type  string `json:"type"`
	Key   string `json:"key"`
	// Status that the receiver answered, 0 where there was no answer; Error then says why.
	Status int    `json:"status"`
	Error  string `json:"error,omitempty"`
	At     Time   `json:"at"`
	// TookMillis is how long the answer took, or its absence.
	TookMillis int64 `json:"took_ms"`
}

// Sign returns the Provider-Signature of a body: t=<unix seconds>,v1=<hex HMAC-SHA256(secret, t + "." + body)>.
func Sign(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// poster sends webhooks, and knows how many are under way.
type poster struct {
	secret  string
	client  *http.Client
	running sync.WaitGroup
}

// announce sends the event of a new object by the settings of this moment. It is called under the lock, so that nothing
// starts once the state was stopped.
func (s *state) announce(o Object) {
	typ, ok := eventType(o)
	if !ok || s.stopped || s.settings.Webhooks.Mode == Off {
		return
	}
	e := Event{ID: newID("evt_"), Type: typ, Created: Time{s.now()}, Key: o.Key, Data: o}
	hooks := s.settings.Webhooks
	posts := 1
	if hooks.Mode == Twice {
		posts = 2
	}
	s.events.running.Go(func() {
		if !s.wait(nil, nil, hooks.delay()) {
			return
		}
		for range posts {
			s.deliver(hooks.URL, e)
		}
	})
}

// eventType: a screening and its release are answered at once and by nothing else.
func eventType(o Object) (string, bool) {
	switch o.Kind {
	case Charge, LegacyCharge:
		return "charge." + string(o.Status), true
	case Payout, LegacyPayout:
		return "payout." + string(o.Status), true
	case Refund:
		return "refund." + string(o.Status), true
	case Screening, Release, List, Get:
		return "", false
	}
	return "", false
}

func (s *state) deliver(url string, e Event) {
	ctx, cancel := context.WithTimeout(context.Background(), deliveryTimeout)
	defer cancel()
	go func() {
		select {
		case <-s.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	at := s.now()
	d := Delivery{Event: e.ID, Type: e.Type, Key: e.Key, At: Time{at}}
	began := time.Now() // the clock of the state may stand still
	status, err := s.events.post(ctx, url, at, encode(e))
	d.Status, d.TookMillis = status, time.Since(began).Milliseconds()
	if err != nil {
		d.Error = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliveries = append(s.deliveries[max(0, len(s.deliveries)-deliveriesMax+1):], d)
}

func (p *poster) post(ctx context.Context, url string, at time.Time, body []byte) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("webhook: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(SignatureHeader, Sign(p.secret, at, body))
	res, err := p.client.Do(req)
	if err != nil {
		return 0, err
	}
	if err := res.Body.Close(); err != nil {
		return res.StatusCode, fmt.Errorf("webhook: %w", err)
	}
	return res.StatusCode, nil
}
