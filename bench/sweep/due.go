package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/bench/fill"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

const (
	// dueShards and wakeUpsMax are the payments application's on AWS by default: with outbox=sqs each shard has a run of its own.
	dueShards  = 8
	wakeUpsMax = 200_000
	// outage is within which what is due was committed, and runTime what a run has.
	outage  = 20 * time.Minute
	runTime = 55 * time.Second
)

// minute is one minute after an outage: a run of the sweep for each shard, side by side.
type minute struct {
	// offered are wake-ups, and lost those of them that were not needed: their message was offered before.
	offered, lost int
	took          time.Duration
	shards        []shardRun
	calls         map[string]int
	reads, writes float64
}

// shardRun is one run, in one shard.
type shardRun struct {
	offered int
	took    time.Duration
	reads   float64
}

// backlog are tables with messages that are due, and the queue that sweeps fill.
type backlog struct {
	raw    *dynamodb.Client
	tables dynamotest.Tables
	queue  *endpoint
	now    time.Time
	rows   int
	max    int
}

// newBacklog fills tables with so many due messages.
func newBacklog(ctx context.Context, url string, rows, most int, told func(done int)) (*backlog, error) {
	b := &backlog{raw: dynamotest.Client(url), queue: newEndpoint(), now: noon, rows: rows, max: most}
	var err error
	if b.tables, err = createTables(ctx, b.raw, fmt.Sprintf("bench-due-%d", rows)); err != nil {
		return nil, err
	}
	p, err := newPopulation(b.raw, b.tables, dueShards)
	if err != nil {
		return nil, err
	}
	return b, fill.Write(ctx, b.raw, rows, func(ctx context.Context, n int) (string, types.WriteRequest, error) {
		return p.due(ctx, n, rows, outage)
	}, told)
}

var errRefused = errors.New("a run did not offer all that it should")

// process is what one invocation is made of: nothing is shared with another.
func (b *backlog) process(most int) (*outbox.Runner, *meter, error) {
	m := &meter{}
	clock := func() time.Time { return b.now }
	store, err := dynamo.New(b.raw, dynamo.Config{
		IdempotencyTable: b.tables.Idempotency, OutboxTable: b.tables.Outbox, Shards: dueShards, Meter: m.count,
	})
	if err != nil {
		return nil, nil, err
	}
	topics, err := outbox.NewTopics(outbox.Config{Now: clock, WakeUpsMax: most}, outbox.Topic{
		Name:   topic,
		Call:   func(context.Context, storage.Message) outbox.Outcome { return outbox.Delivered{} },
		Settle: func(storage.Message, outbox.Outcome) (outbox.Settlement, error) { return outbox.Settlement{}, nil },
	})
	if err != nil {
		return nil, nil, err
	}
	queue, err := b.queue.queue()
	if err != nil {
		return nil, nil, err
	}
	worker, err := outbox.NewWorker(store, topics, queue, queue)
	if err != nil {
		return nil, nil, err
	}
	engine, err := idem.New(store, idem.Config{Now: clock})
	if err != nil {
		return nil, nil, err
	}
	runner, err := outbox.NewRunner(worker, engine, nil)
	return runner, m, err
}

// run is one minute, with so many wake-ups at most.
func (b *backlog) run(ctx context.Context, most int) (minute, error) {
	found := minute{shards: make([]shardRun, dueShards)}
	stages, errs := make([]stage, dueShards), make([]error, dueShards)
	var beside sync.WaitGroup
	began := time.Now()
	for shard := range dueShards {
		beside.Go(func() {
			runner, m, err := b.process(most)
			if err != nil {
				errs[shard] = err
				return
			}
			bounded, cancel := context.WithTimeout(ctx, runTime)
			defer cancel()
			own := time.Now()
			did, err := runner.Sweep(bounded, shard)
			if errs[shard] = err; err == nil && did.Messages.Errors > 0 {
				errs[shard] = fmt.Errorf("shard %d: %w: %+v", shard, errRefused, did)
			}
			stages[shard] = m.take("", "")
			found.shards[shard] = shardRun{did.Messages.Offered, time.Since(own), stages[shard].reads}
		})
	}
	beside.Wait()
	found.took, found.calls = time.Since(began), b.queue.called()
	for shard, s := range stages {
		found.offered += found.shards[shard].offered
		found.reads, found.writes = found.reads+s.reads, found.writes+s.writes
		for name, n := range s.calls {
			found.calls[name] += n
		}
	}
	return found, errors.Join(errs...)
}

// minutes runs a sweep a minute until everything was offered. Workers take each minute all that waits: how fast they are is not
// what is measured.
func (b *backlog) minutes(ctx context.Context) (all []minute, err error) {
	for offered := 0; offered < b.rows; {
		found, err := b.run(ctx, b.max)
		if err != nil {
			return all, err
		}
		before := offered
		if offered, found.lost = b.queue.receive(found.offered); offered == before {
			return all, fmt.Errorf("minute %d: %w: %d of %d are", len(all)+1, errRefused, offered, b.rows)
		}
		all = append(all, found)
		b.now = b.now.Add(time.Minute)
	}
	return all, nil
}

// renderDue writes the minutes as a table, the shards of the first one, and a minute of runs that read each message.
func renderDue(out io.Writer, rows, most int, minutes []minute, reading minute) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d messages due, at most %d wake-ups wait, %d shards\n", rows, most, dueShards)
	fmt.Fprintf(w, "  minute\toffered\tdoubled so far\tslowest run\tR\tW\tcalls\n")
	var total minute
	for i, m := range minutes {
		fmt.Fprintf(w, "  %d\t%d\t%d\t%s\t%g\t%g\t%s\n", i+1, m.offered, m.lost, m.took.Round(time.Millisecond), m.reads, m.writes, stage{calls: m.calls}.told())
		total.offered, total.reads, total.writes, total.took = total.offered+m.offered, total.reads+m.reads, total.writes+m.writes, total.took+m.took
	}
	fmt.Fprintf(w, "  all\t%d\t\t%s\t%g\t%g\t\n", total.offered, total.took.Round(time.Millisecond), total.reads, total.writes)
	fmt.Fprintf(w, "  minute 1 by shard\toffered\t\ttook\tR\n")
	for shard, s := range minutes[0].shards {
		fmt.Fprintf(w, "  %d\t%d\t\t%s\t%g\n", shard, s.offered, s.took.Round(time.Millisecond), s.reads)
	}
	fmt.Fprintf(w, "  for comparison: a minute of runs that read each message, and offer it alone\toffered\t\tslowest run\tR\tW\tcalls\n")
	fmt.Fprintf(w, "  \t%d\t\t%s\t%g\t%g\t%s\n", reading.offered, reading.took.Round(time.Millisecond), reading.reads, reading.writes, stage{calls: reading.calls}.told())
	return w.Flush()
}
