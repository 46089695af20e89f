package payments_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/webhook"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// The secrets that the endpoint knows: the present one and the one before.
const (
	secret       = "whsec_present_0123456789"
	formerSecret = "whsec_former_0123456789"
)

// listening is the endpoint of the provider's webhooks, in front of a world.
type listening struct {
	*world
	url string

	mu  sync.Mutex
	log bytes.Buffer
}

// Write implements io.Writer for the log.
func (l *listening) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(line)
}

// client has connections of its own: a test server that closes also closes those of http.DefaultTransport, under the requests of
// the tests beside it.
var client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// listen puts the endpoint there, as the webhook function does.
func (w *world) listen() *listening {
	w.Helper()
	l := &listening{world: w}
	verifier, err := webhook.New(webhook.Config{Secrets: []string{secret, formerSecret}, Header: payments.SignatureHeader, Now: w.clock.Now})
	w.ok(err)
	engine, err := idem.New(w.store, idem.Config{Now: w.clock.Now, Pause: w.clock.Pause})
	w.ok(err)
	endpoint, err := payments.NewWebhook(payments.WebhookConfig{
		Verifier: verifier, Engine: engine, Messages: w.store, Worker: w.worker, Logger: slog.New(slog.NewTextHandler(l, nil)),
	})
	w.ok(err)
	server := httptest.NewServer(endpoint)
	w.Cleanup(server.Close)
	l.url = server.URL
	return l
}

// post delivers a body with a signature.
func (l *listening) post(body, signature string) answer {
	l.Helper()
	return l.send(http.MethodPost, "/v1/webhooks/provider", body, "Provider-Signature: "+signature)
}

func (l *listening) send(method, path, body string, headers ...string) answer {
	l.Helper()
	req, err := http.NewRequestWithContext(l.Context(), method, l.url+path, strings.NewReader(body))
	l.ok(err)
	req.Header.Set("Content-Type", "application/json")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	res, err := client.Do(req)
	l.ok(err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	l.ok(err)
	l.documented(req, body, res, raw)
	return answer{t: l.T, status: res.StatusCode, header: res.Header, body: string(raw)}
}

// signed delivers a body that the provider signs now.
func (l *listening) signed(body string) answer {
	l.Helper()
	return l.post(body, provider.Sign(secret, l.clock.Now(), []byte(body)))
}

// tell delivers an event, which must be accepted.
func (l *listening) tell(e provider.Event) {
	l.Helper()
	body, err := json.Marshal(e)
	l.ok(err)
	if got := l.signed(string(body)).want(http.StatusNoContent); got.body != "" {
		l.Errorf("204 with the body %s", got.body)
	}
}

// logged counts the lines since it was last asked that hold all of the texts.
func (l *listening) logged(texts ...string) (count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.log.String()) {
		matches := 0
		for _, text := range texts {
			if strings.Contains(line, text) {
				matches++
			}
		}
		if matches == len(texts) {
			count++
		}
	}
	l.log.Reset()
	return count
}

// about is the event of an object.
func about(id string, o provider.Object) provider.Event {
	kind := map[provider.Kind]string{
		provider.Charge: "charge", provider.LegacyCharge: "charge", provider.Refund: "refund",
		provider.Screening: "screening", provider.Release: "release", provider.Payout: "payout", provider.LegacyPayout: "payout",
	}[o.Kind]
	return provider.Event{ID: id, Type: kind + "." + string(o.Status), Created: o.CreatedAt, Key: o.Key, Data: o}
}

// called makes the provider do what the operation's message asks for, as a worker does that dies before it settles.
func (w *world) called(id idem.OperationID) {
	w.Helper()
	m := w.message(id)
	topics(w.T, w.provider.URL)[m.Topic].Call(w.Context(), m)
}
