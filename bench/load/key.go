package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
)

// keyBytes is the length of a record's key.
const keyBytes = 43

// used counts the keys.
var used atomic.Int64

// newKey is a key that no request had, of as many characters as a record's key has.
func newKey() string { return fmt.Sprintf("%0*d", keyBytes, used.Add(1)) }

// body is what is sent to every side.
const body = `{"amount":1999,"currency":"EUR","source":"card_ok"}`

func keyed(key string) http.Header {
	return http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {strconv.Quote(key)}, keyHeader: {key}}
}

func inProcessClient(handler http.Handler) client {
	return client{http: &http.Client{Transport: inProcess{handler}}, base: "http://in.process"}
}

// final sends a request whose final answer comes at once. It returns what came instead.
func final(ctx context.Context, c client, path, key string) (unexpected string) {
	got, err := c.send(ctx, http.MethodPost, path, body, keyed(key))
	switch {
	case err != nil:
		return noAnswer
	case got.status != http.StatusCreated || string(got.body) != string(answer):
		return got.code()
	}
	return ""
}

// post is final for a request that must be answered.
func post(ctx context.Context, c client, path, key string) error {
	if unexpected := final(ctx, c, path, key); unexpected != "" {
		return errors.New(path + ": " + unexpected)
	}
	return nil
}

// firsts sends each request under a new key.
func firsts(c client, path string) sender {
	return func(ctx context.Context, _ int) string { return final(ctx, c, path, newKey()) }
}

// replays sends requests under the keys in turn.
func replays(c client, path string, known []string) sender {
	return func(ctx context.Context, n int) string { return final(ctx, c, path, known[n%len(known)]) }
}

// knownKeys is how many records the replays take turns in. To write them warms a side up, too: Node compiles what runs often.
const knownKeys = 300

// known sends requests under new keys, which it returns.
func known(ctx context.Context, c client, path string, n int) ([]string, error) {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = newKey()
		if err := post(ctx, c, path, keys[i]); err != nil {
			return nil, err
		}
	}
	return keys, nil
}
