// Command capacity prints what a deployment of the payments application on AWS needs for a rate of payments: partitions and
// shards, concurrency, throughput, quotas to raise, and dollars a month; and what of it the stack as it is deployed does not
// carry yet.
//
//	go run ./bench/capacity --rate 10000
//
// It calls nothing. Units come from the goldens of bench/cost, prices from bench/price, what is deployed from the golden
// template of infra/stack, and provisioned capacity from infra/spec, with which the stack computes it too. Rates and latencies are
// the caller's; nothing here was measured on AWS.
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/internal/localtool"
)

type arguments struct {
	Traffic Traffic `embed:""`
	Output  string  `default:"text" enum:"text,json" help:"${enum}."`
}

// Traffic is what the plan is for. Latencies are averages, of an invocation.
type Traffic struct {
	Rate        float64 `json:"payments_per_second" default:"1000" help:"Payments per second, at peak; up to 1,000,000."`
	Replays     float64 `json:"replays_per_payment" default:"0.1" help:"Repetitions of a request per payment. Assumed."`
	Polls       float64 `json:"polls_per_payment" default:"1" help:"Look-ups of an operation per payment. Assumed."`
	Webhooks    float64 `json:"webhooks_per_payment" default:"0" help:"Webhooks of the provider per payment. None without the context webhookSecret."`
	Outbox      string  `json:"outbox" default:"sqs" enum:"sqs,streams" help:"As the context outbox: ${enum}. A production stage's default is sqs."`
	Keys        float64 `json:"keys" default:"1000" help:"API keys in use at once. Each process of the authorizer holds a key for a minute before it reads it again. Assumed."`
	Tenants     float64 `json:"tenants" default:"1000" help:"Tenants that the payments come from, each as many. Assumed."`
	Utilisation float64 `json:"utilisation" default:"0.7" help:"Share of a capacity that is planned for: hashes and requests come in lumps. Assumed."`

	API        time.Duration `json:"api_ns" name:"api-latency" default:"40ms" help:"Of api: a read, the counters of the quotas and a transaction. Assumed."`
	Authorizer time.Duration `json:"authorizer_ns" name:"authorizer-latency" default:"10ms" help:"Of authorizer: a read. Assumed."`
	Worker     time.Duration `json:"worker_ns" name:"worker-latency" default:"1s" help:"Of worker: the slowest of a batch's calls to the provider. Assumed; the provider's figures are needed."`
	Webhook    time.Duration `json:"webhook_ns" name:"webhook-latency" default:"40ms" help:"Of webhook: three reads and a transaction. Assumed."`
	Relay      time.Duration `json:"relay_ns" name:"relay-latency" default:"50ms" help:"Of relay: one request to SQS. Assumed."`

	LogBytes float64 `json:"log_bytes_per_payment" default:"2500" help:"Logged per payment. Lines of api and worker have 420 bytes on average, and Lambda adds three to each invocation."`
}

// The largest of each kind of figure that a plan is made for.
const (
	rateMax    = 1e6
	perPayment = 1000
	latencyMax = 15 * time.Minute // Lambda's
)

func (t Traffic) check() error {
	for _, of := range []struct {
		flag       string
		value      float64
		above, max float64
		zero       bool
	}{
		{"rate", t.Rate, 0, rateMax, false},
		{"replays", t.Replays, 0, perPayment, true},
		{"polls", t.Polls, 0, perPayment, true},
		{"webhooks", t.Webhooks, 0, perPayment, true},
		{"keys", t.Keys, 0, 1e9, false},
		{"tenants", t.Tenants, 0, 1e9, false},
		{"utilisation", t.Utilisation, 0, 1, false},
		{"log-bytes", t.LogBytes, 0, 1e6, true},
	} {
		if of.value > 0 && of.value <= of.max || of.zero && of.value == 0 { // not so for NaN
			continue
		}
		rule := fmt.Sprintf("must be above 0 and at most %s", figure(of.max))
		if of.zero {
			rule = fmt.Sprintf("must be 0 to %s", figure(of.max))
		}
		return fmt.Errorf("--%s = %v: %s", of.flag, of.value, rule)
	}
	for flag, latency := range map[string]time.Duration{
		"api-latency": t.API, "authorizer-latency": t.Authorizer, "worker-latency": t.Worker, "webhook-latency": t.Webhook, "relay-latency": t.Relay,
	} {
		if latency <= 0 || latency > latencyMax {
			return fmt.Errorf("--%s = %s: must be above 0 and at most %s", flag, latency, latencyMax)
		}
	}
	return nil
}

func main() {
	var a arguments
	cli := kong.Parse(&a, kong.Name("capacity"), kong.Description("What a rate of payments needs on AWS."), kong.UsageOnError())
	cli.FatalIfErrorf(a.run(os.Stdout))
}

func (a arguments) run(out io.Writer) error {
	if err := a.Traffic.check(); err != nil {
		return err
	}
	root, err := localtool.Root()
	if err != nil {
		return err
	}
	facts, err := readFacts(root)
	if err != nil {
		return err
	}
	plan := newPlan(a.Traffic, facts)
	if a.Output == "json" {
		return writeJSON(out, plan)
	}
	return writeText(out, plan)
}
