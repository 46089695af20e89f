package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/bench/meter"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
)

const (
	topic     = "bench.effects"
	rowsTable = "bench-rows"
	takenRow  = "taken"

	// inlineOperation is a deferred one that delivers its message within the request.
	inlineOperation = "bench.inline"
	// messageOperation is an atomic one that sends a message on whose outcome its answer does not depend.
	messageOperation = "bench.atomic_message"
)

// ending is how a handler ends.
type ending int

const (
	succeeds ending = iota
	rejects         // with a business answer of its own
	collides        // with a failed condition of a business write, declared as Reject
)

// script is what the handlers do next.
type script struct {
	body   []byte
	ending ending
	// during runs once, inside the next handler.
	during func()
}

// app is an application whose every operation but the wrapped one writes one business row of a few bytes.
type app struct {
	raw       *dynamodb.Client
	meter     *meter.Meter
	store     *dynamo.Store
	worker    *outbox.Worker
	endpoints map[string]http.Handler
	script    script
	// sent is the last message.
	sent idem.MessageID
	keys int
}

// operations are what is measured.
func operations() []idem.Operation {
	policy := idem.IETF()
	return []idem.Operation{
		{Name: "bench.atomic", Kind: idem.KindAtomic, Policy: policy},
		{Name: "bench.atomic_read_first", Kind: idem.KindAtomic, Policy: policy, ReadFirst: true},
		{Name: messageOperation, Kind: idem.KindAtomic, Policy: policy},
		{Name: "bench.optimistic", Kind: idem.KindOptimistic, Policy: policy},
		{Name: "bench.deferred", Kind: idem.KindDeferred, Policy: policy},
		{Name: inlineOperation, Kind: idem.KindDeferred, Policy: policy},
		{Name: "bench.wrapped", Kind: idem.KindWrapped, UnknownToOperator: true, Policy: policy},
	}
}

// noon and the seed make every run the same: the size of a number depends on its digits.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 123e6, time.UTC)

func random() io.Reader { return rand.NewChaCha8([32]byte{1}) }

// newApp creates the tables at the endpoint and the application on them.
func newApp(ctx context.Context, url string) (*app, error) {
	raw := dynamotest.Client(url)
	tables, err := dynamotest.CreateTables(ctx, raw, "bench")
	if err != nil {
		return nil, err
	}
	rows := schema.Table{Key: "pk"}
	if err := dynamotest.CreateTable(ctx, raw, rowsTable, rows); err != nil {
		return nil, err
	}
	m := &meter.Meter{Raw: raw, Shapes: map[string]schema.Table{
		tables.Idempotency: schema.Idempotency(), tables.Outbox: schema.Outbox(), rowsTable: rows,
	}}
	store, err := dynamo.New(dynamotest.Client(url, m.Option), dynamo.Config{
		IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox, Meter: m.Reported,
	})
	if err != nil {
		return nil, err
	}
	a := &app{raw: raw, meter: m, store: store, endpoints: map[string]http.Handler{}}
	if _, err := raw.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(rowsTable), Item: rowItem(takenRow)}); err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	if err := a.deliver(); err != nil {
		return nil, err
	}
	return a, a.register()
}

func (a *app) register() error {
	inline, err := outbox.NewInline(a.worker)
	if err != nil {
		return err
	}
	now := func() time.Time { return noon }
	engine, err := idem.New(a.store, idem.Config{Now: now, Random: random(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := engine.CheckScopeSecret(context.Background()); err != nil { // once a process, whatever it serves
		return err
	}
	a.meter.Take()
	mw, err := middleware.New(engine, middleware.Config{Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "tenant-a"}, nil
	}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for _, op := range operations() {
		if op.Name == inlineOperation {
			op.Inline = inline
		}
		if op.Kind == idem.KindWrapped {
			a.endpoints[op.Name], err = mw.Wrap(op, middleware.Route{}, http.HandlerFunc(a.existing))
		} else {
			a.endpoints[op.Name], err = mw.Handle(op, middleware.Route{}, a.handler(op))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deliver makes the worker of the deferred operations.
func (a *app) deliver() error {
	now := func() time.Time { return noon.Add(time.Second) }
	topics, err := outbox.NewTopics(outbox.Config{Now: now, Random: random()}, outbox.Topic{
		Name: topic,
		Call: func(context.Context, storage.Message) outbox.Outcome {
			return outbox.Delivered{Reference: "ch_0123456789"}
		},
		Settle: func(m storage.Message, _ outbox.Outcome) (outbox.Settlement, error) {
			settled := outbox.Settlement{Writes: []idem.Write{finishRow(string(m.OperationID))}}
			if !m.Detached { // the client waits for the outcome
				settled.Response = a.created()
			}
			return settled, nil
		},
	})
	if err != nil {
		return err
	}
	queue := memqueue.New(now)
	a.worker, err = outbox.NewWorker(a.store, topics, queue, queue)
	return err
}

func problem() idem.Problem {
	return idem.NewProblem(http.StatusPaymentRequired, "insufficient_funds", "Insufficient funds", "The account does not hold the amount.")
}

func (a *app) created() idem.Response {
	return idem.Response{Status: http.StatusCreated, Header: []idem.Field{{Name: "Content-Type", Value: "application/json"}}, Body: a.script.body}
}

// interrupt runs what is to happen while a handler runs.
func (a *app) interrupt() {
	if during := a.script.during; during != nil {
		a.script.during = nil
		during()
	}
}

func (a *app) handler(op idem.Operation) middleware.Handler {
	return func(_ context.Context, tx *idem.Tx, _ *middleware.Request) (idem.Response, error) {
		a.interrupt()
		id := string(tx.OperationID())
		switch a.script.ending {
		case rejects:
			return idem.Response{}, &idem.RejectedError{Problem: problem()}
		case collides:
			id = takenRow
		case succeeds:
		}
		tx.Write(insertRow(id))
		if op.Kind == idem.KindDeferred || op.Name == messageOperation {
			a.sent = tx.Send(topic, []byte(`{"version":1,"amount":500,"currency":"EUR","source":"card_1"}`))
		}
		if op.Kind == idem.KindDeferred {
			return idem.JSON(http.StatusAccepted, map[string]string{"operation": id, "state": "pending"})
		}
		return a.created(), nil
	}
}

// existing is a handler that writes for itself; what it writes is not idem's and not counted.
func (a *app) existing(w http.ResponseWriter, _ *http.Request) {
	a.interrupt()
	response := a.created()
	if a.script.ending == rejects {
		response = problem().Response()
	}
	w.Header().Set("Content-Type", response.Get("Content-Type"))
	w.WriteHeader(response.Status)
	_, _ = w.Write(response.Body)
}

func rowItem(key string) meter.Item {
	return meter.Item{"pk": &types.AttributeValueMemberS{Value: key}, "st": &types.AttributeValueMemberS{Value: "pending"}}
}

func insertRow(key string) idem.Write {
	return dynamo.Put(types.Put{
		TableName: aws.String(rowsTable), Item: rowItem(key), ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}, idem.Reject(problem()))
}

func finishRow(key string) idem.Write {
	return dynamo.Update(types.Update{
		TableName: aws.String(rowsTable), Key: meter.Item{"pk": rowItem(key)["pk"]}, UpdateExpression: aws.String("SET st = :done"),
		ExpressionAttributeValues: meter.Item{":done": &types.AttributeValueMemberS{Value: "succeeded"}},
	})
}

// key is one that no request had.
func (a *app) key() string {
	a.keys++
	return strconv.Itoa(a.keys) + "-order"
}

// reply is what a client gets.
type reply struct {
	status int
	became idem.Outcome
	body   []byte
}

func (a *app) post(operation, key, body string) reply {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", strconv.Quote(key))
	w := httptest.NewRecorder()
	a.endpoints[operation].ServeHTTP(w, r)
	return reply{w.Code, idem.Outcome(w.Header().Get("Idempotency-Status")), bytes.Clone(w.Body.Bytes())}
}

// image is the message of an operation as the stream shows it.
func (a *app) image(ctx context.Context, id idem.MessageID) (*storage.Message, error) {
	table := a.outboxTable()
	out, err := a.raw.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, ConsistentRead: aws.Bool(true),
		Key: meter.Item{schema.MessageID: &types.AttributeValueMemberS{Value: string(id)}},
	})
	if err != nil {
		return nil, fmt.Errorf("read the message: %w", err)
	}
	return a.store.DecodeImage(out.Item)
}

func (a *app) outboxTable() string {
	for name, shape := range a.meter.Shapes {
		if shape.Key == schema.MessageID {
			return name
		}
	}
	return ""
}
