package stack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/idem-go/idem-aws/localstack/emulator"
)

// building keeps stacks that a check brings up side by side from writing one file at once. The second finds it built.
var building sync.Mutex

func goBuild(ctx context.Context, directory string, environment []string, arguments ...string) error {
	building.Lock()
	defer building.Unlock()
	return emulator.Run(ctx, directory, environment, "go", append([]string{"build"}, arguments...)...)
}

// functionNames are the Lambda functions: the folders of functions/ that have a main.go.
func functionNames(root string) ([]string, error) {
	mains, err := filepath.Glob(filepath.Join(root, "functions", "*", "main.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, main := range mains {
		names = append(names, filepath.Base(filepath.Dir(main)))
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("build functions: no main.go below %s", filepath.Join(root, "functions"))
	}
	return names, nil
}

// BuildFunctions builds every function for a Go architecture as Lambda's provided.al2023 runtime wants it. Go's build
// cache makes it a second's work when nothing changed. Neither the commit nor the checkout's path is in a binary, so that a
// deployment updates no function whose source is unchanged.
func BuildFunctions(ctx context.Context, root, architecture string) error {
	return BuildFunctionsInto(ctx, root, buildDirectory(root), architecture)
}

// BuildFunctionsInto is BuildFunctions into another folder, as <folder>/<architecture>/<function>/bootstrap, with more variables for the
// Go command.
func BuildFunctionsInto(ctx context.Context, root, folder, architecture string, more ...string) error {
	names, err := functionNames(root)
	if err != nil {
		return err
	}
	module := filepath.Join(root, "functions")
	environment := append([]string{"GOOS=linux", "GOARCH=" + architecture, "CGO_ENABLED=0"}, more...)
	for _, name := range names {
		err := goBuild(ctx, module, environment, "-tags", "lambda.norpc", "-trimpath", "-buildvcs=false", "-ldflags=-s -w",
			"-o", filepath.Join(folder, architecture, name, "bootstrap"), "./"+name)
		if err != nil {
			return fmt.Errorf("build function %s: %w", name, err)
		}
	}
	return nil
}

// buildInfra builds the CDK app.
func buildInfra(ctx context.Context, root string) error {
	infra := filepath.Join(root, "infra")
	if err := goBuild(ctx, infra, nil, "-o", buildDirectory(root, "infra"), "."); err != nil {
		return fmt.Errorf("build the CDK app: %w", err)
	}
	return nil
}

// buildPrograms builds the processes that stand beside the emulator.
func buildPrograms(ctx context.Context, root string, names ...string) error {
	for _, name := range names {
		err := goBuild(ctx, filepath.Join(root, "localstack"), nil, "-o", buildDirectory(root, "bin", name), "./cmd/"+name)
		if err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
	}
	return nil
}

// buildCollector builds the OpenTelemetry collector, by its own module's versions.
func buildCollector(ctx context.Context, root string) error {
	err := goBuild(ctx, filepath.Join(root, collectorModule), []string{"GOWORK=off"}, "-o", buildDirectory(root, "bin", daemonCollector), ".")
	if err != nil {
		return fmt.Errorf("build %s: %w", daemonCollector, err)
	}
	return nil
}

// hashFiles is a hash over contents and parts, in a fixed order.
func hashFiles(files []string, parts ...string) (string, error) {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	slices.Sort(files)
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return "", err
		}
		length, err := io.Copy(hash, file)
		file.Close()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s:%d", name, length)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
