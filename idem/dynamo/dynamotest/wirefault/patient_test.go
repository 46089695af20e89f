package wirefault_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
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
