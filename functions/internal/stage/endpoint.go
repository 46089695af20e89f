package stage

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"testing"

	"github.com/idem-go/idem-aws/localstack/provider"
)

func newProvider(t *testing.T) provider.Control {
	t.Helper()
	simulator := provider.New(provider.Config{})
	server := httptest.NewServer(simulator)
	t.Cleanup(func() { simulator.Close(); server.Close() }) // the server waits for requests that the simulator holds
	return provider.Control{URL: server.URL}
}

// The names of the queues.
const (
	retry = "retry"
	dead  = "dead"
)

// Queues is an endpoint that keeps what is sent to the two queues, as SQS takes it over the wire (AWS JSON 1.0).
type Queues struct {
	url string

	mu   sync.Mutex
	sent map[string][]Sent
}

// Sent is a message in a queue.
type Sent struct {
	Body         string `json:"MessageBody"`
	DelaySeconds int
}

// Retry returns what was sent to the retry queue, oldest first.
func (q *Queues) Retry() []Sent { return q.in(retry) }

// Dead returns what was sent to the dead-letter queue, oldest first.
func (q *Queues) Dead() []Sent { return q.in(dead) }

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

// ServeHTTP implements http.Handler for SendMessage, which is all that functions ask of SQS.
func (q *Queues) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var message struct {
		Sent
		QueueURL string `json:"QueueUrl"`
	}
	if r.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessage" || json.NewDecoder(r.Body).Decode(&message) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	q.mu.Lock()
	name := path.Base(message.QueueURL)
	q.sent[name] = append(q.sent[name], message.Sent)
	q.mu.Unlock()
	sum := md5.Sum([]byte(message.Body)) // SQS proves with it that it has understood
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	// A client that has gone is told nothing.
	_ = json.NewEncoder(w).Encode(map[string]string{"MessageId": "m", "MD5OfMessageBody": hex.EncodeToString(sum[:])})
}
