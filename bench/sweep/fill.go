package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/idem-go/idem-aws/bench/fill"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/storage"
)

const (
	// stuckRecords and stuckMessages are the same in tables of any size.
	stuckRecords, stuckMessages = 50, 50
	// liveEvery is how many rows there are to one whose lease lives, or that is not due: it stands in an index, and must not
	// be looked at.
	liveEvery = 20
	// expiredRow is one of those whose record has expired, and that native TTL has not removed yet: one to each live one.
	expiredRow = 3*liveEvery + 1
)

// population makes rows as the store encodes them: its own writes, caught before they are sent.
type population struct {
	mint   storage.IDGenerator
	store  *dynamo.Store
	caught *dynamodb.PutItemInput
}

// newPopulation makes rows for tables of so many shards.
func newPopulation(raw *dynamodb.Client, tables dynamotest.Tables, shards int) (*population, error) {
	p := &population{mint: storage.IDGenerator{Random: seeded(0)}}
	client := dynamodb.New(raw.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Catch", p.catch), middleware.Before)
		})
	})
	var err error
	p.store, err = dynamo.New(client, dynamo.Config{IdempotencyTable: tables.Idempotency, OutboxTable: tables.Outbox, Shards: shards})
	return p, err
}

func (p *population) catch(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
	put, ok := in.Parameters.(*dynamodb.PutItemInput)
	if !ok {
		return out, metadata, fmt.Errorf("the store sent a %T", in.Parameters)
	}
	p.caught = put
	out.Result = &dynamodb.PutItemOutput{}
	return out, metadata, nil
}

// row is the i-th of each table: a record where i is even, a message where it is odd. The first ones are stuck.
func (p *population) row(ctx context.Context, i int) (table string, put types.WriteRequest, err error) {
	r, m, err := p.make(i / 2)
	if err != nil {
		return "", put, err
	}
	if i%2 == 0 {
		err = p.store.Insert(ctx, r, noon)
	} else {
		err = p.store.UpdateMessage(ctx, m, storage.FenceOfMessage(m))
	}
	if err != nil {
		return "", put, err
	}
	return *p.caught.TableName, types.WriteRequest{PutRequest: &types.PutRequest{Item: p.caught.Item}}, nil
}

// make makes the n-th record and a message of its own.
func (p *population) make(n int) (r storage.Record, m storage.Message, err error) {
	key := idem.Scope{Tenant: tenant, Operation: operation, Key: fmt.Sprint(n)}.RecordKey()
	id, err := p.mint.OperationID(key)
	if err != nil {
		return r, m, err
	}
	owner, err := p.mint.Owner()
	if err != nil {
		return r, m, err
	}
	revision, err := p.mint.Revision()
	if err != nil {
		return r, m, err
	}
	begun := noon.Add(-time.Hour)
	r = storage.Record{
		Key: key, State: storage.StateCompleted, OperationID: id, Epoch: 1, Owner: owner, Revision: revision, Tenant: tenant, Operation: operation,
		Kind: idem.KindWrapped, CreatedAt: begun, Retention: 24 * time.Hour, Attempts: 1, SchemaVersion: storage.SchemaVersion,
	}
	m = storage.Message{
		Revision: revision,
		ID:       id.Message(1), Index: 1, OperationID: id, RecordKey: key, Tenant: tenant, Topic: topic, Payload: []byte(`{"amount":1999}`),
		State: storage.MessagePending, CreatedAt: begun, NextAttemptAt: begun, SweepAt: begun, Detached: true,
		Retention: 24 * time.Hour, SchemaVersion: storage.SchemaVersion,
	}
	switch {
	case n < stuckRecords: // a holder that died; a wake-up that was lost, or a worker that died in its call
		r.State, r.LeaseUntil = storage.StateInProgress, begun.Add(27*time.Second)
		if n%2 == 0 {
			m.State, m.Owner, m.Epoch, m.Attempts = storage.MessageClaimed, owner, 1, 1
			m.FirstClaimedAt, m.OpenSince, m.LeaseUntil = begun, begun, begun.Add(10*time.Second)
		}
	case n%liveEvery == 0:
		r.State, r.LeaseUntil = storage.StateInProgress, noon.Add(24*time.Hour)
		m.NextAttemptAt, m.SweepAt = noon.Add(24*time.Hour), noon.Add(24*time.Hour)
	default:
		if n%liveEvery == expiredRow%liveEvery {
			begun = noon.Add(-48 * time.Hour)
		}
		r.Response = idem.Response{Status: 201, Body: []byte(`{"id":"order","amount":1999,"currency":"EUR"}`)}
		r.DoneAt, r.ExpiresAt, r.FreeAt = begun, begun.Add(r.Retention), begun.Add(r.Retention)
		m.State, m.DoneAt, m.SweepAt, m.Reference = storage.MessageDelivered, begun, time.Time{}, "effect"
	}
	return r, m, nil
}

// due is the n-th of so many messages that were committed within the last span, and that nobody has claimed.
func (p *population) due(ctx context.Context, n, of int, span time.Duration) (table string, put types.WriteRequest, err error) {
	_, m, err := p.make(n)
	if err != nil {
		return "", put, err
	}
	begun := noon.Add(-span + span*time.Duration(n)/time.Duration(of)).Truncate(time.Millisecond)
	m = storage.Message{
		Revision: m.Revision, ID: m.ID, Index: 1, OperationID: m.OperationID, RecordKey: m.RecordKey, Tenant: tenant, Topic: topic, Payload: m.Payload,
		State: storage.MessagePending, CreatedAt: begun, NextAttemptAt: begun, SweepAt: begun, Detached: true,
		Retention: 24 * time.Hour, SchemaVersion: storage.SchemaVersion,
	}
	if err := p.store.UpdateMessage(ctx, m, storage.FenceOfMessage(m)); err != nil {
		return "", put, err
	}
	return *p.caught.TableName, types.WriteRequest{PutRequest: &types.PutRequest{Item: p.caught.Item}}, nil
}

// fill writes so many rows, half of them into each table, and tells of each tenth part.
func (a *app) fill(ctx context.Context, rows int, told func(done int)) error {
	p, err := newPopulation(a.raw, a.tables, shards)
	if err != nil {
		return err
	}
	return fill.Write(ctx, a.raw, rows, p.row, told)
}
