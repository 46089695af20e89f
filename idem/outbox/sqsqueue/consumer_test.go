package sqsqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
)

// waking is a message that wake-ups name.
const waking = idem.MessageID("op_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.1")

// extensions is a queue with one wake-up and one body that is none. It tells of each extension of a wake-up's visibility, in
// seconds, refuses those after most, and counts the removals.
type extensions struct {
	*sqsqueue.Consumer
	told chan int

	mu      sync.Mutex
	most    int
	removed int
}

func newExtensions(t *testing.T, most int, cfg sqsqueue.ConsumerConfig) *extensions {
	t.Helper()
	x := &extensions{told: make(chan int, 100), most: most}
	server := httptest.NewServer(x)
	t.Cleanup(server.Close)
	queue, err := sqsqueue.New(sqs.New(sqs.Options{
		Region: "eu-central-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), RetryMaxAttempts: 1,
	}), "http://queue", "http://dead")
	if err != nil {
		t.Fatal(err)
	}
	if x.Consumer, err = queue.Consumer(cfg); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *extensions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct{ VisibilityTimeout, MaxNumberOfMessages int }
	_ = json.NewDecoder(r.Body).Decode(&in)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch _, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); {
	case call == "ReceiveMessage" && in.MaxNumberOfMessages <= 10:
		_, _ = fmt.Fprintf(w, `{"Messages": [{"MessageId": "1", "ReceiptHandle": "a", "Body": "{\"message\":\"%s\"}"}, {"MessageId": "2", "ReceiptHandle": "b", "Body": "hello"}]}`, waking)
	case call == "ChangeMessageVisibility" && x.most > 0:
		x.most--
		x.told <- in.VisibilityTimeout
	case call == "DeleteMessage":
		x.removed++
		_, _ = io.WriteString(w, "{}")
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

// received is the one wake-up.
func (x *extensions) received(t *testing.T) outbox.Received {
	t.Helper()
	got, err := x.Receive(t.Context(), 25)
	if err != nil || len(got) != 1 || got[0].Message != waking {
		t.Fatalf("%+v, %v; want one wake-up of %s", got, err, waking)
	}
	return got[0]
}

func (x *extensions) removals() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.removed
}

// A delivery that takes long is not handed out again while it lives, and not counted as failed; one that never ends is, once
// its bound is over. One that fails stays in the queue.
func TestADeliveryThatGoesOnKeepsItsWakeUp(t *testing.T) {
	pauses := make(chan struct{})
	x := newExtensions(t, 100, sqsqueue.ConsumerConfig{Visibility: 10 * time.Second, Max: 30 * time.Second, Pause: func(ctx context.Context, d time.Duration) error {
		if d != 5*time.Second {
			t.Errorf("a pause of %v, want half of the visibility", d)
		}
		select {
		case <-pauses:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	failed := errors.New("the store is down")
	err := x.received(t).Hold(t.Context(), func(context.Context) error {
		for range 4 { // at 5, 10, 15 and 20 s: from there it is hidden until the 30th
			pauses <- struct{}{}
			if seconds := <-x.told; seconds != 10 {
				t.Errorf("hidden for %d s", seconds)
			}
		}
		return failed
	})
	if !errors.Is(err, failed) || len(x.told) != 0 || x.removals() != 0 {
		t.Errorf("%v, %d extensions beyond the bound, removed %d times", err, len(x.told), x.removals())
	}
}

// A short one ends its hold and is removed, and a queue that can't be asked changes nothing about a delivery.
func TestAHoldEndsWithItsDelivery(t *testing.T) {
	for _, most := range []int{0, 100} {
		x := newExtensions(t, most, sqsqueue.ConsumerConfig{})
		if err := x.received(t).Hold(t.Context(), func(context.Context) error { return nil }); err != nil || len(x.told) > 0 || x.removals() != 1 {
			t.Errorf("%v, %d extensions, removed %d times", err, len(x.told), x.removals())
		}
	}
	for _, cfg := range []sqsqueue.ConsumerConfig{{Visibility: time.Second}, {Visibility: 1500 * time.Millisecond}, {Max: time.Second}, {Max: 13 * time.Hour}} {
		var rejected *idem.ConfigError
		if _, err := (&sqsqueue.Queue{}).Consumer(cfg); !errors.As(err, &rejected) {
			t.Errorf("%+v: %v, want a ConfigError", cfg, err)
		}
	}
}

// On an emulator of SQS: what is delivered is gone, what fails comes again.
func TestAConsumerServesAQueue(t *testing.T) {
	p := newPair(t)
	consumer, err := p.Consumer(sqsqueue.ConsumerConfig{Visibility: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Schedule(t.Context(), "tenant", waking, 0); err != nil {
		t.Fatal(err)
	}
	for i, fails := range []error{errors.New("the store is down"), nil} {
		received, err := consumer.Receive(t.Context(), 5)
		if err != nil || len(received) != 1 || received[0].Message != waking {
			t.Fatalf("%d: %+v, %v", i, received, err)
		}
		if err := received[0].Hold(t.Context(), func(context.Context) error { return fails }); !errors.Is(err, fails) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if left := p.drain(t, p.wakeUps); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if received, err := consumer.Receive(ended, 5); len(received) != 0 || err != nil {
		t.Errorf("once it has ended: %v, %v", received, err)
	}
}

var (
	_ outbox.Consumer = (*sqsqueue.Consumer)(nil)
	_ outbox.Consumer = (*memqueue.Queue)(nil)
)
