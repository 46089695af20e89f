package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// daemon is a process of a stack that lives on after the command that started it. What is known about it stands in
// <state>/<name>.pid.
type daemon struct {
	// Name of the daemon, and of its files.
	Name string `json:"name"`
	// PID is also its process group, which its own children belong to.
	PID int `json:"pid"`
	// Started identifies the process beside its pid, so that a pid that was given to another process is never killed.
	Started string `json:"started"`
	// Port of 127.0.0.1 that it listens on.
	Port int `json:"port"`
	// Build identifies the program and its arguments: another one needs a restart.
	Build string `json:"build"`
}

// URL is the daemon's address, without a trailing slash.
func (d daemon) URL() string { return fmt.Sprintf("http://127.0.0.1:%d", d.Port) }

func (d daemon) file(state string) string { return filepath.Join(state, d.Name+".pid") }

// logFile is where a daemon's output goes.
func logFile(state, name string) string { return filepath.Join(state, name+".log") }

// alive tells whether the very process that was started is still there.
func (d daemon) alive() bool {
	started, err := processStarted(d.PID)
	return err == nil && started == d.Started
}

// readDaemon returns what is recorded about a daemon, and whether it is alive. A record of a dead one is removed.
func readDaemon(state, name string) (daemon, bool, error) {
	recorded := daemon{Name: name}
	data, err := os.ReadFile(recorded.file(state))
	if errors.Is(err, fs.ErrNotExist) {
		return daemon{}, false, nil
	}
	if err != nil {
		return daemon{}, false, err
	}
	if err := json.Unmarshal(data, &recorded); err != nil {
		return daemon{}, false, fmt.Errorf("read %s: %w", recorded.file(state), err)
	}
	if !recorded.alive() {
		return recorded, false, os.Remove(recorded.file(state))
	}
	return recorded, true, nil
}

// startDaemon starts command in a process group of its own, with its output in the state folder, and records it before it
// returns.
func startDaemon(state, name string, port int, build string, command *exec.Cmd) (daemon, error) {
	log, err := os.Create(logFile(state, name))
	if err != nil {
		return daemon{}, err
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return daemon{}, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { _ = command.Wait() }() // so that a daemon that ends at once is not a zombie that looks alive
	d := daemon{Name: name, PID: command.Process.Pid, Port: port, Build: build}
	if d.Started, err = processStarted(d.PID); err != nil {
		return daemon{}, fmt.Errorf("start %s: it ended at once, see %s: %w", name, log.Name(), err)
	}
	data, err := json.Marshal(d)
	if err != nil {
		return daemon{}, err
	}
	return d, os.WriteFile(d.file(state), data, 0o644)
}

// How long a daemon may take to end by itself, and how often that is looked at.
const (
	stopGrace = 5 * time.Second
	stopPoll  = 20 * time.Millisecond
)

// stop ends the daemon with its process group and removes its record: politely first, by force when it does not listen.
// Descendants that have left the group, as LocalStack's DynamoDB does, end with it.
func (d daemon) stop(state string) error {
	left, err := d.descendants()
	if err != nil {
		return fmt.Errorf("stop %s: %w", d.Name, err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if !d.alive() {
			break
		}
		_ = syscall.Kill(-d.PID, signal) // an error says that the group is gone
		for end := time.Now().Add(stopGrace); d.alive() && time.Now().Before(end); {
			time.Sleep(stopPoll)
		}
	}
	if d.alive() {
		return fmt.Errorf("stop %s: process %d does not end", d.Name, d.PID)
	}
	_ = syscall.Kill(-d.PID, syscall.SIGKILL) // children that outlived it; the group's id is not reused before they end
	for pid, started := range left {
		if now, err := processStarted(pid); err == nil && now == started {
			_ = syscall.Kill(pid, syscall.SIGKILL) // an error says that it is gone
		}
	}
	return os.Remove(d.file(state))
}

// descendants are the processes that the daemon has started, by pid, with their own start.
func (d daemon) descendants() (map[int]string, error) {
	found := map[int]string{}
	if !d.alive() {
		return found, nil
	}
	all, err := descendants(d.PID)
	if err != nil {
		return nil, err
	}
	for pid := range all {
		if started, err := processStarted(pid); err == nil {
			found[pid] = started
		}
	}
	return found, nil
}

// process is one that runs.
type process struct {
	parent int
	name   string // of its program
}

// descendants are the processes that a process has started, and those that these have started, by pid.
func descendants(ancestor int) (map[int]process, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	found := map[int]process{}
	for pid, p := range all {
		for of := p.parent; of > 1; of = all[of].parent {
			if of == ancestor {
				found[pid] = p
				break
			}
		}
	}
	return found, nil
}
