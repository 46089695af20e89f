package breaker_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/breaker"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

// The errors of reads are the SDK's own: a refused connection, a broken one, a 500 and a 400 as it really reports them.
func TestReadsOfDynamoDB(t *testing.T) {
	listener := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	listener.Close()
	answer := func(status int, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	for name, test := range map[string]struct {
		url  string
		down bool
	}{
		"refused":  {"http://" + listener.Addr().String(), true},
		"broken":   {answer(0, ""), true},
		"500":      {answer(500, `{"__type":"InternalServerError"}`), true},
		"denied":   {answer(400, `{"__type":"AccessDeniedException"}`), false},
		"throttle": {answer(400, `{"__type":"ProvisionedThroughputExceededException"}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			client := dynamotest.Client(test.url, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
			store := must[*dynamo.Store](t)(dynamo.New(client, dynamo.Config{IdempotencyTable: "records", OutboxTable: "messages"}))
			s := must[*breaker.Store](t)(breaker.New(store, breaker.Config{FailuresMax: 2}))
			for range 2 {
				if _, err := s.Get(t.Context(), "key"); err == nil || notAsked(err) != nil {
					t.Fatalf("got %v, want what the SDK says", err)
				}
			}
			if _, err := s.Get(t.Context(), "key"); (notAsked(err) != nil) != test.down {
				t.Errorf("%v; want it open: %v", err, test.down)
			}
		})
	}
}
