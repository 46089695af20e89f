package provider_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/webhook"
	"github.com/idem-go/idem-aws/localstack/provider"
)

func newReader(body []byte) io.Reader { return struct{ io.Reader }{bytes.NewReader(body)} }

func getBody(body []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
}

// The library verifies webhooks by its own function; what the simulator signs is what that one makes.
func TestSignatureIsTheLibrarys(t *testing.T) {
	at, body := time.Unix(1795262400, 0), []byte(`{"id":"evt_1"}`)
	if got, want := provider.Sign("whsec_1", at, body), webhook.Sign("whsec_1", at, body); got != want {
		t.Errorf("signed %s, want %s", got, want)
	}
}

type posted struct {
	path, signature string
	body            []byte
	at              time.Time
}

func (p posted) event(t *testing.T) provider.Event {
	t.Helper()
	var e provider.Event
	if err := json.Unmarshal(p.body, &e); err != nil {
		t.Fatalf("%s: %v", p.body, err)
	}
	return e
}

// receiver is where webhooks go.
func receiver(t *testing.T) (url string, events <-chan posted) {
	t.Helper()
	got := make(chan posted, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- posted{r.URL.Path, r.Header.Get(provider.SignatureHeader), body, time.Now()}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1/webhooks/provider", got
}

func (s simulator) webhooks(url string, mode provider.Mode, delay time.Duration) {
	s.t.Helper()
	s.settings(provider.SettingsPatch{Webhooks: &provider.WebhooksPatch{
		URL: &url, Mode: &mode, DelayMillis: new(delay.Milliseconds()),
	}})
}

func TestSign(t *testing.T) {
	got := provider.Sign("secret", time.Unix(1_700_000_000, 0), []byte(`{"id":"evt_1"}`))
	// printf '1700000000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac secret
	want := "t=1700000000,v1=af784f27423c462e20039559cd4264140f7b7ed4c9090e26fd663faa5eeb8dda"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestWebhooksByKind(t *testing.T) {
	s := start(t)
	made := endpoints(s)
	url, events := receiver(t)
	s.webhooks(url, provider.Normal, 0)
	for _, e := range made {
		for _, status := range []provider.Status{provider.Succeeded, provider.Declined} {
			s.faults()
			if status == provider.Declined {
				s.faults(provider.Rule{On: e.kind, Fault: provider.Decline, Times: 1})
			}
			key := string(e.kind) + "-" + string(status)
			r, err := s.do("POST", e.path, key, e.body)
			if err != nil {
				t.Fatal(err)
			}
			if e.kind == provider.Screening || e.kind == provider.Release {
				continue // has none: the next event is the payout's
			}
			p := <-events
			got := p.event(t)
			name := strings.TrimPrefix(string(e.kind), "legacy_")
			if got.Type != name+"."+string(status) || got.Key != key || got.Data != r.object(t) || !strings.HasPrefix(got.ID, "evt_") {
				t.Errorf("%s: event %+v", key, got)
			}
			if p.path != "/v1/webhooks/provider" || p.signature != provider.Sign("secret", s.clock.Now(), p.body) {
				t.Errorf("%s: posted to %s with %s", key, p.path, p.signature)
			}
		}
	}
	s.want(201, "POST", "/charges", "charge-succeeded", order)
	s.want(201, "POST", "/charges", "last", order)
	if got := (<-events).event(t); got.Key != "last" {
		t.Errorf("a repeat announced %+v again", got)
	}
}

func TestWebhookModes(t *testing.T) {
	s := start(t)
	url, events := receiver(t)
	s.want(201, "POST", "/charges", "off", order)
	s.webhooks(url, provider.Late, 80*time.Millisecond)
	began := time.Now()
	s.want(201, "POST", "/charges", "late", order)
	if p := <-events; p.event(t).Key != "late" || p.at.Sub(began) < 80*time.Millisecond {
		t.Errorf("%s after %v", p.body, p.at.Sub(began))
	}
	s.webhooks(url, provider.Twice, 0)
	s.want(201, "POST", "/charges", "twice", order)
	first, second := <-events, <-events
	if first.event(t).Key != "twice" || !bytes.Equal(first.body, second.body) {
		t.Errorf("%s, then %s", first.body, second.body)
	}
	// The webhook overtakes an answer that hangs.
	s.webhooks(url, provider.Normal, 0)
	s.faults(provider.Rule{On: provider.Charge, Fault: provider.HangAfter, DelayMillis: time.Hour.Milliseconds()})
	ended := make(chan error, 1)
	go func() {
		_, err := s.do("POST", "/charges", "early", order)
		ended <- err
	}()
	if p := <-events; p.event(t).Key != "early" {
		t.Errorf("%s", p.body)
	}
	if err := s.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the answer came although it hung")
	}
}

func TestDeliveriesAreRecorded(t *testing.T) {
	s := start(t)
	url, events := receiver(t)
	s.webhooks(url, provider.Normal, 0)
	s.want(201, "POST", "/charges", "a", order)
	id := (<-events).event(t).ID
	got := s.deliveries(1)
	if got[0].Event != id || got[0].Status != 204 || got[0].Error != "" || got[0].Key != "a" || got[0].Type != "charge.succeeded" {
		t.Errorf("%+v", got[0])
	}
	s.webhooks("http://127.0.0.1:1/", provider.Normal, 0)
	s.want(201, "POST", "/charges", "b", order)
	got = s.deliveries(2)
	if got[0].Key != "b" || got[0].Status != 0 || got[0].Error == "" {
		t.Errorf("newest first: %+v", got)
	}
}

// A receiver that hangs for a while is told from one that refuses at once.
func TestADeliverySaysHowLongItsAnswerTook(t *testing.T) {
	const held = 50 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(held)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	s := start(t) // its clock stands still
	s.webhooks(server.URL, provider.Normal, 0)
	s.want(201, "POST", "/charges", "slow", order)
	if d := s.deliveries(1)[0]; d.Status != 503 || d.TookMillis < held.Milliseconds() {
		t.Errorf("%+v, want a 503 after %s at least", d, held)
	}
}

// deliveries waits until there are n.
func (s simulator) deliveries(n int) []provider.Delivery {
	s.t.Helper()
	for {
		got, err := s.Deliveries(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if len(got) >= n {
			return got
		}
	}
}

func TestResetAndCloseEndWaitingWebhooks(t *testing.T) {
	c := newClock()
	url, events := receiver(t)
	p := provider.New(provider.Config{Now: c.Now, WebhookSecret: "secret", WebhookURL: url})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	s := simulator{Control: provider.Control{URL: server.URL}, t: t, clock: c}
	late := provider.SettingsPatch{Webhooks: &provider.WebhooksPatch{Mode: new(provider.Late), DelayMillis: new(time.Hour.Milliseconds())}}
	s.settings(late)
	s.want(201, "POST", "/charges", "a", order)
	if err := s.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.settings(late)
	s.want(201, "POST", "/charges", "b", order)
	closed := make(chan struct{})
	go func() { p.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("Close waits for a webhook")
	}
	select {
	case got := <-events:
		t.Errorf("posted %s", got.body)
	default:
	}
}

func TestWebhooksNeedASecret(t *testing.T) {
	p := provider.New(provider.Config{WebhookURL: "http://127.0.0.1:1/"})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	t.Cleanup(p.Close)
	err := provider.Control{URL: server.URL}.Settings(t.Context(), provider.SettingsPatch{
		Webhooks: &provider.WebhooksPatch{Mode: new(provider.Normal)},
	})
	if err == nil || !strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
