// Command ledgerbench measures the drift job on an hour of many rows: it fills an emulator that it starts with payments that were
// charged, each with its message and its record, spread over one hour, and has as many workers as the hour has pieces compare it. It
// prints calls, units, time and memory, and fails where anything is compared twice, or not at all, or drifts.
//
//	go run ./functions/cmd/ledgerbench                  # 100,000 rows: minutes, most of them to fill the tables; 1,000,000 take 2.7 GB
//	go run ./functions/cmd/ledgerbench --removed        # rows two days old, whose messages and records TTL has removed
//
// It is here, and not in bench, because it measures what is internal to the functions.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/functions/internal/drift/hourly"
	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/progress"
)

type arguments struct {
	Endpoint string `default:"dynoxide" enum:"dynoxide,dynamodb-local" help:"The emulator to measure on: ${enum}."`
	Rows     int    `default:"100000" help:"Payments of the hour, 1,000 to 10,000,000."`
	Parts    int    `default:"4" help:"Pieces of the hour, and workers, 1 to 60."`
	Removed  bool   `help:"Without messages and records, as native TTL leaves rows after two days: what the last pass meets."`
}

func main() {
	var a arguments
	kong.Parse(&a, kong.Name("ledgerbench"), kong.Description("What comparing an hour of the ledger costs."))
	if err := a.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "ledgerbench:", err)
		os.Exit(1)
	}
}

func (a arguments) run(ctx context.Context) error {
	if a.Rows < 1000 || a.Rows > 10_000_000 {
		return fmt.Errorf("--rows = %d: must be 1,000 to 10,000,000", a.Rows)
	}
	if a.Parts < 1 || a.Parts > hourly.PartsMax {
		return fmt.Errorf("--parts = %d: must be 1 to %d", a.Parts, hourly.PartsMax)
	}
	printer := progress.New(os.Stderr)
	endpoint, err := emulator.OpenDynamoDB(ctx, a.Endpoint, printer)
	if err != nil {
		return err
	}
	defer endpoint.Stop()
	l, err := fill(ctx, endpoint.URL, "ledger", a.Rows, !a.Removed, func(done int) { printer.Line("%9d of %d rows", done, a.Rows) })
	if err != nil {
		return err
	}
	found, err := l.measure(ctx, a.Parts)
	if err != nil {
		return err
	}
	return found.print(os.Stdout)
}
