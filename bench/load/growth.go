package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/bench/fill"
	"github.com/idem-go/idem-aws/bench/hand"
)

// growth is a table of records that gets larger.
type growth struct {
	url    string
	tables tables
	// record is one as an atomic operation leaves it; the others are like it.
	record   map[string]types.AttributeValue
	template hand.Template
	filled   int
	told     func(done, of int)
	options  []func(*dynamodb.Options)
}

// measureGrowth fills the table to each size, and measures first requests and replays there. What they consume must be the same
// at every size.
func measureGrowth(
	ctx context.Context, url string, rows []int, requests int, told func(done, of int), options ...func(*dynamodb.Options),
) (Part, error) {
	part := Part{Name: "growth: first requests and replays of an atomic operation, by the records in the table"}
	g, err := newGrowth(ctx, url, told, options...)
	if err != nil {
		return part, err
	}
	for _, n := range slices.Sorted(slices.Values(rows)) {
		added := n - g.filled
		took, err := g.fill(ctx, n)
		if err != nil {
			return part, fmt.Errorf("fill to %d: %w", n, err)
		}
		part.Notes = append(part.Notes, fmt.Sprintf("%d records more in %s: %.0f/s", added, took.Round(100*time.Millisecond), float64(added)/took.Seconds()))
		figures, err := g.figures(ctx, requests)
		if err != nil {
			return part, fmt.Errorf("%d records: %w", n, err)
		}
		part.Figures = append(part.Figures, figures...)
	}
	part.Wrong = append(unexpected(part.Figures), grows(part.Figures)...)
	return part, nil
}

// grows says where the cost of a path depends on the table.
func grows(figures []Figure) (wrong []string) {
	first := map[string]Figure{}
	for _, f := range figures {
		was, ok := first[f.Path]
		if !ok {
			first[f.Path] = f
			continue
		}
		if *was.Cost != *f.Cost {
			wrong = append(wrong, fmt.Sprintf("%s: %+v with %d records, %+v with %d", f.Path, *was.Cost, was.Rows, *f.Cost, f.Rows))
		}
	}
	return wrong
}

// newGrowth makes the table, and learns from idem what a record is like.
func newGrowth(ctx context.Context, url string, told func(done, of int), options ...func(*dynamodb.Options)) (*growth, error) {
	t, err := createTables(ctx, url, "load-growth")
	if err != nil {
		return nil, err
	}
	g := &growth{url: url, tables: t, told: told, options: options}
	var recorded hand.Recorder
	app, err := newApp(ctx, newClient(url, append(options, recorded.Option)...), t)
	if err != nil {
		return nil, err
	}
	recorded.Take()
	key := newKey()
	if err := post(ctx, inProcessClient(app), "/atomic", key); err != nil {
		return nil, err
	}
	calls := recorded.Take()
	if g.template, err = hand.NewTemplate(calls, key); err != nil {
		return nil, err
	}
	if transaction, ok := calls[len(calls)-1].Input.(*dynamodb.TransactWriteItemsInput); ok {
		for _, w := range transaction.TransactItems {
			if w.Put != nil && *w.Put.TableName == t.Idempotency {
				g.record = w.Put.Item
			}
		}
	}
	if g.record == nil {
		return nil, errors.New("an atomic operation ends with no put of its record")
	}
	return g, nil
}

// fill fills the table to n records. It returns how long that took.
func (g *growth) fill(ctx context.Context, n int) (time.Duration, error) {
	from := g.filled
	begun := time.Now()
	err := fill.Write(ctx, newClient(g.url, g.options...), n-from, func(_ context.Context, i int) (string, types.WriteRequest, error) {
		key := fmt.Sprintf("fill%0*d", keyBytes-len("fill"), from+i)
		return g.tables.Idempotency, types.WriteRequest{PutRequest: &types.PutRequest{Item: g.template.Fill(g.record, key)}}, nil
	}, func(done int) { g.told(from+done, n) })
	g.filled = n
	return time.Since(begun), err
}

// figures measures and prices both paths.
func (g *growth) figures(ctx context.Context, requests int) ([]Figure, error) {
	measured, err := newApp(ctx, newClient(g.url, g.options...), g.tables)
	if err != nil {
		return nil, err
	}
	meter := newMetered(g.url, g.tables.shapes())
	defer meter.close()
	priced, err := newApp(ctx, newClient(meter.url(), g.options...), g.tables)
	if err != nil {
		return nil, err
	}
	var all []Figure
	for _, replay := range []bool{false, true} {
		path, send := "first", func(h http.Handler) sender { return firsts(inProcessClient(h), "/atomic") }
		if replay {
			keys, err := known(ctx, inProcessClient(measured), "/atomic", min(requests, knownKeys))
			if err != nil {
				return nil, err
			}
			path, send = "replay", func(h http.Handler) sender { return replays(inProcessClient(h), "/atomic", keys) }
		}
		f := drive(ctx, 0, requests, 1, send(measured)).figure(path, 1)
		f.Rows = g.filled
		if f.Cost, err = meter.cost(ctx, send(priced)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, f)
	}
	return all, nil
}
