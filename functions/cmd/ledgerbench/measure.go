package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/drift/hourly"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

// figures are what comparing the hour took.
type figures struct {
	rows, parts int
	took        time.Duration
	// longest is the piece that took longest.
	longest time.Duration
	report  drift.Report
	// calls are to DynamoDB, by operation; writes are what the rows of the progress consumed, by their requests' sizes.
	calls  map[string]int
	writes int
	// heap is the most that was in use, less what the benchmark itself holds.
	heap uint64
}

// counter counts requests to DynamoDB.
type counter struct {
	mu     sync.Mutex
	calls  map[string]int
	writes int
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	_, name, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c.mu.Lock()
	if c.calls[name]++; name == "PutItem" {
		c.writes += int(r.ContentLength+1023) / 1024
	}
	c.mu.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

// measure has every piece of the last pass over the hour compared, side by side.
func (l *ledger) measure(ctx context.Context, parts int) (figures, error) {
	provider := httptest.NewServer(l)
	defer provider.Close()
	count := &counter{calls: map[string]int{}}
	worker, err := l.worker(provider.URL, count)
	if err != nil {
		return figures{}, err
	}
	found, pass := figures{rows: len(l.keys), parts: parts}, l.pass()
	stop := found.watchHeap()
	began := time.Now()
	working, working1 := errgroup.WithContext(ctx)
	var mu sync.Mutex
	for part := range parts {
		working.Go(func() error {
			own := time.Now()
			err := worker.Work(working1, hourly.Piece{Pass: pass, Part: part, Of: parts})
			mu.Lock()
			defer mu.Unlock()
			found.longest = max(found.longest, time.Since(own))
			return err
		})
	}
	err = working.Wait()
	found.took = time.Since(began)
	stop()
	if err != nil {
		return found, err
	}
	found.calls, found.writes = count.calls, count.writes
	return found, l.collect(ctx, pass, &found)
}

// pass is the one over the hour that meets rows such as these.
func (l *ledger) pass() hourly.Pass {
	if l.whole {
		return hourly.Pass{Hour: hour}
	}
	return hourly.Pass{Hour: hour, After: hourly.Passes[len(hourly.Passes)-1]}
}

// worker is the drift function's, when the pass is due.
func (l *ledger) worker(providerURL string, transport http.RoundTripper) (*hourly.Worker, error) {
	client := dynamodb.New(l.client.Options(), func(o *dynamodb.Options) { o.HTTPClient = sdkhttp.BufferedBody(&http.Client{Transport: transport}) })
	now := hour.Add(time.Duration(l.pass().After)*time.Hour + 90*time.Minute)
	clock := func() time.Time { return now }
	job, err := drift.New(drift.Config{
		Client: client, IdempotencyTable: l.tables.Idempotency, OutboxTable: l.tables.Outbox, PaymentsTable: l.payments(),
		ProviderURL: providerURL, Now: clock,
	})
	if err != nil {
		return nil, err
	}
	return hourly.NewWorker(hourly.Config{
		Job: job, Client: client, Table: l.drift(), Now: clock, Send: func(context.Context, []hourly.Piece) error { return nil },
	})
}

// watchHeap keeps the largest heap, until the function that it returns is called.
func (f *figures) watchHeap() func() {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	before := stats.HeapInuse
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
				var now runtime.MemStats
				runtime.ReadMemStats(&now)
				f.heap = max(f.heap, now.HeapInuse-min(now.HeapInuse, before))
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

// collect adds up the reports of the pieces. It is an error that the hour is not compared exactly once, or that anything drifts:
// each piece has to have compared its own span, so that what one compares twice hides nothing that another one leaves out.
func (l *ledger) collect(ctx context.Context, pass hourly.Pass, found *figures) error {
	for part := range found.parts {
		out, err := l.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName:      aws.String(l.drift()),
			Key:            map[string]types.AttributeValue{table.DriftKey: &types.AttributeValueMemberS{Value: fmt.Sprintf("piece/%v/%d", pass, part)}},
			ConsistentRead: aws.Bool(true),
		})
		if err != nil {
			return err
		}
		text, ok := out.Item["rp"].(*types.AttributeValueMemberS)
		if !ok || out.Item["dn"] == nil {
			return fmt.Errorf("piece %d is not done", part)
		}
		var report drift.Report
		if err := json.Unmarshal([]byte(text.Value), &report); err != nil {
			return err
		}
		if own := (hourly.Piece{Pass: pass, Part: part, Of: found.parts}).Window(); !report.Window.From.Equal(own.From) || !report.Window.To.Equal(own.To) {
			return fmt.Errorf("piece %d has compared %v to %v instead of %v to %v", part, report.Window.From, report.Window.To, own.From, own.To)
		}
		if part == 0 {
			found.report = report
			continue
		}
		found.report = found.report.Join(report, drift.ListedMax)
	}
	if r := found.report; r.Compared.Rows != len(l.keys) || !r.Clean() {
		return fmt.Errorf("compared %d of %d rows, drift %v, unanswered %d", r.Compared.Rows, len(l.keys), r.Drift, r.Unanswered)
	}
	return nil
}

func (f figures) print(out io.Writer) error {
	var calls []string
	for _, name := range slices.Sorted(maps.Keys(f.calls)) {
		calls = append(calls, fmt.Sprintf("%d %s", f.calls[name], name))
	}
	r := f.report
	_, err := fmt.Fprintf(out, `rows      %d in %d pieces
compared  %d rows, %d messages, %d records, %d objects; %d late
time      %s, longest piece %s, %.0f rows/s
reads     %.0f R, %.3f a row
writes    %d W
calls     %s
provider  %d calls
heap      %d MiB more than before
`, f.rows, f.parts, r.Compared.Rows, r.Compared.Messages, r.Compared.Records, r.Compared.Objects, r.Late,
		f.took.Round(time.Millisecond), f.longest.Round(time.Millisecond), float64(f.rows)/f.took.Seconds(),
		r.Cost.ReadUnits, r.Cost.ReadUnits/float64(f.rows), f.writes, strings.Join(calls, ", "), r.Cost.ProviderCalls, f.heap>>20)
	return err
}
