// Command provider runs the payment-provider simulator of localstack/provider.
package main

import (
	"context"
	"os"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/localstack/internal/serve"
	"github.com/idem-go/idem-aws/localstack/provider"
)

type arguments struct {
	Address       string `default:"127.0.0.1:4580" env:"PROVIDER_ADDRESS" help:"Where to listen; port 0 takes a free one."`
	Seed          int64  `default:"1" help:"Seed of the probabilities of fault rules."`
	WebhookSecret string `env:"WEBHOOK_SECRET" help:"Secret that signs webhooks; without it they can't be switched on."`
	WebhookURL    string `env:"WEBHOOK_URL" help:"Where webhooks go until a setting says otherwise."`
}

func main() {
	var a arguments
	cli := kong.Parse(&a, kong.Name("provider"), kong.Description("A payment provider to test against: keys, webhooks, and faults on request."))
	simulator := provider.New(provider.Config{Seed: a.Seed, WebhookSecret: a.WebhookSecret, WebhookURL: a.WebhookURL})
	cli.FatalIfErrorf(serve.UntilSignal(context.Background(), os.Stdout, "provider", a.Address, simulator))
}
