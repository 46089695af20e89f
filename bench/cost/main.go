// Command cost measures what idem costs: the calls to DynamoDB and the capacity that they consume, for each path that a
// request can take, on an emulator that it starts. The figures are the same on every run; a test holds them against
// testdata, so that a change of cost is seen in review:
//
//	go run ./bench/cost > bench/cost/testdata/dynoxide.txt
//
// For comparison, Powertools for AWS Lambda (TypeScript 2.35.0; docs/peers.md) consumes 1 + 10 W for a first request
// with a response of 10 KB and about 10 W for each replay, without a business write, a message or a status code.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/progress"
)

type arguments struct {
	Endpoint string `default:"dynoxide" enum:"dynoxide,dynamodb-local" help:"The emulator to measure on: ${enum}."`
}

func main() {
	var a arguments
	kong.Parse(&a, kong.Name("cost"), kong.Description("Calls to DynamoDB and consumed capacity, by path of a request."))
	if err := a.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func (a arguments) run(ctx context.Context) error {
	endpoint, err := emulator.OpenDynamoDB(ctx, a.Endpoint, progress.New(os.Stderr))
	if err != nil {
		return err
	}
	defer endpoint.Stop()
	app, err := newApp(ctx, endpoint.URL)
	if err != nil {
		return err
	}
	rows, err := measure(ctx, app)
	if err != nil {
		return err
	}
	return render(os.Stdout, rows)
}
