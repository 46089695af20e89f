package drift_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/localstack/provider"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// begin is when every test begins: shortly before midnight, and after 2100, so that no native TTL removes anything.
var begin = time.Date(2101, 2, 3, 23, 50, 0, int(789*time.Millisecond), time.UTC)

const (
	tenantA = "tenant-a"
	tenantB = "tenant-b"
)

// world is the application on a real endpoint, with its worker and reconciler, before the provider simulator, on a clock
// that only the test moves.
type world struct {
	*testing.T
	clock    *idemtest.Clock
	client   *dynamodb.Client
	tables   dynamotest.Tables
	payments string
	queue    *memqueue.Queue
	store    *dynamo.Store
	worker   *outbox.Worker
	operator *outbox.Operator
	runner   *outbox.Runner
	app      http.Handler
	provider provider.Control
	keys     int
	shards   int
}

var prefixes atomic.Int64

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, shards: table.LedgerShards, clock: idemtest.NewClock(begin), client: dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]), lambdatest.Wire(t, &wirefault.Transport{Next: wirefault.Patient{}}))}
	prefix := "drift-" + strconv.FormatInt(prefixes.Add(1), 10)
	var err error
	w.tables, err = dynamotest.CreateTables(t.Context(), w.client, prefix)
	w.ok(err)
	w.payments = prefix + "-payments"
	w.ok(dynamotest.CreateTable(t.Context(), w.client, w.payments, table.Payments()))
	for _, tenant := range []string{tenantA, tenantB} {
		w.put(w.payments, map[string]any{"pk": "account#" + tenant + "/acct_1", "tn": tenant, "id": "acct_1", "cur": "EUR", "bal": 100_000_000})
	}
	simulator := provider.New(provider.Config{Now: w.clock.Now})
	server := httptest.NewServer(simulator)
	t.Cleanup(func() { simulator.Close(); server.Close() })
	w.provider = provider.Control{URL: server.URL}
	w.start()
	return w
}

func (w *world) start() {
	w.Helper()
	store, err := dynamo.New(w.client, dynamo.Config{
		IdempotencyTable: w.tables.Idempotency, OutboxTable: w.tables.Outbox, Translate: payments.Items(w.payments, w.shards),
	})
	w.ok(err)
	w.store = store
	w.queue = memqueue.New(w.clock.Now)
	client, err := payments.NewProvider(w.provider.URL, nil)
	w.ok(err)
	topics, err := outbox.NewTopics(outbox.Config{Now: w.clock.Now, Pause: w.clock.Pause}, client.Topics(payments.Bounds{AttemptsMax: 3})...)
	w.ok(err)
	w.worker, err = outbox.NewWorker(store, topics, w.queue, w.queue)
	w.ok(err)
	w.operator, err = outbox.NewOperator(store, topics, w.queue, w.queue)
	w.ok(err)
	w.runner, err = outbox.NewRunner(w.worker, nil, nil)
	w.ok(err)
	engine, err := idem.New(store, idem.Config{Now: w.clock.Now, Pause: w.clock.Pause})
	w.ok(err)
	inline, err := outbox.NewInline(w.worker)
	w.ok(err)
	w.app, err = payments.New(payments.Config{
		Engine: engine, Ledger: payments.Table{Client: w.client, Name: w.payments}, Messages: store, Inline: inline,
		Retention: 24 * time.Hour, BodyBytesMax: 1 << 16, Logger: slog.New(slog.DiscardHandler),
		Identify: func(r *http.Request) (middleware.Identity, error) {
			return middleware.Identity{Tenant: r.Header.Get("Tenant")}, nil
		},
	})
	w.ok(err)
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// made is a payment, refund or payout that a client has asked for.
type made struct {
	Operation               idem.OperationID
	ID                      string
	Payment, Refund, Payout *struct{ ID string }
}

// row is the key of its row, for tenant A.
func (m made) row() string {
	switch {
	case m.Payment != nil:
		return "payment#" + tenantA + "/" + m.ID
	case m.Refund != nil:
		return "refund#" + tenantA + "/" + m.ID
	}
	return "payout#" + tenantA + "/" + m.ID
}

func (m made) record() string {
	key, err := m.Operation.RecordKey()
	if err != nil {
		panic(err)
	}
	return string(key)
}

// post asks the application for something under a new key.
func (w *world) post(tenant, path, body string) made {
	w.Helper()
	w.keys++
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Tenant", tenant)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", fmt.Sprint(`"key-`, w.keys, `"`))
	answer := httptest.NewRecorder()
	w.app.ServeHTTP(answer, r)
	var m made
	if answer.Code == http.StatusAccepted {
		w.ok(json.Unmarshal(answer.Body.Bytes(), &m))
		for _, entity := range []*struct{ ID string }{m.Payment, m.Refund, m.Payout} {
			if entity != nil {
				m.ID = entity.ID
			}
		}
		return m
	}
	if answer.Code != http.StatusCreated && answer.Code != http.StatusPaymentRequired && answer.Code != http.StatusBadGateway {
		w.Fatalf("POST %s: %d %s", path, answer.Code, answer.Body)
	}
	w.ok(json.Unmarshal(answer.Body.Bytes(), &m))
	return m
}

// pay makes a payment of tenant A and settles it.
func (w *world) pay(source string) made {
	w.Helper()
	m := w.post(tenantA, "/v1/payments", payment(source))
	w.deliver(m)
	return m
}

func payment(source string) string {
	return fmt.Sprintf(`{"amount":1999,"currency":"EUR","source":%q,"reference":"order-17"}`, source)
}

func (w *world) refund(of made, amount int) made {
	w.Helper()
	m := w.post(tenantA, "/v1/payments/"+of.ID+"/refunds", fmt.Sprintf(`{"amount":%d}`, amount))
	w.deliver(m)
	return m
}

// payOut is delivered inline.
func (w *world) payOut(destination string) {
	w.Helper()
	w.post(tenantA, "/v1/payouts", fmt.Sprintf(`{"from":"acct_1","amount":500,"currency":"EUR","destination":%q}`, destination))
}

func (w *world) deliver(m made) {
	w.Helper()
	w.ok(w.worker.Deliver(w.Context(), m.Operation.Message(1)))
}

// redrive starts a dead message anew, as an operator does, and settles it.
func (w *world) redrive(m made) {
	w.Helper()
	id := m.Operation.Message(1)
	dead, err := w.store.Message(w.Context(), id)
	w.ok(err)
	_, err = w.operator.Redrive(w.Context(), id, outbox.Seen{Revision: dead.Revision})
	w.ok(err)
	w.reconcile(m) // the provider has nothing: it is offered again
	w.deliver(m)
}

// reconcile asks the provider what became of a message that is unknown.
func (w *world) reconcile(m made) {
	w.Helper()
	_, err := w.runner.ReconcileMessage(w.Context(), m.Operation.Message(1))
	w.ok(err)
}

// drain lets time pass and serves every wake-up that becomes due.
func (w *world) drain(d time.Duration) {
	w.Helper()
	until := w.clock.Now().Add(d)
	for {
		at, ok := w.queue.Next()
		if !ok || at.After(until) {
			break
		}
		w.waitUntil(at)
		for _, id := range w.queue.Take() {
			w.ok(w.worker.Deliver(w.Context(), id))
		}
	}
	w.waitUntil(until)
}

func (w *world) faults(rules ...provider.Rule) {
	w.Helper()
	w.ok(w.provider.Faults(w.Context(), rules...))
}

// charge makes an object at the provider beside the application, and returns its id.
func (w *world) charge(path, key, body string) (id string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.provider.URL+path, strings.NewReader(body))
	w.ok(err)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(r)
	w.ok(err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		w.Fatalf("POST %s: %s", path, res.Status)
	}
	var made struct{ ID string }
	w.ok(json.NewDecoder(res.Body).Decode(&made))
	return made.ID
}

type item = map[string]types.AttributeValue

// put writes an item whole.
func (w *world) put(name string, attributes map[string]any) {
	w.Helper()
	it := item{}
	for attribute, value := range attributes {
		it[attribute] = attributeValue(value)
	}
	_, err := w.client.PutItem(w.Context(), &dynamodb.PutItemInput{TableName: &name, Item: it})
	w.ok(err)
}

// set changes an attribute behind everybody's back.
func (w *world) set(name, key, id, attribute string, value any) {
	w.Helper()
	_, err := w.client.UpdateItem(w.Context(), &dynamodb.UpdateItemInput{
		TableName: &name, Key: item{key: attributeValue(id)},
		UpdateExpression: aws.String("SET #a = :v"), ConditionExpression: aws.String("attribute_exists(#k)"),
		ExpressionAttributeNames:  map[string]string{"#a": attribute, "#k": key},
		ExpressionAttributeValues: item{":v": attributeValue(value)},
	})
	w.ok(err)
}

func (w *world) setRow(m made, attribute string, value any) {
	w.Helper()
	w.set(w.payments, "pk", m.row(), attribute, value)
}

// remove deletes an item, as TTL does, or an accident.
func (w *world) remove(name, key, id string) {
	w.Helper()
	out, err := w.client.DeleteItem(w.Context(), &dynamodb.DeleteItemInput{
		TableName: &name, Key: item{key: attributeValue(id)}, ReturnValues: types.ReturnValueAllOld,
	})
	w.ok(err)
	if len(out.Attributes) == 0 {
		w.Fatalf("%s has no %s", name, id)
	}
}

func (w *world) removeMessage(m made) {
	w.Helper()
	w.remove(w.tables.Outbox, schema.MessageID, string(m.Operation.Message(1)))
}

func (w *world) removeRecord(m made) {
	w.Helper()
	w.remove(w.tables.Idempotency, schema.RecordKey, m.record())
}

func attributeValue(value any) types.AttributeValue {
	switch v := value.(type) {
	case string:
		return &types.AttributeValueMemberS{Value: v}
	case int:
		return &types.AttributeValueMemberN{Value: strconv.Itoa(v)}
	}
	panic(fmt.Sprintf("an attribute of type %T", value))
}

// job makes a Job of the world's, by which a window ends a minute ago.
func (w *world) job(change ...func(*drift.Config)) *drift.Job {
	w.Helper()
	cfg := drift.Config{
		Client: w.client, IdempotencyTable: w.tables.Idempotency, OutboxTable: w.tables.Outbox, PaymentsTable: w.payments,
		ProviderURL: w.provider.URL, Grace: time.Minute, Now: w.clock.Now, Pause: w.clock.Pause,
	}
	for _, c := range change {
		c(&cfg)
	}
	job, err := drift.New(cfg)
	w.ok(err)
	return job
}

// check compares everything since the test began, an hour after the last thing that happened.
func (w *world) check(change ...func(*drift.Config)) drift.Report {
	w.Helper()
	w.clock.Advance(time.Hour)
	report, err := w.job(change...).Check(w.Context(), drift.Window{From: begin})
	w.ok(err)
	return report
}

// drifts demands a report of exactly these kinds.
func (w *world) drifts(report drift.Report, want ...drift.Kind) {
	w.Helper()
	counts := map[drift.Kind]int{}
	for _, kind := range want {
		counts[kind]++
	}
	listed := map[drift.Kind]int{}
	for _, d := range report.Drifts {
		listed[d.Kind]++
	}
	if fmt.Sprint(report.Drift) != fmt.Sprint(counts) || fmt.Sprint(listed) != fmt.Sprint(counts) || report.Clean() != (len(want) == 0) {
		var text strings.Builder
		w.ok(report.WriteTable(&text))
		w.Errorf("drift %v, want %v, clean: %t\n%s", report.Drift, counts, report.Clean(), &text)
	}
}

// waitUntil moves the clock forward to a time, unless that is over.
func (w *world) waitUntil(at time.Time) { w.clock.Advance(max(0, at.Sub(w.clock.Now()))) }
