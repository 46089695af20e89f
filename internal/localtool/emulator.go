package localtool

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
	"strings"
)

// Endpoint is a running emulator of this process.
type Endpoint struct {
	// Name of the emulator: Dynoxide, DynamoDBLocal or Ministack.
	Name string
	// URL is its address on 127.0.0.1, without a trailing slash. Any credentials and any Region are accepted.
	URL string

	child *child
	// scratch is a folder for what the emulator writes; it goes with it.
	scratch string
}

// Names of the emulators that Open starts.
const (
	Dynoxide      = "dynoxide"
	DynamoDBLocal = "dynamodb-local"
	// Ministack has KMS and much else besides DynamoDB, and starts in 2 s.
	Ministack = "ministack"
)

// DynoxideVariable names the environment variable that holds the path of a dynoxide to start.
const DynoxideVariable = "IDEM_DYNOXIDE"

// command makes the command that runs an emulator on a port, with a folder for what it writes.
type command func(scratch string, port int) *exec.Cmd

// Open starts the emulator called name (Dynoxide, DynamoDBLocal or Ministack), empty and in memory, on a free port of
// 127.0.0.1, and waits until it answers. The caller stops it; on Linux it is also killed when this process ends in any
// other way.
//
// In this checkout it is what `make tools` installed; where that is missing the error is a *NotInstalledError. Elsewhere
// only Dynoxide can be started, from PATH. IDEM_DYNOXIDE names another dynoxide in both.
func Open(ctx context.Context, name string) (*Endpoint, error) {
	run, err := find(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	scratch, err := os.MkdirTemp("", name+"-")
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	endpoint, err := open(ctx, name, func(port int) *exec.Cmd { return run(scratch, port) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), os.RemoveAll(scratch))
	}
	endpoint.scratch = scratch
	return endpoint, nil
}

func find(name string) (command, error) {
	switch name {
	case Dynoxide:
		return findDynoxide()
	case DynamoDBLocal:
		return installed(DynamoDBLocalTool, dynamoDBLocalCommand)
	case Ministack:
		return installed(MinistackTool, ministackCommand)
	}
	return nil, fmt.Errorf("no such emulator: the names are %s, %s and %s", Dynoxide, DynamoDBLocal, Ministack)
}

func installed(tool Tool, run func(directory, scratch string, port int) *exec.Cmd) (command, error) {
	directory, err := tool.Find()
	return func(scratch string, port int) *exec.Cmd { return run(directory, scratch, port) }, err
}

func findDynoxide() (command, error) {
	program := os.Getenv(DynoxideVariable)
	if program == "" {
		directory, err := DynoxideTool.Find()
		program = filepath.Join(directory, "node_modules", "@dynoxide", NPMHost(), "dynoxide")
		if errors.Is(err, ErrNoCheckout) {
			program, err = exec.LookPath("dynoxide")
		}
		if err != nil {
			return nil, fmt.Errorf("%w (%s may name the program)", err, DynoxideVariable)
		}
	}
	return func(_ string, port int) *exec.Cmd {
		return exec.Command(program, "serve", "--host", "127.0.0.1", "--port", strconv.Itoa(port))
	}, nil
}

// openAttempts is how often a start is tried: between finding a free port and binding it another process may take it.
const openAttempts = 3

// onFreePort starts something on a free port, and tries another port where it ended by itself.
func onFreePort(start func(port int) error) error {
	var last error
	for range openAttempts {
		port, err := FreePort()
		if err != nil {
			return err
		}
		if last = start(port); !errors.Is(last, errEndedByItself) {
			return last
		}
	}
	return last
}

func open(ctx context.Context, name string, command func(port int) *exec.Cmd) (endpoint *Endpoint, err error) {
	err = onFreePort(func(port int) error {
		started := command(port)
		started.Env = append(childEnvironment(), started.Env...)
		c, err := startChild(started)
		if err != nil {
			return err
		}
		opened := &Endpoint{Name: name, URL: "http://127.0.0.1:" + strconv.Itoa(port), child: c}
		if err := c.waitReady(ctx, opened.probe); err != nil {
			c.stop()
			return err
		}
		endpoint = opened
		return nil
	})
	return endpoint, err
}

// Stop ends the emulator and waits until its process is gone. It may be called more than once.
func (e *Endpoint) Stop() {
	e.child.stop()
	_ = os.RemoveAll(e.scratch) // what is left is the temporary folder's
}

// probe asks for the list of tables: an answer to it, whatever it says, is DynamoDB's protocol at work.
func (e *Endpoint) probe(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
	request.Header.Set("X-Amz-Date", "20200101T000000Z")
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20200101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ListTables: %s", response.Status)
	}
	return nil
}

// FreePort returns a port of 127.0.0.1 that nobody listens on at the moment.
func FreePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// dynamoDBLocalCommand starts ServerRunner. It has no option for the address, so it listens on every interface, as
// AWS documents it; its tables live in memory and its credentials mean nothing. Its runs are short: the first compiler of the JVM
// alone and the simplest garbage collector halve the processor time of the store's tests.
func dynamoDBLocalCommand(directory, _ string, port int) *exec.Cmd {
	libraries := filepath.Join(directory, "lib")
	return exec.Command("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.library.path="+libraries, "-cp", filepath.Join(libraries, "*"),
		"com.amazonaws.services.dynamodbv2.local.main.ServerRunner", "-inMemory", "-disableTelemetry", "-port", strconv.Itoa(port))
}

func ministackCommand(directory, scratch string, port int) *exec.Cmd {
	command := exec.Command(filepath.Join(directory, "venv", "bin", "python"), "-m", "ministack")
	command.Dir = scratch
	command.Env = []string{
		"BIND_HOST=127.0.0.1", "GATEWAY_PORT=" + strconv.Itoa(port), "TMPDIR=" + scratch,
		"S3_DATA_DIR=" + filepath.Join(scratch, "s3"), "DOCKER_HOST=unix:///dev/null", "PYTHONUNBUFFERED=1",
	}
	return command
}
