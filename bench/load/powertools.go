package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// installPowertools returns the folder of the service on Powertools, after npm ci where node_modules is not what
// package-lock.json says.
func installPowertools(ctx context.Context, root string, out *progress.Printer) (string, error) {
	folder := filepath.Join(root, "bench", "load", "powertools")
	locked, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		return "", err
	}
	stamp := filepath.Join(folder, "node_modules", ".installed-lock.json")
	installed, err := os.ReadFile(stamp)
	if err == nil && bytes.Equal(installed, locked) {
		return folder, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := emulator.RequireNode(ctx); err != nil {
		return "", err
	}
	return folder, out.Step("npm ci in bench/load/powertools", func() error {
		if err := emulator.Run(ctx, folder, nil, "npm", "ci", "--no-audit", "--no-fund"); err != nil {
			return err
		}
		return os.WriteFile(stamp, locked, 0o644)
	})
}

// powertools is a running service on Powertools.
type powertools struct {
	url     string
	command *exec.Cmd
	input   io.Closer
	said    *bytes.Buffer
}

// startPowertools starts the service in the folder over an endpoint of DynamoDB, and returns once it listens.
func startPowertools(ctx context.Context, folder, dynamoDB, rows string) (*powertools, error) {
	p := &powertools{command: exec.CommandContext(ctx, "node", "server.mjs"), said: &bytes.Buffer{}}
	p.command.Dir, p.command.Stderr = folder, p.said
	p.command.Env = append(os.Environ(), "DYNAMODB_URL="+dynamoDB, "RECORDS_TABLE="+powertoolsTable, "ROWS_TABLE="+rows, "ANSWER="+string(answer))
	var err error
	if p.input, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("powertools: %w", err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	port, numberErr := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || numberErr != nil {
		p.stop()
		return nil, fmt.Errorf("powertools: it printed %q in place of its port: %s", line, p.said)
	}
	p.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	return p, nil
}

// stop ends the process, which ends with its input, and waits for it.
func (p *powertools) stop() {
	_ = p.input.Close()
	_ = p.command.Wait()
}
