// Package container serves an API and runs its outbox's worker in one process outside of AWS Lambda: ECS, Kubernetes, or a machine
// of one's own. On shutdown it stops the API first, then the worker. A process that only works calls [outbox.Runner.Run] by itself; on
// Lambda package lambdaapp makes the functions.
package container

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// Config is what Run takes. Server, Listener and Runner are required.
type Config struct {
	// Server serves the API. Whatever else its Handler serves, such as health checks, is the application's.
	Server *http.Server
	// Listener is what the server listens on. Run closes it.
	Listener net.Listener
	// Runner delivers, sweeps and reconciles.
	Runner *outbox.Runner
	// Run is the runner's configuration. Its Queue is required.
	Run outbox.RunConfig
	// Inline is what delivers messages within requests. Nil where no operation has one.
	Inline *outbox.Inline
	// Stopping is called when the end begins, while the server still takes requests. It is the place to fail a readiness check,
	// and to wait until the load balancer knows. Default: nothing.
	Stopping func()
	// StopMax bounds how long requests, and what they deliver, may go on after that. The runner has Run.Drain after it, 20 s by
	// default: the platform must wait for longer than both before it kills. Default 50 s.
	StopMax time.Duration
}

// Run serves and works until ctx has ended, or until the server or the runner fails. Then it ends what has begun: first the
// requests, then what they deliver, then the worker. Until the last request has ended the worker goes on, because requests make
// work for it. What does not end in time keeps its rows, and another process continues from them.
//
// It returns nil where everything has ended; an [*idem.ConfigError] for a configuration that is not complete; the server's
// error; context.DeadlineExceeded for requests, and [outbox.ErrUndrained] for deliveries, that have not ended in time.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorking()
	served, worked := make(chan error, 1), make(chan error, 1)
	go func() { worked <- cfg.Runner.Run(working, cfg.Run) }()
	go func() { served <- cfg.Server.Serve(cfg.Listener) }()
	select {
	case <-ctx.Done():
	case err := <-served:
		served <- err
	case err := <-worked: // before it was told to end, for its configuration only
		worked <- err
	}
	failed := cfg.stopServing(ctx)
	stopWorking()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		failed = errors.Join(err, failed)
	}
	return errors.Join(failed, <-worked)
}

func (c Config) validate() error {
	missing := func(field string) error {
		return &idem.ConfigError{Field: "Config." + field, Value: nil, Rule: "must be given"}
	}
	switch {
	case c.Server == nil:
		return missing("Server")
	case c.Listener == nil:
		return missing("Listener")
	case c.Runner == nil:
		return missing("Runner")
	case c.Run.Queue == nil:
		return missing("Run.Queue")
	case c.StopMax < 0:
		return &idem.ConfigError{Field: "Config.StopMax", Value: c.StopMax, Rule: "must not be negative"}
	}
	return nil
}

// stopServing ends the requests, and what they deliver.
func (c Config) stopServing(ctx context.Context) error {
	if c.Stopping != nil {
		c.Stopping()
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(c.StopMax, 50*time.Second))
	defer cancel()
	err := c.Server.Shutdown(ending)
	if c.Inline != nil {
		err = errors.Join(err, c.Inline.Wait(ending))
	}
	return err
}
