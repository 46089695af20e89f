package container_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/container"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
)

// A service calls Run with a context that ends at SIGTERM: signal.NotifyContext makes one. Here the service stops itself.
func ExampleRun() {
	store, err := memstore.New(memstore.Config{}) // in production dynamo.New
	if err != nil {
		log.Fatal(err)
	}
	engine, err := idem.New(store, idem.Config{ScopeSecret: make([]byte, 32)}) // in production 32 random bytes
	if err != nil {
		log.Fatal(err)
	}
	topics, err := outbox.NewTopics(outbox.Config{}) // and the service's topics
	if err != nil {
		log.Fatal(err)
	}
	queue := memqueue.New(time.Now)
	worker, err := outbox.NewWorker(store, topics, queue, queue)
	if err != nil {
		log.Fatal(err)
	}
	runner, err := outbox.NewRunner(worker, engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		response, err := http.Get("http://" + listener.Addr().String() + "/live")
		if err != nil {
			log.Fatal(err)
		}
		response.Body.Close()
		fmt.Println(response.Status)
		stop()
	}()
	err = container.Run(ctx, container.Config{
		Server:   &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})},
		Listener: listener,
		Runner:   runner,
		Run:      outbox.RunConfig{Queue: queue},
		Stopping: func() { fmt.Println("stopping") },
	})
	fmt.Println("ended:", err)
	// Output:
	// 200 OK
	// stopping
	// ended: <nil>
}
