package localtool_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// checkout makes an empty checkout, without any tool, and makes it the working directory.
func checkout(t *testing.T) {
	t.Helper()
	root := t.TempDir()
	for _, path := range []string{"go.work", "localstack/go.mod"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	t.Setenv(localtool.DynoxideVariable, "")
}

func TestOpenNeedsTheTool(t *testing.T) {
	checkout(t)
	for name, want := range map[string]string{
		localtool.Dynoxide:  "open dynoxide: dynoxide 1.2.1 is not installed: run `make tools` (IDEM_DYNOXIDE may name the program)",
		localtool.Ministack: "open ministack: ministack 1.5.33 is not installed: run `make tools`",
	} {
		_, err := localtool.Open(t.Context(), name)
		var missing *localtool.NotInstalledError
		if !errors.As(err, &missing) || missing.Tool.Name != name {
			t.Fatalf("error = %v, want *NotInstalledError", err)
		}
		if got := err.Error(); got != want {
			t.Errorf("message = %q, want %q", got, want)
		}
	}
}

// A missing tool excuses a test for a person who has only Go, and never where everything is asked for. Nothing else does.
func TestOnlyAMissingToolExcusesATest(t *testing.T) {
	missing := fmt.Errorf("open: %w", &localtool.NotInstalledError{Tool: localtool.DynoxideTool})
	for _, c := range []struct {
		ci   string
		err  error
		want bool
	}{
		{"", missing, true}, {"false", missing, true}, {"true", missing, false}, {"", localtool.ErrNoCheckout, false}, {"", nil, false},
	} {
		t.Setenv("CI", c.ci)
		if got := localtool.Excuses(c.err); got != c.want {
			t.Errorf("CI=%q, %v: %t, want %t", c.ci, c.err, got, c.want)
		}
	}
}

// fake is a dynoxide that ends at once and says where it lies.
func fake(t *testing.T) (directory, program string) {
	t.Helper()
	directory = t.TempDir()
	program = filepath.Join(directory, "dynoxide")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho $0 $1; exit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return directory, program
}

func TestOutsideACheckoutDynoxideIsTheOneOnPath(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(localtool.DynoxideVariable, "")
	t.Setenv("PATH", t.TempDir())
	if _, err := localtool.Open(t.Context(), localtool.Dynoxide); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("without one: %v", err)
	}
	directory, program := fake(t)
	t.Setenv("PATH", directory)
	if _, err := localtool.Open(t.Context(), localtool.Dynoxide); err == nil || !strings.Contains(err.Error(), program+" serve") {
		t.Errorf("%v; want %s started", err, program)
	}
	if _, err := localtool.Open(t.Context(), localtool.DynamoDBLocal); !errors.Is(err, localtool.ErrNoCheckout) {
		t.Errorf("another emulator: %v", err)
	}
}

func TestTheVariableNamesTheDynoxideToStart(t *testing.T) {
	_, program := fake(t)
	t.Setenv(localtool.DynoxideVariable, program) // in this checkout, too
	if _, err := localtool.Open(t.Context(), localtool.Dynoxide); err == nil || !strings.Contains(err.Error(), program+" serve") {
		t.Errorf("%v; want %s started", err, program)
	}
}

func TestOpenRefusesUnknownNames(t *testing.T) {
	if _, err := localtool.Open(t.Context(), "postgres"); err == nil {
		t.Error("an unknown emulator was opened")
	}
}

// names are the emulators to start: those that the caller has installed, dynoxide unless told otherwise.
func names() []string {
	if chosen := os.Getenv("IDEM_STORE_ENDPOINTS"); chosen != "" {
		return strings.Split(chosen, ",")
	}
	return []string{localtool.Dynoxide}
}

func TestStartedEmulatorsAnswerUntilStopped(t *testing.T) {
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			endpoint, err := localtool.Open(t.Context(), name)
			if localtool.Excuses(err) {
				t.Skipf("not run: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer endpoint.Stop()
			response, err := http.Get(endpoint.URL)
			if err != nil {
				t.Fatalf("a started emulator does not answer: %v", err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			endpoint.Stop()
			endpoint.Stop() // a second time changes nothing
			http.DefaultClient.CloseIdleConnections()
			if response, err := http.Get(endpoint.URL); err == nil {
				response.Body.Close()
				t.Error("a stopped emulator still answers")
			}
		})
	}
}
