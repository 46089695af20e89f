package stack

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/localstackhost"
)

// The suites of a check. Both encrypt, as every production stage must. What is plain is deployed and called by the tests of a team's own
// stack.
var (
	firstSuite  = suite{emulator: Ministack, name: "ministack", encryption: true, whole: true, killLoop: true, rehearse: true}
	secondSuite = suite{emulator: LocalStack, name: "localstack", encryption: true, outbox: OutboxSQS}
)

// e2e runs the end-to-end tests on the first emulator.
func (c *Check) e2e(ctx context.Context) error {
	if c.withoutE2E() {
		c.leaveOut("end-to-end tests (there are none in localstack/e2e)")
		return nil
	}
	return c.e2eOn(ctx, firstSuite)
}

// e2eAgain runs them on the second emulator, where the commit has its turn: last, when few tasks run beside it. It stalls where it gets no
// processor, and then functions find no store in their time.
func (c *Check) e2eAgain(ctx context.Context) error {
	second := secondSuite
	second.whole = c.Whole
	if c.withoutE2E() || !c.hasTurn(ctx, "end-to-end tests on "+second.name, secondEmulator...) {
		return nil
	}
	if !localstackhost.Tool().Installed(c.Root) && !dockerAnswers(ctx) {
		c.leaveOut("end-to-end tests on LocalStack (they need Python 3.13, a JDK 17 and Maven, or Docker)")
		second.emulator, second.name = Ministack, "ministack-sqs"
	}
	return c.e2eOn(ctx, second)
}

func (c *Check) withoutE2E() bool {
	tests, _ := filepath.Glob(filepath.Join(c.Root, "localstack", "e2e", "*_test.go"))
	return len(tests) == 0
}

// onLocalStack are the end-to-end tests that only LocalStack can carry: ministack never finds that data are missing, so that its
// heartbeats do not ring.
const onLocalStack = "^Test(AnAlarmTellsItsTopic|AHeartbeatThatStopsTellsItsTopic)$"

// onMinistack is of policies, which LocalStack's community edition does not know.
const onMinistack = "^TestWhatNoPolicyAllowsIsDenied$"

// againOnAnother are the end-to-end tests that run on the second emulator too, where wake-ups come from SQS: of each way that a
// payment, a transfer, a refund and a payout takes one, of what happens to wake-ups, and of what an emulator does about encryption,
// traces, and functions that die. What the application answers before it asks a table, what the fault proxy does to
// its replies, and what takes minutes to compile is the same on both.
const againOnAnother = "^Test(WhatIsStoredIsEncrypted|CallersAreAuthenticated" +
	"|PaymentIsAcceptedThenSettledWithOneCharge|PaymentReplaysTheSameFinalAnswerAnyNumberOfTimes|TwentySimultaneousPaymentsAreOne" +
	"|TransferMovesMoneyOnceAndReplays|RefundIsAcceptedThenSettledOnce|PayoutIsDoneInOneRequest|PayoutLeftUnfinishedIsFinishedByTheWorker" +
	"|LostWakeUps|WakeUpThatAlwaysFails|PoisonRecord|ThrottledClaimsOfABatchAreDeliveredOnce|ProviderTroubleIsDeliveredLaterAndOnce" +
	"|WorkerDiesBetweenChargeAndSettle|WorkerDiesDuringTheCall|PaymentWhoseAPIFunctionDiesAfterTheCommit" +
	"|WebhookBeforeTheWorkersAnswer|PaymentIsOneTraceFromTheClientToTheProvider)$"

// document holds the API against its OpenAPI document, by another program. Of the two suites' tests only those of a whole one have it.
const document = "^TestAPIKeepsToItsDocument$"

// suite is a stack that the end-to-end tests run on.
type suite struct {
	emulator   Emulator
	name       string
	encryption bool
	outbox     string
	// whole has all tests run, and not only those of againOnAnother, on a stack with quotas.
	whole bool
	// killLoop has the kill loop run there, too.
	killLoop bool
	// rehearse has runbooks rehearsed there at the end.
	rehearse bool
}

// contexts are those of the suite's stack that no option is for. Quotas are on, as every production stage has them; the tests are one
// tenant's, and so they are so wide that only a tenant with limits of its own meets one.
func (s suite) contexts() map[string]string {
	contexts := map[string]string{"retainTables": strconv.FormatBool(s.rehearse)}
	if s.whole {
		for _, quota := range []string{"quotaNewKeys", "quotaActiveKeys", "quotaLookUps", "quotaWaits"} {
			contexts[quota] = "1000000000"
		}
	}
	return contexts
}

// e2eOn brings up a stack of its own, beside any that a person runs, tests it and takes it down whatever happened.
func (c *Check) e2eOn(ctx context.Context, on suite) (err error) {
	state := filepath.Join(".local", "test-"+on.name)
	s, err := New(Options{
		Root: c.Root, State: state, EnvFile: filepath.Join(state, "run.env"), Emulator: on.emulator, FaultProxy: true,
		Traces: true, Encryption: on.encryption, Outbox: on.outbox, IAM: on.emulator == Ministack,
		Contexts: on.contexts(),
	}, c.Out)
	if err != nil {
		return err
	}
	if err := s.Down(ctx); err != nil { // what a killed run may have left
		return err
	}
	defer func() { err = errors.Join(err, s.Down(context.WithoutCancel(ctx))) }()
	if err := s.Up(ctx); err != nil {
		return err
	}
	others := killLoop
	if on.whole && !c.hasTurn(ctx, "the API on "+on.name+" against its OpenAPI document", documentHolds...) {
		others += "|" + document
	} else if !emulator.SchemathesisTool().Installed(c.Root) {
		c.leaveOut(fmt.Sprintf("the API on %s against its OpenAPI document (it needs Python 3.11)", on.name))
		others += "|" + document
	}
	if on.emulator == LocalStack {
		others += "|" + onMinistack
	} else {
		others += "|" + onLocalStack
	}
	only := "."
	if !on.whole {
		only = againOnAnother + "|" + onLocalStack
	}
	err = c.test(ctx, "end-to-end tests on "+on.name, testRun{
		environment: []string{"IDEM_E2E_ENV=" + s.options.EnvFile}, timed: true,
		arguments: []string{"-tags", "e2e", "-count=1", "-timeout", "20m", "-run", only, "-skip", others, "./localstack/e2e/..."},
	})
	if on.killLoop && ctx.Err() == nil {
		err = errors.Join(err, c.killLoopOn(ctx, s, on))
	}
	if on.rehearse && ctx.Err() == nil {
		err = errors.Join(err, c.rehearseOn(ctx, s, on))
	}
	return err
}

// rehearseOn has a runbook rehearsed on a stack that is up. New messages reach its worker as they do in production from then on: the
// stack is deployed anew, as a stage's is whose setting is changed.
func (c *Check) rehearseOn(ctx context.Context, s *Stack, on suite) error {
	s = s.Waking(OutboxSQS)
	return c.Out.Step("runbooks rehearsed on "+on.name+", outbox="+OutboxSQS, func() error {
		if err := s.Up(ctx); err != nil {
			return err
		}
		return c.Rehearse(ctx, s, c.number(ctx))
	})
}
