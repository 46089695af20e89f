package localstackhost

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLauncherNamesEveryLibrary(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a.jar", "b.jar", "native.so"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(folder, "launcher")
	if err := writeLauncher(folder, path); err != nil {
		t.Fatal(err)
	}
	jar, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer jar.Close()
	file, err := jar.Open("META-INF/MANIFEST.MF")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "Class-Path: \n  DynamoDBLocal_lib/a.jar \n  DynamoDBLocal_lib/b.jar\n"; !strings.HasSuffix(string(manifest), want) {
		t.Errorf("manifest:\n%s\nwant it to end with:\n%s", manifest, want)
	}
}

func TestCommandListensOnThisMachineOnly(t *testing.T) {
	t.Setenv("AWS_PROFILE", "production")
	command, err := Command(t.TempDir(), t.TempDir(), t.TempDir(), 4566)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(command.Env, "GATEWAY_LISTEN=127.0.0.1:4566") {
		t.Errorf("environment %q has no address of this machine", command.Env)
	}
	if slices.Contains(command.Env, "AWS_PROFILE=production") {
		t.Error("the caller's profile is passed on")
	}
}
