package main

import (
	"errors"

	"github.com/idem-go/idem-aws/localstack/stack"
)

type toolsCommand struct{}

// Run installs everything whose prerequisites are there.
func (toolsCommand) Run(s call) error { return stack.InstallTools(s.ctx, s.root, s.out) }

type runCommand struct {
	NoLogs bool `help:"End after the story."`
	Raw    bool `help:"Print log lines as they were logged."`
}

// Run ends without an error on Ctrl-C while it follows the logs.
func (c runCommand) Run(s call) error {
	opened, err := s.stack()
	if err != nil {
		return err
	}
	if err := opened.Up(s.ctx); err != nil {
		return err
	}
	if err := opened.Story(s.ctx); err != nil || c.NoLogs {
		return err
	}
	return opened.Logs(s.ctx, c.Raw)
}

type upCommand struct{}

// Run brings the stack up.
func (upCommand) Run(s call) error {
	opened, err := s.stack()
	if err != nil {
		return err
	}
	return opened.Up(s.ctx)
}

type downCommand struct{}

// Run takes the stack down.
func (downCommand) Run(s call) error {
	opened, err := s.stack()
	if err != nil {
		return err
	}
	return opened.Down(s.ctx)
}

type statusCommand struct{}

// Run fails where something of the stack is not running.
func (statusCommand) Run(s call) error {
	opened, err := s.stack()
	if err != nil {
		return err
	}
	up, err := opened.Status()
	if err == nil && !up {
		err = errors.New("the stack is down")
	}
	return err
}

type logsCommand struct {
	Raw bool `help:"Print the lines as they were logged, JSON, and nothing else."`
}

// Run follows the logs until Ctrl-C.
func (c logsCommand) Run(s call) error {
	opened, err := s.stack()
	if err != nil {
		return err
	}
	return opened.Logs(s.ctx, c.Raw)
}

type invokeCommand struct {
	Function string `required:"" help:"One of the folders of functions/ with a main.go, such as api."`
	Event    string `required:"" type:"existingfile" help:"File with the event, as in events/."`
}

// Run fails where the function does.
func (c invokeCommand) Run(s call) error {
	opened, err := s.stack()
	if err != nil {
		return err
	}
	return opened.Invoke(s.ctx, c.Function, c.Event)
}

type buildCommand struct {
	Arch string `default:"arm64" enum:"arm64,amd64" help:"Architecture of the functions: ${enum}."`
}

// Run builds the functions into .local/build/<arch>.
func (c buildCommand) Run(s call) error {
	return s.out.Step("build functions for "+c.Arch, func() error { return stack.BuildFunctions(s.ctx, s.root, c.Arch) })
}

type testCommand struct {
	Parts []stack.Part `arg:"" optional:"" enum:"lint,unit,prove,infra,e2e" help:"Which; all without any."`
}

// Run fails where a check does, and with CI=true where one can't run.
func (c testCommand) Run(s call) error {
	parts := c.Parts
	if len(parts) == 0 {
		parts = stack.AllParts()
	}
	check := stack.Check{Root: s.root, Strict: stack.Strict(), Out: s.out}
	return check.Run(s.ctx, parts...)
}

type chaosCommand struct {
	Seed     int64 `help:"Seed of the plan; 0 draws one."`
	Requests int   `default:"1000" help:"Requests of the plan."`
	Hasten   bool  `help:"Invoke sweep and reconciler every second once the clients are gone, instead of leaving them to their schedule."`
}

// Run fails where anything is lost, doubled or left open.
func (c chaosCommand) Run(s call) error {
	loop := stack.KillLoop{Seed: c.Seed, Requests: c.Requests, Hasten: c.Hasten, Options: stack.Options{
		Root: s.root, Emulator: s.local.Emulator, Encryption: s.local.Encryption == "on", Outbox: s.local.Outbox,
	}}
	return loop.Run(s.ctx, s.out)
}

// target are the options of a stack in AWS.
type target struct {
	Name    string            `default:"idem-payments" help:"Name of the CloudFormation stack."`
	Context map[string]string `short:"c" help:"CDK context: providerUrl, alarmTopic, api, auth, arch, encryption, outbox, outboxShards, concurrency, accountConcurrency, apiThrottle, paymentThrottle, corsOrigins, webhookSecret."`
}

func (t target) of(root string) stack.Target {
	if t.Context == nil {
		t.Context = map[string]string{}
	}
	return stack.Target{Root: root, Name: t.Name, Context: t.Context}
}

type deployCommand struct {
	Target target `embed:""`
}

// Run deploys to AWS.
func (c deployCommand) Run(s call) error { return stack.Deploy(s.ctx, s.out, c.Target.of(s.root)) }

type destroyCommand struct {
	Target target `embed:""`
}

// Run removes the stack from AWS.
func (c destroyCommand) Run(s call) error { return stack.Destroy(s.ctx, s.out, c.Target.of(s.root)) }
