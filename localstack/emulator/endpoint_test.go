package emulator_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/localstack/emulator"
)

func TestOpenNeedsTheTool(t *testing.T) {
	_, err := emulator.Open(t.Context(), t.TempDir(), emulator.Dynoxide)
	var missing *emulator.NotInstalledError
	if !errors.As(err, &missing) {
		t.Fatalf("error = %v, want *NotInstalledError", err)
	}
	if got, want := err.Error(), "dynoxide 1.2.1 is not installed: run `make tools`"; got != want {
		t.Errorf("message = %q, want %q", got, want)
	}
}

func TestOpenRefusesUnknownNames(t *testing.T) {
	if _, err := emulator.Open(t.Context(), t.TempDir(), "postgres"); err == nil {
		t.Error("an unknown emulator was opened")
	}
}

// names are the emulators to start: those that the caller has installed, dynoxide unless told otherwise.
func names() []string {
	if chosen := os.Getenv("IDEM_STORE_ENDPOINTS"); chosen != "" {
		return strings.Split(chosen, ",")
	}
	return []string{emulator.Dynoxide}
}

func TestStartedEmulatorsAnswerUntilStopped(t *testing.T) {
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			endpoint := emulator.Start(t, name)
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
