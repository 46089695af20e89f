package stack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// killLoop is the test that carries a plan of localstack/chaos out.
const killLoop = "^TestKillLoop$"

// killLoopRequests is the size of the kill loop that is among the checks: about a minute.
const killLoopRequests = 200

// killLoopTimeout bounds one kill loop, as go test takes it: 20,000 requests are an hour.
const killLoopTimeout = "90m"

// KillLoop is one run of the kill loop, on a stack of its own.
type KillLoop struct {
	// Seed of the plan; 0 draws one.
	Seed int64
	// Requests of the plan.
	Requests int
	// Hasten invokes sweep and reconciler every second once the clients are gone; else they are left to their schedule.
	Hasten bool
	// Options of the stack, but for its folder, its env file and its ports.
	Options Options
}

// Run prints the seed, brings a stack up, runs the loop, and takes the stack down whatever happened. What the loop prints
// goes to the standard output. Its error carries the command that runs the same plan again.
func (k KillLoop) Run(ctx context.Context, out *progress.Printer) (err error) {
	if k.Seed == 0 {
		k.Seed = newSeed()
	}
	again := k.again()
	out.Line("kill loop: seed %d, %d requests; again: %s", k.Seed, k.Requests, again)
	o := k.Options
	o.State, o.FaultProxy, o.Port, o.ProviderPort = filepath.Join(".local", "chaos-"+string(o.Emulator)), true, 0, 0
	o.EnvFile = filepath.Join(o.State, "run.env")
	s, err := New(o, out)
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
	arguments := append([]string{"test", "-v"}, k.arguments()...)
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = o.Root
	command.Env = append(localtool.WithoutAWS(os.Environ()), "IDEM_E2E_ENV="+s.options.EnvFile)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = childGrace
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("the kill loop failed (%w); the same plan again: %s", err, again)
	}
	return nil
}

// again is the command that runs the same plan on the same kind of stack.
func (k KillLoop) again() string {
	command := fmt.Sprintf("make chaos SEED=%d N=%d EMULATOR=%s", k.Seed, k.Requests, k.Options.Emulator)
	if k.Options.Encryption {
		command += " ENCRYPTION=on"
	}
	if k.Options.Outbox != "" {
		command += " OUTBOX=" + k.Options.Outbox
	}
	if k.Hasten {
		command += " HASTEN=1"
	}
	return command
}

// arguments of go test.
func (k KillLoop) arguments() []string {
	return []string{
		"-tags", "e2e", "-count=1", "-timeout", killLoopTimeout, "-run", killLoop, "./localstack/e2e", "-args",
		"-chaos.seed", strconv.FormatInt(k.Seed, 10), "-chaos.requests", strconv.Itoa(k.Requests), "-chaos.schedule=" + strconv.FormatBool(!k.Hasten),
	}
}

// newSeed is short enough to be typed again.
func newSeed() int64 { return 1 + rand.Int64N(999_999_999) }

// killLoopOn runs the small kill loop on a stack that is up.
func (c *Check) killLoopOn(ctx context.Context, s *Stack, on suite) error {
	k := KillLoop{Seed: newSeed(), Requests: killLoopRequests, Hasten: true}
	return c.test(ctx, fmt.Sprintf("kill loop of %d requests on %s, seed %d", k.Requests, on.name, k.Seed), testRun{
		environment: []string{"IDEM_E2E_ENV=" + s.options.EnvFile}, arguments: k.arguments(), timed: true,
	})
}
