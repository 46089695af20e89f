package stack

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// ps is the command that tells of processes where there is no /proc. It writes times in one language and one time zone, whatever those of
// the caller are: what one terminal has recorded is compared in another.
func ps(arguments ...string) *exec.Cmd {
	command := exec.Command("ps", arguments...)
	command.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	return command
}

// psStarted identifies the start of a process by what ps says. A process that is gone, or a zombie, is an error.
func psStarted(pid int) (string, error) {
	output, err := ps("-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", fmt.Errorf("process %d has ended: %w", pid, err)
	}
	state, started, found := strings.Cut(strings.TrimSpace(string(output)), " ")
	if !found || strings.HasPrefix(state, "Z") {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return strings.TrimSpace(started), nil
}

// psProcesses returns every process by its pid.
func psProcesses() (map[int]process, error) {
	output, err := ps("-axo", "pid=,ppid=,comm=").Output()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	all := map[int]process{}
	for line := range strings.Lines(string(output)) {
		var (
			pid int
			one process
		)
		if _, err := fmt.Sscan(line, &pid, &one.parent, &one.name); err != nil {
			return nil, fmt.Errorf("list processes: %q: %w", line, err)
		}
		all[pid] = one
	}
	return all, nil
}
