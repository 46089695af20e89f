package guard_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
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
