package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

const (
	tenant    = "tenant"
	operation = "payments.create"
	batchMax  = 25 // what BatchWriteItem takes at once
	writers   = 4
)

// hour is the one that is compared: after 2100, so that no native TTL removes anything.
var hour = time.Date(2101, 2, 3, 10, 0, 0, 0, time.UTC)

// ledger is an hour of payments.
type ledger struct {
	client *dynamodb.Client
	tables dynamotest.Tables
	// prefix is that of the tables' names.
	prefix string
	// keys are those of the charges, by row.
	keys []idem.MessageID
	// whole says that the rows have their messages and records.
	whole bool
}

// at is when a row was made.
func (l *ledger) at(n int) time.Time {
	return hour.Add(time.Duration(float64(time.Hour) * float64(n) / float64(len(l.keys)))).Truncate(time.Millisecond)
}

// store encodes rows as the functions do: its writes are caught before they are sent.
func (l *ledger) store(caught **dynamodb.PutItemInput) (*dynamo.Store, error) {
	catch := func(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
		put, ok := in.Parameters.(*dynamodb.PutItemInput)
		if !ok {
			return out, metadata, fmt.Errorf("the store sent a %T", in.Parameters)
		}
		*caught, out.Result = put, &dynamodb.PutItemOutput{}
		return out, metadata, nil
	}
	client := dynamodb.New(l.client.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Catch", catch), middleware.Before)
		})
	})
	return dynamo.New(client, dynamo.Config{IdempotencyTable: l.tables.Idempotency, OutboxTable: l.tables.Outbox})
}

func (l *ledger) payments() string { return l.prefix + "-payments" }
func (l *ledger) drift() string    { return l.prefix + "-drift" }

// fill makes tables, whose names begin with the prefix, and writes so many rows.
func fill(ctx context.Context, url, prefix string, rows int, whole bool, told func(done int)) (*ledger, error) {
	l := &ledger{
		client: dynamotest.Client(url), keys: make([]idem.MessageID, rows), whole: whole,
		prefix: prefix, tables: dynamotest.Tables{Idempotency: prefix + "-idempotency", Outbox: prefix + "-outbox"},
	}
	outbox := schema.Outbox()
	outbox.StreamNewImage = false // nobody reads it here
	for name, shape := range map[string]schema.Table{
		l.tables.Idempotency: schema.Idempotency(), l.tables.Outbox: outbox, l.payments(): table.Payments(), l.drift(): table.Drift(),
	} {
		if err := dynamotest.CreateTable(ctx, l.client, name, shape); err != nil {
			return nil, err
		}
	}
	var caught *dynamodb.PutItemInput
	store, err := l.store(&caught)
	if err != nil {
		return nil, err
	}
	mint := storage.IDGenerator{Random: rand.NewChaCha8([32]byte{1})}
	writing, ctx := errgroup.WithContext(ctx)
	writing.SetLimit(writers)
	var pending []put
	for n := range rows {
		puts, err := l.row(ctx, store, mint, n, &caught)
		if err != nil {
			return nil, err
		}
		if pending = append(pending, puts...); len(pending)+len(puts) > batchMax || n == rows-1 {
			batch := pending
			pending = nil
			writing.Go(func() error { return write(ctx, l.client, batch) })
		}
		if tenth := max(rows/10, 1); (n+1)%tenth == 0 {
			told(n + 1)
		}
	}
	return l, writing.Wait()
}

// put is an item and its table.
type put struct {
	table string
	item  map[string]types.AttributeValue
}

// row is a payment that was charged, with its message and its record.
func (l *ledger) row(ctx context.Context, store *dynamo.Store, mint storage.IDGenerator, n int, caught **dynamodb.PutItemInput) ([]put, error) {
	key := idem.Scope{Tenant: tenant, Operation: operation, Key: fmt.Sprint(n)}.RecordKey()
	id, err := mint.OperationID(key)
	if err != nil {
		return nil, err
	}
	l.keys[n] = id.Message(1)
	p := payments.Payment{
		Tenant: tenant, Status: payments.StatusSucceeded, Amount: 1999, Currency: "EUR", Source: "card_ok", CreatedAt: l.at(n), Message: id.Message(1),
		ProviderReference: reference(n),
	}
	pk, _ := payments.EntryOf(payments.EntryPayment, tenant, id)
	p.ID = strings.TrimPrefix(pk, "payment#"+tenant+"/")
	written, err := payments.Items(l.payments(), table.LedgerShards)(payments.InsertPayment{Payment: p})
	if err != nil {
		return nil, err
	}
	written.Put.Item["prv"] = &types.AttributeValueMemberS{Value: p.ProviderReference} // which settling adds
	puts := []put{{*written.Put.TableName, written.Put.Item}}
	if !l.whole {
		return puts, nil
	}
	owner, err := mint.Owner()
	if err != nil {
		return nil, err
	}
	revision, err := mint.Revision()
	if err != nil {
		return nil, err
	}
	r, m := ended(p, id, key, owner, revision)
	if err := store.Insert(ctx, r, p.CreatedAt); err != nil {
		return nil, err
	}
	puts = append(puts, put{*(*caught).TableName, (*caught).Item})
	if err := store.UpdateMessage(ctx, m, storage.FenceOfMessage(m)); err != nil {
		return nil, err
	}
	return append(puts, put{*(*caught).TableName, (*caught).Item}), nil
}

// write writes items, and what the endpoint left of them.
func write(ctx context.Context, client *dynamodb.Client, puts []put) error {
	left := map[string][]types.WriteRequest{}
	for _, p := range puts {
		left[p.table] = append(left[p.table], types.WriteRequest{PutRequest: &types.PutRequest{Item: p.item}})
	}
	for len(left) > 0 {
		out, err := client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: left})
		if err != nil {
			return err
		}
		left = out.UnprocessedItems
	}
	return nil
}

// ended are the record and the message of a payment that was charged a moment after it was made.
func ended(p payments.Payment, id idem.OperationID, key storage.RecordKey, owner storage.Owner, revision storage.Revision) (storage.Record, storage.Message) {
	done := p.CreatedAt.Add(settled)
	const retention = 24 * time.Hour
	return storage.Record{
			Key: key, State: storage.StateCompleted, OperationID: id, Epoch: 1, Owner: owner, Revision: revision, Tenant: tenant, Operation: operation,
			Kind: idem.KindDeferred, CreatedAt: p.CreatedAt, Retention: retention, Attempts: 1, SchemaVersion: storage.SchemaVersion,
			Response: idem.Response{Status: 201, Body: []byte(`{"id":"` + p.ID + `","status":"succeeded","amount":1999,"currency":"EUR"}`)},
			DoneAt:   done, ExpiresAt: done.Add(retention), FreeAt: done.Add(retention),
		}, storage.Message{
			Revision: revision, ID: id.Message(1), Index: 1, OperationID: id, RecordKey: key, Tenant: tenant, Topic: "payments.charge",
			Payload: []byte(`{"amount":1999,"currency":"EUR","source":"card_ok"}`), State: storage.MessageDelivered, Epoch: 1, Attempts: 1,
			CreatedAt: p.CreatedAt, NextAttemptAt: p.CreatedAt, DoneAt: done, Reference: p.ProviderReference, Retention: retention,
			SchemaVersion: storage.SchemaVersion,
		}
}
