//go:build !linux

package stack

// processStarted identifies the start of a process. A process that is gone, or a zombie, is an error.
func processStarted(pid int) (string, error) { return psStarted(pid) }

// processes returns every process by its pid.
func processes() (map[int]process, error) { return psProcesses() }
