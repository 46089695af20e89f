// Command faultproxy runs the proxy of localstack/faultproxy in front of a DynamoDB endpoint.
package main

import (
	"context"
	"os"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/localstack/audit"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/internal/serve"
)

type arguments struct {
	Target  string `required:"" env:"FAULTPROXY_TARGET" help:"Address of DynamoDB, as http://127.0.0.1:8000."`
	Address string `default:"127.0.0.1:4581" env:"FAULTPROXY_ADDRESS" help:"Where to listen; port 0 takes a free one."`
	LogMax  int    `default:"10000" help:"Number of requests that the log holds."`
}

func main() {
	var a arguments
	cli := kong.Parse(&a, kong.Name("faultproxy"), kong.Description("A proxy before DynamoDB that loses, delays and refuses on request."))
	proxy, err := faultproxy.New(faultproxy.Config{Target: a.Target, LogMax: a.LogMax, Journal: audit.Attributes()})
	cli.FatalIfErrorf(err)
	cli.FatalIfErrorf(serve.UntilSignal(context.Background(), os.Stdout, "faultproxy", a.Address, proxy))
}
