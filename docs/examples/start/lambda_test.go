// Package start_test runs what the module start/lambda builds, which the examples' module can't import.
package start_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// One function takes the events of REST APIs and of HTTP APIs, and a retry by the other one gets the same answer. It runs as the
// binary that is deployed, by Lambda's runtime API.
func TestTheFunctionAnswersEitherKindOfAPIGateway(t *testing.T) {
	url := dynamotest.Endpoint(t, dynamotest.Names()[0])
	client := dynamotest.Client(url)
	tables, err := dynamotest.CreateTables(t.Context(), client, "start")
	if err != nil {
		t.Fatal(err)
	}
	if err := dynamotest.CreateTable(t.Context(), client, "start-orders", schema.Table{Key: "id"}); err != nil {
		t.Fatal(err)
	}
	function := check.StartFunction(t, build(t), append(check.DynamoVariables(url),
		environment.Function+"="+environment.API, environment.IdempotencyTable+"="+tables.Idempotency, environment.OutboxTable+"="+tables.Outbox,
		environment.OutboxShards+"=4", environment.FunctionTimeout+"=28s",
		environment.WakeUpQueueURL+"=http://127.0.0.1:1/unused", environment.DeadLetterQueueURL+"=http://127.0.0.1:1/unused",
		"ORDERS_TABLE=start-orders")...)

	rest := invoke(t, function, event(t, "api-rest-payment", "alice", `{"item":"book"}`)).wants(t, 201, "executed")
	invoke(t, function, event(t, "api-rest-payment", "alice", `{"item":"book"}`)).wants(t, 201, "replayed")
	over := invoke(t, function, event(t, "api-http-payment", "alice", `{ "item": "book" }`)).wants(t, 201, "replayed")
	if over.body(t) != rest.body(t) {
		t.Errorf("the HTTP API answered %s, the REST API %s", over.body(t), rest.body(t))
	}
	invoke(t, function, event(t, "api-http-payment", "alice", `{"item":"pen"}`)).wants(t, 422, "mismatch")
	invoke(t, function, event(t, "api-http-payment", "bob", `{"item":"pen"}`)).wants(t, 201, "executed")

	placed, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("start-orders")})
	if err != nil || placed.Count != 2 {
		t.Errorf("%d orders were placed, want one of each customer (%v)", placed.Count, err)
	}
}

// build builds the function as docs/start/ten-minutes.md does.
func build(t *testing.T) string {
	t.Helper()
	bootstrap := filepath.Join(t.TempDir(), "bootstrap")
	command := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-o", bootstrap, "./function")
	command.Dir, command.Env = "lambda", append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return bootstrap
}

// event is a recorded event, with another request in it: the order of a customer, with the key order-17.
func event(t *testing.T, name, customer, body string) string {
	t.Helper()
	recorded, err := os.ReadFile(filepath.Join("..", "..", "..", "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		"v1/payments", "orders",
		"Bearer idem_test_00000000000000000000000000000EXAMPLEtenantA1hN7E2", "Basic "+base64.StdEncoding.EncodeToString([]byte(customer+":secret")),
	).Replace(string(recorded))
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	if fields["body"] = body; fields["isBase64Encoded"] == true {
		fields["body"] = base64.StdEncoding.EncodeToString([]byte(body))
	}
	changed, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(changed)
}

// answer is what the function has the gateway answer.
type answer struct {
	StatusCode        int
	Headers           map[string]string
	MultiValueHeaders map[string][]string
	Body              string
	IsBase64Encoded   bool
}

// invoke sends the request, and again where the emulator did not answer the function in time, on a machine that stood.
func invoke(t *testing.T, function *check.Function, event string) answer {
	t.Helper()
	var a answer
	for range 3 {
		a = answer{}
		began := time.Now()
		end, answered := function.Invoke(t, event)
		if err := json.Unmarshal([]byte(end.Body), &a); err != nil || end.Failed || !answered {
			t.Fatalf("the invocation ended with %+v: %v", end, err)
		}
		if a.StatusCode != http.StatusServiceUnavailable || time.Since(began) < check.StallMin {
			break
		}
	}
	return a
}

func (a answer) wants(t *testing.T, status int, idempotency string) answer {
	t.Helper()
	got := ""
	for name, value := range a.Headers {
		if strings.EqualFold(name, "Idempotency-Status") {
			got = value
		}
	}
	for name, values := range a.MultiValueHeaders {
		if strings.EqualFold(name, "Idempotency-Status") {
			got = strings.Join(values, ", ")
		}
	}
	if a.StatusCode != status || got != idempotency {
		t.Errorf("got %d %q %s, want %d %q", a.StatusCode, got, a.body(t), status, idempotency)
	}
	return a
}

func (a answer) body(t *testing.T) string {
	t.Helper()
	if !a.IsBase64Encoded {
		return a.Body
	}
	decoded, err := base64.StdEncoding.DecodeString(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(decoded)
}
