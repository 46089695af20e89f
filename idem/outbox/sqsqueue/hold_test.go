package sqsqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
)

// extensions is a queue that tells of each extension of a wake-up's visibility, in seconds, and refuses those after most.
func extensions(t *testing.T, most int) (*sqs.Client, <-chan int) {
	t.Helper()
	told := make(chan int, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ VisibilityTimeout int }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("X-Amz-Target") != "AmazonSQS.ChangeMessageVisibility" || most == 0 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		most--
		told <- in.VisibilityTimeout
	}))
	t.Cleanup(server.Close)
	return sqs.New(sqs.Options{
		Region: "eu-central-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), RetryMaxAttempts: 1,
	}), told
}

// A delivery that takes long is not handed out again while it lives, and not counted as failed; one that never ends is, once
// its bound is over.
func TestADeliveryThatGoesOnKeepsItsWakeUp(t *testing.T) {
	client, told := extensions(t, 100)
	pauses := make(chan struct{})
	opts := sqsqueue.HoldOptions{Visibility: 10 * time.Second, Max: 30 * time.Second, Pause: func(ctx context.Context, d time.Duration) error {
		if d != 5*time.Second {
			t.Errorf("a pause of %v, want half of the visibility", d)
		}
		select {
		case <-pauses:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	failed := errors.New("the store is down")
	err := sqsqueue.Hold(t.Context(), client, "http://queue", "receipt", opts, func(context.Context) error {
		for range 5 { // at 0, 5, 10, 15 and 20 s: from there it is hidden until the 30th
			if seconds := <-told; seconds != 10 {
				t.Errorf("hidden for %d s", seconds)
			}
			pauses <- struct{}{}
		}
		return failed
	})
	if !errors.Is(err, failed) || len(told) != 0 {
		t.Errorf("%v, %d extensions beyond the bound", err, len(told))
	}
}

// A short one ends its hold, and a queue that can't be asked changes nothing about a delivery.
func TestAHoldEndsWithItsDelivery(t *testing.T) {
	for _, most := range []int{0, 100} {
		client, told := extensions(t, most)
		err := sqsqueue.Hold(t.Context(), client, "http://queue", "receipt", sqsqueue.HoldOptions{}, func(context.Context) error { return nil })
		if err != nil || len(told) > 1 {
			t.Errorf("%v, %d extensions", err, len(told))
		}
	}
	for _, opts := range []sqsqueue.HoldOptions{{Visibility: time.Second}, {Visibility: 1500 * time.Millisecond}, {Max: time.Second}, {Max: 13 * time.Hour}} {
		var rejected *idem.ConfigError
		if err := sqsqueue.Hold(t.Context(), nil, "", "", opts, nil); !errors.As(err, &rejected) {
			t.Errorf("%+v: %v, want a ConfigError", opts, err)
		}
	}
}
