package stack

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
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
