package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// asContainer has the test's own binary run main.
const asContainer = "CONTAINER_AS_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asContainer) != "" {
		main()
		return
	}
	os.Exit(dynamotest.Main(m))
}

// The process is killed while the provider works on its call. Another one has the charge made once, with nobody asking for it
// again, and the customer gets its answer.
func TestACallOfAProcessThatIsKilledIsChargedOnce(t *testing.T) {
	w := newWorld(t)
	// Longer than a machine stands still: the call must not end before its process does, nor the claim before the retry comes.
	first := w.start("-claim-lease=20s", "-call-timeout=15s")
	w.hangs()
	broken := w.pay(first, "order-1")
	w.calls(1)
	first.kill(syscall.SIGKILL)
	if a := <-broken; a.err == nil {
		t.Errorf("a dead process answered %d %s", a.status, a.body)
	}
	w.goesOn()
	second := w.start()
	retried := <-w.pay(second, "order-1")
	if retried.err != nil || retried.status != http.StatusAccepted || retried.idempotency != "replayed" {
		t.Fatalf("the retry got %+v, want the 202 that was stored with the message", retried)
	}
	w.completed(second, retried.location)
	if again := <-w.pay(second, "order-1"); again.status != http.StatusCreated || again.idempotency != "replayed" {
		t.Errorf("got %+v, want a replay of the 201", again)
	}
	w.charged(1)
	second.kill(syscall.SIGTERM)
	second.ends(0)
}

// A process that is asked to stop finishes the call that it has begun, and its customer gets the end of it.
func TestAProcessThatStopsFinishesWhatItHolds(t *testing.T) {
	w := newWorld(t)
	process := w.start("-claim-lease=40s", "-call-timeout=30s")
	w.hangs()
	answered := w.pay(process, "order-2")
	w.calls(1)
	process.kill(syscall.SIGTERM)
	w.until("the process stops", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(process.url, "http://"))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	w.goesOn()
	if a := <-answered; a.err != nil || a.status != http.StatusCreated || a.idempotency != "executed" {
		t.Errorf("got %+v", a)
	}
	process.ends(0)
	w.charged(1)
}

func TestHealth(t *testing.T) {
	w := newWorld(t)
	answer, err := http.Get(w.start().url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		t.Errorf("got %d", answer.StatusCode)
	}
}

// A wrong setting is named before anything is served.
func TestAWrongSettingEndsTheProcess(t *testing.T) {
	w := newWorld(t)
	for setting, field := range map[string]string{"-claim-lease=1s": "ClaimLease", "-provider=nowhere": "-provider", "-sweep=-1s": "RunConfig.Period"} {
		if log, code := w.refused(setting); code != 1 || !strings.Contains(log, field) {
			t.Errorf("%s: exit %d, %s", setting, code, log)
		}
	}
}

type world struct {
	*testing.T
	dynamo   string
	provider provider.Control
}

func newWorld(t *testing.T) *world {
	url := dynamotest.Endpoint(t, dynamotest.Names()[0])
	if _, err := dynamotest.CreateTables(t.Context(), dynamotest.Client(url), "shop"); err != nil {
		t.Fatal(err)
	}
	simulator := provider.New(provider.Config{})
	server := httptest.NewServer(simulator)
	t.Cleanup(func() {
		simulator.Close()
		server.Close()
	})
	return &world{T: t, dynamo: url, provider: provider.Control{URL: server.URL}}
}

// instance is one process of the program.
type instance struct {
	*testing.T
	command *exec.Cmd
	url     string
	ended   chan error
}

func (w *world) command(settings ...string) *exec.Cmd {
	defaults := []string{"-listen=127.0.0.1:0", "-provider=" + w.provider.URL, "-claim-lease=4s", "-call-timeout=2s", "-sweep=500ms"}
	command := exec.Command(os.Args[0], append(defaults, settings...)...)
	command.Env = append(append(os.Environ(), check.DynamoVariables(w.dynamo)...), asContainer+"=1")
	return command
}

// start returns a process that listens.
func (w *world) start(settings ...string) *instance {
	w.Helper()
	p := &instance{T: w.T, command: w.command(settings...), ended: make(chan error, 1)}
	log, err := p.command.StderrPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		w.Fatal(err)
	}
	listening := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			w.Logf("%d: %s", p.command.Process.Pid, lines.Text())
			var line struct{ Msg, Address string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
				listening <- line.Address
			}
		}
		close(listening)
		p.ended <- p.command.Wait()
	}()
	w.Cleanup(func() {
		_ = p.command.Process.Kill()
		<-p.ended
	})
	address, ok := <-listening
	if !ok {
		w.Fatal("the process has ended")
	}
	p.url = "http://" + address
	return p
}

// refused returns the log and the exit code of a process that must not start.
func (w *world) refused(setting string) (string, int) {
	w.Helper()
	command := w.command(setting)
	var log strings.Builder
	command.Stderr = &log
	var exit *exec.ExitError
	if err := command.Run(); !errors.As(err, &exit) {
		w.Fatalf("%s: %v", setting, err)
	}
	return log.String(), exit.ExitCode()
}

func (p *instance) kill(signal syscall.Signal) {
	p.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		p.Fatal(err)
	}
}

func (p *instance) ends(code int) {
	p.Helper()
	err := <-p.ended
	p.ended <- err
	if got := p.command.ProcessState.ExitCode(); got != code {
		p.Errorf("the process ended with %d (%v), want %d", got, err, code)
	}
}

// hangs has the provider hold each charge until goesOn. It makes the charge also when its caller is gone.
func (w *world) hangs() {
	w.Helper()
	if err := w.provider.Faults(w.Context(), provider.Rule{On: provider.Charge, Fault: provider.Delay, DelayMillis: time.Hour.Milliseconds()}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) goesOn() {
	w.Helper()
	if err := errors.Join(w.provider.Faults(w.Context()), w.provider.Resume(w.Context())); err != nil {
		w.Fatal(err)
	}
}

// calls waits until the provider works on so many calls.
func (w *world) calls(want int) {
	w.Helper()
	w.until("the provider was called", func() bool {
		rules, err := w.provider.Rules(w.Context())
		return err == nil && len(rules) == 1 && rules[0].Applied >= want
	})
}

func (w *world) until(what string, happened func() bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 2*time.Minute)
	defer cancel()
	for !happened() {
		select {
		case <-ctx.Done():
			w.Fatalf("never: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// charged proves how many charges were made.
func (w *world) charged(want int) {
	w.Helper()
	charges, err := w.provider.Charges(w.Context())
	if err != nil || len(charges) != want {
		w.Errorf("%d charges (%v), want %d: %+v", len(charges), err, want, charges)
	}
	for _, c := range charges {
		w.Logf("charge %s: %d requests", c.ID, c.Attempts)
	}
}

type answer struct {
	status                      int
	idempotency, location, body string
	err                         error
}

func (w *world) pay(p *instance, key string) chan answer {
	body := `{"amount":500,"currency":"EUR","source":"card_1"}`
	return w.ask(p, http.MethodPost, "/payments", key, body)
}

func (w *world) ask(p *instance, method, path, key, body string) chan answer {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	request.SetBasicAuth("customer-1", "secret")
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	answers := make(chan answer, 1)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			answers <- answer{err: err}
			return
		}
		defer response.Body.Close()
		read, err := io.ReadAll(response.Body)
		answers <- answer{response.StatusCode, response.Header.Get("Idempotency-Status"), response.Header.Get("Location"), string(read), err}
	}()
	return answers
}

// completed asks for the operation until it is completed, and sends nothing again.
func (w *world) completed(p *instance, location string) {
	w.Helper()
	began := time.Now()
	w.until("the payment was completed", func() bool {
		var operation struct{ State string }
		a := <-w.ask(p, http.MethodGet, location, "", "")
		return a.err == nil && json.Unmarshal([]byte(a.body), &operation) == nil && operation.State == "completed"
	})
	w.Logf("completed after %v", time.Since(began))
}
