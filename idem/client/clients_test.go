package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/clients"
	"github.com/idem-go/idem-aws/internal/localtool"
)

// built builds a client. Where a tool for it is missing one line says so; with CI=true that is a failure.
func built(t *testing.T, build func(context.Context, string) (*clients.Client, error)) *clients.Client {
	t.Helper()
	c, err := build(t.Context(), t.TempDir())
	switch {
	case err == nil:
		return c
	case localtool.Excuses(err) || os.Getenv("CI") != "true" && errors.Is(err, clients.ErrMissing):
		t.Skipf("not run: a client's tests: %v", err)
	default:
		t.Fatal(err)
	}
	return nil
}

// keeps holds a client against the scenarios, and against the engine.
func keeps(t *testing.T, c *clients.Client) {
	playAll(t, c)
	t.Run("engine", func(t *testing.T) {
		t.Parallel()
		meet(t, c)
	})
}

func playAll(t *testing.T, c *clients.Client) {
	t.Run("scenarios", func(t *testing.T) {
		t.Parallel()
		play(t, c, scenarios(t))
	})
}

func TestTheGoClientKeepsTheSharedRules(t *testing.T) {
	t.Parallel()
	keeps(t, built(t, clients.Go))
}

func TestTheTypeScriptPackageKeepsTheSharedRules(t *testing.T) {
	t.Parallel()
	c := built(t, clients.TypeScript)
	t.Run("package", func(t *testing.T) {
		t.Parallel()
		untrusted(t, c)
		passes(t, c.Directory, "node", "--test", "client.test.mjs")
		tool, err := localtool.TypeScriptTool.Find()
		if err != nil {
			t.Fatal(err)
		}
		examples(t, c, filepath.Join("typescript", "README.md"), "ts")
		// A consumer that is strict, and has the types of browsers only.
		passes(t, c.Directory, "node", filepath.Join(tool, "node_modules", "typescript", "bin", "tsc"), "--noEmit", "--strict",
			"--exactOptionalPropertyTypes", "--target", "ES2022", "--lib", "ES2022,DOM", "--module", "NodeNext", "--types", "", "consumer.ts", "example1.ts")
	})
	keeps(t, c)
}

func TestThePythonPackageKeepsTheSharedRules(t *testing.T) {
	t.Parallel()
	c := built(t, clients.Python)
	t.Run("package", func(t *testing.T) {
		t.Parallel()
		python := filepath.Join(filepath.Dir(c.Directory), "venv", "bin", "python")
		untrusted(t, c)
		passes(t, c.Directory, python, "-I", "-W", "error", "-m", "unittest", "discover", "--start-directory", c.Directory)
		tool, err := localtool.PythonClientTool.Find()
		if err != nil {
			t.Fatal(err)
		}
		examples(t, c, filepath.Join("python", "README.md"), "py")
		// The installed package, by its own types, as a strict consumer sees it.
		passes(t, c.Directory, filepath.Join(tool, "venv", "bin", "mypy"), "--strict", "--python-executable", python, "--cache-dir",
			filepath.Join(tool, "mypy-cache"), "-p", "idem_client", "-m", "driver", "-m", "consumer", "-m", "test_transport", "-m", "test_errors", "-m", "test_answers", "-m", "test_interruptions", "-m", "example1", "-m", "example2")
	})
	keeps(t, c)
	t.Run("asynchronous", func(t *testing.T) { playAll(t, c.Async()) })
}

var blocks = regexp.MustCompile("(?s)```(ts|python)\n(.*?)```")

// examples writes the examples of a README into a project, as example1, example2 and so on.
func examples(t *testing.T, c *clients.Client, readme, suffix string) {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range blocks.FindAllSubmatch(text, -1) {
		if err := os.WriteFile(filepath.Join(c.Directory, fmt.Sprintf("example%d.%s", i+1, suffix)), block[2], 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// untrusted serves with a certificate that no client trusts, and writes the URL into the client's project.
func untrusted(t *testing.T, c *clients.Client) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	if err := os.WriteFile(filepath.Join(c.Directory, "untrusted.url"), []byte(server.URL), 0o644); err != nil {
		t.Fatal(err)
	}
}

// passes runs a program that must succeed.
func passes(t *testing.T, directory, program string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = directory
	if said, err := command.CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", filepath.Base(program), strings.Join(arguments, " "), err, said)
	}
}

// The lock file that a developer of the package installs by has the versions that the tests run by.
func TestTheTypeScriptLockFileHasTheToolsVersion(t *testing.T) {
	var lock struct {
		Packages map[string]struct{ Version string } `json:"packages"`
	}
	raw, err := os.ReadFile(filepath.Join("typescript", "package-lock.json"))
	if err == nil {
		err = json.Unmarshal(raw, &lock)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := lock.Packages["node_modules/typescript"].Version; got != localtool.TypeScriptTool.Version {
		t.Errorf("package-lock.json has TypeScript %s, want %s", got, localtool.TypeScriptTool.Version)
	}
}

// A command that installs by name may find a package of somebody else's, as long as there is none of this project's. The pages say so
// together, and stop together.
func TestThePackagesSayThatTheyAreNotPublished(t *testing.T) {
	const said, checkout = "not published yet", "git clone https://github.com/idem-go/idem-aws.git"
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	published := !strings.Contains(string(page), "The packages are "+said)
	for _, name := range []string{"typescript", "python"} {
		readme, err := os.ReadFile(filepath.Join(name, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(readme), said) == published || strings.Contains(string(readme), checkout) == published {
			t.Errorf("docs/clients.md says that the packages are published: %v; %s/README.md does not say the same, or not what to do until then", published, name)
		}
	}
}

// Packages carry the project's license.
func TestThePackagesHaveTheLicense(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("..", "..", "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"typescript", "python"} {
		if got, err := os.ReadFile(filepath.Join(name, "LICENSE")); err != nil || string(got) != string(want) {
			t.Errorf("%s/LICENSE differs from the project's (%v)", name, err)
		}
	}
}
