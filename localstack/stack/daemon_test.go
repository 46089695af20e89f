package stack

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestDaemonStopsWithItsChildren(t *testing.T) {
	state := t.TempDir()
	started, err := startDaemon(state, "sleeper", 1, "v1", exec.Command("sh", "-c", "sleep 60 & echo $! > "+state+"/child; wait"))
	if err != nil {
		t.Fatal(err)
	}
	found, alive, err := readDaemon(state, "sleeper")
	if err != nil || !alive || found != started {
		t.Fatalf("readDaemon = %+v, %t, %v; want %+v, alive", found, alive, err, started)
	}
	if err := found.stop(state); err != nil {
		t.Fatal(err)
	}
	if found.alive() {
		t.Error("a stopped daemon is alive")
	}
	if _, err := os.Stat(found.file(state)); err == nil {
		t.Error("the record of a stopped daemon is still there")
	}
}

func TestDaemonStopsWithDescendantsThatLeftItsGroup(t *testing.T) {
	setsid, err := exec.LookPath("setsid")
	if err != nil { // macOS has none; python3 runs an emulator there anyway
		setsid = "python3 -c 'import os,sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])'"
	}
	state := t.TempDir()
	child := state + "/child"
	d, err := startDaemon(state, "sleeper", 1, "v1", exec.Command("sh", "-c", setsid+" sh -c 'echo $$ > "+child+".new; mv "+child+".new "+child+"; sleep 60' & wait"))
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	for deadline := time.Now().Add(time.Minute); pid == 0 && time.Now().Before(deadline); time.Sleep(stopPoll) {
		if written, err := os.ReadFile(child); err == nil {
			pid, _ = strconv.Atoi(strings.TrimSpace(string(written)))
		}
	}
	if _, err := processStarted(pid); pid == 0 || err != nil {
		t.Fatalf("the descendant %d is not there: %v", pid, err)
	}
	if err := d.stop(state); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(stopPoll) {
		if _, err := processStarted(pid); err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the descendant %d outlived the daemon", pid)
		}
	}
}

func TestReusedPIDIsNeverKilled(t *testing.T) {
	state := t.TempDir()
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	record := `{"name":"emulator","pid":` + strconv.Itoa(other.Process.Pid) + `,"started":"another time","port":1}`
	if err := os.WriteFile(daemon{Name: "emulator"}.file(state), []byte(record), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, alive, err := readDaemon(state, "emulator"); alive || err != nil {
		t.Fatalf("readDaemon = alive %t, %v; want a dead daemon", alive, err)
	}
	if _, err := processStarted(other.Process.Pid); err != nil {
		t.Errorf("the other process is gone: %v", err)
	}
}
