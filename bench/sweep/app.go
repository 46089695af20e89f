package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
)

const (
	tenant    = "tenant"
	operation = "bench.wrapped"
	topic     = "bench.effects"
	shards    = 4
)

// app is what runs every minute in production, on a clock of its own, far in the future: nothing expires meanwhile.
type app struct {
	raw    *dynamodb.Client
	tables dynamotest.Tables
	store  *dynamo.Store
	meter  *meter
	now    time.Time
	queue  *memqueue.Queue
	worker *outbox.Worker

	requests *idem.Registered
	runner   *outbox.Runner
}

var noon = time.Date(2101, 1, 1, 12, 0, 0, 0, time.UTC)

// seeded is a source of randomness for several goroutines. Who writes needs a seed of its own: tokens are made of it, and hold
// across tables.
func seeded(seed uint64) io.Reader {
	return &source{seed: rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), seed)))}
}

type source struct {
	mu   sync.Mutex
	seed io.Reader
}

func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seed.Read(p)
}

// newApp makes tables of its own for so many rows.
func newApp(ctx context.Context, url string, rows int) (*app, error) {
	seed := uint64(rows) << 2
	a := &app{raw: dynamotest.Client(url), meter: &meter{}, now: noon}
	clock := func() time.Time { return a.now }
	a.queue = memqueue.New(clock)
	var err error
	if a.tables, err = createTables(ctx, a.raw, fmt.Sprintf("bench-%d", rows)); err != nil {
		return nil, err
	}
	a.store, err = dynamo.New(a.raw, dynamo.Config{
		IdempotencyTable: a.tables.Idempotency, OutboxTable: a.tables.Outbox, Shards: shards, Meter: a.meter.count,
	})
	if err != nil {
		return nil, err
	}
	engine, err := idem.New(a.store, idem.Config{Now: clock, Random: seeded(seed + 1), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if err := engine.CheckScopeSecret(ctx); err != nil { // once a process, whatever it serves
		return nil, err
	}
	if a.requests, err = engine.Register(idem.Operation{Name: operation, Kind: idem.KindAtomic, Policy: idem.IETF()}); err != nil {
		return nil, err
	}
	return a, a.runs(engine, clock, seeded(seed+2))
}

// createTables makes the two tables, without the stream: nobody reads it here, and an emulator that keeps it in memory
// would take hours to fill.
func createTables(ctx context.Context, raw *dynamodb.Client, name string) (dynamotest.Tables, error) {
	tables := dynamotest.Tables{Idempotency: name + "-idempotency", Outbox: name + "-outbox"}
	if err := dynamotest.CreateTable(ctx, raw, tables.Idempotency, schema.Idempotency()); err != nil {
		return tables, err
	}
	outbox := schema.Outbox()
	outbox.StreamNewImage = false
	return tables, dynamotest.CreateTable(ctx, raw, tables.Outbox, outbox)
}

// runs sets up what brings messages and records to an end; half of what the probe of records is asked about has happened.
func (a *app) runs(engine *idem.Engine, clock func() time.Time, random io.Reader) error {
	topics, err := outbox.NewTopics(outbox.Config{Now: clock, Random: random}, outbox.Topic{
		Name: topic,
		Call: func(context.Context, storage.Message) outbox.Outcome { return outbox.Delivered{Reference: "effect"} },
		Probe: func(context.Context, storage.Message) outbox.Finding {
			return outbox.Found{Outcome: outbox.Delivered{Reference: "effect"}}
		},
		Settle: func(storage.Message, outbox.Outcome) (outbox.Settlement, error) { return outbox.Settlement{}, nil },
	})
	if err != nil {
		return err
	}
	if a.worker, err = outbox.NewWorker(a.store, topics, a.queue, a.queue); err != nil {
		return err
	}
	var asked atomic.Int64
	a.runner, err = outbox.NewRunner(a.worker, engine, map[string]outbox.Probe{operation: func(context.Context, storage.Record) outbox.Finding {
		if asked.Add(1)%2 == 0 {
			return outbox.Absent{}
		}
		return outbox.Executed{Response: idem.Response{Status: 201, Body: []byte(`{"id":"order"}`)}}
	}})
	return err
}
