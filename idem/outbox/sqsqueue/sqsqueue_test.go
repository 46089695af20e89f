package sqsqueue_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
)

const id idem.MessageID = "op_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.1"

// sent is a SendMessage as it goes over the wire (AWS JSON 1.0, header X-Amz-Target).
type sent struct {
	QueueURL     string `json:"QueueUrl"`
	MessageBody  string
	DelaySeconds int
	// MessageGroupID is the fair queue's group.
	MessageGroupID string `json:"MessageGroupId"`
}

// newQueue returns a queue on an endpoint that records what it is sent, or fails with the status.
func newQueue(t *testing.T, status int) (*sqsqueue.Queue, *[]sent) {
	t.Helper()
	var all []sent
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var s sent
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil || r.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessage" {
			t.Errorf("target %q: %v", r.Header.Get("X-Amz-Target"), err)
		}
		all = append(all, s)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		io.WriteString(w, `{"MessageId":"m"}`)
	}))
	t.Cleanup(srv.Close)
	client := newClient(srv.URL, func(o *sqs.Options) { o.RetryMaxAttempts, o.DisableMessageChecksumValidation = 1, true })
	q, err := sqsqueue.New(client, srv.URL+"/000000000000/wake-ups", srv.URL+"/000000000000/dead")
	if err != nil {
		t.Fatal(err)
	}
	return q, &all
}

func TestScheduleRoundsDelaysUpAndEndsThemAt15Minutes(t *testing.T) {
	q, all := newQueue(t, http.StatusOK)
	for i, c := range []struct {
		delay   time.Duration
		seconds int
	}{{-time.Second, 0}, {0, 0}, {time.Millisecond, 1}, {30 * time.Second, 30}, {30*time.Second + 1, 31}, {16 * time.Minute, 900}} {
		if err := q.Schedule(t.Context(), "tenant-a", id, c.delay); err != nil {
			t.Fatal(err)
		}
		got := (*all)[i]
		if got.DelaySeconds != c.seconds || got.MessageGroupID != "tenant-a" || got.MessageBody != `{"message":"`+string(id)+`"}` {
			t.Errorf("delay %v: %+v, want %d s", c.delay, got, c.seconds)
		}
		if back, err := sqsqueue.Read(got.MessageBody); err != nil || back != id {
			t.Errorf("read back %q, %v", back, err)
		}
	}
}

// A dead letter that is redriven to the queue of wake-ups is a wake-up.
func TestBuryWritesALetterThatIsAWakeUp(t *testing.T) {
	q, all := newQueue(t, http.StatusOK)
	if err := q.Bury(t.Context(), outbox.DeadLetter{Message: id, Topic: "payments.charge", Reason: "attempts over", Open: true, Attempts: 10}); err != nil {
		t.Fatal(err)
	}
	want := `{"message":"` + string(id) + `","topic":"payments.charge","reason":"attempts over","open":true,"attempts":10}`
	if got := (*all)[0]; got.MessageBody != want || got.MessageGroupID != "" || !strings.HasSuffix(got.QueueURL, "/dead") {
		t.Errorf("sent %+v, want %s", got, want)
	}
	if back, err := sqsqueue.Read(want); err != nil || back != id {
		t.Errorf("read back %q, %v", back, err)
	}
}

func TestTroubleIsAnError(t *testing.T) {
	q, _ := newQueue(t, http.StatusForbidden)
	if err := q.Schedule(t.Context(), "tenant-a", id, 0); err == nil {
		t.Error("a refused wake-up is no error")
	}
	var rejected *idem.ConfigError
	if _, err := sqsqueue.New(nil, "a", "b"); !errors.As(err, &rejected) {
		t.Errorf("no client: %v", err)
	}
}

func TestReadRefusesWhatIsNoWakeUp(t *testing.T) {
	for _, body := range []string{"", "null", "{}", "[]", `{"message":""}`, `{"message":"op_1"}`, `{"message":"op_1.1"}`, `{"message":7}`, string(id)} {
		if got, err := sqsqueue.Read(body); !errors.Is(err, sqsqueue.ErrBody) {
			t.Errorf("%q: %q, %v, want ErrBody", body, got, err)
		}
	}
}
