package stack

import (
	"context"
	"os/exec"
)

// terminalProgram is a program that a test of idemctl has its output read by.
type terminalProgram struct {
	program, test, reads string
}

// terminalPrograms are those that a machine may not have.
var terminalPrograms = []terminalProgram{
	{"zsh", "TestCompletesInZsh", "the completions in zsh"},
	{"fish", "TestCompletesInFish", "the completions in fish"},
	{"groff", "TestGroffReadsTheManualPage", "the manual page read by groff"},
}

// inTerminal names the tests that need one of them.
const inTerminal = "^Test(CompletesInZsh|CompletesInFish|GroffReadsTheManualPage)$"

// terminal looks for the programs, and has Debian's installed where that may be done. It returns what is still missing.
func (c *Check) terminal(ctx context.Context) (missing []terminalProgram, err error) {
	missing = missingPrograms()
	if len(missing) == 0 || !c.mayInstall() {
		return missing, nil
	}
	names := make([]string, len(missing))
	for i, m := range missing {
		names[i] = m.program
	}
	err = c.install(ctx, names...)
	return missingPrograms(), err
}

func missingPrograms() (missing []terminalProgram) {
	for _, p := range terminalPrograms {
		if _, err := exec.LookPath(p.program); err != nil {
			missing = append(missing, p)
		}
	}
	return missing
}
