package main

import (
	"testing"

	"github.com/alecthomas/kong"

	"github.com/idem-go/idem-aws/localstack/stack"
)

// parsed are the options that a command line and an environment have set.
func parsed(t *testing.T, environment map[string]string) local {
	t.Helper()
	for _, name := range []string{"EMULATOR", "TRACES", "ENCRYPTION", "OUTBOX"} {
		t.Setenv(name, environment[name])
	}
	var a arguments
	cli, err := kong.New(&a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cli.Parse([]string{"rehearse", "restore", "--emulator", "ministack", "--traces", "off"}); err != nil {
		t.Fatal(err)
	}
	return a.Local
}

// What is rehearsed is what a production stage is by default, and what OUTBOX and ENCRYPTION ask for otherwise. A team's own stack has
// other defaults.
func TestRehearsalsHaveTheSettingsOfProduction(t *testing.T) {
	for name, c := range map[string]struct {
		environment      map[string]string
		rehearsed, owned string
		encrypts, own    bool
	}{
		"nothing said": {nil, stack.OutboxSQS, stack.OutboxStreams, true, false},
		"streams":      {map[string]string{"OUTBOX": "streams", "ENCRYPTION": "off"}, stack.OutboxStreams, stack.OutboxStreams, false, false},
		"sqs":          {map[string]string{"OUTBOX": "sqs", "ENCRYPTION": "on"}, stack.OutboxSQS, stack.OutboxSQS, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			said := parsed(t, c.environment)
			rehearsed, own := said.rehearsed("/checkout", "rehearsal"), said.options("/checkout")
			if rehearsed.Outbox != c.rehearsed || rehearsed.Encryption != c.encrypts || !rehearsed.FaultProxy {
				t.Errorf("a rehearsal has %+v", rehearsed)
			}
			if own.Outbox != c.owned || own.Encryption != c.own {
				t.Errorf("a stack of one's own has %+v", own)
			}
		})
	}
}
