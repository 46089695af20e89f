package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// asFunction has the test's own binary run main.
const asFunction = "SQSBATCH_AS_FUNCTION"

func TestMain(m *testing.M) {
	if os.Getenv(asFunction) != "" {
		main()
		return
	}
	os.Exit(dynamotest.Main(m))
}

func TestAConsumerTakesTwentyLines(t *testing.T) { check.Lines(t, "main.go", 20) }

func TestOneMessageFailsAlone(t *testing.T) {
	w := newWorld(t)
	good, other, poison := `{"id":"1","customer":"ann","amount":500}`, `{"id":"2","customer":"ann","amount":70}`, `no order`
	w.deliver(w.start(), "", good, poison, `{"customer":"ann","amount":9}`, other).fails("m1", "m2")
	w.charged("ann", "570")
}

func TestADuplicateDeliveryIsAcknowledgedAndChargesNothing(t *testing.T) {
	w := newWorld(t)
	function := w.start()
	order := `{"id":"1","customer":"bob","amount":500}`
	w.deliver(function, "", order, order).fails()
	w.deliver(function, "", order).fails()
	w.deliver(function, "", `{"id":"1","customer":"bob","amount":600}`).fails("m0")
	w.charged("bob", "500")
}

// The function dies after its second charge is committed and before it hears of it. Nobody reported anything, so the whole batch
// comes again.
func TestACrashInTheMiddleOfTheBatchChargesNothingTwice(t *testing.T) {
	w := newWorld(t)
	batch := []string{`{"id":"1","customer":"eve","amount":1}`, `{"id":"2","customer":"eve","amount":20}`, `{"id":"3","customer":"eve","amount":300}`}
	function := w.start()
	w.afterCommit = func(n int64) {
		if n == 2 {
			function.Kill()
		}
	}
	if _, answered := function.Invoke(t, queueEvent(t, "", batch...)); answered {
		t.Fatal("the function has outlived its crash")
	}
	w.charged("eve", "21")
	w.afterCommit = func(int64) {}
	w.deliver(w.start(), "", batch...).fails()
	w.charged("eve", "321")
}

// SQS keeps a message for up to 14 days, and as long again in the dead-letter queue. One that comes back from there, and was
// charged, must find its key.
func TestAKeyOutlivesItsMessages(t *testing.T) {
	w := newWorld(t)
	w.deliver(w.start(), "", `{"id":"1","customer":"zoe","amount":500}`).fails()
	kept, err := w.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("shop-idempotency"), FilterExpression: aws.String("attribute_exists(#free)"),
		ExpressionAttributeNames: map[string]string{"#free": schema.FreeAt}})
	if err != nil || len(kept.Items) != 1 {
		t.Fatalf("records %v, %v", kept, err)
	}
	free, ok := kept.Items[0][schema.FreeAt].(*types.AttributeValueMemberN)
	if !ok {
		t.Fatalf("record %v", kept.Items[0])
	}
	ms, err := strconv.ParseInt(free.Value, 10, 64)
	if queued := 2 * 14 * 24 * time.Hour; err != nil || time.Until(time.UnixMilli(ms)) <= queued {
		t.Errorf("the key is remembered until %v (%v), a message can come for %v", time.UnixMilli(ms), err, queued)
	}
}

// An invocation that has less time than the function was checked with at its start is told: somebody changed the time-out.
func TestAShorterTimeOutIsTold(t *testing.T) {
	for left, told := range map[time.Duration]bool{30 * time.Second: false, 20 * time.Second: true} {
		w := newWorld(t)
		function := w.start()
		function.Left = left
		w.deliver(function, "", `{"id":"1","customer":"kim","amount":1}`).fails()
		if log := function.Log(); strings.Contains(log, "function.timeout_short") != told {
			t.Errorf("with %v left it says %q", left, log)
		}
	}
}

// Nothing behind a failure is done, or an order would overtake the one before it.
func TestAQueueWithOrderStopsAtTheFirstFailure(t *testing.T) {
	w := newWorld(t)
	function := w.start()
	first, poison, behind := `{"id":"1","customer":"flo","amount":1}`, `no order`, `{"id":"2","customer":"flo","amount":20}`
	w.deliver(function, ".fifo", first, poison, behind).fails("m1", "m2")
	w.charged("flo", "1")
	w.deliver(function, ".fifo", behind).fails() // the poison is in the dead-letter queue
	w.charged("flo", "21")
}

type world struct {
	*testing.T
	client *dynamodb.Client
	url    string
	// afterCommit is called after the nth transaction that the endpoint has taken, before its caller hears of it.
	afterCommit func(n int64)
	// unanswered are the calls that the endpoint has not answered: they are under way, or the function's process has given them up.
	unanswered atomic.Int64
}

func newWorld(t *testing.T) *world {
	endpoint := dynamotest.Endpoint(t, dynamotest.Names()[0])
	w := &world{T: t, client: dynamotest.Client(endpoint), afterCommit: func(int64) {}}
	if _, err := dynamotest.CreateTables(t.Context(), w.client, "shop"); err != nil {
		t.Fatal(err)
	}
	if err := dynamotest.CreateTable(t.Context(), w.client, "shop-totals", schema.Table{Key: "pk"}); err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	var commits atomic.Int64
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		ModifyResponse: func(r *http.Response) error {
			if strings.HasSuffix(r.Request.Header.Get("X-Amz-Target"), ".TransactWriteItems") && r.StatusCode == http.StatusOK {
				w.afterCommit(commits.Add(1))
			}
			return nil
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.unanswered.Add(1)
		if proxy.ServeHTTP(out, r); r.Context().Err() == nil {
			w.unanswered.Add(-1)
		}
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *world) start() *check.Function {
	w.Helper()
	return check.StartFunction(w.T, os.Args[0], append(check.DynamoVariables(w.url), asFunction+"=1")...)
}

// delivery is what the function reported of a batch.
type delivery struct {
	*testing.T
	failed []string
}

// deliver gives the function a batch of messages m0, m1, … The batch comes again where the emulator did not answer the function in time, on
// a machine that stood.
func (w *world) deliver(function *check.Function, suffix string, bodies ...string) (d delivery) {
	w.Helper()
	for range 3 {
		before := w.unanswered.Load()
		if d = w.delivered(function, suffix, bodies...); len(d.failed) == 0 || w.unanswered.Load() == before {
			break
		}
	}
	return d
}

func (w *world) delivered(function *check.Function, suffix string, bodies ...string) delivery {
	w.Helper()
	end, answered := function.Invoke(w.T, queueEvent(w.T, suffix, bodies...))
	var report events.SQSEventResponse
	if err := json.Unmarshal([]byte(end.Body), &report); err != nil || end.Failed || !answered {
		w.Fatalf("the invocation ended with %+v: %v", end, err)
	}
	d := delivery{T: w.T}
	for _, failure := range report.BatchItemFailures {
		d.failed = append(d.failed, failure.ItemIdentifier)
	}
	return d
}

func (d delivery) fails(want ...string) {
	d.Helper()
	if !slices.Equal(d.failed, want) {
		d.Errorf("%v failed, want %v", d.failed, want)
	}
}

// charged proves what a customer was charged in total.
func (w *world) charged(customer, want string) {
	w.Helper()
	found, err := w.client.GetItem(w.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("shop-totals"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: customer}},
	})
	if err != nil {
		w.Fatal(err)
	}
	if total, ok := found.Item["charged"].(*types.AttributeValueMemberN); !ok || total.Value != want {
		w.Errorf("%s was charged %v, want %s", customer, found.Item["charged"], want)
	}
}

func queueEvent(t *testing.T, suffix string, bodies ...string) string {
	t.Helper()
	var event events.SQSEvent
	for i, body := range bodies {
		event.Records = append(event.Records, events.SQSMessage{
			MessageId: fmt.Sprintf("m%d", i), Body: body, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-west-1:000000000000:orders" + suffix,
		})
	}
	raw, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
