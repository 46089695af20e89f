// Command worker is the program of docs/guides/containers.md: an API and its worker in one container, which stop without losing
// anything.
package main

import (
	"cmp"
	"context"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/internal/protection"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/container"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	p := protection.Must(newProcess(mail))
	listener := protection.Must(net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:8080")))
	log.Printf("listening on %s", listener.Addr())
	if err := p.run(ctx, listener); err != nil {
		log.Fatal(err)
	}
	log.Print("everything has ended")
}

// mail stands for a call of a provider. Yours uses package call.
func mail(ctx context.Context, m storage.Message) outbox.Outcome {
	if err := idem.Pause(ctx, 100*time.Millisecond); err != nil {
		return outbox.Ambiguous{Cause: err}
	}
	return outbox.Delivered{Reference: string(m.ID)}
}

// process is what runs in the container.
type process struct {
	server   *http.Server
	runner   *outbox.Runner
	queue    *memqueue.Queue
	inline   *outbox.Inline
	stopping atomic.Bool
}

func newProcess(call func(context.Context, storage.Message) outbox.Outcome) (*process, error) {
	store, err := memstore.New(memstore.Config{}) // in production dynamo.New
	if err != nil {
		return nil, err
	}
	engine, err := idem.New(store, idem.Config{}) // KillsAtDeadline stays false: leases are renewed while a handler runs
	if err != nil {
		return nil, err
	}
	topics, err := outbox.NewTopics(outbox.Config{InlineWakes: true}, outbox.Topic{
		Name: "mails.send", Call: call, Keys: outbox.Keys{Honoured: true, Retention: 24 * time.Hour},
		Settle: func(m storage.Message, _ outbox.Outcome) (outbox.Settlement, error) {
			response, err := idem.JSON(http.StatusCreated, map[string]string{"mail": string(m.OperationID)})
			return outbox.Settlement{Response: response}, err
		},
	})
	if err != nil {
		return nil, err
	}
	queue := memqueue.New(time.Now) // in production sqsqueue.New, and its Consumer
	worker, err := outbox.NewWorker(store, topics, queue, queue)
	if err != nil {
		return nil, err
	}
	p := &process{queue: queue}
	if p.inline, err = outbox.NewInline(worker); err != nil {
		return nil, err
	}
	if p.runner, err = outbox.NewRunner(worker, engine, nil); err != nil {
		return nil, err
	}
	handler, err := p.routes(engine, store)
	p.server = &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	return p, err
}

func (p *process) routes(engine *idem.Engine, store *memstore.Store) (http.Handler, error) {
	mw, err := middleware.New(engine, middleware.Config{Identify: protection.Identify})
	if err != nil {
		return nil, err
	}
	operation := idem.Operation{Name: "mails.create", Kind: idem.KindDeferred, Policy: idem.IETF(), Inline: p.inline}
	create, err := mw.Handle(operation, middleware.Route{}, func(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
		tx.Send("mails.send", r.Body)
		return idem.JSON(http.StatusAccepted, map[string]string{"mail": string(tx.OperationID())})
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /mails", create)
	mux.Handle("GET /v1/operations/{id}", mw.Status(store))
	mux.HandleFunc("GET /live", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /ready", p.ready)
	return mux, nil
}

// ready takes the container out of the load balancer as soon as it stops. It asks no store: a store that is down for all of them
// is no reason to restart any.
func (p *process) ready(w http.ResponseWriter, _ *http.Request) {
	if p.stopping.Load() {
		http.Error(w, "stopping", http.StatusServiceUnavailable)
	}
}

// run serves until ctx ends, and then ends what has begun: requests first, then what they deliver, then the worker.
func (p *process) run(ctx context.Context, listener net.Listener) error {
	return container.Run(ctx, container.Config{
		Server: p.server, Listener: listener,
		Runner: p.runner, Run: outbox.RunConfig{Queue: p.queue},
		Inline:   p.inline,
		Stopping: func() { p.stopping.Store(true) }, // /ready answers 503
	})
}
