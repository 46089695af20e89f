package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/idem-go/idem-aws/bench/meter"
	"github.com/idem-go/idem-aws/idem"
)

// response is a final response of the measured operations.
type response struct {
	name string
	body []byte
}

func responses() []response {
	noise := make([]byte, 10<<10)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(noise)
	return []response{
		{"300 B of JSON", documents(300)},
		{"1,000 B of JSON", documents(1000)},
		{"10 KB of JSON", documents(10 << 10)},
		{"10 KB of noise", noise},
	}
}

// documents is a JSON array of payments, at most size bytes long: as repetitive as such documents are, with ids that are
// not.
func documents(size int) []byte {
	source := rand.New(rand.NewPCG(1, 2))
	type document struct {
		ID       string `json:"id"`
		Amount   int    `json:"amount"`
		Currency string `json:"currency"`
		Status   string `json:"status"`
	}
	var listed []document
	var body []byte
	for {
		listed = append(listed, document{fmt.Sprintf("pay_%016x", source.Uint64()), source.IntN(100_000), "EUR", "succeeded"})
		longer, err := json.Marshal(listed)
		if err != nil { // strings and ints always encode
			panic(err)
		}
		if len(longer) > size {
			return body
		}
		body = longer
	}
}

// row is what one path of one operation costs.
type row struct {
	operation, response, path string
	calls                     []meter.Call
	// recordBytes is the size of the record afterwards.
	recordBytes int
}

func (r row) ruled() meter.Units {
	var sum meter.Units
	for _, c := range r.calls {
		sum = sum.Plus(c.Ruled)
	}
	return sum
}

// run takes one operation with one response through its paths.
type run struct {
	*app
	ctx       context.Context
	operation idem.Operation
	response  response
	rows      []row
	err       error
}

// measure takes every operation with every response through its paths.
func measure(ctx context.Context, a *app) ([]row, error) {
	var rows []row
	if err := a.warm(ctx); err != nil {
		return nil, fmt.Errorf("warm up: %w", err)
	}
	for _, op := range operations() {
		for _, response := range responses() {
			r := &run{app: a, ctx: ctx, operation: op, response: response}
			r.all()
			if err := errors.Join(r.err, a.meter.Err); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", op.Name, response.name, err)
			}
			rows = append(rows, r.rows...)
		}
	}
	return rows, nil
}

// warm has the engine and the worker read when data may have been lost, which each does once a minute and for no path.
func (a *app) warm(ctx context.Context) error {
	r := &run{app: a, ctx: ctx, operation: idem.Operation{Name: "bench.deferred", Kind: idem.KindDeferred}}
	r.script = script{body: documents(300)}
	r.expect(r.send(r.key()), http.StatusAccepted, idem.OutcomeExecuted)
	r.fail(r.worker.Deliver(ctx, r.sent))
	r.meter.Take()
	return errors.Join(r.err, a.meter.Err)
}

func (r *run) all() {
	r.script = script{body: r.response.body}
	key := r.key()
	r.expect(r.send(key), r.firstStatus(), idem.OutcomeExecuted)
	r.path("first", r.meter.Take())
	if r.firstStatus() == http.StatusAccepted {
		r.expect(r.send(key), http.StatusAccepted, idem.OutcomeReplayed)
		r.path("replay of the 202", r.meter.Take())
	}
	if r.firstStatus() == http.StatusAccepted || r.operation.Name == messageOperation {
		r.deliver()
	}
	r.expect(r.send(key), http.StatusCreated, idem.OutcomeReplayed)
	r.path("replay", r.meter.Take())
	r.expect(r.post(r.operation.Name, key, `{"amount":501}`), http.StatusUnprocessableEntity, idem.OutcomeMismatch)
	r.path("mismatch", r.meter.Take())
	r.inProgress()
	r.rejected()
}

func (r *run) send(key string) reply { return r.post(r.operation.Name, key, `{"amount":500}`) }

func (r *run) firstStatus() int {
	if r.operation.Kind == idem.KindDeferred && r.operation.Name != inlineOperation {
		return http.StatusAccepted
	}
	return http.StatusCreated
}

// deliver has the worker woken by the stream, and for another message by the queue.
func (r *run) deliver() {
	image, err := r.image(r.ctx, r.sent)
	if err == nil {
		err = r.worker.DeliverSeen(r.ctx, *image)
	}
	r.fail(err)
	r.path("delivery, by stream", r.meter.Take())

	r.send(r.key())
	r.meter.Take()
	r.fail(r.worker.Deliver(r.ctx, r.sent))
	r.path("delivery, by queue", r.meter.Take())
}

// inProgress sends the same request while its handler runs. Where there is no lease both execute, and what is measured is
// the one that loses.
func (r *run) inProgress() {
	key := r.key()
	var before, duplicate []meter.Call
	var answer reply
	r.script.during = func() {
		before = r.meter.Take()
		answer = r.send(key)
		duplicate = r.meter.Take()
	}
	own := r.send(key)
	after := r.meter.Take()
	if r.operation.Kind == idem.KindAtomic || r.operation.Kind == idem.KindWrapped {
		r.expect(answer, http.StatusConflict, idem.OutcomeInProgress)
		r.expect(own, r.firstStatus(), idem.OutcomeExecuted)
		r.path("conflict", duplicate)
		return
	}
	r.expect(answer, r.firstStatus(), idem.OutcomeExecuted)
	r.expect(own, r.firstStatus(), idem.OutcomeReplayed)
	r.path("conflict", append(before, after...))
}

func (r *run) rejected() {
	r.script.ending = rejects
	r.expect(r.send(r.key()), http.StatusPaymentRequired, idem.OutcomeExecuted)
	r.path("reject", r.meter.Take())
	if r.operation.Kind == idem.KindWrapped {
		return
	}
	r.script.ending = collides
	r.expect(r.send(r.key()), http.StatusPaymentRequired, idem.OutcomeExecuted)
	r.path("reject by condition", r.meter.Take())
}

func (r *run) path(name string, calls []meter.Call) {
	r.rows = append(r.rows, row{r.operation.Name, r.response.name, name, calls, r.meter.RecordBytes})
}

// expect keeps a path that went another way from being taken for this one.
func (r *run) expect(got reply, status int, became idem.Outcome) reply {
	if got.status != status || got.became != became {
		r.fail(fmt.Errorf("got %d %s, want %d %s: %s", got.status, got.became, status, became, got.body))
	}
	return got
}

func (r *run) fail(err error) { r.err = errors.Join(r.err, err) }
