package check

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Function is a program that lambda.Start runs, as a process of its own, with the runtime API that Lambda has for it.
type Function struct {
	// Left is how much time an invocation begins with. Set it between invocations. Default 30 s.
	Left    time.Duration
	command *exec.Cmd
	said    bytes.Buffer
	events  chan string
	ends    chan End
	ended   chan error
}

// End is how an invocation ended.
type End struct {
	Body string
	// Failed says that the function reported an error, not a result.
	Failed bool
}

// StallMin is the least that a request takes whose store stands still: a 503 that is there sooner has another cause.
const StallMin = time.Second

// StartFunction starts the program. It is killed when the test ends.
func StartFunction(t *testing.T, program string, environment ...string) *Function {
	t.Helper()
	f := &Function{Left: 30 * time.Second, events: make(chan string), ends: make(chan End, 1), ended: make(chan error, 1)}
	api := httptest.NewServer(http.HandlerFunc(f.serve))
	f.command = exec.Command(program)
	f.command.Env = append(os.Environ(), "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.URL, "http://"))
	f.command.Env = append(f.command.Env, environment...)
	f.command.Stdout, f.command.Stderr = t.Output(), io.MultiWriter(t.Output(), &f.said)
	if err := f.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { f.ended <- f.command.Wait() }()
	t.Cleanup(func() {
		f.Kill()
		<-f.ended //nolint:errcheck // it was killed
		api.CloseClientConnections()
		api.Close()
	})
	return f
}

// Kill sends SIGKILL: the process has no time for anything.
func (f *Function) Kill() { _ = f.command.Process.Kill() }

// Log kills the function, and returns what it has written to stderr.
func (f *Function) Log() string {
	f.Kill()
	f.ended <- <-f.ended
	return f.said.String()
}

// Invoke gives the function an event and waits for the end of the invocation. Where the process dies instead, it is false.
func (f *Function) Invoke(t *testing.T, event string) (End, bool) {
	t.Helper()
	select {
	case f.events <- event:
	case err := <-f.ended:
		f.ended <- err
		return End{}, false
	case <-t.Context().Done():
		t.Fatal("the function took no event")
	}
	select {
	case end := <-f.ends:
		return end, true
	case err := <-f.ended:
		f.ended <- err
		return End{}, false
	case <-t.Context().Done():
		t.Fatal("the invocation had no end")
	}
	return End{}, false
}

// serve is the runtime API: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
func (f *Function) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/invocation/next"):
		select {
		case event := <-f.events:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd")
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(f.Left).UnixMilli(), 10))
			w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-west-1:000000000000:function:test")
			_, _ = io.WriteString(w, event)
		case <-r.Context().Done():
		}
	case strings.HasSuffix(r.URL.Path, "/response"), strings.HasSuffix(r.URL.Path, "/error"):
		body, err := io.ReadAll(r.Body)
		f.ends <- End{Body: string(body), Failed: err != nil || strings.HasSuffix(r.URL.Path, "/error")}
		w.WriteHeader(http.StatusAccepted)
	default:
		http.NotFound(w, r)
	}
}
