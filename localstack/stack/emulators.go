package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/localstackhost"
)

// Names of a stack's daemons, in the order in which they are stopped.
const (
	daemonFaultProxy = "faultproxy"
	daemonEmulator   = "emulator"
	daemonProvider   = "provider"
	daemonCollector  = "collector"
)

var daemonNames = []string{daemonFaultProxy, daemonEmulator, daemonProvider, daemonCollector}

// port returns wanted if it is free, and a free one for 0.
func port(what string, wanted int) (int, error) {
	if wanted == 0 {
		return localtool.FreePort()
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(wanted)))
	if err != nil {
		return 0, fmt.Errorf("port %d for the %s is taken by another program: stop that, or choose another port (%w)", wanted, what, err)
	}
	return wanted, listener.Close()
}

// ensureEmulator returns the running emulator, started if necessary.
func (s *Stack) ensureEmulator(ctx context.Context) (daemon, error) {
	running, alive, err := readDaemon(s.options.State, daemonEmulator)
	if err != nil {
		return daemon{}, err
	}
	if alive && running.Build != string(s.options.Emulator) {
		return daemon{}, fmt.Errorf("this stack runs on %s: take it down before you bring it up on %s", running.Build, s.options.Emulator)
	}
	if alive {
		return running, nil
	}
	chosen, err := port("emulator", s.options.Port)
	if err != nil {
		return daemon{}, err
	}
	command, err := s.emulatorCommand(ctx, chosen)
	if err != nil {
		return daemon{}, err
	}
	err = s.out.Step(fmt.Sprintf("start %s on 127.0.0.1:%d", s.options.Emulator, chosen), func() error {
		running, err = startDaemon(s.options.State, daemonEmulator, chosen, string(s.options.Emulator), command)
		if err != nil {
			return err
		}
		return s.waitReady(ctx, running, "/_localstack/health")
	})
	return running, err
}

// emulatorCommand makes what the emulator writes stay below the state folder: functions run from there too.
func (s *Stack) emulatorCommand(ctx context.Context, port int) (*exec.Cmd, error) {
	temporary := s.temporary()
	if err := os.RemoveAll(temporary); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return nil, err
	}
	if s.options.Emulator == LocalStack {
		if dockerAnswers(ctx) {
			return s.composeCommand(port), nil
		}
		return localstackhost.Command(localstackhost.Tool().Directory(s.options.Root), s.path("localstack"), temporary, port)
	}
	python := filepath.Join(emulator.MinistackTool().Directory(s.options.Root), "venv", "bin", "python")
	command := exec.Command(python, "-m", "ministack")
	command.Dir = s.options.State
	endpoint := fmt.Sprintf("http://127.0.0.1:%d", port)
	environment, err := LocalEnvironment([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, endpoint)
	if err != nil {
		return nil, err
	}
	command.Env = append(environment, "BIND_HOST=127.0.0.1", "GATEWAY_PORT="+strconv.Itoa(port), "TMPDIR="+temporary,
		"S3_DATA_DIR="+filepath.Join(temporary, "s3"), "DOCKER_HOST=unix:///dev/null", "PYTHONUNBUFFERED=1")
	if s.options.IAM {
		command.Env = append(command.Env, "AUTH=true")
	}
	return command, nil
}

func (s *Stack) temporary() string { return s.path("tmp") }

// dockerAnswers tells whether a Docker daemon with compose can be used.
func dockerAnswers(ctx context.Context) bool {
	return exec.CommandContext(ctx, "docker", "compose", "version").Run() == nil &&
		exec.CommandContext(ctx, "docker", "info").Run() == nil
}

// composeCommand runs LocalStack in the foreground, so that its process is stopped like that of any other emulator.
func (s *Stack) composeCommand(port int) *exec.Cmd {
	file := filepath.Join(s.options.Root, "localstack", "compose.yaml")
	project := fmt.Sprintf("idem-%d", port)
	command := exec.Command("docker", "compose", "--project-name", project, "--file", file, "up", "--no-color", "--abort-on-container-exit")
	command.Env = append(localtool.WithoutAWS(os.Environ()), "LOCALSTACK_PORT="+strconv.Itoa(port))
	return command
}

// ensureProgram returns the running daemon of one of our own programs, started if necessary, restarted if it was built
// anew or is to run with other arguments. secret is in its environment and never on its command line.
func (s *Stack) ensureProgram(ctx context.Context, name, ready string, wanted int, secret string, arguments ...string) (daemon, error) {
	build, err := hashFiles([]string{s.program(name)}, append(arguments, secret)...)
	if err != nil {
		return daemon{}, err
	}
	running, alive, err := readDaemon(s.options.State, name)
	if err != nil || alive && running.Build == build {
		return running, err
	}
	if alive {
		wanted = running.Port // clients that know the address keep it
		if err := running.stop(s.options.State); err != nil {
			return daemon{}, err
		}
	}
	chosen, err := port(name, wanted)
	if err != nil {
		return daemon{}, err
	}
	command := exec.Command(s.program(name), append(arguments, "--address", fmt.Sprintf("127.0.0.1:%d", chosen))...)
	command.Env = localtool.WithoutAWS(os.Environ())
	if secret != "" {
		command.Env = append(command.Env, variableWebhookSecret+"="+secret)
	}
	err = s.out.Step(fmt.Sprintf("start %s on 127.0.0.1:%d", name, chosen), func() error {
		running, err = startDaemon(s.options.State, name, chosen, build, command)
		if err != nil {
			return err
		}
		return s.waitReady(ctx, running, ready)
	})
	return running, err
}

// Bounds of the wait for a daemon to answer.
const (
	readyWithin = 90 * time.Second
	readyPoll   = 50 * time.Millisecond
)

// waitReady polls path until the daemon answers 200. An error carries the end of the daemon's log.
func (s *Stack) waitReady(ctx context.Context, d daemon, path string) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := answers(ctx, d.URL()+path)
		if err == nil {
			return nil
		}
		if !d.alive() {
			err = errors.New("it ended by itself")
		} else {
			select {
			case <-time.After(readyPoll):
				continue
			case <-ctx.Done():
			}
		}
		log, _ := os.ReadFile(logFile(s.options.State, d.Name))
		return fmt.Errorf("%s is not ready: %w\n%s", d.Name, err, lastLines(string(log), 15))
	}
}

func answers(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return nil
}
