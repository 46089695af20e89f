package idemctl_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/idem/operator/memlog"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/memqueue"
)

// build makes the desk. An application gives it its own store, topics and audit log, as its environment names them.
func build(context.Context) (*operator.Desk, error) {
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

// The application's own command. Its main function calls Main; Run takes the command line as an argument.
func ExampleRun() {
	app := idemctl.App{Build: build}
	code := idemctl.Run(context.Background(), app, []string{"list", "unknown"}, os.Stdout, os.Stderr)
	fmt.Println("exit code:", code == idemctl.ExitOK)
	// Output:
	// nothing
	// exit code: true
}
