package lambdatest

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/localstack/provider"
)

func newProvider(t *testing.T, credential *atomic.Pointer[string], answered *sync.Map) provider.Control {
	t.Helper()
	simulator := provider.New(provider.Config{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wanted := credential.Load(); wanted != nil && !strings.HasPrefix(r.URL.Path, "/control/") && r.Header.Get("Authorization") != "Bearer "+*wanted {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		simulator.ServeHTTP(w, r)
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			answered.LoadOrStore(key, time.Now())
		}
	}))
	t.Cleanup(func() { simulator.Close(); server.Close() }) // the server waits for requests that the simulator holds
	return provider.Control{URL: server.URL}
}

// The names of the queues.
const (
	wakeUps = "wake-ups"
	dead    = "dead"
	pieces  = "drift"
)

// Queues is an endpoint that keeps what is sent to the queues, as SQS takes it over the wire (AWS JSON 1.0).
type Queues struct {
	url string

	mu      sync.Mutex
	sent    map[string][]Sent
	refused string
}

// Sent is a message in a queue.
type Sent struct {
	Body         string `json:"MessageBody"`
	DelaySeconds int
	// Group is what a fair queue shares its consumers by.
	Group string `json:"MessageGroupId"`
}

// WakeUps returns what was sent to the queue of wake-ups, oldest first.
func (q *Queues) WakeUps() []Sent { return q.in(wakeUps) }

// Dead returns what was sent to the dead-letter queue, oldest first.
func (q *Queues) Dead() []Sent { return q.in(dead) }

// Pieces returns what was sent to the drift job's queue, oldest first.
func (q *Queues) Pieces() []Sent { return q.in(pieces) }

// Refuse makes the queues refuse, from now on, what has the text in its body; "" is nothing.
func (q *Queues) Refuse(text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refused = text
}

func (q *Queues) in(name string) []Sent {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.sent[name])
}

func newQueues(t *testing.T) *Queues {
	t.Helper()
	q := &Queues{sent: map[string][]Sent{}}
	server := httptest.NewServer(q)
	t.Cleanup(server.Close)
	q.url = server.URL
	return q
}

// entry is a message of a batch, or the one of a request without a batch.
type entry struct {
	Sent
	ID string `json:"Id"`
}

// acknowledged is what SQS says of an entry that it took. The sum proves that it has understood.
type acknowledged struct {
	ID               string `json:"Id,omitempty"`
	MessageID        string `json:"MessageId"`
	MD5OfMessageBody string
}

// rejected is what SQS says of an entry of a batch that it did not take.
type rejected struct {
	ID   string `json:"Id"`
	Code string
}

// ServeHTTP implements http.Handler for SendMessage, SendMessageBatch and GetQueueAttributes, which is all that functions ask of SQS.
func (q *Queues) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		entry
		Entries  []entry
		QueueURL string `json:"QueueUrl"`
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	var answer any
	switch queue := path.Base(in.QueueURL); r.Header.Get("X-Amz-Target") {
	case "AmazonSQS.SendMessage":
		taken, _ := q.take(queue, in.entry)
		if len(taken) == 0 {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		answer = taken[0]
	case "AmazonSQS.SendMessageBatch":
		taken, refused := q.take(queue, in.Entries...)
		answer = map[string]any{"Successful": taken, "Failed": refused}
	case "AmazonSQS.GetQueueAttributes":
		answer = map[string]any{"Attributes": map[string]string{"ApproximateNumberOfMessages": strconv.Itoa(len(q.in(queue)))}}
	default:
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	// A client that has gone is told nothing.
	_ = json.NewEncoder(w).Encode(answer)
}

func (q *Queues) take(queue string, entries ...entry) (taken []acknowledged, refused []rejected) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range entries {
		if q.refused != "" && strings.Contains(e.Body, q.refused) {
			refused = append(refused, rejected{e.ID, "InternalError"})
			continue
		}
		q.sent[queue] = append(q.sent[queue], e.Sent)
		sum := md5.Sum([]byte(e.Body))
		taken = append(taken, acknowledged{e.ID, "m", hex.EncodeToString(sum[:])})
	}
	return taken, refused
}
