package wirefault_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/internal/timers"
)

// late has each answer wait until the deadline of its caller has passed.
type late struct{ caller context.Context }

func (l late) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	<-l.caller.Done()
	return response, err
}

// An answer that comes after the deadline is an answer all the same; a fault that waits for the deadline ends there.
func TestPatientWaitsLongerThanItsCaller(t *testing.T) {
	wire := &wirefault.Transport{}
	client, table := wired(t, wire)
	within := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	get := func(ctx context.Context) (*dynamodb.GetItemOutput, error) {
		wire.Next = wirefault.Patient{Next: late{caller: ctx}}
		return client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: item{"id": text("a")}})
	}
	got, err := get(within())
	if err != nil || len(got.Item) == 0 {
		t.Errorf("%v, %v, want the row", got, err)
	}
	wire.Inject("GetItem", wirefault.Hang)
	if _, err := get(within()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want that the time is over", err)
	}
}

// open is a way on which nothing comes until the request ends, or so long after its caller has gone.
type open struct {
	caller context.Context
	after  time.Duration
}

func (o open) RoundTrip(r *http.Request) (*http.Response, error) {
	<-o.caller.Done()
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-time.After(o.after):
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}
}

// lapsed is a context whose deadline has passed, and that only its cancellation ends.
type lapsed struct{ context.Context }

func (l lapsed) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

// A caller that hangs up ends its request. One whose time is over does not, however its context says so.
func TestPatientEndsWithACallerThatHangsUp(t *testing.T) {
	var set timers.Set
	const soon, late = 100 * time.Millisecond, 30 * time.Second
	for name, c := range map[string]struct {
		caller func() (context.Context, context.CancelFunc)
		after  time.Duration
		want   error
	}{
		"it hangs up": {func() (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) }, late, context.Canceled},
		"it hangs up before its deadline": {func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), time.Hour)
		}, late, context.Canceled},
		"its time is over": {func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), 0) }, soon, nil},
		"its time is over, of which its context says that it is cancelled": {func() (context.Context, context.CancelFunc) {
			over, end := set.WithTimeout(t.Context(), time.Millisecond)
			ctx, cancel := context.WithCancel(over)
			<-ctx.Done()
			return ctx, func() { cancel(); end() }
		}, soon, nil},
		"it lets go after its deadline": {func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			return lapsed{ctx}, cancel
		}, soon, nil},
	} {
		ctx, cancel := c.caller()
		t.Cleanup(cancel)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://dynamodb", nil)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(10*time.Millisecond, cancel)
		response, err := wirefault.Patient{Next: open{ctx, c.after}}.RoundTrip(request)
		if !errors.Is(err, c.want) || (response != nil) != (c.want == nil) {
			t.Errorf("%s: %v, %v, want %v", name, response, err, c.want)
		}
	}
}
