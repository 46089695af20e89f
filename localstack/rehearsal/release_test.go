package rehearsal

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The rehearsal of another schema is about nothing if the version in the source is not the one that is raised.
func TestALaterReleaseHasAnotherSchema(t *testing.T) {
	version, err := schemaOf("../..")
	if err != nil || version < 1 {
		t.Fatalf("%d, %v", version, err)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", schemaFile))
	if err != nil {
		t.Fatal(err)
	}
	later, err := raised(string(text))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	path := filepath.Join(folder, schemaFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(later), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := schemaOf(folder); err != nil || got != version+1 {
		t.Errorf("schema %d, %v; want %d", got, err, version+1)
	}
	for _, text := range []string{"package storage\n", "const SchemaVersion = 1\nconst SchemaVersion = 2\n"} {
		if _, err := raised(text); err == nil {
			t.Errorf("%q was raised", text)
		}
	}
}

// What accepts work is of one release, and everything else of the other.
func TestMixedReleases(t *testing.T) {
	build := func(name string) release {
		folder := t.TempDir()
		for _, function := range []string{"api", "authorizer", "worker", "sweep", "reconcile", "webhook", "relay", "drift"} {
			path := filepath.Join(folder, runtime.GOARCH, function, "bootstrap")
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return release{name: name, checkout: name, build: folder}
	}
	both, err := mixed(filepath.Join(t.TempDir(), "mixed"), build("old"), build("new"))
	if err != nil || both.checkout != "new" {
		t.Fatalf("%+v, %v", both, err)
	}
	for function, want := range map[string]string{"api": "old", "authorizer": "old", "worker": "new", "sweep": "new", "reconcile": "new", "webhook": "new", "relay": "new", "drift": "new"} {
		path := filepath.Join(both.build, runtime.GOARCH, function, "bootstrap")
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s is of %q, %v; want %s", function, got, err, want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode()&0o100 == 0 {
			t.Errorf("%s can't be run: %v", function, err)
		}
	}
}

// The earlier release is the one that is named, else the last tag, else the commit before this one.
func TestEarlierRelease(t *testing.T) {
	root := t.TempDir()
	commit := func(name string) string {
		for _, arguments := range [][]string{
			{"init", "-q"}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", name},
		} {
			if out, err := exec.Command("git", append([]string{"-C", root}, arguments...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		hash, err := git(context.Background(), root, "rev-parse", "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	first, second := commit("one"), commit("two")
	want := func(reference, hash string) {
		t.Helper()
		if got, err := earlier(t.Context(), root, reference); err != nil || got != hash {
			t.Errorf("%q is %s, %v; want %s", reference, got, err, hash)
		}
	}
	want("", first)
	want("HEAD", second)
	third := commit("three")
	if _, err := git(t.Context(), root, "tag", "v1.0.0", third); err != nil {
		t.Fatal(err)
	}
	commit("four")
	want("", third)
	// A release is a commit on no branch, and its modules have tags of their own.
	fifth := commit("five")
	for _, tag := range []string{"v1.10.0", "functions/v1.10.0"} {
		if _, err := git(t.Context(), root, "tag", tag, fifth); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := git(t.Context(), root, "reset", "-q", "--hard", "HEAD~1"); err != nil {
		t.Fatal(err)
	}
	if _, err := git(t.Context(), root, "tag", "v1.9.0", first); err != nil {
		t.Fatal(err)
	}
	want("", fifth)
	want(first[:10], first)
	if _, err := earlier(t.Context(), root, "v2.0.0"); err == nil || !strings.Contains(err.Error(), "v2.0.0") {
		t.Errorf("a tag that is not there: %v", err)
	}
}

// A release without Lambda aliases is refused before anything is built: with its code, field, value and rule in one line.
func TestAnEarlierReleaseMustHaveAliases(t *testing.T) {
	root := t.TempDir()
	run := func(arguments ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-C", root, "-c", "user.name=t", "-c", "user.email=t@example.com"}, arguments...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	own, err := os.ReadFile(filepath.Join("..", "..", aliasFile))
	if err != nil {
		t.Fatal(err)
	}
	run("init", "-q")
	run("commit", "-q", "--allow-empty", "-m", "no such file")
	run("tag", "without")
	if err := os.MkdirAll(filepath.Join(root, filepath.Dir(aliasFile)), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tagged := range []struct{ name, text string }{{"other", "package stack\n"}, {"with", string(own)}} {
		if err := os.WriteFile(filepath.Join(root, aliasFile), []byte(tagged.text), 0o644); err != nil {
			t.Fatal(err)
		}
		run("add", ".")
		run("commit", "-q", "-m", tagged.name)
		run("tag", tagged.name)
	}
	for _, name := range []string{"without", "other"} {
		_, err := Earlier(t.Context(), root, name)
		var refused *AliasError
		if !errors.As(err, &refused) || refused.Reference != name || len(refused.Commit) != 40 {
			t.Fatalf("%s: %v", name, err)
		}
		for _, part := range []string{CodeWithoutAlias, `FROM = "` + name + `"`, refused.Commit[:12], "alias live"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %s", err, part)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is more than a line", err)
		}
	}
	if commit, err := Earlier(t.Context(), root, "with"); err != nil || len(commit) != 40 {
		t.Errorf("%q, %v", commit, err)
	}
}
