// Command container is an API and its outbox's worker in one process, for ECS, Kubernetes or a machine of one's own: a payment is
// accepted, charged at a provider once, and answered.
//
// A message gets to a worker in three ways. The request that sends it delivers it (outbox.NewInline): this is how almost all are.
// A call that has to be made again waits in a queue in memory, which is enough because it is only a hint. What a process left
// when it died is found by the sweep of any other one, in the sparse index of the outbox table. Where many processes share the
// load, sqsqueue takes the queue's place, and the relay function wakes workers for what no request delivers.
package main

import (
	"context"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/container"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
)

// settings are the command line's.
type settings struct {
	listen, provider     string
	claimLease, call     time.Duration
	sweepPeriod, stopMax time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.listen, "listen", "127.0.0.1:8080", "the address to listen on")
	flag.StringVar(&s.provider, "provider", "", "the provider's URL")
	flag.DurationVar(&s.claimLease, "claim-lease", 10*time.Second, "how long a claim is the right to call; a dead process's message waits so long")
	flag.DurationVar(&s.call, "call-timeout", 5*time.Second, "how long one call of the provider may take")
	flag.DurationVar(&s.sweepPeriod, "sweep", time.Minute, "how often messages that nobody works on are looked for")
	flag.DurationVar(&s.stopMax, "stop-max", 25*time.Second, "how long requests may go on after SIGTERM; the worker has 20 s after them, and the platform must wait for both before SIGKILL")
	flag.Parse()
	// The platform's log takes one JSON document a line.
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, s); err != nil {
		slog.Error("ended", "error", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and then finishes what it holds.
func run(ctx context.Context, s settings) error {
	p, err := newProcess(ctx, s)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	slog.Info("listening", "address", listener.Addr().String())
	return container.Run(ctx, container.Config{
		Server: &http.Server{Handler: p.handler, ReadHeaderTimeout: 10 * time.Second}, Listener: listener,
		Runner: p.runner, Run: outbox.RunConfig{Queue: p.queue, Period: s.sweepPeriod},
		Inline: p.inline, StopMax: s.stopMax,
		Stopping: func() { slog.Info("stopping") },
	})
}

// process is what API and worker share.
type process struct {
	handler http.Handler
	runner  *outbox.Runner
	inline  *outbox.Inline
	queue   *memqueue.Queue
}

func newProcess(ctx context.Context, s settings) (*process, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	store, err := dynamo.New(dynamodb.NewFromConfig(cfg), dynamo.Config{IdempotencyTable: "shop-idempotency", OutboxTable: "shop-outbox"})
	if err != nil {
		return nil, err
	}
	// The tables keep how many shards were ever written into, so that a release with fewer, which is gone back to, lists all of them.
	if _, err := store.CheckShards(ctx); err != nil {
		return nil, err
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		return nil, err
	}
	charge, err := charges(s.provider)
	if err != nil {
		return nil, err
	}
	topics, err := outbox.NewTopics(outbox.Config{ClaimLease: s.claimLease, CallTimeout: s.call, InlineWakes: true}, charge)
	if err != nil {
		return nil, err
	}
	p := &process{queue: memqueue.New(time.Now)}
	worker, err := outbox.NewWorker(store, topics, p.queue, p.queue)
	if err != nil {
		return nil, err
	}
	if p.inline, err = outbox.NewInline(worker); err != nil {
		return nil, err
	}
	if p.runner, err = outbox.NewRunner(worker, engine, nil); err != nil {
		return nil, err
	}
	p.runner.AdoptShards(store.CheckShards)
	p.handler, err = routes(engine, store, p.inline)
	return p, err
}

// routes are the API, and what the platform asks.
func routes(engine *idem.Engine, store *dynamo.Store, inline *outbox.Inline) (http.Handler, error) {
	mw, err := middleware.New(engine, middleware.Config{Identify: identify})
	if err != nil {
		return nil, err
	}
	operation := idem.Operation{Name: "payments.create", Kind: idem.KindDeferred, Policy: idem.IETF(), Inline: inline}
	pay, err := mw.Handle(operation, middleware.Route{}, accept)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /payments", pay)
	mux.Handle("GET /v1/operations/{id}", mw.Status(store))
	// It does not ask the tables: when these don't answer, to replace every container helps nobody. A process whose worker has
	// ended ends itself.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return mux, nil
}

// identify says whose key it is. A service would check the password.
func identify(r *http.Request) (middleware.Identity, error) {
	name, _, ok := r.BasicAuth()
	if !ok || name == "" {
		return middleware.Identity{}, middleware.ErrUnauthenticated
	}
	return middleware.Identity{Tenant: name}, nil
}
