// Command mutants changes the code on purpose and demands that tests fail (localstack/mutants).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/localstack/mutants"
)

type arguments struct {
	Root     string `default:"." help:"The checkout."`
	Only     string `help:"Only mutants whose name or file matches this regular expression."`
	Generate int    `default:"0" help:"How many mutants to make by rule, besides those that are listed."`
	Seed     uint64 `default:"1" help:"Which of them, and of a sample."`
	Sample   int    `default:"0" help:"Run so many of the listed ones only: those whose turn the seed says; 0 is all."`
	Jobs     int    `default:"2" help:"How many run side by side."`
	Summary  string `env:"GITHUB_STEP_SUMMARY" help:"A file that the score and what is wrong are appended to, in Markdown."`
}

func main() {
	var a arguments
	cli := kong.Parse(&a, kong.Name("mutants"), kong.Description("Changes the code on purpose, one place at a time, and demands that a test fails."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cli.FatalIfErrorf(a.run(ctx))
}

func (a arguments) run(ctx context.Context) error {
	all, err := a.choose()
	if err != nil {
		return err
	}
	report, err := mutants.Run(ctx, mutants.Config{Root: a.Root, Jobs: a.Jobs, Out: os.Stdout}, all)
	if err != nil {
		return err
	}
	if len(report.Wrong) > 0 {
		fmt.Printf("\n%s\n", strings.Join(report.Wrong, "\n\n"))
	}
	fmt.Printf("\n%v\n", report)
	if err := a.summarize(report); err != nil {
		return err
	}
	if len(report.Wrong) > 0 {
		return fmt.Errorf("%d mutants need a test, or a reason", len(report.Wrong))
	}
	return nil
}

// summarize keeps the score where GitHub shows it beside the run.
func (a arguments) summarize(report mutants.Report) error {
	if a.Summary == "" {
		return nil
	}
	file, err := os.OpenFile(a.Summary, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(report.Markdown(a.Seed))
	return errors.Join(err, file.Close())
}

func (a arguments) choose() (chosen []mutants.Mutant, err error) {
	only, err := regexp.Compile(a.Only)
	if err != nil {
		return nil, err
	}
	accepted, err := mutants.Accepted()
	if err != nil {
		return nil, err
	}
	made, err := mutants.Generate(a.Root, mutants.Targets(), a.Seed, a.Generate, accepted)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(mutants.Sample(mutants.Listed(), a.Sample, a.Seed), made)
	for _, m := range all {
		if only.MatchString(m.Name) || only.MatchString(m.File) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no mutant matches %q", a.Only)
	}
	return chosen, nil
}
