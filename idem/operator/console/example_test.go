package console_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/console"
	"github.com/idem-go/idem-aws/idem/operator/memlog"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
)

// newDesk makes the desk that the console works with. An application has its own store, topics and audit log.
func newDesk() (*operator.Desk, error) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return nil, err
	}
	engine, err := idem.New(store, idem.Config{})
	if err != nil {
		return nil, err
	}
	topics, err := outbox.NewTopics(outbox.Config{})
	if err != nil {
		return nil, err
	}
	queue := memqueue.New(time.Now)
	return operator.New(operator.Config{
		Store: store, Engine: engine, Topics: topics, WakeUps: queue, DeadLetters: queue, Audit: memlog.New(),
	})
}

func get(browser *http.Client, address string) (status int, body string, err error) {
	response, err := browser.Get(address)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, string(raw), err
}

// The console is served on this machine. Only whoever has the address that Enter returns is let in.
func Example() {
	desk, err := newDesk()
	if err != nil {
		log.Fatal(err)
	}
	listener, err := console.Listen(0)
	if err != nil {
		log.Fatal(err)
	}
	page, err := console.New(console.Config{Desk: desk, Address: listener.Addr().String(), About: "shop, staging"})
	if err != nil {
		log.Fatal(err)
	}
	defer page.Close()

	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- page.Serve(ctx, listener) }()

	jar, err := cookiejar.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	overview := "http://" + listener.Addr().String() + "/"
	for _, address := range []string{overview, page.Enter(), overview} {
		status, body, err := get(browser, address)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(status, "shows what is unknown:", strings.Contains(body, "/queue/unknown"))
	}

	stop()
	if err := <-served; err != nil {
		log.Fatal(err)
	}
	// Output:
	// 403 shows what is unknown: false
	// 200 shows what is unknown: false
	// 200 shows what is unknown: true
}
