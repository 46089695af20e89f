package stack

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Positions in /proc/<pid>/stat behind the program's name (proc(5), fields 3, 4 and 22).
const (
	stateField     = 0
	parentField    = 1
	startTimeField = 19
)

// processStarted identifies the start of a process: ticks since boot. A process that is gone, or a zombie, is an error.
func processStarted(pid int) (string, error) {
	fields, err := processStat(pid)
	if err != nil {
		return "", err
	}
	if string(fields[stateField]) == "Z" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return string(fields[startTimeField]), nil
}

// processStat returns what stands in /proc/<pid>/stat behind the program's name, at least to the start time.
func processStat(pid int) ([][]byte, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	// The name stands in brackets and may hold anything, brackets and spaces too.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= startTimeField {
		return nil, fmt.Errorf("process %d has no start time", pid)
	}
	return fields, nil
}

// processes returns every process by its pid.
func processes() (map[int]process, error) {
	found, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	all := make(map[int]process, len(found))
	for _, path := range found {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		fields, err := processStat(pid)
		if err != nil {
			continue // it has ended meanwhile
		}
		parent, err := strconv.Atoi(string(fields[parentField]))
		if err != nil {
			return nil, fmt.Errorf("parent of process %d: %w", pid, err)
		}
		name, err := os.ReadFile(filepath.Join(path, "comm"))
		if err != nil {
			continue
		}
		all[pid] = process{parent, string(bytes.TrimSpace(name))}
	}
	return all, nil
}
