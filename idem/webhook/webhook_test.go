package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/webhook"
)

const (
	name    = "Provider-Signature"
	current = "whsec_current_0123456789"
	former  = "whsec_former_0123456789"
	foreign = "whsec_foreign_0123456789"
)

var (
	noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	body = []byte(`{"id":"evt_1","type":"charge.succeeded"}`)
)

func verifier(t *testing.T, cfg webhook.Config) *webhook.Verifier {
	t.Helper()
	if cfg.Secrets == nil {
		cfg.Secrets = []string{current, former}
	}
	cfg.Header, cfg.Now = name, func() time.Time { return noon.Add(999 * time.Millisecond) }
	v, err := webhook.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// with replaces the scheme's parts of a header that is valid.
func with(old, replacement string) string {
	valid := webhook.Sign(current, noon, body)
	changed := strings.Replace(valid, old, replacement, 1)
	if changed == valid {
		panic("nothing is replaced: " + old)
	}
	return changed
}

// payments-api.md "Webhooks": t=<unix seconds>,v1=<hex HMAC-SHA256(secret, t + "." + body)>, tolerance 300 s.
func TestVerify(t *testing.T) {
	valid := webhook.Sign(current, noon, body)
	sum := valid[len("t=1795262400,v1="):]
	for what, c := range map[string]struct {
		header string
		want   error
	}{
		"valid":                              {valid, nil},
		"by the former secret":               {webhook.Sign(former, noon, body), nil},
		"by both":                            {valid + "," + webhook.Sign(former, noon, body)[len("t=1795262400,"):], nil},
		"by another secret too":              {with("v1=", "v1="+strings.Repeat("0", 64)+",v1="), nil},
		"another scheme too":                 {"v0=6ffb,scheme," + valid, webhook.ErrMalformed},
		"another scheme's member too":        {"v0=6ffb," + valid + ",v2=", nil},
		"another order":                      {"v1=" + sum + ",t=1795262400", nil},
		"capitals":                           {"t=1795262400,v1=" + strings.ToUpper(sum), nil},
		"300 s old":                          {webhook.Sign(current, noon.Add(-300*time.Second), body), nil},
		"300 s ahead":                        {webhook.Sign(current, noon.Add(300*time.Second), body), nil},
		"301 s old":                          {webhook.Sign(current, noon.Add(-301*time.Second), body), webhook.ErrStale},
		"301 s ahead":                        {webhook.Sign(current, noon.Add(301*time.Second), body), webhook.ErrStale},
		"of 1970":                            {webhook.Sign(current, time.Unix(0, 0), body), webhook.ErrStale},
		"of 5138":                            {webhook.Sign(current, time.Unix(99_999_999_999, 0), body), webhook.ErrStale},
		"another secret":                     {webhook.Sign(foreign, noon, body), webhook.ErrForged},
		"another body":                       {webhook.Sign(current, noon, body[1:]), webhook.ErrForged},
		"another time":                       {with("t=1795262400", "t=1795262401"), webhook.ErrForged},
		"the same time in another text":      {with("t=1795262400", "t=01795262400"), webhook.ErrForged},
		"the dot moved":                      {webhook.Sign(current, noon, append([]byte("."), body...)), webhook.ErrForged},
		"stale and forged":                   {webhook.Sign(foreign, noon.Add(-time.Hour), body), webhook.ErrForged},
		"nothing":                            {"", webhook.ErrMissing},
		"a space":                            {" ", webhook.ErrMalformed},
		"a comma":                            {",", webhook.ErrMalformed},
		"a comma at the end":                 {valid + ",", webhook.ErrMalformed},
		"no time":                            {"v1=" + sum, webhook.ErrMalformed},
		"no signature":                       {"t=1795262400", webhook.ErrMalformed},
		"only another scheme":                {"t=1795262400,v0=" + sum, webhook.ErrMalformed},
		"two times":                          {"t=1795262400," + valid, webhook.ErrMalformed},
		"two headers joined by the gateway":  {valid + ", " + valid, webhook.ErrMalformed},
		"an empty time":                      {with("t=1795262400", "t="), webhook.ErrMalformed},
		"a negative time":                    {with("t=1795262400", "t=-1795262400"), webhook.ErrMalformed},
		"a time with a sign":                 {with("t=1795262400", "t=+1795262400"), webhook.ErrMalformed},
		"a time with a fraction":             {with("t=1795262400", "t=1795262400.0"), webhook.ErrMalformed},
		"a time in milliseconds":             {with("t=1795262400", "t=1795262400000"), webhook.ErrMalformed},
		"half a signature":                   {"t=1795262400,v1=" + sum[:32], webhook.ErrMalformed},
		"a signature and a byte":             {valid + "00", webhook.ErrMalformed},
		"no hexadecimal":                     {"t=1795262400,v1=" + strings.Repeat("g", 64), webhook.ErrMalformed},
		"two forged signatures":              {"t=1795262400" + strings.Repeat(",v1="+strings.Repeat("0", 64), 2), webhook.ErrForged},
		"eight forged signatures":            {"t=1795262400" + strings.Repeat(",v1="+strings.Repeat("0", 64), 8), webhook.ErrForged},
		"one signature of two unreadable":    {valid + ",v1=", webhook.ErrMalformed},
		"eight signatures":                   {valid + strings.Repeat(",v1="+strings.Repeat("0", 64), 7), nil},
		"nine signatures":                    {valid + strings.Repeat(",v1="+strings.Repeat("0", 64), 8), webhook.ErrMalformed},
		"a header of 1 KiB":                  {valid + ",v0=" + strings.Repeat("x", 1024-len(valid)-4), nil},
		"a header of more than 1 KiB":        {valid + ",v0=" + strings.Repeat("x", 1024-len(valid)-3), webhook.ErrMalformed},
		"capitals in the scheme's name":      {"T=1795262400,V1=" + sum, webhook.ErrMalformed},
		"the signature in quotes":            {`t=1795262400,v1="` + sum + `"`, webhook.ErrMalformed},
		"the body instead of its signature":  {string(body), webhook.ErrMalformed},
		"a signature of an empty body, that": {webhook.Sign(current, noon, nil), webhook.ErrForged},
	} {
		err := verifier(t, webhook.Config{}).Verify(t.Context(), http.Header{name: {c.header}}, body)
		if !errors.Is(err, c.want) || (err != nil) != (c.want != nil) || c.want != nil && !errors.Is(err, webhook.ErrSignature) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "1795262400") {
			t.Errorf("%s: the error shows the header: %v", what, err)
		}
	}
}

// The value that RFC 4231's own function gives, made elsewhere: openssl dgst -sha256 -hmac.
func TestSignIsWhatOthersMake(t *testing.T) {
	const want = "t=1795262400,v1=1db143ccf75d8ea519aa2ff29bd4278704a4b986ce36ba01b61a63c5401d9d7f"
	if got := webhook.Sign(current, noon, body); got != want {
		t.Errorf("signed %s, want %s", got, want)
	}
}

func TestHeaderIsThereOnce(t *testing.T) {
	v, valid := verifier(t, webhook.Config{}), webhook.Sign(current, noon, body)
	for what, header := range map[string]http.Header{
		"none": {}, "another's": {"Webhook-Signature": {valid}}, "twice": {name: {valid, valid}}, "empty": {name: {}},
	} {
		if err := v.Verify(t.Context(), header, body); !errors.Is(err, webhook.ErrMissing) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestToleranceIsConfigured(t *testing.T) {
	v := verifier(t, webhook.Config{Tolerance: time.Minute})
	for age, want := range map[time.Duration]error{time.Minute: nil, -time.Minute: nil, 61 * time.Second: webhook.ErrStale, -61 * time.Second: webhook.ErrStale} {
		if err := v.Verify(t.Context(), http.Header{name: {webhook.Sign(current, noon.Add(-age), body)}}, body); !errors.Is(err, want) {
			t.Errorf("%v old: %v, want %v", age, err, want)
		}
	}
}

// A secret that the provider has stopped using signs nothing any more, once it is gone from the list.
func TestSecretsRotate(t *testing.T) {
	for _, c := range []struct {
		secrets []string
		signs   map[string]bool
	}{
		{[]string{former}, map[string]bool{former: true, current: false}},
		{[]string{current, former}, map[string]bool{former: true, current: true, foreign: false}},
		{[]string{current}, map[string]bool{former: false, current: true}},
	} {
		v := verifier(t, webhook.Config{Secrets: c.secrets})
		for secret, want := range c.signs {
			if err := v.Verify(t.Context(), http.Header{name: {webhook.Sign(secret, noon, body)}}, body); (err == nil) != want {
				t.Errorf("%q: %s: %v", c.secrets, secret, err)
			}
		}
	}
}

func post(body io.Reader, header string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", body)
	r.Header.Set(strings.ToLower(name), header)
	return r
}

// What is read is what was signed, byte for byte; a body that is too large is not looked at.
func TestRead(t *testing.T) {
	v := verifier(t, webhook.Config{BodyBytesMax: len(body)})
	if got, err := v.Read(post(bytes.NewReader(body), webhook.Sign(current, noon, body))); err != nil || !bytes.Equal(got, body) {
		t.Errorf("%s, %v", got, err)
	}
	larger := append([]byte(" "), body...)
	if got, err := v.Read(post(bytes.NewReader(larger), webhook.Sign(current, noon, larger))); got != nil || !errors.Is(err, webhook.ErrTooLarge) || errors.Is(err, webhook.ErrSignature) {
		t.Errorf("too large: %s, %v", got, err)
	}
	if got, err := v.Read(post(bytes.NewReader(body), webhook.Sign(foreign, noon, body))); got != nil || !errors.Is(err, webhook.ErrForged) {
		t.Errorf("forged: %s, %v", got, err)
	}
	unbounded := verifier(t, webhook.Config{BodyBytesMax: math.MaxInt})
	if got, err := unbounded.Read(post(bytes.NewReader(body), webhook.Sign(current, noon, body))); err != nil || !bytes.Equal(got, body) {
		t.Errorf("without a bound: %s, %v", got, err)
	}
	broken := iotest.ErrReader(io.ErrUnexpectedEOF)
	if got, err := v.Read(post(broken, webhook.Sign(current, noon, nil))); got != nil || !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, webhook.ErrSignature) {
		t.Errorf("broken off: %s, %v", got, err)
	}
}

func TestNewRefusesItsConfiguration(t *testing.T) {
	secrets := []string{current}
	for field, cfg := range map[string]webhook.Config{
		"Config.Secrets":      {},
		"Config.Secrets[1]":   {Secrets: []string{current, "short"}},
		"Config.Secrets[0]":   {Secrets: []string{""}},
		"Config.Header":       {Secrets: secrets, Header: "Provider Signature"},
		"Config.Tolerance":    {Secrets: secrets, Tolerance: time.Hour + 1},
		"Config.BodyBytesMax": {Secrets: secrets, BodyBytesMax: -1},
	} {
		_, err := webhook.New(cfg)
		var refused *idem.ConfigError
		if !errors.As(err, &refused) || refused.Field != field || strings.Contains(err.Error(), "short") {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, cfg := range []webhook.Config{{Secrets: make([]string, 9)}, {Secrets: secrets, Tolerance: -1}, {Secrets: secrets, SecretsAge: -1}, {Secrets: secrets, Tolerance: time.Millisecond}, {Secrets: secrets, Header: "a:b"}} {
		if _, err := webhook.New(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

// A process that outlives a secret takes the next one without a restart, and nobody who forges signatures can have the source
// asked more than once in SourceEvery.
func TestSecretsAreRenewed(t *testing.T) {
	now, calls := noon, 0
	var fresh []string
	var trouble error
	v, err := webhook.New(webhook.Config{
		Secrets: []string{former}, Header: name, Now: func() time.Time { return now }, SourceEvery: 10 * time.Second,
		Source: func(context.Context) ([]string, error) { calls++; return fresh, trouble },
	})
	if err != nil {
		t.Fatal(err)
	}
	down := errors.New("secrets manager is down")
	for _, step := range []struct {
		what    string
		after   time.Duration
		secret  string
		signed  time.Duration // ago
		fresh   []string
		trouble error
		want    error
		calls   int
	}{
		{"by the known one", 0, former, 0, nil, down, nil, 0},
		{"by the next one, too early to ask", 9 * time.Second, current, 0, []string{current, former}, nil, webhook.ErrForged, 0},
		{"stale: whatever is new, it is refused", time.Minute, foreign, time.Hour, []string{current, former}, nil, webhook.ErrForged, 0},
		{"asked, but the source is down", 0, current, 0, nil, down, down, 1},
		{"which is remembered", 9 * time.Second, current, 0, []string{current, former}, nil, down, 1},
		{"the known one is good all the same", 0, former, 0, nil, down, nil, 1},
		{"asked again", time.Second, current, 0, []string{current, former}, nil, nil, 2},
		{"both are known", 0, former, 0, nil, down, nil, 2},
		{"forged, too early to ask", 9 * time.Second, foreign, 0, nil, down, webhook.ErrForged, 2},
		{"forged, asked", time.Second, foreign, 0, []string{current}, nil, webhook.ErrForged, 3},
		{"the former one is over", 0, former, 0, nil, down, webhook.ErrForged, 3},
		{"what can't be a secret replaces none", 10 * time.Second, former, 0, []string{"short"}, nil, &idem.ConfigError{}, 4},
		{"and the known one is good", 0, current, 0, nil, down, nil, 4},
	} {
		now, fresh, trouble = now.Add(step.after), step.fresh, step.trouble
		err := v.Verify(t.Context(), http.Header{name: {webhook.Sign(step.secret, now.Add(-step.signed), body)}}, body)
		invalid := (*idem.ConfigError)(nil)
		if _, config := step.want.(*idem.ConfigError); config != errors.As(err, &invalid) || !config && !errors.Is(err, step.want) || calls != step.calls {
			t.Errorf("%s: %v, %d calls; want %v, %d", step.what, err, calls, step.want, step.calls)
		}
		if step.want == down && errors.Is(err, webhook.ErrSignature) {
			t.Errorf("%s: %v is final", step.what, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	v, err := webhook.New(webhook.Config{Secrets: []string{current}})
	if err != nil {
		t.Fatal(err)
	}
	signed := func(at time.Time, body []byte) error {
		return v.Verify(t.Context(), http.Header{"Webhook-Signature": {webhook.Sign(current, at, body)}}, body)
	}
	if err := signed(time.Now(), make([]byte, 256<<10)); err != nil {
		t.Error(err)
	}
	if err := signed(time.Now(), make([]byte, 256<<10+1)); !errors.Is(err, webhook.ErrTooLarge) {
		t.Error(err)
	}
	if err := signed(time.Now().Add(-4*time.Minute), body); err != nil {
		t.Error(err)
	}
	if err := signed(time.Now().Add(-6*time.Minute), body); !errors.Is(err, webhook.ErrStale) {
		t.Error(err)
	}
}

func Example() {
	verifier, err := webhook.New(webhook.Config{Secrets: []string{"whsec_0123456789abcdef"}, Header: "Provider-Signature"})
	if err != nil {
		fmt.Println(err)
		return
	}
	receive := func(w http.ResponseWriter, r *http.Request) {
		event, err := verifier.Read(r)
		switch {
		case errors.Is(err, webhook.ErrSignature):
			w.WriteHeader(http.StatusUnauthorized)
		case errors.Is(err, webhook.ErrTooLarge):
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
		default:
			fmt.Printf("received %s\n", event)
			w.WriteHeader(http.StatusNoContent)
		}
	}
	event := []byte(`{"id":"evt_1"}`)
	for _, secret := range []string{"whsec_0123456789abcdef", "guessed"} {
		r := httptest.NewRequest(http.MethodPost, "/webhooks", bytes.NewReader(event))
		r.Header.Set("Provider-Signature", webhook.Sign(secret, time.Now(), event))
		w := httptest.NewRecorder()
		receive(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// received {"id":"evt_1"}
	// 204
	// 401
}

// How old the secrets are is judged by both clocks (package clock): in a process that was frozen the monotonic one may have stood still,
// and a wall clock may be set back.
func TestNoClockHidesAReplacedSecret(t *testing.T) {
	now := noon
	v, err := webhook.New(webhook.Config{
		Secrets: []string{former}, Header: name, Now: func() time.Time { return now },
		Source: func(context.Context) ([]string, error) { return []string{current}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(-time.Hour)
	if err := v.Verify(t.Context(), http.Header{name: {webhook.Sign(current, now, body)}}, body); err != nil {
		t.Error(err)
	}
}

// A process that was frozen while the source was asked takes no secret for good that was replaced meanwhile.
func TestSecretsThatGrewTooOldWhileTheyWereAskedForAreAskedForAgain(t *testing.T) {
	now, calls := noon.Add(time.Hour), 0
	v, err := webhook.New(webhook.Config{
		Secrets: []string{former}, Header: name, Now: func() time.Time { return now },
		Source: func(context.Context) ([]string, error) {
			if calls++; calls == 1 {
				now = now.Add(time.Hour)
				return []string{former, current}, nil
			}
			return []string{current}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{name: {webhook.Sign(former, now, body)}}
	now = now.Add(5 * time.Minute) // their age
	if err := v.Verify(t.Context(), header, body); !errors.Is(err, webhook.ErrForged) || calls != 2 {
		t.Errorf("%v after %d calls, want that the replaced secret is over", err, calls)
	}
	if err := v.Verify(t.Context(), http.Header{name: {webhook.Sign(current, now, body)}}, body); err != nil || calls != 2 {
		t.Errorf("%v after %d calls, want that the new one is known", err, calls)
	}
}

// docs/operator.md "WebhookContradicts": a secret that was replaced because somebody else has it stops being good within Config.SecretsAge,
// although every genuine event is signed by one that the process knows, and nothing makes it look.
func TestAReplacedSecretIsOverWithoutAForgery(t *testing.T) {
	now, log, calls := noon, new(bytes.Buffer), 0
	var trouble error
	v, err := webhook.New(webhook.Config{
		Secrets: []string{current, former}, Header: name, Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Source: func(context.Context) ([]string, error) { calls++; return []string{current}, trouble },
	})
	if err != nil {
		t.Fatal(err)
	}
	verify := func(ctx context.Context, secret string) error {
		return v.Verify(ctx, http.Header{name: {webhook.Sign(secret, now, body)}}, body)
	}
	now = now.Add(5*time.Minute - time.Second)
	if err := verify(t.Context(), former); err != nil || calls != 0 {
		t.Errorf("within the age: %v, %d calls", err, calls)
	}
	now, trouble = now.Add(time.Minute), errors.New("secrets manager is down")
	for _, secret := range []string{former, current} { // nobody knows better, and a provider gives up in time
		if err := verify(t.Context(), secret); err != nil {
			t.Errorf("while the source is down: %v", err)
		}
	}
	if calls != 1 || strings.Count(log.String(), "webhook.secrets_not_read") != 1 || strings.Contains(log.String(), current) {
		t.Errorf("%d calls, %s", calls, log)
	}
	now, trouble = now.Add(time.Minute), nil
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if err := verify(gone, foreign); err == nil {
		t.Error("a forgery is taken")
	}
	if err := verify(t.Context(), former); !errors.Is(err, webhook.ErrForged) {
		t.Errorf("after 6 minutes: %v", err)
	}
	if err := verify(t.Context(), current); err != nil || calls != 2 {
		t.Errorf("%v, %d calls", err, calls)
	}
	now = now.Add(4 * time.Minute)
	if err := verify(t.Context(), current); err != nil || calls != 2 {
		t.Errorf("%v, %d calls: its age counts from when it was read", err, calls)
	}
	if strings.Count(log.String(), "\n") != 1 {
		t.Errorf("%s", log)
	}
}

// A request that ends before the source has answered, such as a forger's who hangs up, is nobody else's failure.
func TestWhoHangsUpSpendsNoAskingOfTheSource(t *testing.T) {
	now, answer := noon, make(chan struct{})
	v, err := webhook.New(webhook.Config{
		Secrets: []string{former}, Header: name, Now: func() time.Time { return now }, SecretsAge: 24 * time.Hour,
		Source: func(ctx context.Context) ([]string, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-answer:
				return []string{current, former}, nil
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	signed := func(secret string) http.Header { return http.Header{name: {webhook.Sign(secret, now, body)}} }
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if err := v.Verify(gone, signed(foreign), body); !errors.Is(err, context.Canceled) {
		t.Errorf("who has hung up got %v", err)
	}
	if err := v.Verify(t.Context(), signed(former), body); err != nil {
		t.Errorf("a secret that is known waits for the source: %v", err)
	}
	close(answer)
	if err := v.Verify(t.Context(), signed(current), body); err != nil {
		t.Errorf("the new secret: %v", err)
	}
}

// The source is asked beside the request: its panic must not end the process.
func TestASourceThatPanicsIsOneThatFails(t *testing.T) {
	now := noon
	v, err := webhook.New(webhook.Config{
		Secrets: []string{former}, Header: name, Now: func() time.Time { return now },
		Source: func(context.Context) ([]string, error) { panic("no such secret") },
	})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	err = v.Verify(t.Context(), http.Header{name: {webhook.Sign(current, now, body)}}, body)
	if err == nil || !strings.Contains(err.Error(), "no such secret") {
		t.Errorf("a source that panics: %v", err)
	}
}
