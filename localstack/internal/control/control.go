// Package control is the JSON over HTTP that the test servers of this folder share: the same strict reading of bodies,
// the same error shape, and the client side of their control endpoints.
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// BodyBytesMax bounds the body of a request that Read accepts, and RulesBytesMax of one that ReadRules does: a plan of faults
// for each of some thousand requests. More is answered 413.
const (
	BodyBytesMax  = 64 << 10
	RulesBytesMax = 4 << 20
)

// answerBytesMax bounds what a client reads of an answer: listings of long runs are large, a runaway one is an error.
const answerBytesMax = 256 << 20

// Methods serves one path by method. Any other method is answered 405 with an Allow header.
type Methods map[string]http.HandlerFunc

// ServeHTTP implements http.Handler.
func (m Methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handle, ok := m[r.Method]
	if !ok {
		w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(m)), ", "))
		Error(w, http.StatusMethodNotAllowed, "method_not_allowed", r.Method+" is not possible here")
		return
	}
	handle(w, r)
}

// NotFound answers 404 in the shape of Error.
func NotFound(w http.ResponseWriter, r *http.Request) {
	Error(w, http.StatusNotFound, "not_found", "there is nothing at "+r.URL.Path)
}

// Error answers {"error":{"code":…,"message":…}}.
func Error(w http.ResponseWriter, status int, code, message string) {
	JSON(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

// JSON answers v as JSON. A value that can't be encoded is a mistake of the caller and becomes a 500.
func JSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"no JSON"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may be gone; there is nobody left to tell.
	_, _ = w.Write(body)
}

// Read decodes the body into v: exactly one JSON value, no unknown members, at most BodyBytesMax bytes. Otherwise it
// answers 400 or 413 and returns false.
func Read(w http.ResponseWriter, r *http.Request, v any) bool { return read(w, r, v, BodyBytesMax) }

// ReadRules is Read with a bound of RulesBytesMax.
func ReadRules(w http.ResponseWriter, r *http.Request, v any) bool {
	return read(w, r, v, RulesBytesMax)
}

func read(w http.ResponseWriter, r *http.Request, v any, bytesMax int64) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bytesMax))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		Error(w, http.StatusRequestEntityTooLarge, "body_too_large", fmt.Sprintf("a body has at most %d bytes", bytesMax))
		return false
	case err != nil:
		Error(w, http.StatusBadRequest, "body_unreadable", "the body did not arrive whole")
		return false
	}
	if err := decode(body, v); err != nil {
		Error(w, http.StatusBadRequest, "body_invalid", err.Error())
		return false
	}
	return true
}

func decode(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("the body is not the JSON wanted here: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the body holds more than one JSON value")
	}
	return nil
}

// Call is the client side: it sends in as JSON (nothing where nil) and decodes the answer into out (ignored where nil).
// An answer that is not 2xx is an error that carries status and body. A nil client means http.DefaultClient.
func Call(ctx context.Context, client *http.Client, method, url string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("%s %s: %w", method, url, err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, url, err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, answerBytesMax))
	if err != nil {
		return fmt.Errorf("%s %s: reading the answer: %w", method, url, err)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("%s %s: %s: %s", method, url, res.Status, answer)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s: decoding the answer: %w", method, url, err)
	}
	return nil
}
