package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/bench/hand"
)

// keyHeader is where a request's key stands for both sides, beside the client's.
const keyHeader = "X-Key"

// sides are the two ways to serve the requests of a path.
type sides struct {
	path path
	// calls are those that each request makes.
	calls      []string
	idem, hand http.Handler
	// known are the keys that were sent before.
	known []string
	// slices counts those that were run of each side.
	slices int
}

// knownKeys is how many records the replays take turns in.
const knownKeys = 100

// open makes both sides of the paths at the endpoint. The options are those of both sides' clients.
func open(ctx context.Context, url string, paths []path, options ...func(*dynamodb.Options)) ([]*sides, error) {
	tables, err := createTables(ctx, url)
	if err != nil {
		return nil, err
	}
	var recorded hand.Recorder
	watched, err := newApp(newClient(url, recorded.Option), tables, paths)
	if err != nil {
		return nil, err
	}
	recorded.Take() // no request's
	measured, err := newApp(newClient(url, options...), tables, paths)
	if err != nil {
		return nil, err
	}
	// Each engine reads once a minute when data may have been lost: that is no path's.
	for _, engine := range [][]http.Handler{watched, measured} {
		if err := post(engine[0], newKey()); err != nil {
			return nil, err
		}
	}
	recorded.Take()
	client := newClient(url, options...)
	all := make([]*sides, len(paths))
	for i, p := range paths {
		if all[i], err = openPath(p, watched[i], measured[i], client, &recorded); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return all, nil
}

// openPath learns from idem which calls a request makes, and prepares what replays need.
func openPath(p path, watched, measured http.Handler, client *dynamodb.Client, recorded *hand.Recorder) (*sides, error) {
	s := &sides{path: p, idem: measured}
	key := newKey()
	if err := post(watched, key); err != nil {
		return nil, err
	}
	first := recorded.Take()
	calls := first
	if p.replay {
		if err := post(watched, key); err != nil {
			return nil, err
		}
		calls = recorded.Take()
	}
	made, err := hand.NewTemplate(calls, key)
	if err != nil {
		return nil, err
	}
	for _, c := range calls {
		s.calls = append(s.calls, c.Name())
	}
	s.hand = byHand{hand.Hand{Client: client, Template: made}}
	if !p.replay {
		return s, nil
	}
	filled, err := hand.NewTemplate(first, key)
	if err != nil {
		return nil, err
	}
	for range knownKeys {
		key := newKey()
		s.known = append(s.known, key)
		for _, side := range []http.Handler{measured, byHand{hand.Hand{Client: client, Template: filled}}} {
			if err := post(side, key); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// keyBytes is the length of a record's key.
const keyBytes = 43

// used counts the keys.
var used atomic.Int64

// newKey is a key that no request had, of as many characters as a record's key has.
func newKey() string { return fmt.Sprintf("%0*d", keyBytes, used.Add(1)) }

// batch is the keys of n requests: new ones, or known ones in turn.
func (s *sides) batch(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		if s.path.replay {
			keys[i] = s.known[i%len(s.known)]
		} else {
			keys[i] = newKey()
		}
	}
	return keys
}

// post sends a request to a side. Its context can be cancelled, as that of a server's request can.
func post(side http.Handler, key string) error {
	r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader(`{"amount":1999,"currency":"EUR","source":"card_ok"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", strconv.Quote(key))
	r.Header.Set(keyHeader, key)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := httptest.NewRecorder()
	side.ServeHTTP(w, r.WithContext(ctx))
	if w.Code != http.StatusCreated || w.Body.String() != string(answer) {
		return fmt.Errorf("got %d %s", w.Code, w.Body)
	}
	return nil
}
