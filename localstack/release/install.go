package release

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Command is the program that a release has binaries of.
const Command = Repository + "/functions/cmd/idemctl"

// Adopter is somebody who has nothing but a Go installation: the go command in empty folders of its own, outside of any
// checkout, with a proxy that has the release.
type Adopter struct {
	// Folder is empty, and receives everything that the go command writes but its build cache.
	Folder string
	// Proxy is a folder that [Publish] filled.
	Proxy string
	// Cache is the folder of the build cache; empty is the user's own. What is in it is not compiled again.
	Cache string
}

// Go runs the go command in Folder/name, for a platform, which is this machine's where it is empty.
func (a Adopter) Go(ctx context.Context, name string, on Platform, arguments ...string) (string, error) {
	directory := filepath.Join(a.Folder, name)
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return "", err
	}
	environment, err := a.environment(ctx, on)
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir, command.Env = directory, environment
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(arguments, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// environment leaves nothing of the user's settings that could change what is built. Modules of others come from the module
// cache, if it has them, and from the user's proxy otherwise.
func (a Adopter) environment(ctx context.Context, on Platform) ([]string, error) {
	// An empty folder, because a go.work around would name other settings.
	outside := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY")
	outside.Dir = a.Folder
	printed, err := outside.Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	modules, proxies, _ := strings.Cut(strings.TrimSpace(string(printed)), "\n")
	environment := append(os.Environ(),
		"GOWORK=off", "GOFLAGS=-trimpath -modcacherw", "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT=", "GOBIN=", "GOPATH="+filepath.Join(a.Folder, "go"), "GOMODCACHE="+filepath.Join(a.Folder, "modules"),
		// The checksum database does not know this release yet.
		"GOPRIVATE=", "GONOPROXY=none", "GONOSUMDB="+Repository,
		"GOPROXY="+fileURL(a.Proxy)+","+fileURL(filepath.Join(modules, "cache", "download"))+","+proxies)
	if a.Cache != "" {
		environment = append(environment, "GOCACHE="+a.Cache)
	}
	if on != (Platform{}) {
		environment = append(environment, "GOOS="+on.OS, "GOARCH="+on.Arch)
	}
	return environment, nil
}

func fileURL(folder string) string { return "file://" + filepath.ToSlash(folder) }

// Install runs `go install` of [Command] at a version for a platform, and returns the path of the program.
func (a Adopter) Install(ctx context.Context, version string, on Platform) (string, error) {
	if _, err := a.Go(ctx, "empty", on, "install", Command+"@"+version); err != nil {
		return "", err
	}
	bin := filepath.Join(a.Folder, "go", "bin")
	if on != (Platform{}) && on != (Platform{runtime.GOOS, runtime.GOARCH}) {
		bin = filepath.Join(bin, on.OS+"_"+on.Arch)
	}
	return filepath.Join(bin, on.executable("idemctl")), nil
}
