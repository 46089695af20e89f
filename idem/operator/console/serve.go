package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
)

// Listen listens on 127.0.0.1; port 0 takes a free one.
func Listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// marginal is for what a request does besides asking the desk.
const marginal = 10 * time.Second

// changeWithin is for how long a change goes on at the most, with its last write into the audit log.
func (c *Console) changeWithin() time.Duration {
	return c.cfg.ChangeWithin + operator.AuditWithin + marginal
}

// Serve serves the console until the context ends, and waits for changes under way. It refuses a listener on any address but
// the console's own, which is a loopback one. It closes the listener.
func (c *Console) Serve(ctx context.Context, l net.Listener) error {
	if l.Addr().String() != c.cfg.Address {
		return errors.Join(fmt.Errorf("console: the listener is on %s, not on %s", l.Addr(), c.cfg.Address), l.Close())
	}
	server := &http.Server{
		Handler: c, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: c.cfg.Within + c.changeWithin(), IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.changeWithin())
		defer cancel()
		ended <- server.Shutdown(last)
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	err := <-ended
	c.Close()
	return err
}
