package localtool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// child is a process that dies with this one.
type child struct {
	command *exec.Cmd
	output  boundedBuffer
	exited  chan struct{} // closed when the process is gone and output is complete
}

// startChild starts command, with the attributes of dieWithParent unless it has its own. On Linux the kernel kills the child
// when the thread that started it ends, so one goroutine keeps that thread to itself until the child is gone.
func startChild(command *exec.Cmd) (*child, error) {
	c := &child{command: command, exited: make(chan struct{})}
	command.Stdout, command.Stderr = &c.output, &c.output
	if command.SysProcAttr == nil {
		command.SysProcAttr = dieWithParent()
	}
	command.WaitDelay = time.Second
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // how it ended is told by output
			close(c.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// stop kills the process and waits until it is gone. It may be called more than once.
func (c *child) stop() {
	_ = c.command.Process.Kill() // an error says that it is gone already
	<-c.exited
}

// endWithin bounds the wait for a process to end as it was asked to.
const endWithin = 5 * time.Second

// end asks the process to end, and kills it if it does not. It may be called more than once.
func (c *child) end(request os.Signal) {
	_ = c.command.Process.Signal(request) // an error says that it is gone already
	select {
	case <-c.exited:
	case <-time.After(endWithin):
		c.stop()
	}
}

// readyWithin bounds the wait for an emulator to answer; Java on a busy machine needs the most.
const (
	readyWithin = 60 * time.Second
	readyPoll   = 10 * time.Millisecond
)

// errEndedByItself is how a start fails when another process took the port first.
var errEndedByItself = errors.New("the emulator ended by itself")

// waitReady polls until probe succeeds. It returns an error with the child's output when the child ends first or takes
// too long.
func (c *child) waitReady(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	var last error
	for {
		select {
		case <-c.exited:
			return fmt.Errorf("%w: %s\n%s", errEndedByItself, c.command.ProcessState, Tail(c.output.String()))
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w: %w\n%s", ctx.Err(), last, Tail(c.output.String()))
		case <-ticker.C:
			if last = probe(ctx); last == nil {
				return nil
			}
		}
	}
}

// outputBytesMax bounds what is kept of a child's output.
const outputBytesMax = 64 << 10

// boundedBuffer keeps the last outputBytesMax bytes written to it, or somewhat more.
type boundedBuffer struct {
	mu   sync.Mutex
	kept []byte
}

// Write never fails.
func (b *boundedBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept, data...)
	if len(b.kept) > 2*outputBytesMax {
		b.kept = bytes.Clone(b.kept[len(b.kept)-outputBytesMax:])
	}
	return len(data), nil
}

// String is what was kept.
func (b *boundedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.kept)
}

// childEnvironment is what an emulator inherits: enough to find programs and folders, and nothing of AWS.
func childEnvironment() []string {
	var environment []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LANG", "JAVA_HOME"} {
		if value, ok := os.LookupEnv(name); ok {
			environment = append(environment, name+"="+value)
		}
	}
	return environment
}

const tailLines = 20

// Tail is the last lines of a text: where tools put what went wrong.
func Tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
