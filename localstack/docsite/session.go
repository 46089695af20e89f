package docsite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// background ends the name of a session in a directive: the block's commands go on while those after it run, as in another
// terminal.
const background = ", in another terminal"

// Session is the commands of a document that are run one after the other, in one shell, and what they print.
type Session struct {
	// Document and Name say where the commands are.
	Document, Name string
	steps          []step
}

// step is a block of commands, and the block of what it prints, if the document has one.
type step struct {
	Block
	background bool
	output     *Block
}

// Sessions are the sessions of a document, in their order. It returns a *BlockError for output that follows no commands.
func (d Document) Sessions() ([]*Session, error) {
	blocks, err := d.Blocks()
	if err != nil {
		return nil, err
	}
	var sessions []*Session
	for _, b := range blocks {
		name, inBackground := strings.CutSuffix(b.Argument, background)
		i := slices.IndexFunc(sessions, func(s *Session) bool { return s.Name == name })
		switch {
		case b.Directive == "run" && i < 0:
			sessions = append(sessions, &Session{d.Name, name, []step{{b, inBackground, nil}}})
		case b.Directive == "run":
			sessions[i].steps = append(sessions[i].steps, step{b, inBackground, nil})
		case b.Directive == "output" && i < 0:
			return nil, &BlockError{b.Document, b.Line, "output of commands that nobody runs"}
		case b.Directive == "output":
			last := &sessions[i].steps[len(sessions[i].steps)-1]
			if last.output != nil {
				return nil, &BlockError{b.Document, b.Line, "a second output of the same commands"}
			}
			last.output = &b
		}
	}
	return sessions, nil
}

// Shell is where a session runs.
type Shell struct {
	// Directory is where each shell begins.
	Directory string
	// Environment is added to this process's own.
	Environment []string
	// Replace has what stands in the document, and what to run and to expect instead: an address that is taken, a folder.
	Replace *strings.Replacer
}

// OnStack lists the sessions that need a deployed stack, and Alone those that need one of which nobody else makes use, because they tell
// the provider to fail. Package e2e runs both, and this package's tests the others.
var (
	OnStack = []string{"lambda", "operator", "conform"}
	Alone   = []string{"try", "practise"}
)

// Bounds of a session. Commands that go on are ready once they have printed what the document shows.
const (
	readyWithin = 3 * time.Minute
	readyPoll   = 20 * time.Millisecond
	goneWithin  = 10 * time.Second
)

// Run runs the commands with bash, and compares what they print with what the document shows. Commands in another terminal are
// ended with the session. It returns a *BlockError for commands that fail, and for those that print something else.
func (s *Session) Run(ctx context.Context, in Shell) (err error) {
	var script strings.Builder
	var shown []step
	for _, next := range s.steps {
		if next.background {
			running, failed := in.start(ctx, next)
			if failed != nil {
				return failed
			}
			defer running.stop()
			continue
		}
		fmt.Fprintf(&script, "%s\nprintf '\\n%s\\n' >&3\n", in.Replace.Replace(next.Text), mark)
		shown = append(shown, next)
	}
	return in.foreground(ctx, script.String(), shown)
}

// mark stands between what two blocks print.
const mark = "--- end of the block ---"

func (in Shell) command(ctx context.Context, script string) *exec.Cmd {
	command := exec.CommandContext(ctx, "bash", "-c", "exec 3>&1\nset -euo pipefail\n"+script)
	command.Dir = in.Directory
	command.Env = append(os.Environ(), in.Environment...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that what bash started can be ended, too
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = goneWithin
	return command
}

func (in Shell) foreground(ctx context.Context, script string, steps []step) error {
	var complaints bytes.Buffer
	command := in.command(ctx, script)
	command.Stderr = &complaints
	out, err := command.Output()
	printed := strings.Split(string(out), "\n"+mark+"\n")
	if err != nil {
		at := steps[min(len(printed), len(steps))-1]
		return &BlockError{at.Document, at.Line, fmt.Sprintf("the commands failed: %v\n%s%s", err, printed[len(printed)-1], complaints.String())}
	}
	for i, done := range steps {
		if why := in.compare(done, printed[i]); why != "" {
			return &BlockError{done.output.Document, done.output.Line, why}
		}
	}
	return nil
}

// compare says what of the output that the document shows was not printed.
func (in Shell) compare(done step, printed string) string {
	if done.output == nil {
		return ""
	}
	if missing := notPrinted(in.Replace.Replace(done.output.Text), printed); missing != "" {
		return fmt.Sprintf("the commands did not print %q, but\n%s", missing, printed)
	}
	return ""
}

// notPrinted is the first line of shown that printed does not have; "" where it has all. The lines must follow each other, except
// that a line of … stands for any number of them. Within a line … stands for anything.
func notPrinted(shown, printed string) string {
	got := strings.Split(strings.ReplaceAll(printed, "\r\n", "\n"), "\n")
	next, skip := 0, true // what comes before the first line does not count: a shell may print it
	for _, line := range strings.Split(strings.TrimSpace(shown), "\n") {
		if strings.TrimSpace(line) == "…" {
			skip = true
			continue
		}
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, " ")), "…", ".*") + "$")
		at := slices.IndexFunc(got[next:], pattern.MatchString)
		if at < 0 || at > 0 && !skip {
			return line
		}
		next, skip = next+at+1, false
	}
	return ""
}

// running are commands that go on.
type running struct {
	command *exec.Cmd
	gone    chan struct{}
	mu      sync.Mutex
	printed bytes.Buffer
}

// Write keeps what the commands print.
func (r *running) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.printed.Write(data)
}

func (r *running) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.printed.String()
}

// start starts commands and waits until they have printed what the document shows.
func (in Shell) start(ctx context.Context, begun step) (*running, error) {
	r := &running{command: in.command(ctx, in.Replace.Replace(begun.Text)), gone: make(chan struct{})}
	r.command.Stdout, r.command.Stderr = r, r
	if err := r.command.Start(); err != nil {
		return nil, &BlockError{begun.Document, begun.Line, err.Error()}
	}
	go func() {
		_ = r.command.Wait() // what was printed says why it ended
		close(r.gone)
	}()
	if begun.output == nil {
		return r, nil
	}
	ticker, timeout := time.NewTicker(readyPoll), time.After(readyWithin)
	defer ticker.Stop()
	for {
		ended := false
		select {
		case <-r.gone:
			ended = true
		case <-timeout:
			ended = true
		case <-ticker.C:
		}
		why := in.compare(begun, r.String())
		switch {
		case why == "":
			return r, nil
		case ended:
			r.stop()
			return nil, &BlockError{begun.output.Document, begun.output.Line, why}
		}
	}
}

// stop ends the commands, and kills what does not end.
func (r *running) stop() {
	if err := syscall.Kill(-r.command.Process.Pid, syscall.SIGTERM); errors.Is(err, syscall.ESRCH) {
		return
	}
	select {
	case <-r.gone:
	case <-time.After(goneWithin):
	}
	_ = syscall.Kill(-r.command.Process.Pid, syscall.SIGKILL) // an error says that all are gone
	<-r.gone
}
