//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// kill ends every process of one of the stack's functions, as a failing host does, and fails the test where there is
// none. Other stacks of this machine have functions of the same names; the address of the fault proxy tells them apart.
func kill(t *testing.T, function string) {
	t.Helper()
	pids := processes(t, function)
	if len(pids) == 0 {
		t.Fatalf("no process of %s to kill", function)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Logf("process %d of %s was gone already: %v", pid, function, err)
		}
	}
}

// processes finds the processes of a function of this stack.
func processes(t *testing.T, function string) []int {
	t.Helper()
	pids, err := processesOf(function)
	must(t, err)
	return pids
}

func processesOf(function string) ([]int, error) {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	wanted := [][]byte{
		[]byte("AWS_LAMBDA_FUNCTION_NAME=" + function),
		[]byte("AWS_ENDPOINT_URL_DYNAMODB=" + deployed.variables["FAULT_PROXY_URL"]),
	}
	var pids []int
	for _, path := range environments {
		environment, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile, or is another user's
		}
		found := 0
		for _, variable := range bytes.Split(environment, []byte{0}) {
			for _, want := range wanted {
				if bytes.Equal(variable, want) {
					found++
				}
			}
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && found == len(wanted) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
