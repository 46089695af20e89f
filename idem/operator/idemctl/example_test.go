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

// An operator lists what is unknown, and asks what a change would do: without --write nothing is changed. The
// application's main function calls Main; Run takes the command line as an argument.
func ExampleRun() {
	app := idemctl.App{Build: build}
	for _, line := range [][]string{
		{"list", "unknown"},
		{"sweep", "--actor", "ada", "--reason", "the schedule was paused"},
	} {
		if code := idemctl.Run(context.Background(), app, line, os.Stdout, os.Stderr); code != idemctl.ExitOK {
			fmt.Println("exit code", code)
		}
	}
	// Output:
	// nothing
	// dry run: would sweep all: offer, cancel and park what is due
	// nothing was changed; add --write to do it
}
