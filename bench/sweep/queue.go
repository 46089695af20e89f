package main

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"hash/maphash"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

// endpoint is an SQS endpoint in this process, for the SDK's own requests: an emulator would need more time for a million
// wake-ups than everything else here. It keeps of each wake-up only how often it came.
type endpoint struct {
	server *httptest.Server
	seed   maphash.Seed

	mu      sync.Mutex
	times   map[uint64]int
	waiting int
	calls   map[string]int
}

func newEndpoint() *endpoint {
	e := &endpoint{seed: maphash.MakeSeed(), times: map[uint64]int{}, calls: map[string]int{}}
	e.server = httptest.NewServer(e)
	return e
}

// queue is a process's own client of the endpoint.
func (e *endpoint) queue() (*sqsqueue.Queue, error) {
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &e.server.URL, Credentials: credentials.NewStaticCredentialsProvider("bench", "bench", ""),
		HTTPClient: sdkhttp.BufferedBody(nil),
	})
	return sqsqueue.New(client, e.server.URL+"/wake-ups", e.server.URL+"/dead")
}

// sent is an entry of a batch, or the one of a request without a batch.
type sent struct {
	ID          string `json:"Id"`
	MessageBody string
}

// ServeHTTP implements http.Handler for SendMessage, SendMessageBatch and GetQueueAttributes.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		sent
		Entries []sent
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls[call]++
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	var answer any
	switch call {
	case "SendMessage":
		answer = e.take(in.sent)
	case "SendMessageBatch":
		taken := make([]map[string]string, len(in.Entries))
		for i, entry := range in.Entries {
			taken[i] = e.take(entry)
		}
		answer = map[string]any{"Successful": taken, "Failed": []string{}}
	case "GetQueueAttributes":
		answer = map[string]any{"Attributes": map[string]string{"ApproximateNumberOfMessages": strconv.Itoa(e.waiting)}}
	default:
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone is told nothing
}

// take counts a wake-up, and acknowledges it. The sum is that of the SDK's own check.
func (e *endpoint) take(entry sent) map[string]string {
	e.times[maphash.String(e.seed, entry.MessageBody)]++
	e.waiting++
	sum := md5.Sum([]byte(entry.MessageBody))
	return map[string]string{"Id": entry.ID, "MessageId": entry.ID, "MD5OfMessageBody": hex.EncodeToString(sum[:])}
}

// receive takes so many wake-ups out of the queue, and returns how many messages were offered until now, and how many more
// wake-ups than that there were.
func (e *endpoint) receive(most int) (offered, doubled int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = max(0, e.waiting-most)
	for _, times := range e.times {
		offered, doubled = offered+1, doubled+times-1
	}
	return offered, doubled
}

// called returns the requests since the last call.
func (e *endpoint) called() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	calls := e.calls
	e.calls = map[string]int{}
	return calls
}
