// Package wirefault is an HTTP transport to a real DynamoDB endpoint that loses requests and replies on purpose. It
// also answers with errors of the real service that emulators never raise: throttles, transactions in conflict or in
// progress, expired credentials. The SDK's client and the store above it are the real ones, so a test sees what they
// make of each fault.
//
// It is for tests only. Use it with package dynamotest, which starts the endpoint. For the same faults without an
// endpoint use package storetest/faulty around a store in memory.
//
//	faults := &wirefault.Transport{}
//	client := dynamotest.Client(url, func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: faults} })
//	faults.Inject("TransactWriteItems", wirefault.LoseReply, wirefault.Throttle("ThrottlingException"))
//
// The next transaction then happens and its caller hears of nothing; the one after it is refused. [With] chooses a request by
// its context instead, for calls that other goroutines make too.
package wirefault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/idem-go/idem-aws/internal/refusal"
)

// Fault is what becomes of one request; next forwards it. What it returns is what the SDK's client gets.
type Fault func(r *http.Request, next http.RoundTripper) (*http.Response, error)

// Pass forwards the request.
func Pass(r *http.Request, next http.RoundTripper) (*http.Response, error) { return next.RoundTrip(r) }

// Refuse is a connection that was never made. The request does not happen.
func Refuse(*http.Request, http.RoundTripper) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// LoseRequest is a connection that broke before the request arrived. It does not happen, and nobody can tell.
func LoseRequest(*http.Request, http.RoundTripper) (*http.Response, error) {
	return nil, &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
}

// LoseReply lets the request happen and loses its reply.
func LoseReply(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if _, err := drained(r, next); err != nil {
		return nil, err
	}
	return nil, io.ErrUnexpectedEOF
}

// CutReply lets the request happen and loses the end of its reply.
func CutReply(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	response, err := drained(r, next)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(io.MultiReader(strings.NewReader("{"), broken{}))
	return response, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, syscall.ECONNRESET }

func drained(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	response, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response, errors.Join(err, response.Body.Close())
}

// Intercept is an answer by something between the caller and DynamoDB, such as a proxy. The request does not happen.
func Intercept(status int, body string) Fault {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		return intercepted(r, status, body), nil
	}
}

// InterceptReply lets the request happen, and something in between answers in DynamoDB's stead, such as a proxy that did not wait
// for the reply.
func InterceptReply(status int, body string) Fault {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if _, err := drained(r, next); err != nil {
			return nil, err
		}
		return intercepted(r, status, body), nil
	}
}

func intercepted(r *http.Request, status int, body string) *http.Response {
	return answered(r, status, http.Header{"Content-Type": {"application/json"}}, []byte(body))
}

// Hang holds the request until its caller gives up. It does not happen.
func Hang(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Answer refuses the request with an error code of DynamoDB, which a client error (4xx) proves not to have happened.
func Answer(status int, code string) Fault {
	return refused(refusal.Refusal{Status: status, Code: code})
}

// Throttle refuses the request because of a throttle: ThrottlingException, ProvisionedThroughputExceededException or
// RequestLimitExceeded.
func Throttle(code string) Fault { return refused(refusal.Of(code)) }

// Cancelled refuses a transaction with these codes of cancellation reasons, one for each item.
func Cancelled(reasons ...string) Fault { return refused(refusal.Cancelled(reasons...)) }

// CancelledAt refuses a transaction because of its item at the position, counted from 0; all others are clean.
func CancelledAt(item int, reason string) Fault {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		var transaction struct{ TransactItems []json.RawMessage }
		if err := json.Unmarshal(body, &transaction); err != nil {
			return nil, fmt.Errorf("wirefault: a request that is no JSON: %w", err)
		}
		n := len(transaction.TransactItems)
		if item >= n {
			return nil, fmt.Errorf("wirefault: a request with %d items of a transaction has no item %d", n, item)
		}
		return refused(refusal.CancelledAt(item, n, reason))(r, next)
	}
}

// refused answers the request with the refusal, and does not forward it.
func refused(by refusal.Refusal) Fault {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		header, body := by.Reply()
		return answered(r, by.Status, header, body), nil
	}
}

func answered(r *http.Request, status int, header http.Header, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// Either is one fault for transactions, and another one for single requests.
func Either(transaction, single Fault) Fault {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if operationOf(r) == "TransactWriteItems" {
			return transaction(r, next)
		}
		return single(r, next)
	}
}

// Conflict refuses a write because another transaction is under way on the same item: the first of a transaction's.
func Conflict() Fault { return Either(CancelledAt(0, refusal.ReasonConflict), conflict) }

// InProgress refuses a transaction because an earlier request under its token is still under way. What that one comes to is
// not known. A single write has no token, and is refused as by [Conflict].
func InProgress() Fault { return Either(refused(refusal.Of(refusal.TransactionInProgress)), conflict) }

var conflict = refused(refusal.Of(refusal.TransactionConflict))
