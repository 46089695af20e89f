//go:build !linux

package stack

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// processStarted identifies the start of a process by what ps says. A process that is gone, or a zombie, is an error.
func processStarted(pid int) (string, error) {
	output, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", fmt.Errorf("process %d has ended: %w", pid, err)
	}
	state, started, found := strings.Cut(strings.TrimSpace(string(output)), " ")
	if !found || strings.HasPrefix(state, "Z") {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return strings.TrimSpace(started), nil
}

// processes returns every process by its pid.
func processes() (map[int]process, error) {
	output, err := exec.Command("ps", "-axo", "pid=,ppid=,comm=").Output()
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
