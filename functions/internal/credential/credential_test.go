package credential_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/credential"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/secretstore"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/call"
	"github.com/idem-go/idem-aws/internal/twoclocks"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// world is a provider that takes some credentials, a secret, and a clock.
type world struct {
	*testing.T
	mu     sync.Mutex
	now    time.Time
	taken  []string // by the provider
	sent   []string // to it
	secret func(context.Context) (string, error)
	reads  int
	server *httptest.Server
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		w.sent = append(w.sent, given)
		if !slices.Contains(w.taken, given) {
			rw.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(w.server.Close)
	return w
}

// holds has the secret be this text.
func (w *world) holds(text string) {
	w.secret = func(context.Context) (string, error) { return text, nil }
}

func (w *world) client() *http.Client {
	w.Helper()
	credentials, err := credential.New(w.Context(), credential.Config{
		Source: func(ctx context.Context) (string, error) {
			w.mu.Lock()
			w.reads++
			read := w.secret
			w.mu.Unlock()
			return read(ctx)
		},
		Now:    func() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.now },
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.Fatal(err)
	}
	return &http.Client{Transport: credentials.Transport(http.DefaultTransport)}
}

// asks makes one request.
func (w *world) asks(client *http.Client, want int) {
	w.Helper()
	res, err := client.Post(w.server.URL, "application/json", strings.NewReader("{}"))
	if err != nil {
		w.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != want {
		w.Errorf("status %d, want %d", res.StatusCode, want)
	}
}

// The runbook's order: the provider knows both, the secret is replaced, and five minutes later nobody uses the old one.
func TestANewCredentialIsUsedWithinItsAge(t *testing.T) {
	w := newWorld(t)
	w.taken = []string{"old", "new"}
	w.holds("old")
	client := w.client()
	w.asks(client, 200)
	w.holds("new")
	w.now = w.now.Add(5*time.Minute - time.Second)
	w.asks(client, 200)
	w.now = w.now.Add(time.Second)
	w.asks(client, 200)
	if !slices.Equal(w.sent, []string{"old", "old", "new"}) || w.reads != 2 {
		t.Errorf("sent %q with %d readings", w.sent, w.reads)
	}
}

// A wall clock that is set back makes no credential younger, and in a process that was frozen the monotonic one may have stood still.
func TestNoClockKeepsACredential(t *testing.T) {
	for name, later := range map[string]func(time.Time) time.Time{
		"set back by an hour":                        func(at time.Time) time.Time { return at.Add(-time.Hour) },
		"set back by a part of the time that passed": func(at time.Time) time.Time { return twoclocks.Set(at.Add(5*time.Minute), -3*time.Minute) },
		"frozen": func(at time.Time) time.Time { return twoclocks.Set(at, 5*time.Minute) },
	} {
		w := newWorld(t)
		w.now = time.Now()
		w.taken = []string{"old", "new"}
		w.holds("old")
		client := w.client()
		w.holds("new")
		w.now = later(w.now)
		w.asks(client, 200)
		if !slices.Equal(w.sent, []string{"new"}) {
			t.Errorf("%s: sent %q", name, w.sent)
		}
	}
}

// calls makes one call of the provider with its credential, once that is due.
func (w *world) calls(within time.Duration) outbox.Outcome {
	w.Helper()
	statuses := map[int]call.Class{}
	for _, status := range []int{400, 401, 403, 404, 409, 422, 429} {
		statuses[status] = call.Ambiguous
	}
	read := w.secret
	w.holds("old")
	client, err := call.New(call.Config{Transport: w.client().Transport, Statuses: statuses})
	if err != nil {
		w.Fatal(err)
	}
	w.secret, w.now = read, w.now.Add(5*time.Minute)
	ctx, cancel := context.WithTimeout(w.Context(), within)
	defer cancel()
	return client.Post(ctx, call.Request{URL: w.server.URL, Key: "op_1.1", Body: []byte("{}")})
}

// A call whose time is used up by the reading of its credential never left: it counts as no attempt, and is open nowhere.
func TestACallWithoutTimeForItsCredentialWasNeverSent(t *testing.T) {
	var ended error // that of the reading
	for range tries {
		w := newWorld(t)
		ended = nil
		w.secret = func(ctx context.Context) (string, error) { <-ctx.Done(); ended = ctx.Err(); return "", ended }
		begun := time.Now()
		outcome := w.calls(50 * time.Millisecond)
		took := time.Since(begun)
		if o, ok := outcome.(outbox.NotExecuted); !ok || !o.Unsent || len(w.sent) != 0 {
			t.Errorf("%#v after %d requests, want one that was never sent", outcome, len(w.sent))
		}
		if ended != nil && took < time.Second {
			break
		} // else the call was over before the reading began, or both were over when the process went on
	}
	if !errors.Is(ended, context.Canceled) { // and not by its own bound
		t.Errorf("the reading ended with %v, want it to end with its call", ended)
	}
}

// tries bounds how often a call is made again because the process stood still for as long as the call had.
const tries = 5

// The connection to the secret's host is not the provider's: a call that got no further never left.
func TestTheReadingOfACredentialIsNotTakenForTheCall(t *testing.T) {
	for name, c := range map[string]struct {
		hangs  bool
		within time.Duration
	}{
		"it takes all of the call's time":                {true, 200 * time.Millisecond},
		"the provider can't be reached after it answers": {false, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			outcome, asked := callsWithSecretOfAHost(t, c.hangs, c.within)
			for n := 1; n < tries && asked == 0; n++ { // the call was over before the host was reached
				outcome, asked = callsWithSecretOfAHost(t, c.hangs, c.within)
			}
			if o, ok := outcome.(outbox.NotExecuted); !ok || !o.Unsent || asked != 1 {
				t.Errorf("%#v, and the secret was asked for %d times; want a call that was never sent, and once", outcome, asked)
			}
		})
	}
}

// callsWithSecretOfAHost makes one call of a provider that is not there, with a secret that a host tells, or hangs at. It returns how
// often that was asked, too.
func callsWithSecretOfAHost(t *testing.T, hangs bool, within time.Duration) (outcome outbox.Outcome, asked int) {
	w := newWorld(t)
	w.server.Close()
	secrets := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if asked++; hangs {
			<-r.Context().Done()
		}
		_, _ = io.WriteString(rw, "new")
	}))
	defer secrets.Close()
	w.secret = func(ctx context.Context) (string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, secrets.URL, http.NoBody)
		if err != nil {
			return "", err
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return string(text), err
	}
	outcome = w.calls(within)
	secrets.Close() // waits for what it serves
	return outcome, asked
}

// The same against Secrets Manager, with the old credential revoked at once: what is refused is not executed, and is sent with the
// new one after ten seconds.
func TestARevokedCredentialIsReplacedAfterItsRefusal(t *testing.T) {
	for name, value := range map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"} {
		t.Setenv(name, value)
	}
	id, replace := lambdatest.Secret(t, "old\n")
	source, err := secretstore.Source(t.Context(), "PROVIDER_CREDENTIAL_ID", id)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.taken, w.secret = []string{"old"}, source
	client := w.client()
	w.asks(client, 200)
	w.taken = []string{"new"}
	replace("new\n")
	w.now = w.now.Add(9 * time.Second)
	w.asks(client, 401)
	w.asks(client, 401)
	w.now = w.now.Add(time.Second)
	w.asks(client, 200)
	if !slices.Equal(w.sent, []string{"old", "old", "old", "new"}) || w.reads != 2 {
		t.Errorf("sent %q with %d readings", w.sent, w.reads)
	}
}

// Two in the secret: the first is used, and the second where the provider does not know the first yet.
func TestOfTwoCredentialsTheOneThatIsTakenIsSent(t *testing.T) {
	w := newWorld(t)
	w.taken = []string{"old"}
	w.holds("new, old")
	client := w.client()
	w.asks(client, 401)
	w.asks(client, 200)
	w.now = w.now.Add(5*time.Minute - time.Second)
	w.asks(client, 200)
	w.taken = []string{"new"}      // the new one is known now, and the old one revoked
	w.now = w.now.Add(time.Second) // the new one is tried again
	w.asks(client, 200)
	if !slices.Equal(w.sent, []string{"new", "old", "old", "new"}) {
		t.Errorf("sent %q", w.sent)
	}
}

// While the source fails the credential that is known is used on; it is asked every ten seconds, and by one caller at a time.
func TestASourceThatFailsStopsNoCall(t *testing.T) {
	w := newWorld(t)
	w.taken = []string{"old", "new"}
	w.holds("old")
	client := w.client()
	w.now = w.now.Add(5 * time.Minute)
	asked, answer := make(chan struct{}), make(chan struct{})
	w.secret = func(ctx context.Context) (string, error) {
		close(asked)
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("a reading beside a call is not bounded")
		}
		<-answer
		return "", errors.New("throttled")
	}
	var first sync.WaitGroup
	first.Go(func() { w.asks(client, 200) })
	<-asked
	w.asks(client, 200) // and does not wait
	close(answer)
	first.Wait()
	w.holds("new")
	w.now = w.now.Add(9 * time.Second)
	w.asks(client, 200)
	w.now = w.now.Add(time.Second)
	w.asks(client, 200)
	if !slices.Equal(w.sent, []string{"old", "old", "old", "new"}) || w.reads != 3 {
		t.Errorf("sent %q with %d readings", w.sent, w.reads)
	}
}

// What is in the secret can't be a header, or is more than two: the start fails, and nothing is shown.
func TestASecretThatIsNoCredential(t *testing.T) {
	for _, text := range []string{"", " ", "hidden,", "hidden\r\nHost: evil", "hidden one", "hidden,two,three", "hidd\u00e9n", strings.Repeat("hidden", 1000)} {
		_, err := credential.New(t.Context(), credential.Config{Source: func(context.Context) (string, error) { return text, nil }})
		if err == nil || strings.Contains(err.Error(), "hidd") {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if _, err := credential.New(t.Context(), credential.Config{Age: time.Second, Source: func(context.Context) (string, error) { return "x", nil }}); err == nil {
		t.Error("an age of one second was taken")
	}
}

// A secret that becomes nonsense replaces nothing.
func TestASecretThatBecomesNonsenseReplacesNothing(t *testing.T) {
	w := newWorld(t)
	w.taken = []string{"old"}
	w.holds("old")
	client := w.client()
	w.holds("not a credential")
	w.now = w.now.Add(time.Hour)
	w.asks(client, 200)
}

// The request that a caller made is not changed, and its body is sent once.
func TestTheCallersRequestIsNotChanged(t *testing.T) {
	w := newWorld(t)
	w.taken = []string{"old"}
	w.holds("old")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL, io.NopCloser(strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if r.Header.Get("Authorization") != "" {
		t.Error("the credential is in the caller's request")
	}
}

// Where a redirect leads gets no credential: net/http would send none of another host there, and the transport would.
func TestARedirectGetsNoCredential(t *testing.T) {
	w := newWorld(t)
	w.holds("c1")
	w.taken = []string{"c1"}
	away := httptest.NewServer(http.RedirectHandler(strings.Replace(w.server.URL, "127.0.0.1", "localhost", 1), http.StatusTemporaryRedirect))
	defer away.Close()
	response, err := w.client().Get(away.URL)
	if err == nil {
		response.Body.Close()
	}
	if err == nil || len(w.sent) != 0 {
		t.Errorf("%v, and the other host got %q", err, w.sent)
	}
}

// closable is a body that knows whether it was closed.
type closable struct {
	io.Reader
	closed bool
}

func (c *closable) Close() error {
	c.closed = true
	return nil
}

// A transport closes the body of each request that it is given (net/http, RoundTripper). That of a redirect with 307 or 308 is another one than
// the first request's.
func TestTheBodyOfARedirectedRequestIsClosed(t *testing.T) {
	for _, status := range []int{http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		w := newWorld(t)
		w.holds("c1")
		away := httptest.NewServer(http.RedirectHandler(w.server.URL, status))
		defer away.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, away.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		var redirected *closable
		r.GetBody = func() (io.ReadCloser, error) {
			redirected = &closable{Reader: strings.NewReader("{}")}
			return redirected, nil
		}
		response, err := w.client().Do(r)
		if err == nil {
			response.Body.Close()
		}
		if err == nil || redirected == nil || !redirected.closed {
			t.Errorf("%d: %v, and the body is %+v", status, err, redirected)
		}
	}
}
