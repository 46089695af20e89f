package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem/client"
)

// slowly is a body whose bytes come one by one, each when its wait is over. Then nothing comes any more.
type slowly struct {
	ctx    context.Context
	waits  []time.Duration
	closed bool
}

func (s *slowly) Read(p []byte) (int, error) {
	var arrives <-chan time.Time // never
	if len(s.waits) > 0 {
		arrives = time.After(s.waits[0])
		s.waits = s.waits[1:]
	}
	select {
	case <-arrives:
		return copy(p, "x"), nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func (s *slowly) Close() error {
	s.closed = true
	return nil
}

// A long answer may take as long as it likes, and so may its reader; a server that says nothing more may not.
func TestALongAnswerThatStopsEnds(t *testing.T) {
	const timeout = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		var body *slowly
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			body = &slowly{ctx: r.Context(), waits: []time.Duration{0, 0, 9 * time.Second, 9 * time.Second, 9 * time.Second}}
			return &http.Response{StatusCode: 201, Header: http.Header{}, Body: body}, nil
		})
		transport, err := client.New(client.Config{Base: base, AnswerBytesMax: 1, AttemptTimeout: timeout})
		if err != nil {
			t.Fatal(err)
		}
		res, err := transport.RoundTrip(httptest.NewRequest("POST", "http://api.example/", strings.NewReader("{}")))
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			<-time.After(time.Minute) // its reader has other things to do
			if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		n, err := res.Body.Read(make([]byte, 1))
		if took := time.Since(began); n != 0 || took != timeout || errors.Is(err, context.Canceled) || err == nil || !strings.Contains(err.Error(), "Config.AttemptTimeout") {
			t.Errorf("%d bytes and %v after %v", n, err, took)
		}
		if err := res.Body.Close(); err != nil || !body.closed {
			t.Errorf("closed %v, %v", body.closed, err)
		}
	})
}

// The caller's own end is the caller's error.
func TestALongAnswerEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 201, Header: http.Header{}, Body: &slowly{ctx: r.Context(), waits: []time.Duration{0, 0}}}, nil
	})
	transport, err := client.New(client.Config{Base: base, AnswerBytesMax: 1})
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(httptest.NewRequest("POST", "http://api.example/", strings.NewReader("{}")).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(res.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
