// Package progress prints what a long command is doing: every step by name, with the time that it took. The package belongs
// to this repository's tools and has no compatibility promise.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Printer writes steps to one writer. It is safe for concurrent use, so parallel steps never mix within a line.
type Printer struct {
	mu  sync.Mutex
	out io.Writer
}

// New returns a Printer that writes to out.
func New(out io.Writer) *Printer {
	return &Printer{out: out}
}

// Terminal says that a person's terminal shows what is printed, and takes colours: not where NO_COLOR is set (no-color.org).
func (p *Printer) Terminal() bool {
	file, isFile := p.out.(*os.File)
	if !isFile || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Step runs work and prints name with the seconds that it took, or with its error, which it returns unchanged. What
// takes long is announced when it starts, so that nobody looks at a silent terminal.
func (p *Printer) Step(name string, work func() error) error {
	return p.StepCosting(name, func() (time.Duration, error) { return 0, work() })
}

// StepCosting is Step for work that tells how much processor time it took. That is printed, too, where it is a second or more.
func (p *Printer) StepCosting(name string, work func() (time.Duration, error)) error {
	started := time.Now()
	announce := time.AfterFunc(time.Second, func() { p.Line("      …   %s", name) })
	processor, err := work()
	announce.Stop()
	line := fmt.Sprintf("%7.1f s  %s", time.Since(started).Seconds(), name)
	if processor >= time.Second {
		line += fmt.Sprintf(" (%.0f s of processor time)", processor.Seconds())
	}
	if err != nil {
		line += ": failed"
	}
	p.Line("%s", line)
	return err
}

// Line prints one formatted line.
func (p *Printer) Line(format string, arguments ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", arguments...)
}
