package stack

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// standing says whether a process was stopped, by what ps says.
func standing(t *testing.T, pid int) bool {
	t.Helper()
	state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.HasPrefix(string(state), "T")
}

// A process stands in the middle of what it does, and in the end none stands.
func TestProcessesStandForAWhile(t *testing.T) {
	one := exec.CommandContext(t.Context(), "sleep", "600")
	if err := one.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = one.Process.Kill(); _ = one.Wait() })
	name := filepath.Join(t.TempDir(), "1.frozen")
	stood := false
	err := frozen(t.Context(), 50*time.Millisecond, 1, name, func() {
		for until := time.Now().Add(time.Minute); !stood && time.Now().Before(until); {
			stood = standing(t, one.Process.Pid)
		}
	})
	if err != nil || !stood {
		t.Fatalf("the process stood: %t, %v", stood, err)
	}
	if standing(t, one.Process.Pid) {
		t.Error("the process stands when all is over")
	}
	if told, err := os.ReadFile(name); err != nil || !strings.Contains(string(told), " sleep ("+strconv.Itoa(one.Process.Pid)+") stands for ") {
		t.Errorf("%v, told %q", err, told)
	}
}

// One emulator stands as often as one of forty functions does.
func TestEachProgramHasItsTurnToStand(t *testing.T) {
	f, times := freezing{rand: rand.New(rand.NewPCG(1, 1))}, map[string]int{}
	found := map[int]process{1: {name: "emulator"}}
	for pid := range 40 {
		found[pid+2] = process{name: "function"}
	}
	for range 1000 {
		pid, name := f.choose(found)
		if found[pid].name != name {
			t.Fatalf("%d is no %s", pid, name)
		}
		times[name]++
	}
	if slices.Min(slices.Collect(maps.Values(times))) < 400 || len(times) != 2 {
		t.Errorf("%v", times)
	}
	if pid, _ := f.choose(nil); pid != 0 {
		t.Errorf("%d of none", pid)
	}
}

// full is a disk on which there is room for so many writes.
type full int

func (f *full) Write(p []byte) (int, error) {
	if *f--; *f < 0 {
		return 0, syscall.ENOSPC
	}
	return len(p), nil
}

// What can't be told is an error, and nothing stands after it.
func TestFreezingEndsWhereItCanTellNobody(t *testing.T) {
	one := exec.CommandContext(t.Context(), "sleep", "600")
	if err := one.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = one.Process.Kill(); _ = one.Wait() })
	full := full(2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f := freezing{most: time.Millisecond, rand: rand.New(rand.NewPCG(1, 1)), of: os.Getpid(), out: &full}
	if err := f.run(ctx); !errors.Is(err, syscall.ENOSPC) || standing(t, one.Process.Pid) {
		t.Errorf("%v", err)
	}
	f.out = &bytes.Buffer{}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := f.run(ended); err != nil {
		t.Error(err)
	}
}
