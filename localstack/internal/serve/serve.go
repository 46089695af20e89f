// Package serve runs one of the test servers of this folder as a process: it listens, says where, and ends on a signal.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"
)

// drainMax is how long an answer under way may take once the process has been told to end.
const drainMax = 2 * time.Second

// Handler is a server that may hold requests back on purpose; Close lets go of them.
type Handler interface {
	http.Handler
	Close()
}

// UntilSignal serves h at address (host:port, port 0 = any free one) until ctx ends or SIGTERM or SIGINT arrives. Once
// it accepts connections it writes one line to out: "<name> listening on http://<host>:<port>".
func UntilSignal(ctx context.Context, out io.Writer, name, address string, h Handler) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	defer h.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if _, err := fmt.Fprintf(out, "%s listening on http://%s\n", name, listener.Addr()); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", name, err), server.Close())
	}
	select {
	case err := <-ended:
		return fmt.Errorf("%s: %w", name, err)
	case <-ctx.Done():
	}
	h.Close()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainMax)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", name, err), server.Close())
	}
	return nil
}
