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

// parents returns the parent of every process.
func parents() (map[int]int, error) {
	output, err := exec.Command("ps", "-axo", "pid=,ppid=").Output()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	parent := map[int]int{}
	for line := range strings.Lines(string(output)) {
		var pid, of int
		if _, err := fmt.Sscan(line, &pid, &of); err != nil {
			return nil, fmt.Errorf("list processes: %q: %w", line, err)
		}
		parent[pid] = of
	}
	return parent, nil
}
