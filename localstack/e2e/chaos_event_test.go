//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/chaos"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// happen carries one event of the plan out. What fails is counted: the loop goes on without it.
func (l *loop) happen(ctx context.Context, e chaos.Event) {
	var err error
	switch e.Action {
	case chaos.Webhooks:
		<-time.After(e.Delay)
		if err = announce(ctx, e.Mode, e.For); err == nil {
			l.figures.add(tableKills, switches, 1)
		}
	case chaos.Outage:
		<-time.After(e.Delay)
		if err = deployed.dynamodb.Down(ctx); err == nil {
			<-time.After(e.For)
			err = deployed.dynamodb.Up(ctx)
			l.figures.add(tableKills, outages, 1)
		}
	case chaos.Kill:
		l.summon(ctx, e.Victim)
		<-time.After(e.Delay)
		l.kill(ctx, e)
	}
	if err != nil {
		l.figures.add(tableKills, fmt.Sprintf("event that failed: %s: %v", e.Action, err), 1)
	}
}

// outages and switches are the lines that count them, and killed the one of a function's processes.
const (
	outages  = "outages of DynamoDB"
	switches = "switches of the provider's webhooks"
)

func killed(victim chaos.Victim) string { return fmt.Sprintf("killed: %s", victim) }

// announce switches the provider's webhooks.
func announce(ctx context.Context, mode provider.Mode, late time.Duration) error {
	delay := late.Milliseconds()
	return deployed.provider.Settings(ctx, provider.SettingsPatch{Webhooks: &provider.WebhooksPatch{Mode: &mode, DelayMillis: &delay}})
}

// summon starts a run of what runs by schedule only, so that there is somebody to kill. How it ends is the schedule's to
// bear.
func (l *loop) summon(ctx context.Context, victim chaos.Victim) {
	if victim != chaos.Sweep && victim != chaos.Reconcile {
		return
	}
	function := deployed.variables["FUNCTION_"+string(victim)]
	go func() {
		_, err := deployed.functions.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(function), Payload: []byte(`{}`)})
		if err == nil {
			l.figures.add(tableKills, fmt.Sprintf("runs summoned: %s", victim), 1)
		}
	}()
}

// kill ends processes of the event's victim, and notes whose claims may have died with them.
func (l *loop) kill(ctx context.Context, e chaos.Event) {
	if e.Victim == chaos.Relay && deployed.variables["FUNCTION_RELAY"] == "" {
		e.Victim = chaos.Worker
	}
	pids, err := processesOf(deployed.variables["FUNCTION_"+string(e.Victim)])
	if err != nil || len(pids) == 0 {
		l.figures.add(tableKills, fmt.Sprintf("nobody was there: %s", e.Victim), 1)
		return
	}
	if !e.All {
		pids = pids[e.Pick%len(pids):][:1]
	}
	for _, pid := range pids {
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			l.figures.add(tableKills, killed(e.Victim), 1)
		}
	}
	l.mourn(ctx)
}

// claim is the right to a call, held by somebody who was killed, perhaps.
type claim struct{ epoch, leaseUntil int64 }

// mourn notes every claim that is held. Those of the dead will still be, unchanged, when their lease is over.
func (l *loop) mourn(ctx context.Context) {
	messages, err := scan(ctx, "OUTBOX")
	if err != nil {
		l.figures.add(tableKills, "claims that could not be noted", 1)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range messages {
		if text(m, schema.State) == "claimed" {
			l.died[text(m, schema.MessageID)] = claim{number(m, schema.Epoch), number(m, schema.LeaseUntil)}
		}
	}
}
