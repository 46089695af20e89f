package main

import (
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake makes this test's binary behave as a function.
const fake = "IDEM_BENCH_FAKE"

func TestMain(m *testing.M) {
	switch os.Getenv(fake) {
	case "asks":
		_, _ = http.Get("http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/invocation/next") // never answered
	case "fails":
		os.Stdout.WriteString("configuration: PAYMENTS_TABLE is not set\n")
		os.Exit(1)
	default:
		os.Exit(m.Run())
	}
}

func TestAStartEndsWithTheFirstRequestForAnEvent(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	took, err := start(t.Context(), binary, []string{fake + "=asks"})
	if err != nil || took <= 0 || took >= startWithin {
		t.Errorf("got %v, %v", took, err)
	}
}

func TestAFunctionThatEndsIsNamedWithWhatItSaid(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, err = start(t.Context(), binary, []string{fake + "=fails"})
	if err == nil || !strings.Contains(err.Error(), binary) || !strings.Contains(err.Error(), "PAYMENTS_TABLE is not set") {
		t.Errorf("got %v", err)
	}
}

// A variable that a function has come to need must be in the environment.
func TestEveryFunctionStarts(t *testing.T) {
	binaries, err := built(t.Context())
	if err != nil || len(binaries) < 8 {
		t.Fatalf("%d binaries, %v", len(binaries), err)
	}
	took, err := arguments{Runs: 1}.starts(t.Context(), binaries)
	if err != nil || len(took) != len(binaries) {
		t.Errorf("%d of %d started: %v", len(took), len(binaries), err)
	}
}

func TestSizes(t *testing.T) {
	noise := make([]byte, 64<<10)
	rand.Read(noise)
	for name, row := range map[string]struct {
		content    []byte
		least, max int64
	}{
		"zeroes": {make([]byte, 64<<10), 1, 2 << 10},
		"noise":  {noise, 64 << 10, 66 << 10},
	} {
		path := filepath.Join(t.TempDir(), "bootstrap")
		if err := os.WriteFile(path, row.content, 0o600); err != nil {
			t.Fatal(err)
		}
		size, zipped, err := sizes(path)
		if err != nil || size != 64<<10 || zipped < row.least || zipped > row.max {
			t.Errorf("%s: %d bytes, %d zipped, %v", name, size, zipped, err)
		}
	}
}
