package dynamo_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
	"github.com/idem-go/idem-aws/idem/storage"
)

// front is a server in front of the real endpoint. It keeps the requests that arrived whole, and forwards them.
type front struct {
	server    *httptest.Server
	transport *http.Transport
	endpoint  string

	mu      sync.Mutex
	arrived []*http.Request
	bodies  [][]byte
	// dialled is called when a connection to the server was made, and before it is used.
	dialled func()
}

func newFront(t *testing.T, http2 bool) *front {
	t.Helper()
	f := &front{endpoint: dynamotest.Endpoint(t, dynamotest.Names()[0])}
	f.server = httptest.NewUnstartedServer(f)
	if f.server.EnableHTTP2 = http2; http2 {
		f.server.StartTLS()
	} else {
		f.server.Start()
	}
	t.Cleanup(f.server.Close)
	f.transport = f.server.Client().Transport.(*http.Transport).Clone()
	f.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.dialled != nil {
			f.dialled()
		}
		return conn, err
	}
	return f
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	f.arrived, f.bodies = append(f.arrived, r), append(f.bodies, body)
	f.mu.Unlock()
	forwarded, err := http.NewRequestWithContext(r.Context(), r.Method, f.endpoint, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	forwarded.Header = r.Header
	response, err := http.DefaultTransport.RoundTrip(forwarded)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body) // a client that gave up is no concern of the server's
}

// next has the next request find no connection; dialled is called once it has one.
func (f *front) next(dialled func()) {
	f.transport.CloseIdleConnections()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.arrived, f.bodies, f.dialled = nil, nil, dialled
}

func (f *front) took() ([]*http.Request, [][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.arrived), slices.Clone(f.bodies)
}

// store sends to the front through the client, as an application does that reads bodies into memory first.
func (f *front) store(t *testing.T, now func() time.Time, options ...func(*dynamodb.Options)) *dynamo.Store {
	t.Helper()
	tables := createTables(t, dynamotest.Client(f.endpoint))
	client := dynamotest.Client(f.server.URL, append([]func(*dynamodb.Options){func(o *dynamodb.Options) {
		o.HTTPClient = sdkhttp.BufferedBody(&http.Client{Transport: f.transport})
	}}, options...)...)
	return newStore(t, client, tables, dynamo.Config{Now: now})
}

// protocols are those that the front may speak.
func protocols(t *testing.T, test func(t *testing.T, f *front)) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) { test(t, newFront(t, http2)) })
	}
}

// A process that is frozen while net/http makes a connection sends nothing once it goes on: its bodies may be in memory, but
// the clock is looked at when they are written.
func TestAWriteThatWasFrozenWhileDiallingIsNotAsked(t *testing.T) {
	protocols(t, func(t *testing.T, f *front) {
		var ahead atomic.Int64
		store := f.store(t, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
		for name, write := range writes {
			send, happened := write.prepare(t, store)
			f.next(func() { ahead.Store(int64(time.Hour)) })
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			err := send(ctx)
			cancel()
			var unasked *storage.NotAskedError
			if !errors.As(err, &unasked) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: got error %v, want a NotAskedError", name, err)
			}
			if arrived, _ := f.took(); ahead.Load() == 0 || len(arrived) != 0 {
				t.Errorf("%s: %d requests arrived, %v ahead", name, len(arrived), time.Duration(ahead.Load()))
			}
			f.next(nil)
			ahead.Store(0)
			if happened() {
				t.Errorf("%s happened", name)
			}
			if err := send(t.Context()); err != nil {
				t.Errorf("%s: thawed and sent again: %v", name, err)
			}
		}
	})
}

// What arrives is what was signed, of the length that was announced.
func TestAWriteArrivesAsItWasSigned(t *testing.T) {
	protocols(t, func(t *testing.T, f *front) {
		store := f.store(t, time.Now)
		for name, write := range writes {
			send, _ := write.prepare(t, store)
			f.next(nil)
			must(t, send(t.Context()))
			arrived, sent := f.took()
			if len(arrived) != 1 {
				t.Fatalf("%s: %d requests arrived, want 1", name, len(arrived))
			}
			r := arrived[0]
			if http2 := f.server.EnableHTTP2; http2 != r.ProtoAtLeast(2, 0) {
				t.Errorf("%s: it came by %s", name, r.Proto)
			}
			if r.ContentLength != int64(len(sent[0])) || len(r.TransferEncoding) != 0 {
				t.Errorf("%s: announced %d bytes, %q; came %d", name, r.ContentLength, r.TransferEncoding, len(sent[0]))
			}
			if got, want := r.Header.Get("Authorization"), signature(t, f.server.URL, r, sent[0]); got != want {
				t.Errorf("%s: authorization\n%s, want\n%s", name, got, want)
			}
		}
	})
}

// signature is the authorization of what arrived.
func signature(t *testing.T, url string, r *http.Request, body []byte) string {
	t.Helper()
	again, err := http.NewRequestWithContext(t.Context(), r.Method, url+r.URL.Path, bytes.NewReader(body))
	must(t, err)
	_, names, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	for _, name := range strings.Split(names, ";") {
		if values := r.Header.Values(name); len(values) > 0 && name != "content-length" {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	must(t, err)
	hash := sha256.Sum256(body)
	credentials := aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}
	must(t, v4.NewSigner().SignHTTP(t.Context(), credentials, again, hex.EncodeToString(hash[:]), "dynamodb", "us-east-1", at))
	return again.Header.Get("Authorization")
}

// net/http sends a request again by itself where it can have its body again: nobody would look at the clock for that.
func TestNothingCanHaveAWritesBodyAgain(t *testing.T) {
	f := newFront(t, false)
	var asked, again atomic.Int64
	rewindable := func(stack *middleware.Stack) error {
		return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("Rewindable", func(
			ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
		) (middleware.FinalizeOutput, middleware.Metadata, error) {
			in.Request.(*smithyhttp.Request).GetBody = func() (io.ReadCloser, error) { return http.NoBody, nil }
			return next.HandleFinalize(ctx, in)
		}), middleware.After)
	}
	store := f.store(t, time.Now, func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, rewindable)
		o.HTTPClient = sdkhttp.BufferedBody(&http.Client{Transport: looking{f.transport, func(r *http.Request) {
			if r.Header.Get("X-Amz-Target") != "DynamoDB_20120810.PutItem" {
				return
			}
			if asked.Add(1); r.GetBody != nil {
				again.Add(1)
			}
		}}})
	})
	must(t, store.Insert(t.Context(), reserved(t), base))
	if asked.Load() != 1 || again.Load() != 0 {
		t.Errorf("%d requests, %d of which can be sent again", asked.Load(), again.Load())
	}
}

// looking sees each request that net/http is about to send.
type looking struct {
	next http.RoundTripper
	look func(*http.Request)
}

// RoundTrip implements http.RoundTripper.
func (l looking) RoundTrip(r *http.Request) (*http.Response, error) {
	l.look(r)
	return l.next.RoundTrip(r)
}

// A freeze while a body is written counts as long as a part of it is missing: what lacks a part is no request. Once all of it
// was handed out, it may have arrived.
func TestAWriteThatIsFrozenHalfwayIsNotAsked(t *testing.T) {
	for name, c := range map[string]struct {
		after func(length int64) int64
		want  meaning
	}{
		"after half of the body": {func(length int64) int64 { return length / 2 }, notAsked},
		"before the last byte":   {func(length int64) int64 { return length - 1 }, notAsked},
		"after the whole body":   {func(length int64) int64 { return length }, success},
	} {
		t.Run(name, func(t *testing.T) {
			var ahead atomic.Int64
			f := newFront(t, false)
			store := f.store(t, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, func(o *dynamodb.Options) {
				o.HTTPClient = sdkhttp.BufferedBody(&http.Client{Transport: looking{f.transport, func(r *http.Request) {
					r.Body = &frozen{ReadCloser: r.Body, left: c.after(r.ContentLength), freeze: func() { ahead.Store(int64(time.Hour)) }}
				}}})
			})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := store.Insert(ctx, reserved(t), base)
			if arrived, _ := f.took(); meaningOf(err) != c.want || len(arrived) > 0 != (c.want == success) {
				t.Errorf("%v, %d requests arrived; want %q", err, len(arrived), c.want)
			}
		})
	}
}

// frozen is a body on whose way the process is frozen, when so many bytes of it are read.
type frozen struct {
	io.ReadCloser
	left   int64
	freeze func()
}

// Read implements io.Reader.
func (f *frozen) Read(p []byte) (int, error) {
	if f.left == 0 {
		f.freeze()
		return f.ReadCloser.Read(p)
	}
	n, err := f.ReadCloser.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	return n, err
}
