// Command sweep proves that sweeps and reconcilers cost what is stuck, and not what the tables hold. It fills the two tables
// on an emulator that it starts, a hundred rows of which are stuck, lets sweeps and reconcilers bring these to an end, and
// prints the calls and the capacity that this took; first with few rows, then with many. The figures must be the same:
//
//	go run ./bench/sweep                    # 1,000 rows and 1,000,000; about five minutes
//	go run ./bench/sweep --rows 20000       # seconds
//
// With --due it measures what an outage leaves: so many messages that are due, offered to a queue by a sweep for each shard, side by
// side, once a minute. It prints calls, capacity and time, by minute and by shard, until everything was offered; and, for comparison,
// a minute of sweeps that read each message.
//
//	go run ./bench/sweep --due 1000000      # about ten minutes, most of it to fill the table
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// fewRows is what many rows are compared with.
const fewRows = 1000

type arguments struct {
	Endpoint string `default:"dynoxide" enum:"dynoxide,dynamodb-local" help:"The emulator to measure on: ${enum}."`
	Due      int    `default:"0" help:"Due messages to offer to a queue, at least 1,000; 0 measures tables of --rows instead."`
	Rows     int    `default:"1000000" help:"Rows of both tables together, at least 1,000; 100 of them are stuck."`
}

func main() {
	var a arguments
	kong.Parse(&a, kong.Name("sweep"), kong.Description("What sweeps and reconcilers cost, by the size of the tables."))
	if err := a.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "sweep:", err)
		os.Exit(1)
	}
}

// errGrows: the cost depends on the table.
var errGrows = errors.New("the cost grows with the table")

func (a arguments) run(ctx context.Context) error {
	if a.Due != 0 {
		return a.runDue(ctx)
	}
	if a.Rows < fewRows {
		return fmt.Errorf("--rows %d: at least %d", a.Rows, fewRows)
	}
	printer := progress.New(os.Stderr)
	endpoint, err := emulator.OpenDynamoDB(ctx, a.Endpoint, printer)
	if err != nil {
		return err
	}
	defer endpoint.Stop()
	var measured [][]stage
	for _, rows := range []int{fewRows, a.Rows} {
		stages, err := measure(ctx, endpoint.URL, rows, func(done int) { printer.Line("%9d of %d rows", done, rows) })
		if err != nil {
			return err
		}
		if err := render(os.Stdout, rows, stages); err != nil {
			return err
		}
		measured = append(measured, stages)
	}
	if !slices.EqualFunc(measured[0], measured[1], stage.equal) {
		return errGrows
	}
	return nil
}

func (a arguments) runDue(ctx context.Context) error {
	if a.Due < fewRows {
		return fmt.Errorf("--due %d: at least %d", a.Due, fewRows)
	}
	printer := progress.New(os.Stderr)
	endpoint, err := emulator.OpenDynamoDB(ctx, a.Endpoint, printer)
	if err != nil {
		return err
	}
	defer endpoint.Stop()
	b, err := newBacklog(ctx, endpoint.URL, a.Due, wakeUpsMax, func(done int) { printer.Line("%9d of %d rows", done, a.Due) })
	if err != nil {
		return err
	}
	minutes, err := b.minutes(ctx)
	if err != nil {
		return err
	}
	reading, err := b.run(ctx, 0)
	if err != nil {
		return err
	}
	return renderDue(os.Stdout, a.Due, wakeUpsMax, minutes, reading)
}
