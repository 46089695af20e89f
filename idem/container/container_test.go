package container_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/container"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
	"github.com/idem-go/idem-aws/idem/storage"
)

// process is a container whose provider answers when the test says so.
type process struct {
	*testing.T
	cfg container.Config
	// called gets a value for each call of the provider, which returns once answer is closed.
	called, answer chan struct{}
	// polled gets the context of each receipt of wake-ups: it ends when the worker is told to end.
	polled chan context.Context
}

// polls is a queue that shows who asks it.
type polls struct {
	outbox.Consumer
	seen chan context.Context
}

func (p polls) Receive(ctx context.Context, most int) ([]outbox.Received, error) {
	select {
	case p.seen <- ctx:
	default:
	}
	return p.Consumer.Receive(ctx, most)
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func newProcess(t *testing.T) *process {
	t.Helper()
	p := &process{T: t, called: make(chan struct{}, 1), answer: make(chan struct{}), polled: make(chan context.Context, 1)}
	store := must(memstore.New(memstore.Config{}))(t)
	engine := must(idem.New(store, idem.Config{}))(t)
	topics := must(outbox.NewTopics(outbox.Config{}, outbox.Topic{
		Name: "mails.send", Keys: outbox.Keys{Honoured: true, Retention: 24 * time.Hour},
		Call: func(context.Context, storage.Message) outbox.Outcome {
			p.called <- struct{}{}
			<-p.answer
			return outbox.Delivered{Reference: "mail"}
		},
		Settle: func(storage.Message, outbox.Outcome) (outbox.Settlement, error) {
			response, err := idem.JSON(http.StatusCreated, "sent")
			return outbox.Settlement{Response: response}, err
		},
	}))(t)
	queue := memqueue.New(time.Now)
	worker := must(outbox.NewWorker(store, topics, queue, queue))(t)
	inline := must(outbox.NewInline(worker))(t)
	mw := must(middleware.New(engine, middleware.Config{Identify: func(*http.Request) (middleware.Identity, error) {
		return middleware.Identity{Tenant: "t"}, nil
	}}))(t)
	operation := idem.Operation{Name: "mails.create", Kind: idem.KindDeferred, Policy: idem.IETF(), Inline: inline}
	handler := must(mw.Handle(operation, middleware.Route{}, func(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
		tx.Send("mails.send", r.Body)
		return idem.JSON(http.StatusAccepted, "pending")
	}))(t)
	p.cfg = container.Config{
		Server: &http.Server{Handler: handler}, Listener: must(net.Listen("tcp", "127.0.0.1:0"))(t),
		Runner: must(outbox.NewRunner(worker, engine, nil))(t), Inline: inline, Run: outbox.RunConfig{Queue: polls{queue, p.polled}},
	}
	return p
}

// run starts the container, and returns what ends it and what it returned.
func (p *process) run() (stop func(), ended chan error) {
	ctx, stop := context.WithCancel(p.Context())
	ended = make(chan error, 1)
	go func() { ended <- container.Run(ctx, p.cfg) }()
	return stop, ended
}

// post sends a request, and returns where its status comes; 0 where there was no answer.
func (p *process) post() chan int {
	status := make(chan int, 1)
	go func() {
		r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, "http://"+p.cfg.Listener.Addr().String(), strings.NewReader(`{}`))
		if err != nil {
			p.Error(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", `"mail-17"`)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			status <- 0
			return
		}
		defer response.Body.Close()
		status <- response.StatusCode
	}()
	return status
}

// A request that calls the provider when the container is told to stop gets its final answer. The worker is not told to end before.
func TestRequestsEndBeforeTheWorker(t *testing.T) {
	p := newProcess(t)
	stopping := make(chan struct{})
	p.cfg.Stopping = func() { close(stopping) }
	stop, ended := p.run()
	status, worker := p.post(), <-p.polled
	<-p.called
	stop()
	<-stopping
	if err := worker.Err(); err != nil {
		t.Errorf("the worker was told to end while a request was under way: %v", err)
	}
	close(p.answer)
	if got := <-status; got != http.StatusCreated {
		t.Errorf("the client got %d, want 201", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run returned %v", err)
	}
	if worker.Err() == nil {
		t.Error("the worker goes on")
	}
}

// While Stopping waits for the load balancer, requests are still served.
func TestRequestsAreServedWhileStopping(t *testing.T) {
	p := newProcess(t)
	close(p.answer)
	p.cfg.Stopping = func() {
		if got := <-p.post(); got != http.StatusCreated {
			t.Errorf("the client got %d, want 201", got)
		}
	}
	stop, ended := p.run()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run returned %v", err)
	}
}

// What does not end within StopMax is reported, for requests and for their deliveries, and the worker ends all the same.
func TestRequestsThatDoNotEndAreReported(t *testing.T) {
	p := newProcess(t)
	p.cfg.StopMax = 10 * time.Millisecond
	stopping := make(chan struct{})
	p.cfg.Stopping = func() { close(stopping) }
	stop, ended := p.run()
	worker := <-p.polled
	status := p.post()
	<-p.called
	stop()
	<-stopping
	<-worker.Done()
	close(p.answer)
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, outbox.ErrUndrained) {
		t.Errorf("Run returned %v, want that requests and deliveries have not ended", err)
	}
	<-status
}

// A server that can't serve any more ends the rest in the same order: requests that it has, then the worker. Its error is returned.
func TestServerThatFailsEndsTheRestInOrder(t *testing.T) {
	p := newProcess(t)
	stopping := make(chan struct{})
	p.cfg.Stopping = func() { close(stopping) }
	_, ended := p.run()
	status, worker := p.post(), <-p.polled
	<-p.called
	if err := p.cfg.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-stopping:
	case err := <-ended:
		t.Fatalf("Run returned %v while a request was under way", err)
	}
	if err := worker.Err(); err != nil {
		t.Errorf("the worker was told to end while a request was under way: %v", err)
	}
	close(p.answer)
	if got := <-status; got != http.StatusCreated {
		t.Errorf("the client got %d, want 201", got)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Run returned %v, want the listener's error", err)
	}
	if worker.Err() == nil {
		t.Error("the worker goes on")
	}
}

// A configuration that is not complete is refused by name; one that the runner refuses ends the server.
func TestConfigurationIsRefused(t *testing.T) {
	for field, change := range map[string]func(*container.Config){
		"Config.Server":     func(c *container.Config) { c.Server = nil },
		"Config.Listener":   func(c *container.Config) { c.Listener = nil },
		"Config.Runner":     func(c *container.Config) { c.Runner = nil },
		"Config.Run.Queue":  func(c *container.Config) { c.Run.Queue = nil },
		"Config.StopMax":    func(c *container.Config) { c.StopMax = -1 },
		"RunConfig.Workers": func(c *container.Config) { c.Run.Workers = -1 },
	} {
		t.Run(field, func(t *testing.T) {
			p := newProcess(t)
			defer p.cfg.Listener.Close()
			cfg := p.cfg
			change(&cfg)
			var refused *idem.ConfigError
			if err := container.Run(t.Context(), cfg); !errors.As(err, &refused) || refused.Field != field {
				t.Errorf("Run returned %v, want a ConfigError of %s", err, field)
			}
			if field != "RunConfig.Workers" {
				return
			}
			if connection, err := net.Dial("tcp", p.cfg.Listener.Addr().String()); err == nil {
				connection.Close()
				t.Error("the server still listens")
			}
		})
	}
}
