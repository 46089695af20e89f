package meter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Wire is an HTTP server between clients and an endpoint of DynamoDB that meters what passes, one call at a time. It serves the
// calls that the meter has rules for, and refuses others unless Others is set.
type Wire struct {
	// Others has calls passed on that there are no rules for; they are taken with their names, without a price.
	Others bool

	url   string
	http  *http.Client
	mu    sync.Mutex
	meter *Meter
	ended time.Time
}

// NewWire returns a wire to the endpoint. The meter belongs to it from now on.
func NewWire(url string, m *Meter) *Wire {
	return &Wire{url: url, http: &http.Client{Transport: &http.Transport{DisableCompression: true}}, meter: m}
}

// Take returns the calls since the last take, and what went wrong so far.
func (w *Wire) Take() ([]Call, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.meter.Take(), w.meter.Err
}

// Idle is for how long no call has ended; it waits for one that is under way.
func (w *Wire) Idle() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.ended)
}

// Close closes the connections to the endpoint.
func (w *Wire) Close() { w.http.CloseIdleConnections() }

// ServeHTTP passes a call on.
func (w *Wire) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.ended = time.Now() }()
	if err := w.pass(out, r); err != nil {
		w.meter.Err = errors.Join(w.meter.Err, err)
		http.Error(out, err.Error(), http.StatusInternalServerError)
	}
}

func (w *Wire) pass(out http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	ctx := context.WithoutCancel(r.Context()) // a call that was sent is looked after to its end
	input, err := decode(operation, body)
	if w.Others && errors.Is(err, errNoRule) {
		reply, err := w.send(ctx, r.Header, body)
		if err != nil {
			return err
		}
		w.meter.calls = append(w.meter.calls, Call{Name: operation, Unpriced: true})
		return reply.write(out)
	}
	if err != nil {
		return err
	}
	var reply *reply
	var sendErr error
	err = w.meter.call(ctx, input, func() (bool, error) {
		if reply, sendErr = w.send(ctx, r.Header, body); sendErr != nil {
			return false, nil // told below
		}
		return reply.lost()
	})
	if err = errors.Join(err, sendErr); err != nil {
		return err
	}
	return reply.write(out)
}

type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r *reply) write(out http.ResponseWriter) error {
	for name, values := range r.header {
		out.Header()[name] = values
	}
	out.WriteHeader(r.status)
	_, err := out.Write(r.body)
	return err
}

func (w *Wire) send(ctx context.Context, header http.Header, body []byte) (*reply, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	r.Header.Del("Accept-Encoding") // the reply is read here
	res, err := w.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	return &reply{res.StatusCode, res.Header, said}, err
}

// lost says that the reply is about a failed condition. It returns an error for any other error.
func (r *reply) lost() (bool, error) {
	if r.status == http.StatusOK {
		return false, nil
	}
	var problem struct {
		Type string `json:"__type"`
	}
	_ = json.Unmarshal(r.body, &problem) // without a type it is no failed condition
	_, name, _ := strings.Cut(problem.Type, "#")
	if name == "ConditionalCheckFailedException" || name == "TransactionCanceledException" {
		return true, nil
	}
	return false, fmt.Errorf("%d %s", r.status, r.body)
}
