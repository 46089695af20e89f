// Command start measures how long each function takes from the start of its process to its request for the first event,
// as Lambda's INIT phase has it, against a runtime API of its own on 127.0.0.1; and how large the binaries are.
//
//	go run ./bench/start
//
// The functions are built as they are deployed, for this machine's architecture. It is the function's own share of a cold
// start: Lambda's for fetching the code and starting the sandbox comes before it. Nothing is called meanwhile: the
// functions open no connection before their first event.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/stack"
)

type arguments struct {
	Runs int `default:"25" help:"Starts of each function; one more before them is not counted."`
}

// environment is what the CDK app gives the functions, with addresses that nobody listens on.
var environment = []string{
	"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_LAMBDA_FUNCTION_NAME=bench",
	"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256", "AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_ENDPOINT_URL=http://127.0.0.1:1",
	"IDEMPOTENCY_TABLE=idempotency", "OUTBOX_TABLE=outbox", "PAYMENTS_TABLE=payments", "API_KEYS_TABLE=api-keys", "PROVIDER_URL=http://127.0.0.1:1",
	"AUTH=gateway", "WEBHOOK_SECRET=whsec_of_no_provider", "WAKE_UP_QUEUE_URL=http://127.0.0.1:1/0/wake-ups", "DEAD_LETTER_QUEUE_URL=http://127.0.0.1:1/0/dead",
	"DRIFT_TABLE=drift", "DRIFT_QUEUE_URL=http://127.0.0.1:1/0/drift",
}

func main() {
	var a arguments
	kong.Parse(&a, kong.Name("start"), kong.Description("Time from process start to the first event, and binary sizes."))
	if err := a.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
}

func (a arguments) run(ctx context.Context) error {
	if a.Runs < 1 {
		return fmt.Errorf("%d runs: at least 1 is needed", a.Runs)
	}
	binaries, err := built(ctx)
	if err != nil {
		return err
	}
	took, err := a.starts(ctx, binaries)
	if err != nil {
		return err
	}
	return a.render(binaries, took)
}

// built builds every function and returns the binaries' paths.
func built(ctx context.Context) (binaries []string, err error) {
	root, err := localtool.Root()
	if err != nil {
		return nil, err
	}
	if err := stack.BuildFunctions(ctx, root, runtime.GOARCH); err != nil {
		return nil, err
	}
	mains, err := filepath.Glob(filepath.Join(root, "functions", "*", "main.go"))
	for _, main := range mains {
		name := filepath.Base(filepath.Dir(main))
		binaries = append(binaries, filepath.Join(root, ".local", "build", runtime.GOARCH, name, "bootstrap"))
	}
	return binaries, err
}

// starts starts the binaries in turn, so that a busy minute of the machine is shared by all of them.
func (a arguments) starts(ctx context.Context, binaries []string) (map[string][]time.Duration, error) {
	took := map[string][]time.Duration{}
	for n := range a.Runs + 1 {
		for _, binary := range binaries {
			d, err := start(ctx, binary, environment)
			if err != nil {
				return nil, err
			}
			if n > 0 { // the first reads the binary from disk
				took[binary] = append(took[binary], d)
			}
		}
	}
	return took, nil
}

func (a arguments) render(binaries []string, took map[string][]time.Duration) error {
	fmt.Printf("Process start to first event, %d runs each, %s/%s, %s.\n\n", a.Runs, runtime.GOOS, runtime.GOARCH, runtime.Version())
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "function\tmedian\tfastest\tp90\tbinary\tzipped")
	for _, binary := range binaries {
		size, zipped, err := sizes(binary)
		if err != nil {
			return err
		}
		times := took[binary]
		slices.Sort(times)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1f MB\t%.1f MB\n", filepath.Base(filepath.Dir(binary)), milliseconds(times[len(times)/2]),
			milliseconds(times[0]), milliseconds(times[len(times)*9/10]), float64(size)/1e6, float64(zipped)/1e6)
	}
	return w.Flush()
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
