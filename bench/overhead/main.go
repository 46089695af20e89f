// Command overhead measures what idem takes of a client's CPU and time over the calls to DynamoDB that it makes: requests
// through the middleware beside the same calls of the AWS SDK made by hand, with the same items, on an emulator that it
// starts. Both run in turn in one process, so that what else the machine does falls on both. The goal is 1.25 times the
// CPU.
//
//	go run ./bench/overhead                                   # some minutes
//	go run ./bench/overhead --path wrapped --profile wrapped  # wrapped.idem.pprof and wrapped.hand.pprof
//	go tool pprof -top -cum wrapped.idem.pprof
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/progress"
)

type arguments struct {
	Requests int    `default:"1000" help:"Requests of a batch, on each side; at least 1."`
	Rounds   int    `default:"5" help:"Pairs of batches for each figure, which is their median; at least 1."`
	Path     string `help:"Only the path that this names, such as wrapped."`
	Profile  string `help:"Write CPU profiles of the one path that --path names to <this>.idem.pprof and <this>.hand.pprof, in place of the table."`
}

func main() {
	var a arguments
	kong.Parse(&a, kong.Name("overhead"), kong.Description("CPU and time of a request, over the same calls made by hand."))
	if err := a.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

func (a arguments) run(ctx context.Context) error {
	if a.Requests < 1 || a.Rounds < 1 {
		return fmt.Errorf("--requests %d --rounds %d: at least 1", a.Requests, a.Rounds)
	}
	paths, err := named(a.Path)
	if err != nil {
		return err
	}
	if a.Profile != "" && len(paths) != 1 {
		return fmt.Errorf("--profile %s: give --path, one of %q", a.Profile, pathNames())
	}
	endpoint, err := emulator.OpenDynamoDB(ctx, localtool.Dynoxide, progress.New(os.Stderr))
	if err != nil {
		return err
	}
	defer endpoint.Stop()
	sides, err := open(ctx, endpoint.URL, paths)
	if err != nil {
		return err
	}
	if a.Profile != "" {
		return profile(sides[0], a.Requests*a.Rounds, a.Profile)
	}
	return measure(os.Stdout, sides, a.Requests, a.Rounds)
}
