package guard_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/guard"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// provider counts what reaches it.
type provider struct{ calls int }

func (p *provider) RoundTrip(*http.Request) (*http.Response, error) {
	p.calls++
	return &http.Response{StatusCode: http.StatusCreated, Body: http.NoBody}, nil
}

// body says whether it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

func post(ctx context.Context, t *testing.T, client *http.Client, b io.ReadCloser) error {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider.example/charges", b)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err == nil {
		err = response.Body.Close()
	}
	return err
}

// A holder whose renewals have no reply may be parked by anybody: what it would send must not leave any more.
func TestCallsLeaveOnlyUnderALeaseThatTheStoreHasConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, err := memstore.New(memstore.Config{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		store := faulty.New(mem)
		engine, err := idem.New(store, idem.Config{})
		if err != nil {
			t.Fatal(err)
		}
		orders, err := engine.Register(idem.Operation{Name: "orders.create", Kind: idem.KindWrapped, UnknownToOperator: true, Policy: idem.IETF()})
		if err != nil {
			t.Fatal(err)
		}
		p := &provider{}
		client := &http.Client{Transport: guard.Transport(p)}
		handler := func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
			ctx = context.WithoutCancel(ctx) // a handler that ignores its context
			for range 2 {
				if err := post(ctx, t, client, http.NoBody); err != nil {
					t.Errorf("under a lease: %v", err)
				}
				time.Sleep(time.Minute)
			}
			for n := 1; n <= 500; n++ {
				store.On(faulty.Renew, n, faulty.LoseReply())
			}
			time.Sleep(time.Minute)
			sent := &body{Reader: strings.NewReader("{}")}
			if err := post(ctx, t, client, sent); !errors.Is(err, idem.ErrLeaseOver) || !sent.closed {
				t.Errorf("after it: %v, body closed %v", err, sent.closed)
			}
			return idem.Response{Status: 201}, nil
		}
		req := idem.Request{Tenant: "t", Key: "k", Input: canonical.Input{MediaType: "application/json", Body: []byte("{}")}}
		if _, err := orders.Do(t.Context(), req, handler); err != nil {
			t.Error(err)
		}
		if p.calls != 2 {
			t.Errorf("%d calls reached the provider, want 2", p.calls)
		}
		if err := post(t.Context(), t, client, http.NoBody); !errors.Is(err, idem.ErrLeaseOver) {
			t.Errorf("without an execution: %v, want ErrLeaseOver", err)
		}
	})
}

// under runs a wrapped handler, whose lease is looked at by a clock that is ahead by so many seconds.
func under(t *testing.T, ahead *atomic.Int64, handler func(context.Context)) {
	t.Helper()
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Second) }
	store, err := memstore.New(memstore.Config{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{Now: now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	orders, err := engine.Register(idem.Operation{Name: "orders.create", Kind: idem.KindWrapped, UnknownToOperator: true, Policy: idem.IETF()})
	if err != nil {
		t.Fatal(err)
	}
	req := idem.Request{Tenant: "t", Key: "k", Input: canonical.Input{MediaType: "application/json", Body: []byte("{}")}}
	_, _ = orders.Do(t.Context(), req, func(ctx context.Context, _ *idem.Tx) (idem.Response, error) {
		handler(context.WithoutCancel(ctx)) // a handler that ignores its context
		return idem.Response{Status: 201}, nil
	})
}

// A process that is frozen while it connects, or right before it writes, has no timer that could end the call: by its lease's end
// somebody else may have called.
func TestACallThatWasFrozenUntilItsLeaseWasOverNeverLeaves(t *testing.T) {
	const dialling, writing = "dialling", "writing the head"
	for name, c := range map[string]struct {
		while        string
		frozen       int64
		http2        bool
		body         string
		heads, whole int32 // the most heads, and the whole requests, that reach the provider
	}{
		"for a while":                                   {while: dialling, frozen: 1, body: "{}", heads: 1, whole: 1},
		"for a while, no body":                          {while: dialling, frozen: 1, heads: 1, whole: 1},
		"past its lease":                                {while: dialling, frozen: 3600, body: "{}"},
		"past its lease, no body":                       {while: dialling, frozen: 3600},
		"past its lease, later":                         {while: writing, frozen: 3600, body: "{}"},
		"past its lease, later, no body":                {while: writing, frozen: 3600},
		"HTTP/2, for a while":                           {while: writing, frozen: 1, http2: true, body: "{}", heads: 1, whole: 1},
		"HTTP/2, past its lease":                        {while: dialling, frozen: 3600, http2: true, body: "{}"},
		"HTTP/2, past its lease, no body":               {while: dialling, frozen: 3600, http2: true},
		"HTTP/2, past its lease, later: no body leaves": {while: writing, frozen: 3600, http2: true, body: "{}", heads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var ahead atomic.Int64
			var heads, whole atomic.Int32
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				heads.Add(1)
				if _, err := io.ReadAll(r.Body); err == nil {
					whole.Add(1)
				}
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, "charged")
			}))
			if server.EnableHTTP2 = c.http2; c.http2 {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			freeze := func(at string) {
				if at == c.while {
					ahead.Store(c.frozen)
				}
			}
			transport := server.Client().Transport.(*http.Transport).Clone()
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				freeze(dialling)
				return new(net.Dialer).DialContext(ctx, network, address)
			}
			client := &http.Client{Transport: guard.Transport(transport)}
			under(t, &ahead, func(ctx context.Context) {
				ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(string, []string) { freeze(writing) }})
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/charges/ch_1/capture", strings.NewReader(c.body))
				if err != nil {
					t.Fatal(err)
				}
				response, err := client.Do(r)
				if c.whole == 0 {
					if err == nil || errors.Is(err, idem.ErrLeaseOver) != (c.heads == 0) {
						t.Errorf("%v, want that it says that nothing was sent: %v", err, c.heads == 0)
					}
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				answer, err := io.ReadAll(response.Body)
				if err = errors.Join(err, response.Body.Close()); err != nil || string(answer) != "charged" {
					t.Errorf("%q, %v", answer, err)
				}
			})
			transport.CloseIdleConnections()
			server.Close() // waits for what it serves
			if heads.Load() > c.heads || whole.Load() != c.whole {
				t.Errorf("%d requests, %d of them whole; want %d at most, %d", heads.Load(), whole.Load(), c.heads, c.whole)
			}
		})
	}
}

// A redirect is an answer: what led to it was sent, and had its effect. Who then says idem.NothingHappened has the retry charge again.
func TestACallWhoseRedirectIsStoppedIsNotCalledUnsent(t *testing.T) {
	for _, while := range []string{"answering", "connecting to the other place"} {
		t.Run("frozen while "+while, func(t *testing.T) {
			var ahead atomic.Int64
			var charges, followed atomic.Int32
			freeze := func(at string) {
				if at == while {
					ahead.Store(3600)
				}
			}
			receipt := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
			defer receipt.Close()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				charges.Add(1)
				freeze("answering")
				http.Redirect(w, r, receipt.URL, http.StatusSeeOther)
			}))
			defer server.Close()
			transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if address == receipt.Listener.Addr().String() {
					freeze("connecting to the other place")
				}
				return new(net.Dialer).DialContext(ctx, network, address)
			}}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: guard.Transport(transport)}
			under(t, &ahead, func(ctx context.Context) {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/charges/ch_1/capture", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				response, err := client.Do(r)
				if err == nil {
					response.Body.Close()
				}
				if err == nil || errors.Is(err, idem.ErrLeaseOver) {
					t.Errorf("%v, want an error that does not say that nothing was sent", err)
				}
			})
			if charges.Load() != 1 || followed.Load() != 0 {
				t.Errorf("%d charges, and the redirect was followed %d times; want 1, and never", charges.Load(), followed.Load())
			}
		})
	}
}

// writes is a connection that tells of what was written to it.
type writes struct {
	net.Conn
	wrote func([]byte)
}

func (c writes) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.wrote(p[:n])
	return n, err
}

// countsWhole counts the requests whose body arrives whole.
func countsWhole() (*httptest.Server, *atomic.Int32) {
	whole := new(atomic.Int32)
	return httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err == nil {
			whole.Add(1)
		}
	})), whole
}

// A long body leaves in pieces: of a process that is frozen between two of them the rest stays here.
func TestTheRestOfALongBodyStaysOnceTheLeaseIsOver(t *testing.T) {
	var ahead atomic.Int64
	server, whole := countsWhole()
	defer server.Close()
	const piece = "piece"
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return writes{conn, func(p []byte) {
			if strings.HasPrefix(string(p), piece) {
				ahead.Store(3600)
			}
		}}, err
	}}
	defer transport.CloseIdleConnections()
	under(t, &ahead, func(ctx context.Context) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/charges", strings.NewReader(strings.Repeat(piece, 200<<10/len(piece))))
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Transport: guard.Transport(transport)}).Do(r)
		if err == nil {
			response.Body.Close()
		}
		if err == nil || errors.Is(err, idem.ErrLeaseOver) {
			t.Errorf("%v, want an error that does not say that nothing was sent", err)
		}
	})
	server.Close() // waits for what it serves
	if whole.Load() != 0 || ahead.Load() == 0 {
		t.Errorf("%d whole requests, want none; frozen: %v", whole.Load(), ahead.Load() != 0)
	}
}

// making is a body that a process makes while it is sent.
type making struct {
	io.Reader
	made func()
}

func (m making) Read(p []byte) (int, error) {
	m.made()
	return m.Reader.Read(p)
}

// What makes a body may be frozen itself, while net/http waits for the next piece.
func TestABodyThatIsMadeAfterTheLeaseStays(t *testing.T) {
	var ahead atomic.Int64
	server, whole := countsWhole()
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	under(t, &ahead, func(ctx context.Context) {
		made := making{strings.NewReader("{}"), func() { ahead.Store(3600) }}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/charges", made)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = 2
		response, err := (&http.Client{Transport: guard.Transport(transport)}).Do(r)
		if err == nil {
			response.Body.Close()
		}
		if err == nil || errors.Is(err, idem.ErrLeaseOver) {
			t.Errorf("%v, want an error that does not say that nothing was sent", err)
		}
	})
	server.Close() // waits for what it serves
	if whole.Load() != 0 {
		t.Errorf("%d whole requests, want none", whole.Load())
	}
}

// resending is a transport that sends a request again when its connection breaks, as net/http does.
type resending struct{ between func() }

func (b resending) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	b.between()
	again, err := r.GetBody()
	if err == nil {
		_, err = io.ReadAll(again)
	}
	return &http.Response{StatusCode: http.StatusCreated, Body: http.NoBody}, err
}

// The first sending may have had its effect: the error does not say that nothing was sent.
func TestACallThatIsSentAgainLeavesUnderTheLeaseToo(t *testing.T) {
	for _, frozen := range []int64{0, 3600} {
		var ahead atomic.Int64
		client := &http.Client{Transport: guard.Transport(resending{func() { ahead.Store(frozen) }})}
		under(t, &ahead, func(ctx context.Context) {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider.example/charges", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(r)
			if (err != nil) != (frozen > 0) || errors.Is(err, idem.ErrLeaseOver) {
				t.Errorf("frozen for %d s: %v", frozen, err)
			}
			if err == nil {
				_ = response.Body.Close()
			}
		})
	}
}

// A transport that calls no hooks may have sent a request, or its head, when the lease ends.
func TestWhatATransportWithoutHooksSentIsNotCalledUnsent(t *testing.T) {
	for _, body := range []string{"", "{}"} {
		var ahead atomic.Int64
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			ahead.Store(3600)
			if r.Body != nil && r.Body != http.NoBody {
				_, err := io.ReadAll(r.Body)
				return nil, err
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		under(t, &ahead, func(ctx context.Context) {
			ctx, end := context.WithCancelCause(ctx)
			defer end(nil)
			if body == "" {
				end(idem.ErrLeaseOver) // as a handler's context ends
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider.example/charges/ch_1/capture", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if _, err = guard.Transport(base).RoundTrip(r); err == nil || errors.Is(err, idem.ErrLeaseOver) {
				t.Errorf("a body %q: %v, want an error that does not say that nothing was sent", body, err)
			}
		})
	}
}

// Over HTTP/2 a request without a body ends for its caller with its context, also while its head is about to leave.
func TestAHeadThatIsAboutToLeaveIsNotCalledUnsent(t *testing.T) {
	captured := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(captured) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ended := make(chan struct{})
	under(t, new(atomic.Int64), func(ctx context.Context) {
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		var once sync.Once
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(string, []string) {
			once.Do(func() {
				end(idem.ErrLeaseOver) // as a handler's context ends
				<-ended
			})
		}})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/charges/ch_1/capture", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = guard.Transport(server.Client().Transport).RoundTrip(r)
		if err == nil || errors.Is(err, idem.ErrLeaseOver) {
			t.Errorf("%v, want an error that does not say that nothing was sent", err)
		}
		close(ended)
	})
	select {
	case <-captured: // it was sent after all
	case <-time.After(10 * time.Second):
		t.Error("the head never left: this shows nothing")
	}
}

// Over HTTP/2 the last look at the context comes before the first hook that tells of the head. A process that is held up in between sends
// the head after its caller has heard that the context has ended.
func TestACallThatEndsWithItsConnectionAtHandIsNotCalledUnsent(t *testing.T) {
	under(t, new(atomic.Int64), func(ctx context.Context) {
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		base := roundTripper(func(r *http.Request) (*http.Response, error) { // as HTTP/2 does
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn("provider.example:443")
			trace.GotConn(httptrace.GotConnInfo{})
			end(idem.ErrLeaseOver) // as a handler's context ends
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://provider.example/charges/ch_1/capture", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = guard.Transport(base).RoundTrip(r); err == nil || errors.Is(err, idem.ErrLeaseOver) {
			t.Errorf("%v, want an error that does not say that nothing was sent", err)
		}
	})
}

// A connection that breaks may have carried the request: what is stopped when net/http sends it again is not called unsent.
func TestACallThatIsStoppedWhenItIsSentAgainIsNotCalledUnsent(t *testing.T) {
	var ahead atomic.Int64
	var charges atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return // makes the connection a reused one
		}
		charges.Add(1) // charged, then the connection closes without an answer
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	under(t, &ahead, func(ctx context.Context) {
		client := &http.Client{Transport: guard.Transport(transport)}
		first, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(first)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		heads := 0
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(name string, _ []string) {
			if name != "Host" {
				return
			}
			if heads++; heads == 2 {
				ahead.Store(3600)
			}
		}})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/charges/ch_1/capture", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k") // net/http sends again what has one
		response, err = client.Do(r)
		if err == nil {
			response.Body.Close()
		}
		if err == nil || errors.Is(err, idem.ErrLeaseOver) || heads != 2 || charges.Load() != 1 {
			t.Errorf("%v after %d heads and %d charges, want an error that does not say that nothing was sent after 2 and 1", err, heads, charges.Load())
		}
	})
}

// roundTripper makes one of a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
