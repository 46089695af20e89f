package lambdaapp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// deployment is what functions are started with.
type deployment struct {
	aws       aws.Config
	variables map[string]string
	delivered []idem.MessageID
	log       bytes.Buffer
	// call is before each delivery. Default: nothing.
	call func()
	// signed are the paths of webhooks. Default: none.
	signed []string
}

// deploy makes the tables, and the variables of functions with so many shards.
func deploy(t *testing.T, shards string) *deployment {
	t.Helper()
	url := dynamotest.Endpoint(t, dynamotest.Dynoxide)
	tables, err := dynamotest.CreateTables(t.Context(), dynamotest.Client(url), strings.ToLower(t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	return &deployment{
		aws: aws.Config{
			Region: "us-east-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
			HTTPClient: &http.Client{Transport: wirefault.Patient{}},
		},
		variables: map[string]string{
			environment.IdempotencyTable: tables.Idempotency, environment.OutboxTable: tables.Outbox, environment.OutboxShards: shards,
			environment.WakeUpQueueURL: "http://127.0.0.1:9/wake-ups", environment.DeadLetterQueueURL: "http://127.0.0.1:9/dead-letters",
			environment.FunctionTimeout: "1m", environment.MetricsService: "shop",
		},
	}
}

// start starts the function of a role, whose API sends a message with each POST.
func (d *deployment) start(t *testing.T, role string) lambda.Handler {
	t.Helper()
	variables := maps.Clone(d.variables)
	variables[environment.Function] = role
	app, err := lambdaapp.New(lambdaapp.Config{
		AWS: d.aws, Getenv: func(name string) string { return variables[name] }, Log: &d.log, SignedPaths: d.signed,
		Topics: []outbox.Topic{{
			Name: "orders.ship", Keys: outbox.Keys{Honoured: true, Retention: 48 * 60 * 60e9},
			Call: func(_ context.Context, m storage.Message) outbox.Outcome {
				if d.call != nil {
					d.call()
					return outbox.Delivered{Reference: "shipment-1"}
				}
				d.delivered = append(d.delivered, m.ID)
				return outbox.Delivered{Reference: "shipment-1"}
			},
			Settle: func(storage.Message, outbox.Outcome) (outbox.Settlement, error) { return outbox.Settlement{}, nil },
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := app.Handler(t.Context(), orders(t, app))
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func orders(t *testing.T, app *lambdaapp.Application) http.Handler {
	t.Helper()
	mw, err := middleware.New(app.Engine, middleware.Config{Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "tenant-a"}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	create, err := mw.Handle(idem.Operation{Name: "orders.create", Kind: idem.KindAtomic, Policy: idem.IETF()}, middleware.Route{},
		func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
			id := tx.Send("orders.ship", []byte("{}"))
			return idem.JSON(http.StatusCreated, map[string]string{"message": string(id)})
		})
	if err != nil {
		t.Fatal(err)
	}
	return create
}

// invoke returns a handler's answer to an event.
func invoke(t *testing.T, handler lambda.Handler, event any) map[string]any {
	t.Helper()
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := handler.Invoke(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return answer
}

// One binary is the API, whose replay is the first answer, and the worker, which delivers the message that a wake-up names.
func TestOneBinaryExecutesAndDelivers(t *testing.T) {
	d := deploy(t, "1")
	api := d.start(t, environment.API)
	order := map[string]any{
		"version": "2.0", "rawPath": "/orders", "headers": map[string]string{"content-type": "application/json", "idempotency-key": `"order-1"`},
		"requestContext": map[string]any{"http": map[string]any{"method": "POST", "path": "/orders"}}, "body": "{}",
	}
	first, again := invoke(t, api, order), invoke(t, api, order)
	if first["statusCode"] != 201.0 || first["body"] != again["body"] {
		t.Fatalf("the first answer is %v, the second %v", first, again)
	}
	var sent struct{ Message idem.MessageID }
	if err := json.Unmarshal([]byte(first["body"].(string)), &sent); err != nil {
		t.Fatal(err)
	}
	wakeUp := map[string]any{"Records": []any{map[string]any{
		"eventSource": "aws:sqs", "messageId": "1", "body": `{"message":"` + string(sent.Message) + `"}`,
	}}}
	for range 2 { // a wake-up may come twice
		if report := invoke(t, d.start(t, environment.Worker), wakeUp); len(report["batchItemFailures"].([]any)) > 0 {
			t.Fatalf("%v\n%s", report, &d.log)
		}
	}
	if len(d.delivered) != 1 || d.delivered[0] != sent.Message {
		t.Errorf("delivered %v, want %s once", d.delivered, sent.Message)
	}
}

// A body with U+FFFD may be another one than was sent. Only the handler of a path that verifies a signature over it gets such a body.
func TestOnlyASignedPathTakesTheReplacementCharacter(t *testing.T) {
	d := deploy(t, "1")
	d.signed = []string{"/webhooks/provider"}
	api := d.start(t, environment.API)
	for path, want := range map[string]float64{
		"/webhooks/provider": http.StatusCreated, "/webhooks%2Fprovider": http.StatusBadRequest, "/orders": http.StatusBadRequest,
	} {
		answer := invoke(t, api, map[string]any{
			"version": "2.0", "rawPath": path, "headers": map[string]string{"content-type": "application/json", "idempotency-key": `"order-1"`},
			"requestContext": map[string]any{"http": map[string]any{"method": "POST", "path": path}}, "body": "{\"name\":\"\uFFFD\"}",
		})
		if answer["statusCode"] != want {
			t.Errorf("%s: %v, want %v", path, answer, want)
		}
	}
}

// docs/semantics.md "Leases": where the platform kills the process at a deadline no lease is renewed. A function's time-out may be longer than
// an execution, so the lease outlives it: another request that took the key over before would run beside the first.
func TestTheLeaseOutlivesTheInvocation(t *testing.T) {
	d, wire := deploy(t, "1"), &wirefault.Transport{Next: wirefault.Patient{}}
	d.aws.HTTPClient = &http.Client{Transport: wire}
	api := d.start(t, environment.API)
	deadline := time.Now().Add(10 * time.Minute)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	order := `{"version":"2.0","rawPath":"/orders","headers":{"content-type":"application/json","idempotency-key":"\"order-1\""},
		"requestContext":{"http":{"method":"POST","path":"/orders"}},"body":"{}"}`
	if _, err := api.Invoke(ctx, []byte(order)); err != nil {
		t.Fatal(err)
	}
	leased := 0
	for _, body := range wire.Bodies("PutItem") {
		var put struct {
			Item map[string]struct{ N string }
		}
		if err := json.Unmarshal(body, &put); err != nil {
			t.Fatal(err)
		}
		if lease, ok := put.Item[schema.LeaseUntil]; ok {
			leased++
			if until, err := strconv.ParseInt(lease.N, 10, 64); err != nil || time.UnixMilli(until).Before(deadline) {
				t.Errorf("the lease ends %v, %v, and the invocation %v", time.UnixMilli(until), err, deadline)
			}
		}
	}
	if leased != 1 {
		t.Errorf("%d records with a lease were inserted, want 1: %v", leased, wire.Sent())
	}
}

// A worker calls the provider for all wake-ups of the largest batch side by side: the batch takes as long as one of them.
func TestALargeBatchIsDeliveredSideBySide(t *testing.T) {
	d := deploy(t, "1")
	api, records := d.start(t, environment.API), []any(nil)
	for n := range environment.BatchWakeUpsMax {
		answer := invoke(t, api, map[string]any{
			"version": "2.0", "rawPath": "/orders", "headers": map[string]string{"content-type": "application/json", "idempotency-key": fmt.Sprintf(`"order-%d"`, n)},
			"requestContext": map[string]any{"http": map[string]any{"method": "POST", "path": "/orders"}}, "body": "{}",
		})
		records = append(records, map[string]any{"eventSource": "aws:sqs", "messageId": strconv.Itoa(n), "body": answer["body"]})
	}
	var calls atomic.Int32
	all := make(chan struct{})
	d.call = func() {
		if calls.Add(1) == environment.BatchWakeUpsMax {
			close(all)
		}
		select {
		case <-all:
		case <-time.After(time.Minute):
			t.Errorf("a call waits for the others, of which %d are under way", calls.Load())
		}
	}
	if report := invoke(t, d.start(t, environment.Worker), map[string]any{"Records": records}); len(report["batchItemFailures"].([]any)) > 0 {
		t.Errorf("%v\n%s", report, &d.log)
	}
}

// A release that has raised the number of shards may be gone back from: sweep and reconciler run all the same, and look into its shards
// too. So does an instance that was started before.
func TestRunsLookIntoTheShardsOfAReleaseThatWasGoneBackFrom(t *testing.T) {
	d := deploy(t, "2")
	roles := []string{environment.Sweep, environment.Reconcile}
	var before []lambda.Handler
	for _, role := range roles {
		function := d.start(t, role)
		if _, err := function.Invoke(t.Context(), []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		before = append(before, function)
	}
	d.variables[environment.OutboxShards] = "4"
	d.start(t, environment.API) // records its number
	d.variables[environment.OutboxShards] = "2"
	for n, role := range roles {
		for _, function := range []lambda.Handler{before[n], d.start(t, role)} {
			if _, err := function.Invoke(t.Context(), []byte(`{"shards":[3]}`)); err != nil {
				t.Errorf("%s: %v", role, err)
			}
		}
	}
}

// A run that names no shard although it names them, or a shard that is not there, is refused.
func TestRunsOfShardsThatAreNotThereAreRefused(t *testing.T) {
	sweep := deploy(t, "2").start(t, environment.Sweep)
	for _, event := range []string{`{"shards":[]}`, `{"shards":[2]}`} {
		if out, err := sweep.Invoke(t.Context(), []byte(event)); err == nil {
			t.Errorf("%s: %s", event, out)
		}
	}
}

// While the tables don't answer the functions start: the API answers, a sweep's run fails, and the next one asks again.
func TestFunctionsStartWithoutTheTables(t *testing.T) {
	d := deploy(t, "2")
	there := *d.aws.BaseEndpoint
	d.aws.BaseEndpoint = aws.String("http://127.0.0.1:9")
	d.aws.RetryMaxAttempts = 1
	if d.start(t, environment.API) == nil {
		t.Error("the API does not start")
	}
	if _, err := d.start(t, environment.Sweep).Invoke(t.Context(), []byte(`{}`)); err == nil {
		t.Error("a run succeeds without the tables")
	}
	d.aws.BaseEndpoint = &there
	if _, err := d.start(t, environment.Sweep).Invoke(t.Context(), []byte(`{}`)); err != nil {
		t.Error(err)
	}
}

// An operator's command needs no time-out and no metrics, logs text for a person, and is no function.
func TestAnOperatorsCommandIsNoFunction(t *testing.T) {
	d := deploy(t, "2")
	delete(d.variables, environment.FunctionTimeout)
	d.variables[environment.Function] = environment.Operator
	app, err := lambdaapp.New(lambdaapp.Config{AWS: d.aws, Getenv: func(name string) string { return d.variables[name] }, Log: &d.log})
	if err != nil {
		t.Fatal(err)
	}
	if err := app.SameShards(t.Context()); err != nil || app.Topics == nil || app.Queue == nil {
		t.Errorf("%v, topics %v, queue %v", err, app.Topics, app.Queue)
	}
	app.Logger.Info("hidden")
	app.Logger.Warn("shown")
	if said := d.log.String(); !strings.Contains(said, "level=WARN msg=shown") || strings.Contains(said, "hidden") {
		t.Errorf("logged %q", said)
	}
	if handler, err := app.Handler(t.Context(), orders(t, app)); err == nil || handler != nil || !strings.Contains(err.Error(), environment.Function) {
		t.Errorf("handler %v, %v", handler, err)
	}
}

// An API that declares a probe which its functions don't have would show it only once an operation is unknown.
func TestAnAPIWithoutAProbeThatItPromisesDoesNotStart(t *testing.T) {
	d := deploy(t, "2")
	d.variables[environment.Function] = environment.API
	for _, probes := range []map[string]outbox.Probe{nil, {"orders.import": func(context.Context, storage.Record) outbox.Finding { return outbox.Unclear{} }}} {
		app, err := lambdaapp.New(lambdaapp.Config{AWS: d.aws, Getenv: func(name string) string { return d.variables[name] }, Log: &d.log, Probes: probes})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := app.Engine.Register(idem.Operation{Name: "orders.import", Kind: idem.KindWrapped, Probed: true, Policy: idem.IETF()}); err != nil {
			t.Fatal(err)
		}
		_, err = app.Handler(t.Context(), orders(t, app))
		var refused *idem.ConfigError
		if (probes == nil) != errors.As(err, &refused) {
			t.Errorf("with %d probes: %v", len(probes), err)
		}
	}
}

// A call that DynamoDB does not allow, or finds not valid, is counted, whichever table of the application's it is for.
func TestWhatDynamoDBRefusesIsCounted(t *testing.T) {
	d := deploy(t, "2")
	d.variables[environment.Function] = environment.API
	app, err := lambdaapp.New(lambdaapp.Config{AWS: d.aws, Getenv: func(name string) string { return d.variables[name] }, Log: &d.log})
	if err != nil {
		t.Fatal(err)
	}
	_, err = app.DynamoDB.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("there-is-none"), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "order-17"}},
	})
	if said := d.log.String(); err == nil || !strings.Contains(said, `"idempotency.store.refused":1`) || !strings.Contains(said, `"ResourceNotFoundException"`) {
		t.Errorf("%v, logged %q", err, said)
	}
}

// A signed path that no request has would refuse webhooks whose text has U+FFFD, and nobody would know why.
func TestASignedPathThatNoRequestHasIsRefused(t *testing.T) {
	d := deploy(t, "2")
	d.variables[environment.Function] = environment.API
	_, err := lambdaapp.New(lambdaapp.Config{AWS: d.aws, Getenv: func(name string) string { return d.variables[name] }, Log: &d.log, SignedPaths: []string{"/webhooks/provider", "webhooks/other"}})
	var refused *idem.ConfigError
	if !errors.As(err, &refused) || refused.Value != "webhooks/other" {
		t.Error(err)
	}
}

// A function that is deployed without what it needs names every variable that is wrong, and does not start.
func TestWrongVariablesAreNamed(t *testing.T) {
	given := map[string]string{environment.Function: "wroker", environment.OutboxShards: "many", environment.FunctionTimeout: "28"}
	app, err := lambdaapp.New(lambdaapp.Config{Getenv: func(name string) string { return given[name] }})
	if app != nil || err == nil {
		t.Fatal("it starts")
	}
	for _, name := range []string{
		`IDEM_FUNCTION = "wroker": must be one of api, worker, sweep, reconcile, relay`, "IDEMPOTENCY_TABLE", "OUTBOX_TABLE",
		`OUTBOX_SHARDS = "many"`, "WAKE_UP_QUEUE_URL", "DEAD_LETTER_QUEUE_URL", `FUNCTION_TIMEOUT = "28"`,
	} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}
