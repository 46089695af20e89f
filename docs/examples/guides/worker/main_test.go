package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// The container is told to stop while it calls the provider. The client gets the final answer, and run returns without an error.
func TestARequestThatIsUnderWayIsEndedBeforeTheContainer(t *testing.T) {
	calling, answer := make(chan struct{}), make(chan struct{})
	p := check.Get(newProcess(func(context.Context, storage.Message) outbox.Outcome {
		close(calling)
		<-answer
		return outbox.Delivered{Reference: "mail-1"}
	}))(t)
	listener := check.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx, listener) }()

	status := make(chan int, 1)
	go func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+listener.Addr().String()+"/mails", strings.NewReader(`{}`))
		if err != nil {
			t.Error(err)
			return
		}
		r.SetBasicAuth("customer-1", "secret")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", `"mail-17"`)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		defer response.Body.Close()
		status <- response.StatusCode
	}()
	<-calling
	check.Send(t, p.server.Handler, "GET", "/ready", "", "").Want(t, 200, "")
	stop()
	for !p.stopping.Load() {
		time.Sleep(time.Millisecond)
	}
	check.Send(t, p.server.Handler, "GET", "/ready", "", "").Want(t, 503, "")
	check.Send(t, p.server.Handler, "GET", "/live", "", "").Want(t, 200, "")
	select {
	case err := <-ended:
		t.Fatalf("run returned %v while a call was under way", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(answer)
	if got := <-status; got != http.StatusCreated {
		t.Errorf("the client got %d, want 201", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
