package apikey_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/route"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/internal/token"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// line is the way to the table, on which calls are counted, held up and broken.
type line struct {
	// reads are counted as they are sent, writes as they arrive.
	reads, writes atomic.Int64
	// broken is how many calls are answered with a failure of DynamoDB's; -1 is all of them.
	broken atomic.Int64
	// hangs, where it is set, holds a read up until it is closed.
	hangs atomic.Pointer[chan struct{}]
	// hurried has calls given up when their time is over. Else they wait for their answer: machines stand now and then.
	hurried atomic.Bool
}

// tapped is the stage's table behind a line.
func tapped(t *testing.T, s *lambdatest.Stage) (*line, apikey.Table) {
	t.Helper()
	to, err := url.Parse(dynamotest.Endpoint(t, dynamotest.Names()[0]))
	if err != nil {
		t.Fatal(err)
	}
	l, pass := &line{}, httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetItem") {
			if hang := l.hangs.Load(); hang != nil {
				<-*hang
			}
		} else {
			l.writes.Add(1)
		}
		if left := l.broken.Load(); left != 0 {
			l.broken.CompareAndSwap(left, max(left-1, -1))
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	client := dynamotest.Client(server.URL, func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: l} })
	return l, apikey.Table{Client: client, Name: s.APIKeys}
}

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetItem") {
		l.reads.Add(1)
	}
	if l.hurried.Load() {
		return http.DefaultTransport.RoundTrip(r)
	}
	return wirefault.Patient{}.RoundTrip(r)
}

// clock is what the keys read the time by.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMilli(c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(d.Milliseconds()) }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC).UnixMilli())
	return c
}

// held are keys with a cache, the line to their table, and their clock.
func held(t *testing.T, s *lambdatest.Stage) (*apikey.Keys, *line, *clock) {
	t.Helper()
	l, table := tapped(t, s)
	c := newClock()
	keys, err := apikey.New(apikey.Config{Table: table, CacheAge: time.Minute, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return keys, l, c
}

func wants(t *testing.T, keys *apikey.Keys, bearer string, want error) {
	t.Helper()
	key, err := keys.Caller(t.Context(), "Bearer "+bearer)
	if !errors.Is(err, want) || (key.Tenant != "") != (want == nil) {
		t.Errorf("%+v, %v, want %v", key, err, want)
	}
}

// docs/payments-api.md "Conventions": Authorization: Bearer <token>; the scheme's case does not matter (RFC 9110 section
// 11.1).
func TestCallerOfAToken(t *testing.T) {
	s := lambdatest.New(t)
	keys := s.Keys(t)
	other := token.New(token.Live)
	s.Key(t, apikey.Key{ID: token.ID(other), Tenant: "tenant-b", Scopes: []apikey.Scope{apikey.AccountsRead}})
	for _, c := range []struct {
		name, authorization, tenant string
		err                         error
	}{
		{"known", "Bearer " + lambdatest.Token, lambdatest.Tenant, nil},
		{"another", "Bearer " + other, "tenant-b", nil},
		{"lower-case scheme", "bearer " + lambdatest.Token, lambdatest.Tenant, nil},
		{"space around", "  Bearer   " + lambdatest.Token + " ", lambdatest.Tenant, nil},
		{"unknown", "Bearer " + token.New(token.Test), "", apikey.ErrUnknown},
	} {
		if key, err := keys.Caller(t.Context(), c.authorization); key.Tenant != c.tenant || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v, want %q, %v", c.name, key, err, c.tenant, c.err)
		}
	}
}

// docs/payments-api.md "API keys": with TEST_KEYS=refuse a test key is refused, whoever's it is, and no other. Nobody is asked about it.
func TestATestKeyIsRefusedWhereNoneIsTaken(t *testing.T) {
	s := lambdatest.New(t)
	live := token.New(token.Live)
	s.Key(t, apikey.Key{ID: token.ID(live), Tenant: "tenant-b", Scopes: apikey.Scopes()})
	l, table := tapped(t, s)
	keys, err := apikey.New(apikey.Config{Table: table, RefuseTest: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, bearer := range []string{lambdatest.Token, token.New(token.Test)} {
		wants(t, keys, bearer, apikey.ErrTest)
	}
	if n := l.reads.Load(); n != 0 || !apikey.Refused(apikey.ErrTest) {
		t.Errorf("%d reads", n)
	}
	wants(t, keys, live, nil)
	wants(t, keys, token.New(token.Live), apikey.ErrUnknown)
}

// What the gateway of a REST API lets through is never taken for a header without a token: the authorizer's only answer to that is an
// error, which Lambda counts, and anybody could cause it without a key.
func TestWhatTheGatewayLetsThroughHasAToken(t *testing.T) {
	bearer, passed := regexp.MustCompile(route.BearerForm), 0
	_, table := tapped(t, lambdatest.New(t))
	keys, err := apikey.New(apikey.Config{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	for r := range rune(0x10000) {
		for _, header := range []string{"Bearer " + string(r), " bearer  " + string(r) + " ", string(r) + "Bearer x", "Bearer" + string(r) + "x"} {
			if !bearer.MatchString(header) {
				continue
			}
			passed++
			if _, err := keys.Caller(t.Context(), header); errors.Is(err, apikey.ErrMissing) {
				t.Errorf("%q passes, and has no token", header)
			}
		}
	}
	if passed < 2*94 {
		t.Errorf("%d headers pass", passed)
	}
}

// What can't be a key is judged without asking anybody.
func TestCallerOfWhatIsNoToken(t *testing.T) {
	l, table := tapped(t, lambdatest.New(t))
	keys, err := apikey.New(apikey.Config{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, authorization string
		err                 error
	}{
		{"nothing", "", apikey.ErrMissing},
		{"no token", "Bearer", apikey.ErrMissing},
		{"an empty token", "Bearer  ", apikey.ErrMissing},
		{"another scheme", "Basic dGVuYW50LWE6c2VjcmV0", apikey.ErrMissing},
		{"no scheme", lambdatest.Token, apikey.ErrMissing},
		{"too short", "Bearer short", apikey.ErrUnknown},
		{"too long", "Bearer " + lambdatest.Token + "0", apikey.ErrUnknown},
		{"another case", "Bearer " + strings.ToUpper(lambdatest.Token), apikey.ErrUnknown},
		{"a bad checksum", "Bearer " + lambdatest.Token[:len(lambdatest.Token)-1] + "3", apikey.ErrUnknown},
		{"the id", "Bearer " + token.ID(lambdatest.Token), apikey.ErrUnknown},
		{"two tokens", "Bearer " + lambdatest.Token + " " + lambdatest.Token, apikey.ErrUnknown},
		{"joined by a gateway", "Bearer " + lambdatest.Token + ", Bearer " + lambdatest.Token, apikey.ErrUnknown},
		{"other characters", "Bearer " + lambdatest.Token + "\x00", apikey.ErrUnknown},
	} {
		if key, err := keys.Caller(t.Context(), c.authorization); key.Tenant != "" || !errors.Is(err, c.err) || !apikey.Refused(err) {
			t.Errorf("%s: %+v, %v, want %v", c.name, key, err, c.err)
		}
	}
	if n := l.reads.Load(); n != 0 {
		t.Errorf("%d reads", n)
	}
}

func TestAnExpiredKeyIsRefusedFromTheInstantOn(t *testing.T) {
	s := lambdatest.New(t)
	keys, _, c := held(t, s)
	key := token.New(token.Live)
	s.Key(t, apikey.Key{ID: token.ID(key), Tenant: "tenant-b", Scopes: apikey.Scopes(), ExpiresAt: c.now().Add(time.Second)})
	wants(t, keys, key, nil)
	c.advance(999 * time.Millisecond)
	wants(t, keys, key, nil)
	c.advance(time.Millisecond) // long before what is held is read again
	wants(t, keys, key, apikey.ErrExpired)
}

// docs/payments-api.md "API keys": a revoked key works for as long as a process may hold it, and no longer.
func TestRevocationTakesEffectWithinTheCacheAge(t *testing.T) {
	s := lambdatest.New(t)
	keys, l, c := held(t, s)
	wants(t, keys, lambdatest.Token, nil)
	if _, err := s.KeyTable().Revoke(t.Context(), token.ID(lambdatest.Token), "ada", c.now()); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Minute - time.Millisecond)
	wants(t, keys, lambdatest.Token, nil)
	if n := l.reads.Load(); n != 1 {
		t.Errorf("%d reads within the age, want 1", n)
	}
	c.advance(time.Millisecond)
	wants(t, keys, lambdatest.Token, apikey.ErrRevoked)
	c.advance(-time.Hour) // a clock that is set back holds nothing for longer
	wants(t, keys, lambdatest.Token, apikey.ErrRevoked)
	if n := l.reads.Load(); n != 3 {
		t.Errorf("%d reads, want 3", n)
	}
}

func TestANewKeyWorksWithinSeconds(t *testing.T) {
	s := lambdatest.New(t)
	keys, l, c := held(t, s)
	key := token.New(token.Live)
	wants(t, keys, key, apikey.ErrUnknown)
	s.Key(t, apikey.Key{ID: token.ID(key), Tenant: "tenant-b", Scopes: apikey.Scopes()})
	c.advance(4 * time.Second)
	wants(t, keys, key, apikey.ErrUnknown)
	if n := l.reads.Load(); n != 1 {
		t.Errorf("%d reads, want 1", n)
	}
	c.advance(time.Second)
	wants(t, keys, key, nil)
}

func TestGuessesPushOutNoKey(t *testing.T) {
	s := lambdatest.New(t)
	keys, l, _ := held(t, s)
	wants(t, keys, lambdatest.Token, nil)
	const guesses = 1100 // more than are held
	for range guesses {
		wants(t, keys, token.New(token.Live), apikey.ErrUnknown)
	}
	wants(t, keys, lambdatest.Token, nil)
	if n := l.reads.Load(); n != guesses+1 {
		t.Errorf("%d reads, want %d", n, guesses+1)
	}
}

// A hot key costs one read, however many ask at once; and whoever gives up takes nobody else's answer away.
func TestCallersShareARead(t *testing.T) {
	s := lambdatest.New(t)
	keys, l, _ := held(t, s)
	hang := make(chan struct{})
	l.hangs.Store(&hang)
	hurried, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := keys.Caller(hurried, "Bearer "+lambdatest.Token)
		first <- err
	}()
	for l.reads.Load() == 0 {
		<-time.After(time.Millisecond)
	}
	var others sync.WaitGroup
	for range 50 {
		others.Go(func() { wants(t, keys, lambdatest.Token, nil) })
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) || apikey.Refused(err) {
		t.Errorf("who gave up got %v", err)
	}
	l.hangs.Store(nil)
	close(hang)
	others.Wait()
	if n := l.reads.Load(); n != 1 {
		t.Errorf("%d reads, want 1", n)
	}
}

func TestAReadIsTriedTwice(t *testing.T) {
	s := lambdatest.New(t)
	keys, l, c := held(t, s)
	l.broken.Store(1)
	wants(t, keys, lambdatest.Token, nil)
	if n := l.reads.Load(); n != 2 {
		t.Errorf("%d reads, want 2", n)
	}

	// A table that can't be asked says nothing about the token, and what is too old to be used is not used for want of better.
	l.broken.Store(-1)
	c.advance(time.Minute)
	key, err := keys.Caller(t.Context(), "Bearer "+lambdatest.Token)
	if err == nil || key.Tenant != "" || apikey.Refused(err) || strings.Contains(err.Error(), lambdatest.Token) {
		t.Errorf("%+v, %v, want an error of its own", key, err)
	}
	if n := l.reads.Load(); n != 4 {
		t.Errorf("%d reads, want 4", n)
	}
	l.broken.Store(0) // nothing is held of a failure
	wants(t, keys, lambdatest.Token, nil)
}

func TestAReadThatHangsIsGivenUp(t *testing.T) {
	s := lambdatest.New(t)
	keys, l, _ := held(t, s)
	hang := make(chan struct{})
	l.hangs.Store(&hang)
	l.hurried.Store(true)
	t.Cleanup(func() { close(hang) })
	began := time.Now()
	_, err := keys.Caller(t.Context(), "Bearer "+lambdatest.Token)
	if !errors.Is(err, context.DeadlineExceeded) || apikey.Refused(err) {
		t.Errorf("%v, want that the time is over", err)
	}
	if took, n := time.Since(began), l.reads.Load(); took < 2*time.Second || n != 2 {
		t.Errorf("%d reads in %v, want two that time out after a second each", n, took)
	}
}

func TestLastUseIsNotedOnceAnHour(t *testing.T) {
	s := lambdatest.New(t)
	keys, l, c := held(t, s)
	lastUsed := func() time.Time {
		t.Helper()
		stored, err := s.KeyTable().Key(t.Context(), token.ID(lambdatest.Token))
		if err != nil {
			t.Fatal(err)
		}
		return stored.LastUsed
	}
	// noted is when a use is noted, which is now, unless the table was slow: then it is when the key is read next.
	noted := func() time.Time {
		t.Helper()
		for range 10 {
			if wants(t, keys, lambdatest.Token, nil); lastUsed().Equal(c.now()) {
				return c.now()
			}
			c.advance(time.Minute)
		}
		t.Fatal("no use is noted")
		return time.Time{}
	}
	first := noted()
	writes := l.writes.Load()
	for range 3 {
		c.advance(19 * time.Minute)
		wants(t, keys, lambdatest.Token, nil)
	}
	other, err := apikey.New(apikey.Config{Table: apikey.Table{Client: s.Client, Name: s.APIKeys}, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, other, lambdatest.Token, nil) // after 57 minutes, in another process
	if got, more := lastUsed(), l.writes.Load()-writes; !got.Equal(first) || more != 0 {
		t.Errorf("%v after %d more writes, want %v", got, more, first)
	}
	c.advance(3 * time.Minute)
	noted()
}

// Who may not be let in is not noted, and what can't be noted keeps nobody out.
func TestLastUseIsWorthNoRefusal(t *testing.T) {
	s := lambdatest.New(t)
	keys, l, c := held(t, s)
	if _, err := s.KeyTable().Revoke(t.Context(), token.ID(lambdatest.Token), "ada", c.now()); err != nil {
		t.Fatal(err)
	}
	wants(t, keys, lambdatest.Token, apikey.ErrRevoked)
	wants(t, keys, token.New(token.Live), apikey.ErrUnknown)
	if n := l.writes.Load(); n != 0 {
		t.Errorf("%d writes", n)
	}
	readOnly, err := apikey.New(apikey.Config{Table: apikey.Table{Client: dynamotest.Client(writesFail(t), wirefault.Patiently), Name: s.APIKeys}, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	key := token.New(token.Live)
	s.Key(t, apikey.Key{ID: token.ID(key), Tenant: "tenant-b", Scopes: apikey.Scopes()})
	wants(t, readOnly, key, nil)
}

// writesFail is an endpoint that only reads.
func writesFail(t *testing.T) string {
	t.Helper()
	to, err := url.Parse(dynamotest.Endpoint(t, dynamotest.Names()[0]))
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetItem") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestNewNeedsATableAndABoundedAge(t *testing.T) {
	table := apikey.Table{Client: dynamotest.Client("http://127.0.0.1:1"), Name: "keys"}
	for name, cfg := range map[string]apikey.Config{
		"no table": {}, "no name": {Table: apikey.Table{Client: table.Client}}, "an age below 0": {Table: table, CacheAge: -1},
		"an age that is too long": {Table: table, CacheAge: apikey.CacheAgeMax + 1},
	} {
		if keys, err := apikey.New(cfg); err == nil || keys != nil {
			t.Errorf("%s: %v, %v", name, keys, err)
		}
	}
}
