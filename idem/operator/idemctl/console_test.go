package idemctl_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/operator/console"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// serving runs `idemctl console` until end is called, which returns its exit code; printed is its first line.
func (w *world) serving(args ...string) (printed string, end func() int) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- idemctl.Run(ctx, w.app, append([]string{"console"}, args...), write, io.Discard)
		_ = write.Close() // a pipe
	}()
	lines := bufio.NewReader(read)
	printed, err := lines.ReadString('\n')
	w.ok(err)
	return strings.TrimSpace(printed), func() int {
		cancel()
		code := <-ended
		if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
			w.Errorf("it prints more: %q, %v", rest, err)
		}
		return code
	}
}

// The console outlives the command line's patience, prints its address once, and ends with an interrupt.
func TestConsoleIsServedUntilAnInterrupt(t *testing.T) {
	w := newWorld(t)
	w.app.Console = func(c *console.Config) error {
		c.About = "stage-17"
		return nil
	}
	line, end := w.serving("--within", "1ms", "--write")
	address, found := strings.CutPrefix(line, "console: ")
	if !found || !strings.HasPrefix(address, "http://127.0.0.1:") {
		t.Fatalf("prints %q", line)
	}
	jar := jarOf(t, address)
	base, _, _ := strings.Cut(address, "/enter")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/", nil)
	w.ok(err)
	r.AddCookie(jar)
	res, err := http.DefaultClient.Do(r)
	w.ok(err)
	page, err := io.ReadAll(res.Body)
	w.ok(errors.Join(err, res.Body.Close()))
	if res.StatusCode != http.StatusOK || !strings.Contains(string(page), "stage-17") || !strings.Contains(string(page), "changes as ada") {
		t.Errorf("%s\n%s", res.Status, page)
	}
	http.DefaultClient.CloseIdleConnections()
	if code := end(); code != idemctl.ExitOK {
		t.Errorf("exits with %d", code)
	}
}

func jarOf(t *testing.T, address string) *http.Cookie {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || len(res.Cookies()) != 1 {
		t.Fatalf("%s, cookies %v, %v", res.Status, res.Cookies(), err)
	}
	return res.Cookies()[0]
}

func TestConsoleAsJSON(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- idemctl.Run(ctx, w.app, []string{"console", "--output", "json"}, write, io.Discard) }()
	var printed struct{ Address string }
	w.ok(json.NewDecoder(read).Decode(&printed))
	if !strings.Contains(printed.Address, "/enter?token=") {
		t.Errorf("%+v", printed)
	}
	w.ok(read.Close())
	cancel()
	if code := <-ended; code != idemctl.ExitOK {
		t.Errorf("exits with %d", code)
	}
}

func TestConsoleThatCantBeServed(t *testing.T) {
	w := newWorld(t)
	l, err := console.Listen(0)
	w.ok(err)
	defer l.Close()
	_, port, _ := strings.Cut(l.Addr().String(), ":")
	if _, errs := w.types(idemctl.ExitUsage, "console", "--port", port); !strings.Contains(errs, "in use") {
		t.Errorf("a port that is taken: %s", errs)
	}
	t.Setenv("IDEMCTL_ACTOR", "")
	t.Setenv("USER", "")
	if _, errs := w.types(idemctl.ExitUsage, "console", "--write"); !strings.Contains(errs, "Say who you are") {
		t.Errorf("nobody: %s", errs)
	}
	w.app.Console = func(*console.Config) error { return errors.New("no such stage") }
	if _, errs := w.types(idemctl.ExitUsage, "console"); !strings.Contains(errs, "no such stage") {
		t.Errorf("an application that refuses: %s", errs)
	}
}
