package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"time"
)

// runtimeAPI is what a function sees of Lambda while it starts (Lambda Developer Guide, "Using the Lambda runtime API"):
// it notes the first request for an event and never answers it.
type runtimeAPI struct {
	address string
	server  *http.Server
	ready   chan time.Time
}

func newRuntimeAPI() (*runtimeAPI, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("runtime API: %w", err)
	}
	r := &runtimeAPI{address: listener.Addr().String(), ready: make(chan time.Time, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(_ http.ResponseWriter, request *http.Request) {
		select {
		case r.ready <- time.Now():
		default:
		}
		<-request.Context().Done()
	})
	r.server = &http.Server{Handler: mux}
	go func() { _ = r.server.Serve(listener) }() // ends with close
	return r, nil
}

func (r *runtimeAPI) close() { _ = r.server.Close() }

// startWithin bounds one start; a function that takes longer has failed.
const startWithin = 30 * time.Second

// start runs a function until it asks for its first event, and returns how long that took.
func start(ctx context.Context, binary string, environment []string) (time.Duration, error) {
	api, err := newRuntimeAPI()
	if err != nil {
		return 0, err
	}
	defer api.close()
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	var output bytes.Buffer
	command := exec.CommandContext(ctx, binary)
	command.Env = append(environment, "AWS_LAMBDA_RUNTIME_API="+api.address)
	command.Stdout, command.Stderr = &output, &output
	started := time.Now()
	if err := command.Start(); err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case ready := <-api.ready:
		cancel()
		<-ended //nolint:errcheck // it was killed
		return ready.Sub(started), nil
	case err := <-ended:
		return 0, fmt.Errorf("%s ended before it asked for an event: %w\n%s", binary, err, output.Bytes())
	}
}
