// Package credential sends a provider's credential with every request, and follows its rotation without a deployment.
//
// The credential is read from a source, which is a secret in AWS Secrets Manager, when a process starts and again when it is
// older than Config.Age. While one credential replaces another the secret may hold both, the new one first and a comma between:
// one that the provider answers 401 is passed over for the next one. A 401 also has the secret read again, at most every
// ten seconds, so that a credential which was revoked at once is replaced at once.
package credential

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem/outbox/call"
	"github.com/idem-go/idem-aws/internal/clock"
)

const (
	// readTimeout bounds a reading beside a call: the call has its own work to do, and there is a credential to go on with.
	readTimeout = time.Second
	// pause is the least time between two readings: of a source that fails, and after a 401.
	pause = 10 * time.Second
	// credentialsMax is the new one and the old one.
	credentialsMax = 2
	bytesMax       = 4096
)

// Config is where credentials come from. Source is required.
type Config struct {
	// Source returns the text of the secret as it is now.
	Source func(context.Context) (string, error)
	// Age is for how long a credential is used that was read. Default 5 min; at least 10 s.
	Age time.Duration
	// Logger is told where the source fails; the credential that is known is used on. Default: slog.Default().
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Credentials are the one or two that are known. They are safe for concurrent use.
type Credentials struct {
	cfg Config

	mu      sync.Mutex
	known   []string
	refused map[string]time.Time // by credential, when the provider answered 401
	read    time.Time            // when the last reading began
	lasts   time.Duration        // how long after it the next one is due
	reading bool
}

// New reads the credentials. Its errors show none of them.
func New(ctx context.Context, cfg Config) (*Credentials, error) {
	if cfg.Age == 0 {
		cfg.Age = 5 * time.Minute
	}
	if cfg.Age < pause {
		return nil, fmt.Errorf("credential: age of %v: must be at least %v", cfg.Age, pause)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	began := cfg.Now()
	known, err := readFrom(ctx, cfg.Source)
	if err != nil {
		return nil, err
	}
	return &Credentials{cfg: cfg, known: known, refused: map[string]time.Time{}, read: began, lasts: cfg.Age}, nil
}

func readFrom(ctx context.Context, source func(context.Context) (string, error)) ([]string, error) {
	text, err := source(ctx)
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// parse splits the text of a secret. What can't be a header's value would fail every call, or be another header.
func parse(text string) ([]string, error) {
	all := strings.Split(text, ",")
	if len(all) > credentialsMax {
		return nil, fmt.Errorf("credential: the secret holds %d credentials: at most a new and an old one, with a comma between", len(all))
	}
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
		hidden := func(c rune) bool { return c < '!' || c > '~' }
		if all[i] == "" || len(all[i]) > bytesMax || strings.ContainsFunc(all[i], hidden) {
			return nil, fmt.Errorf("credential: number %d in the secret must be 1 to %d visible ASCII characters", i+1, bytesMax)
		}
	}
	return all, nil
}

// current is the credential to send, after another reading where that is due. One caller reads; the others go on with what is
// known.
func (c *Credentials) current(ctx context.Context) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.cfg.Now()
	if !c.reading && !clock.Within(now, c.read, c.lasts) {
		c.renew(ctx, now)
	}
	for _, each := range c.known {
		if at, ok := c.refused[each]; !ok || !clock.Within(now, at, c.cfg.Age) {
			return each
		}
	}
	return c.known[0]
}

// renew reads the secret again; it lets go of the lock meanwhile. The reading ends with the call, and has none of the values of its context:
// by those package call hears of the call's own connection, and would take the connection to the secret's host for it.
func (c *Credentials) renew(ctx context.Context, now time.Time) {
	c.reading, c.read, c.lasts = true, now, pause
	c.mu.Unlock()
	reading, cancel := context.WithTimeout(context.Background(), readTimeout)
	stop := context.AfterFunc(ctx, cancel)
	known, err := readFrom(reading, c.cfg.Source)
	stop()
	cancel()
	c.mu.Lock()
	c.reading = false
	if err != nil {
		c.cfg.Logger.WarnContext(ctx, "provider.credential_not_read", "error", err)
		return
	}
	c.known, c.lasts = known, c.cfg.Age
	for each := range c.refused {
		if !slices.Contains(known, each) {
			delete(c.refused, each)
		}
	}
}

// refuse notes that the provider does not take a credential, and has the secret read again soon.
func (c *Credentials) refuse(credential string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.known, credential) {
		return // it was replaced meanwhile
	}
	c.refused[credential], c.lasts = c.cfg.Now(), pause
}

// Transport sends "Authorization: Bearer" with every request that next makes. It repeats none: what the provider answered 401 it
// has not executed, and the outbox sends it again with the credential that is then current. It sends nothing where a redirect
// leads: that place, which net/http would give no credential of another host, would get one from here.
func (c *Credentials) Transport(next http.RoundTripper) http.RoundTripper { return transport{c, next} }

var errRedirected = errors.New("credential: a redirect is not followed")

type transport struct {
	credentials *Credentials
	next        http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response != nil { // what made net/http ask again
		closeBody(r)
		return nil, errRedirected
	}
	credential := t.credentials.current(r.Context())
	if err := r.Context().Err(); err != nil { // the reading has used up the call's time: package call is to know that nothing was sent
		closeBody(r)
		return nil, fmt.Errorf("%w: %w", call.ErrNotSent, err)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+credential)
	res, err := t.next.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusUnauthorized {
		t.credentials.refuse(credential)
	}
	return res, err
}

// closeBody closes the body of a request that is not sent, as a transport must.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}
