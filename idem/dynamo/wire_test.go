package dynamo_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/storage"
)

// icy is a client with a place on the way to the wire where the process is frozen, once it is set.
type icy struct {
	client *dynamodb.Client
	faults *wirefault.Transport
	// signing is called while a request is signed, dialling when it was handed to the transport and before its body is read.
	signing, dialling func(context.Context)
	// ahead is how far the wall clock is ahead of the one that contexts go by.
	ahead atomic.Int64
}

func newIcy(t *testing.T, credentials aws.CredentialsProvider) (*icy, *dynamo.Store) {
	t.Helper()
	url := dynamotest.Endpoint(t, dynamotest.Names()[0])
	plain := dynamotest.Client(url)
	tables := createTables(t, plain)
	i := &icy{faults: &wirefault.Transport{}}
	i.client = dynamotest.Client(url, func(o *dynamodb.Options) {
		o.HTTPClient = &http.Client{Transport: dialler{i}}
		o.HTTPSignerV4 = signer{o.HTTPSignerV4, i}
		if credentials != nil {
			o.Credentials = credentials
		}
	})
	now := func() time.Time { return time.Now().Add(time.Duration(i.ahead.Load())) }
	return i, newStore(t, i.client, tables, dynamo.Config{Now: now})
}

// signer signs after the freeze.
type signer struct {
	dynamodb.HTTPSignerV4
	icy *icy
}

func (s signer) SignHTTP(
	ctx context.Context, credentials aws.Credentials, r *http.Request, payloadHash, service, region string, at time.Time, options ...func(*v4.SignerOptions),
) error {
	if s.icy.signing != nil {
		s.icy.signing(ctx)
	}
	return v4.NewSigner().SignHTTP(ctx, credentials, r, payloadHash, service, region, at, options...)
}

// dialler freezes before it reads a body, as while a connection is made.
type dialler struct{ icy *icy }

func (d dialler) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.icy.dialling != nil {
		d.icy.dialling(r.Context())
	}
	return d.icy.faults.RoundTrip(r)
}

// A request whose process was frozen past the call's deadline never reaches the server, wherever on the way it was and
// whichever clock tells: what it is about may have expired meanwhile and be gone, so that its condition holds.
func TestAFrozenRequestNeverLeaves(t *testing.T) {
	freezes := map[string]func(i *icy){
		"while it is signed, until the context is over": func(i *icy) { i.signing = func(ctx context.Context) { <-ctx.Done() } },
		"while it is signed, by the wall clock alone":   func(i *icy) { i.signing = func(context.Context) { i.ahead.Store(int64(time.Hour)) } },
		"while a connection is made":                    func(i *icy) { i.dialling = func(context.Context) { i.ahead.Store(int64(time.Hour)) } },
	}
	for name, write := range writes {
		for freeze, set := range freezes {
			t.Run(name+", "+freeze, func(t *testing.T) {
				i, store := newIcy(t, nil)
				send, happened := write.prepare(t, store)
				i.faults.Inject("")
				set(i)
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				err := send(ctx)
				var unasked *storage.NotAskedError
				if !errors.As(err, &unasked) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got error %v, want a NotAskedError", err)
				}
				if n := len(i.faults.Bodies(write.operation)); n != 0 {
					t.Errorf("%d requests reached the server", n)
				}
				i.signing, i.dialling = nil, nil
				i.ahead.Store(0)
				if happened() {
					t.Error("it happened")
				}
				if err := send(t.Context()); err != nil {
					t.Errorf("thawed and sent again: %v", err)
				}
			})
		}
	}
}

// A caller that gave up before anything left knows that nothing happened.
func TestAWriteUnderAContextThatIsOverIsNotAsked(t *testing.T) {
	i, store := newIcy(t, nil)
	for name, write := range writes {
		send, _ := write.prepare(t, store)
		i.faults.Inject("")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := send(ctx); meaningOf(err) != notAsked || len(i.faults.Bodies(write.operation)) != 0 {
			t.Errorf("%s: %v, %d requests", name, err, len(i.faults.Bodies(write.operation)))
		}
	}
}

// lostCredentials are had at first, and not any more.
type lostCredentials struct{ lost atomic.Bool }

func (c *lostCredentials) Retrieve(context.Context) (aws.Credentials, error) {
	if c.lost.Load() {
		return aws.Credentials{}, errors.New("no credentials to be had")
	}
	return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
}

func TestAWriteWithoutCredentialsIsNotAsked(t *testing.T) {
	credentials := &lostCredentials{}
	i, store := newIcy(t, credentials)
	for name, write := range writes {
		send, happened := write.prepare(t, store)
		i.faults.Inject("")
		credentials.lost.Store(true)
		if err := send(t.Context()); meaningOf(err) != notAsked || len(i.faults.Bodies(write.operation)) != 0 {
			t.Errorf("%s: %v, %d requests", name, err, len(i.faults.Bodies(write.operation)))
		}
		credentials.lost.Store(false)
		if happened() {
			t.Errorf("%s happened", name)
		}
	}
}
