package serve_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/idem-go/idem-aws/localstack/internal/serve"
)

// holding answers / at once and holds /held until Close.
type holding struct {
	held, closed chan struct{}
}

func (h *holding) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/held" {
		close(h.held)
		<-h.closed
	}
}

func (h *holding) Close() {
	select {
	case <-h.closed:
	default:
		close(h.closed)
	}
}

func TestUntilSignal(t *testing.T) {
	h := &holding{held: make(chan struct{}), closed: make(chan struct{})}
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serve.UntilSignal(context.Background(), write, "thing", "127.0.0.1:0", h) }()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "thing listening on ")
	if !ok || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("line %q", line)
	}
	held := make(chan error, 1)
	go func() {
		res, err := http.Get(url + "/held")
		if err == nil {
			err = res.Body.Close()
		}
		held <- err
	}()
	<-h.held
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if err := <-held; err != nil {
		t.Errorf("the held request ended with %v", err)
	}
}

func TestUntilSignalReportsATakenAddress(t *testing.T) {
	h := &holding{closed: make(chan struct{})}
	if err := serve.UntilSignal(t.Context(), io.Discard, "thing", "127.0.0.1:99999", h); err == nil {
		t.Error("no error")
	}
}

func TestUntilSignalEndsWhereNobodyCanBeTold(t *testing.T) {
	h := &holding{closed: make(chan struct{})}
	read, write := io.Pipe()
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	if err := serve.UntilSignal(t.Context(), write, "thing", "127.0.0.1:0", h); err == nil {
		t.Error("no error")
	}
}
