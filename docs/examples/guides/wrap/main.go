// Command wrap is the program of docs/guides/protect-a-service.md: a service that writes for itself, protected as it is, with
// a probe that looks up what a crash left.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/internal/protection"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
)

func main() {
	store := protection.Must(memstore.New(memstore.Config{}))
	engine := protection.Must(idem.New(store, idem.Config{}))
	books := &ledger{}
	service := logged(protection.Must(routes(engine, http.HandlerFunc(books.pay))))
	queue := memqueue.New(time.Now)
	runner, err := newRunner(store, engine, queue, books, outbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(runner.Run(context.Background(), outbox.RunConfig{Queue: queue})) }()
	listener := protection.Must(net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8080")))
	log.Printf("listening on %s", listener.Addr())
	server := http.Server{Handler: service, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener))
}

// routes protects POST /payments, which pay serves.
func routes(engine *idem.Engine, pay http.Handler) (http.Handler, error) {
	mw, err := middleware.New(engine, middleware.Config{Identify: protection.Identify})
	if err != nil {
		return nil, err
	}
	operation := idem.Operation{
		Name: "payments.create", Policy: idem.IETF(),
		Probed:    true,                                 // the runner has a probe for it
		ReleaseOn: []int{http.StatusServiceUnavailable}, // pay answers 503 before it does anything
	}
	protected, err := mw.Wrap(operation, middleware.Route{}, pay)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /payments", protected)
	return mux, nil
}

// newRunner finds payments whose process died, and asks the ledger about them.
func newRunner(store *memstore.Store, engine *idem.Engine, queue *memqueue.Queue, books *ledger, cfg outbox.Config) (*outbox.Runner, error) {
	topics, err := outbox.NewTopics(cfg)
	if err != nil {
		return nil, err
	}
	worker, err := outbox.NewWorker(store, topics, queue, queue)
	if err != nil {
		return nil, err
	}
	return outbox.NewRunner(worker, engine, map[string]outbox.Probe{"payments.create": books.probe})
}

// ledger is the service's own database. It was there before idem.
type ledger struct {
	mu       sync.Mutex
	payments map[idem.OperationID]payment
}

type payment struct {
	Order  string `json:"order"`
	Amount int    `json:"amount"`
}

// pay is the handler as it was, but for one line: the payment is written under the operation's id, so that it can be found.
func (l *ledger) pay(w http.ResponseWriter, r *http.Request) {
	var p payment
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil || p.Amount <= 0 {
		http.Error(w, "a payment has an order and an amount", http.StatusBadRequest)
		return
	}
	execution, _ := idem.ExecutionFrom(r.Context())
	l.write(execution.OperationID, p)
	answer := created(p)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body) // a client that is gone asks again
}

func (l *ledger) write(id idem.OperationID, p payment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.payments == nil {
		l.payments = map[idem.OperationID]payment{}
	}
	l.payments[id] = p
}

// probe looks up what became of a payment. It never pays.
func (l *ledger) probe(_ context.Context, r storage.Record) outbox.Finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.payments[r.OperationID]
	if !ok {
		return outbox.Absent{}
	}
	return outbox.Executed{Response: created(p)}
}

// created is the answer of a payment, for pay and for probe.
func created(p payment) idem.Response {
	response, err := idem.JSON(http.StatusCreated, p)
	if err != nil {
		panic(err) // a payment is always JSON
	}
	return response
}

// logged stands around the protection, so that it sees replays and refusals, too.
func logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		log.Printf("%s %s %s", r.Method, r.URL.Path, cmp.Or(w.Header().Get("Idempotency-Status"), "refused"))
	})
}
