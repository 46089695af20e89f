// Command load measures requests per second, latencies, calls and consumed capacity under load, in one run:
//
//   - gateway: payments, replays and status reads through API Gateway of a deployed stack; afterwards the effects at the provider
//     simulator are counted, and calls and units are measured on a stack of its own, whose calls to DynamoDB pass a meter
//   - direct: the same against a handler in this process, over an emulator of DynamoDB that it starts
//   - growth: first requests and replays in tables of more and more records, which must consume the same
//   - beside: idem, its calls made by hand, and Powertools for AWS Lambda (TypeScript), in turns, over one emulator
//
// It fails where an answer is not the expected one, a key has not exactly one effect, a path through the gateway costs what bench/cost
// does not say, or the cost depends on the table.
//
//	make up && go run ./bench/load
//	go run ./bench/load --part direct --part growth --rows 10000,100000
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/progress"
)

type arguments struct {
	Part     []string      `default:"gateway,direct,growth,beside" enum:"gateway,direct,growth,beside" help:"What to measure: ${enum}."`
	Env      string        `default:".local/run.env" help:"Env file of the stack that the part gateway loads; make up writes it."`
	Endpoint string        `default:"dynoxide" enum:"dynoxide,dynamodb-local" help:"The emulator of the other parts: ${enum}."`
	Requests int           `default:"200" help:"Requests of each figure of gateway and direct; of growth and beside five times as many. At least 1."`
	Callers  []int         `default:"1,8,32" help:"How many callers send at once, each the next request as soon as it has an answer."`
	Rows     []int         `default:"10000,100000,1000000" help:"Records in the table, for the part growth."`
	Rounds   int           `default:"5" help:"Slices into which the requests of each side are cut, in the part beside; at least 1."`
	Settle   time.Duration `default:"10m" help:"How long the part gateway waits until every payment has its final answer."`
	Output   string        `default:"text" enum:"text,json" help:"${enum}."`
}

func main() {
	var a arguments
	kong.Parse(&a, kong.Name("load"), kong.Description("Rate, latency and cost of requests under load, through API Gateway, direct, by table size, and beside others."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := a.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// check returns an error for numbers that nothing can be measured with.
func (a arguments) check() error {
	if a.Requests < 1 || a.Rounds < 1 || a.Settle <= 0 {
		return fmt.Errorf("--requests %d --rounds %d --settle %s: at least 1, 1 and above 0", a.Requests, a.Rounds, a.Settle)
	}
	for flag, listed := range map[string][]int{"callers": a.Callers, "rows": a.Rows} {
		if len(listed) == 0 || slices.Min(listed) < 1 {
			return fmt.Errorf("--%s %v: each at least 1", flag, listed)
		}
	}
	return nil
}

// run measures the parts, prints what there is, and returns what is wrong with it.
func (a arguments) run(ctx context.Context) error {
	if err := a.check(); err != nil {
		return err
	}
	printer := progress.New(os.Stderr)
	report := Report{Date: time.Now(), Machine: machine()}
	failed := a.measure(ctx, &report, printer)
	write := report.writeText
	if a.Output == "json" {
		write = report.writeJSON
	}
	return errors.Join(write(os.Stdout), failed, report.err())
}

// measure adds the parts to the report. A part that could not be measured to its end is there with what it has.
func (a arguments) measure(ctx context.Context, report *Report, printer *progress.Printer) error {
	if slices.Contains(a.Part, "gateway") {
		g, err := openGateway(a.Env, a.Settle)
		if err != nil {
			return err
		}
		printer.Line("gateway")
		load := load()
		part, err := g.measure(ctx, a.Requests, a.Callers)
		if err == nil {
			printer.Line("gateway: calls and units")
			err = part.price(ctx, printer)
		}
		part.Load = load
		report.Parts = append(report.Parts, part)
		if err != nil {
			return fmt.Errorf("gateway: %w", err)
		}
	}
	for _, m := range []struct {
		part    string
		measure func(url string) (Part, error)
	}{
		{"direct", func(url string) (Part, error) { return measureDirect(ctx, url, a.Requests, a.Callers) }},
		{"growth", func(url string) (Part, error) {
			return measureGrowth(ctx, url, a.Rows, 5*a.Requests, func(done, of int) { printer.Line("%9d of %d records", done, of) })
		}},
		{"beside", func(url string) (Part, error) {
			folder, err := a.powertools(ctx, printer)
			if err != nil {
				return Part{}, err
			}
			return measureBeside(ctx, url, folder, turns{5 * a.Requests, a.Rounds, knownKeys}, a.Callers)
		}},
	} {
		if !slices.Contains(a.Part, m.part) {
			continue
		}
		printer.Line("%s", m.part)
		load := load()
		part, err := a.onEndpoint(ctx, printer, m.measure)
		part.Load = load
		if part.Name != "" {
			report.Parts = append(report.Parts, part)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.part, err)
		}
	}
	return nil
}

func (a arguments) powertools(ctx context.Context, printer *progress.Printer) (string, error) {
	root, err := localtool.Root()
	if err != nil {
		return "", err
	}
	return installPowertools(ctx, root, printer)
}

// onEndpoint measures on an emulator of its own, which is empty.
func (a arguments) onEndpoint(ctx context.Context, printer *progress.Printer, measure func(url string) (Part, error)) (Part, error) {
	endpoint, err := emulator.OpenDynamoDB(ctx, a.Endpoint, printer)
	if err != nil {
		return Part{}, err
	}
	defer endpoint.Stop()
	return measure(endpoint.URL)
}

// machine is what runs the measurement.
func machine() string {
	return fmt.Sprintf("%s/%s, %d processors, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}

// load is the machine's now, averaged over a minute: what other programs take of it.
func load() string {
	said, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	minute, _, _ := strings.Cut(string(said), " ")
	return minute
}
