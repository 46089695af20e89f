package stack

import (
	"bytes"
	"fmt"
	"os"
)

// startTimeField is the position of starttime in /proc/<pid>/stat behind the program's name (proc(5), field 22).
const (
	stateField     = 0
	startTimeField = 19
)

// processStarted identifies the start of a process: ticks since boot. A process that is gone, or a zombie, is an error.
func processStarted(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The name stands in brackets and may hold anything, brackets and spaces too.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= startTimeField || string(fields[stateField]) == "Z" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return string(fields[startTimeField]), nil
}
