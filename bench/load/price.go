package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem-aws/bench/meter"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/progress"
	"github.com/idem-go/idem-aws/localstack/provider"
	"github.com/idem-go/idem-aws/localstack/stack"
)

const (
	// pricedRequests is how many requests of each path are priced, and pricedAlike how many of them must consume the same: others meet
	// what comes once a minute, such as a sweep.
	pricedRequests = 5
	pricedAlike    = 3
	// quiet is how long nothing may be called before what was asked for has ended: a queue is polled once a second.
	quiet = 2 * time.Second
	// pricedWithin bounds the wait for that.
	pricedWithin = time.Minute
)

// priced is a deployed stack whose calls to DynamoDB are metered: those of every function, one at a time.
type priced struct {
	traffic  *traffic
	provider provider.Control
	wire     *meter.Wire
	// own are the tables of records, messages and payments. What is consumed on others is told apart: it depends on who asked before.
	own []string
	// quiet is how long nothing is called once what was asked for has ended; within bounds the wait for that.
	quiet, within time.Duration
}

// quotas are those of a tenant of a production stage by default (infra/stack, quotaDefault): a local stack counts nothing without them.
var quotas = map[string]string{"quotaNewKeys": "50", "quotaActiveKeys": "1000000", "quotaLookUps": "100", "quotaWaits": "20"}

// priceGateway brings a stack of its own up, with a meter between its functions and DynamoDB, prices each path of the traffic there, and
// takes it down. Wake-ups come through a queue and new keys are counted, as in a production stage.
func priceGateway(ctx context.Context, root string, out *progress.Printer) (costs map[string]*Cost, notes []string, err error) {
	state := filepath.Join(".local", "load")
	deployed, err := stack.New(stack.Options{
		Root: root, State: state, EnvFile: filepath.Join(state, "run.env"), Emulator: stack.Ministack, Outbox: stack.OutboxSQS,
	}, out)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, deployed.Down(context.WithoutCancel(ctx))) }()
	endpoint, err := deployed.Start(ctx)
	if err != nil {
		return nil, nil, err
	}
	between, err := listen(endpoint)
	if err != nil {
		return nil, nil, err
	}
	defer between.close()
	contexts := maps.Clone(quotas)
	contexts["dynamodbEndpoint"] = between.server.URL
	if err := deployed.With(contexts).Up(ctx); err != nil {
		return nil, nil, err
	}
	if err := between.meter(ctx, endpoint); err != nil {
		return nil, nil, err
	}
	variables, err := stack.ReadVariables(deployed.EnvFile())
	if err != nil {
		return nil, nil, err
	}
	g, err := openGateway(deployed.EnvFile(), pricedWithin)
	if err != nil {
		return nil, nil, err
	}
	p := priced{
		traffic: g.traffic, provider: g.provider, wire: between.wire, quiet: quiet, within: pricedWithin,
		own: []string{variables["IDEMPOTENCY_TABLE"], variables["OUTBOX_TABLE"], variables["PAYMENTS_TABLE"]},
	}
	return p.costs(ctx)
}

// between is a server before an endpoint of DynamoDB, which passes calls on until it meters them.
type between struct {
	server *httptest.Server
	wire   *meter.Wire
	now    atomic.Pointer[http.Handler]
}

func listen(endpoint string) (*between, error) {
	to, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	b := &between{}
	var plain http.Handler = httputil.NewSingleHostReverseProxy(to)
	b.now.Store(&plain)
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*b.now.Load()).ServeHTTP(w, r) }))
	return b, nil
}

// meter has all calls metered from now on, for the tables that there are.
func (b *between) meter(ctx context.Context, endpoint string) error {
	raw := dynamotest.Client(endpoint)
	shapes, err := meter.Shapes(ctx, raw)
	if err != nil {
		return err
	}
	b.wire = meter.NewWire(endpoint, &meter.Meter{Raw: raw, Shapes: shapes})
	b.wire.Others = true
	var metered http.Handler = b.wire
	b.now.Store(&metered)
	return nil
}

func (b *between) close() {
	b.server.Close()
	if b.wire != nil {
		b.wire.Close()
	}
}

// costs prices the paths, by name. The notes tell what is consumed on other tables.
func (p priced) costs(ctx context.Context) (map[string]*Cost, []string, error) {
	for _, r := range p.traffic.routes() { // what a process asks for once
		if _, err := p.calls(ctx, r.send, 0); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	costs, notes := map[string]*Cost{}, []string{}
	for _, r := range p.traffic.routes() {
		seen := map[Cost]int{}
		var others []meter.Call
		for n := range pricedRequests {
			calls, err := p.calls(ctx, r.send, n)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", r.name, err)
			}
			own, rest := p.split(calls)
			seen[priceOf(own)]++
			others = append(others, rest...)
		}
		usual, times := mostFrequent(seen)
		if times < pricedAlike {
			return nil, nil, fmt.Errorf("%s: no %d of %d requests consumed the same: %v", r.name, pricedAlike, pricedRequests, seen)
		}
		costs[r.name] = &usual
		sum := priceOf(others)
		notes = append(notes, fmt.Sprintf("%s: %d of %d alike; besides, for each on quota counters and API keys: %.1f W %.1f R in %.1f calls",
			r.name, times, pricedRequests, sum.WriteUnits/pricedRequests, sum.ReadUnits/pricedRequests, float64(len(others))/pricedRequests))
	}
	return costs, notes, nil
}

// calls are those that a request makes until everything has come of it.
func (p priced) calls(ctx context.Context, send sender, n int) ([]meter.Call, error) {
	if err := p.settled(ctx); err != nil {
		return nil, err
	}
	if _, err := p.wire.Take(); err != nil {
		return nil, err
	}
	if code := send(ctx, n); code != "" {
		return nil, fmt.Errorf("unexpected answer: %s", code)
	}
	if err := p.settled(ctx); err != nil {
		return nil, err
	}
	return p.wire.Take()
}

// settled waits until each payment has its charge and nothing is called any more.
func (p priced) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.within)
	defer cancel()
	for {
		charges, err := p.provider.Charges(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		made := map[string]bool{}
		for _, c := range charges {
			made[c.Reference] = true
		}
		if !slices.ContainsFunc(p.traffic.accepted, func(a payment) bool { return !made[a.key] }) && p.wire.Idle() >= p.quiet {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("a payment has no charge, or calls do not end: %w", ctx.Err())
		case <-time.After(p.quiet/10 + time.Millisecond):
		}
	}
}

// split tells calls about records, messages and payments from those about other tables. Those without a price are nobody's request's.
func (p priced) split(calls []meter.Call) (own, others []meter.Call) {
	for _, c := range calls {
		if c.Unpriced || slices.ContainsFunc(c.Tables, func(table string) bool { return slices.Contains(p.own, table) }) {
			own = append(own, c)
			continue
		}
		others = append(others, c)
	}
	return own, others
}

func mostFrequent(seen map[Cost]int) (usual Cost, times int) {
	for cost, n := range seen {
		if n > times {
			usual, times = cost, n
		}
	}
	return usual, times
}

// costFile has what bench/cost has measured, held by a test of its own.
const costFile = "bench/cost/testdata/dynoxide.txt"

// ledgerWrites is what the ledger index of the payments table consumes of each payment, beside the business row that bench/cost writes.
const ledgerWrites = 1

// documented is what bench/cost says that the paths consume: of a payment the request and its delivery by a queue.
func documented(root string) (map[string]*Cost, error) {
	text, err := os.ReadFile(filepath.Join(root, costFile))
	if err != nil {
		return nil, err
	}
	_, group, _ := strings.Cut(string(text), "\ndeferred, 300 B of JSON ")
	group, _, _ = strings.Cut(group, "\n\n")
	rows := map[string]Cost{}
	for line := range strings.Lines(group) {
		cells := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1)
		if len(cells) != 11 {
			continue // the head
		}
		c := Cost{Calls: cells[10]}
		for column, into := range map[int]*float64{5: &c.WriteUnits, 6: &c.ReadUnits} {
			if cells[column] == "." {
				continue
			}
			if *into, err = strconv.ParseFloat(cells[column], 64); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", costFile, line, err)
			}
		}
		rows[cells[0]] = c
	}
	first, delivery, replay := rows["first"], rows["delivery, by queue"], rows["replay"]
	if first.Calls == "" || delivery.Calls == "" || replay.Calls == "" {
		return nil, fmt.Errorf("%s: no deferred operation with its delivery and replay", costFile)
	}
	return map[string]*Cost{
		"payment":     {first.Calls + ", " + delivery.Calls, first.WriteUnits + delivery.WriteUnits, first.ReadUnits + delivery.ReadUnits},
		"replay":      &replay,
		"status read": &replay, // what has ended is in the record; of what has not, the message is read as well
	}, nil
}

// price adds to the figures of the gateway what each of its paths consumes, which must be what bench/cost says.
func (p *Part) price(ctx context.Context, out *progress.Printer) error {
	root, err := localtool.Root()
	if err != nil {
		return err
	}
	want, err := documented(root)
	if err != nil {
		return err
	}
	want["payment"].WriteUnits += ledgerWrites
	costs, notes, err := priceGateway(ctx, root, out)
	p.priced(costs, want)
	p.Notes = append(p.Notes, notes...)
	return err
}

// priced has each figure with its cost, and says which cost is another than the wanted one.
func (p *Part) priced(costs, want map[string]*Cost) {
	for i, f := range p.Figures {
		p.Figures[i].Cost = costs[f.Path]
	}
	for _, path := range slices.Sorted(maps.Keys(costs)) {
		if *costs[path] != *want[path] {
			p.Wrong = append(p.Wrong, fmt.Sprintf("%s consumes %+v, and by bench/cost %+v", path, *costs[path], *want[path]))
		}
	}
}
