package emulator

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// hammer is a tool that installs itself by counting, below a root where somebody else installs it until free is called.
func hammer(t *testing.T) (root string, tool Tool, installs *int, free func()) {
	t.Helper()
	root, installs = t.TempDir(), new(int)
	tool = Tool{
		Tool:    localtool.Tool{Name: "hammer", Version: "1"},
		Check:   func(context.Context) error { return nil },
		Install: func(context.Context, string) error { *installs++; return nil },
	}
	if err := os.MkdirAll(filepath.Dir(tool.Directory(root)), 0o755); err != nil {
		t.Fatal(err)
	}
	free, err := lock(t.Context(), tool.Directory(root)+".lock", func() { t.Error("somebody has the lock of a new folder") })
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(lateEnough, free) // so that a wait that nobody ends does, and its test fails
	t.Cleanup(func() { late.Stop() })
	return root, tool, installs, free
}

// lateEnough is longer than any wait of these tests lasts.
const lateEnough = 20 * time.Second

// told calls do once a text was written to it.
type told struct {
	text string
	do   func()
}

func (w *told) Write(line []byte) (int, error) {
	if w.do != nil && strings.Contains(string(line), w.text) {
		do := w.do
		w.do = nil
		do()
	}
	return len(line), nil
}

const waiting = "wait for another process to install hammer 1"

// Ctrl-C ends what waits for another process's install.
func TestAWaitForAnotherInstallCanBeInterrupted(t *testing.T) {
	root, tool, installs, free := hammer(t)
	t.Cleanup(free)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out := &told{text: waiting, do: interrupt}
	if err := Install(ctx, root, progress.New(out), tool); !errors.Is(err, context.Canceled) || *installs != 0 || out.do != nil {
		t.Errorf("Install = %v after %d installs; told of the wait: %t", err, *installs, out.do == nil)
	}
}

// The one that waited installs where the other was interrupted, and nothing where that was done.
func TestAWaitForAnotherInstallEndsWithIt(t *testing.T) {
	for name, done := range map[string]bool{"interrupted": false, "done": true} {
		t.Run(name, func(t *testing.T) {
			root, tool, installs, free := hammer(t)
			out := &told{text: waiting, do: func() {
				if done {
					if err := os.MkdirAll(tool.Directory(root), 0o755); err != nil {
						t.Error(err)
					}
					if err := tool.Stamp(root); err != nil {
						t.Error(err)
					}
				}
				free()
			}}
			want := 1
			if done {
				want = 0
			}
			if err := Install(t.Context(), root, progress.New(out), tool); err != nil || *installs != want || !tool.Installed(root) || out.do != nil {
				t.Errorf("Install = %v after %d installs, want %d; told of the wait: %t", err, *installs, want, out.do == nil)
			}
		})
	}
}

func TestNobodyIsWaitedForWhereNobodyInstalls(t *testing.T) {
	root, tool, installs, free := hammer(t)
	free()
	out := &told{text: waiting, do: func() { t.Error("waits") }}
	if err := Install(t.Context(), root, progress.New(io.Writer(out)), tool); err != nil || *installs != 1 {
		t.Errorf("Install = %v after %d installs", err, *installs)
	}
}
