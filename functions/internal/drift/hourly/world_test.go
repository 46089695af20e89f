package hourly_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/drift/hourly"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/idemtest"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// hour is the one whose rows are compared, and after 2100, so that no native TTL removes anything.
var hour = time.Date(2101, 2, 3, 10, 0, 0, 0, time.UTC)

const grace = 15 * time.Minute

// wire is what every process calls through. It is not Go's default, whose connections the end of any test's server closes.
var wire = http.DefaultTransport.(*http.Transport).Clone()

// world is a ledger, a provider, and the table of what is compared, on a clock that only the test moves.
type world struct {
	*testing.T
	clock    *idemtest.Clock
	client   *dynamodb.Client
	prefix   string
	provider string
	rows     int

	mu   sync.Mutex
	sent []hourly.Piece
	log  bytes.Buffer
}

var prefixes atomic.Int64

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		T: t, clock: idemtest.NewClock(hour), client: dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0])),
		prefix: "hourly-" + strconv.FormatInt(prefixes.Add(1), 10),
	}
	_, err := dynamotest.CreateTables(t.Context(), w.client, w.prefix)
	w.ok(err)
	w.ok(dynamotest.CreateTable(t.Context(), w.client, w.prefix+"-payments", table.Payments()))
	w.progress(w.prefix + "-drift")
	simulator := provider.New(provider.Config{Now: w.clock.Now})
	server := httptest.NewServer(simulator)
	t.Cleanup(func() { simulator.Close(); server.Close() })
	w.provider = server.URL
	return w
}

func (w *world) progress(name string) {
	w.Helper()
	w.ok(dynamotest.CreateTable(w.Context(), w.client, name, table.Drift()))
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// plant puts a payment into the table that was made at the time, with neither record nor message, as TTL leaves it, and its charge at
// the provider. here is the amount of the row; the charge's is 1999.
func (w *world) plant(at time.Time, here int64) {
	w.Helper()
	w.row(at, payments.StatusSucceeded, here)
}

// row puts a payment into the table that was made at the time, with neither record nor message, and returns its key at the provider. One
// that has succeeded is charged there.
func (w *world) row(at time.Time, status payments.Status, amount int64) (key string) {
	w.Helper()
	w.waitUntil(at)
	w.rows++
	scope := idem.Scope{Tenant: "tenant-a", Operation: "payments.create", Key: fmt.Sprint("planted-", w.rows)}.RecordKey()
	operation, err := storage.IDGenerator{Random: rand.NewChaCha8([32]byte{byte(w.rows), byte(w.rows >> 8)})}.OperationID(scope)
	w.ok(err)
	p := payments.Payment{
		Tenant: "tenant-a", Status: status, Amount: amount, Currency: "EUR", Source: "card_ok", CreatedAt: at, Message: operation.Message(1),
	}
	pk, _ := payments.EntryOf(payments.EntryPayment, "tenant-a", operation)
	p.ID = strings.TrimPrefix(pk, "payment#tenant-a/")
	if status == payments.StatusSucceeded {
		p.ProviderReference = w.charge(string(p.Message))
	}
	put, err := payments.Items(w.prefix+"-payments", table.LedgerShards)(payments.InsertPayment{Payment: p})
	w.ok(err)
	_, err = w.client.PutItem(w.Context(), &dynamodb.PutItemInput{TableName: put.Put.TableName, Item: put.Put.Item})
	w.ok(err)
	return string(p.Message)
}

func (w *world) waitUntil(at time.Time) {
	if wait := at.Sub(w.clock.Now()); wait > 0 {
		w.clock.Advance(wait)
	}
}

func (w *world) charge(key string) (id string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.provider+"/charges", strings.NewReader(`{"amount":1999,"currency":"EUR","source":"card_ok","reference":"x"}`))
	w.ok(err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	res, err := (&http.Client{Transport: wire}).Do(r)
	w.ok(err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		w.Fatal(res.Status)
	}
	var made struct{ ID string }
	w.ok(json.NewDecoder(res.Body).Decode(&made))
	return made.ID
}

// plantHour plants so many rows over the hour, and two more that drift; the clock stands behind all passes then.
func (w *world) plantHour(count int) {
	w.Helper()
	for i := range count {
		w.plant(hour.Add(time.Hour*time.Duration(i)/time.Duration(count)).Truncate(time.Millisecond), 1999)
	}
	w.plant(hour.Add(59*time.Minute), 1)
	w.charge("nobody's")
	w.clock.Advance(50 * time.Hour)
}

// process is a worker and a planner with connections of their own, which may go wrong, and a clock.
type process struct {
	*hourly.Worker
	planner *hourly.Planner
}

// start starts a process whose calls go through the transport, with a table of its own for the progress if one is named.
func (w *world) start(transport http.RoundTripper, change ...func(*hourly.Config)) process {
	w.Helper()
	logger := slog.New(slog.NewJSONHandler(lines{w}, nil))
	client := dynamodb.New(w.client.Options(), func(o *dynamodb.Options) {
		lambdatest.Wire(w.T, &wirefault.Transport{Next: transport})(o)
		o.HTTPClient = sdkhttp.BufferedBody(o.HTTPClient)
		o.RetryMaxAttempts = 2
		o.Retryer = aws.NopRetryer{}
	})
	job, err := drift.New(drift.Config{
		Client: client, IdempotencyTable: w.prefix + "-idempotency", OutboxTable: w.prefix + "-outbox", PaymentsTable: w.prefix + "-payments",
		ProviderURL: w.provider, Authorize: func(http.RoundTripper) http.RoundTripper { return transport }, Grace: grace,
		Now: w.clock.Now, Pause: w.clock.Pause, Logger: logger,
	})
	w.ok(err)
	cfg := hourly.Config{
		Job: job, Client: client, Table: w.prefix + "-drift", Send: w.send, Grace: grace, StepRows: 100, Now: w.clock.Now, Pause: w.clock.Pause, Logger: logger,
	}
	for _, c := range change {
		c(&cfg)
	}
	worker, err := hourly.NewWorker(cfg)
	w.ok(err)
	planner, err := hourly.NewPlanner(cfg)
	w.ok(err)
	return process{worker, planner}
}

// lines is the log of all processes.
type lines struct{ *world }

func (l lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(p)
}

// logged counts lines of a message.
func (w *world) logged(message string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(w.log.String(), `"msg":`+strconv.Quote(message))
}

func (w *world) send(_ context.Context, pieces []hourly.Piece) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, pieces...)
	return nil
}

// take empties the queue.
func (w *world) take() []hourly.Piece {
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.sent
	w.sent = nil
	return sent
}

// kept is the report in a row of the table, and whether the row is done.
func (w *world) kept(name, id string) (report drift.Report, done bool) {
	w.Helper()
	out, err := w.client.GetItem(w.Context(), &dynamodb.GetItemInput{
		TableName: &name, Key: map[string]types.AttributeValue{table.DriftKey: &types.AttributeValueMemberS{Value: id}}, ConsistentRead: aws.Bool(true),
	})
	w.ok(err)
	if text, ok := out.Item["rp"].(*types.AttributeValueMemberS); ok {
		w.ok(json.Unmarshal([]byte(text.Value), &report))
	}
	return report, out.Item["dn"] != nil
}

// exact demands that everything planted was compared once, and that what drifts was found once.
func (w *world) exact(what string, report drift.Report, done bool) {
	w.Helper()
	if !done || report.Unfinished || report.Compared.Rows != w.rows || report.Compared.Objects != w.rows+1 ||
		report.DriftCount() != 2 || report.Drift[drift.AmountDiffers] != 1 || report.Drift[drift.MissingHere] != 1 || len(report.Drifts) != 2 {
		w.Errorf("%s: done: %t, %+v; want %d rows, one more object and two drifts", what, done, report, w.rows)
	}
	if !report.Window.From.Equal(hour) || !report.Window.To.Equal(hour.Add(time.Hour)) {
		w.Errorf("%s: %+v", what, report.Window)
	}
}

// whole is the piece that is the whole of the last pass over the hour.
var whole = hourly.Piece{Pass: hourly.Pass{Hour: hour, After: 48}, Of: 1}

var errCut = errors.New("the process is gone")

// accident is a process's way to the outside: its n-th call goes wrong.
type accident struct {
	at   int
	mode string

	mu    sync.Mutex
	calls int
	dead  bool
}

func (a *accident) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	a.calls++
	now, dead := a.calls == a.at, a.dead
	if now && (a.mode == dieBefore || a.mode == dieAfter) {
		a.dead = true
	}
	a.mu.Unlock()
	if dead || now && a.mode == dieBefore {
		return nil, errCut
	}
	if now && a.mode == throttle {
		return &http.Response{
			StatusCode: http.StatusBadRequest, Header: http.Header{}, Request: r,
			Body: io.NopCloser(strings.NewReader(`{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slower"}`)),
		}, nil
	}
	res, err := wire.RoundTrip(r)
	if now && err == nil {
		res.Body.Close()
		return nil, errCut
	}
	return res, err
}

func (a *accident) reached() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls >= a.at
}

const (
	dieBefore = "dies before the call"
	dieAfter  = "dies before the reply"
	loseReply = "loses the reply"
	throttle  = "is throttled"
)
