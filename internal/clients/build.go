package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// Client is one built client.
type Client struct {
	Name string
	// Directory is where its package is installed.
	Directory string

	command []string
}

// sourceOf is where a client is built from.
func sourceOf(client string) (string, error) {
	root, err := localtool.Root()
	return filepath.Join(root, "idem", "client", client), err
}

// Go builds idem/client and its driver in the directory.
func Go(ctx context.Context, directory string) (*Client, error) {
	root, err := localtool.Root()
	if err != nil {
		return nil, err
	}
	program := filepath.Join(directory, "godriver")
	if err := run(ctx, root, "go", "build", "-o", program, "./internal/clients/godriver"); err != nil {
		return nil, err
	}
	return &Client{Name: "go", Directory: directory, command: []string{program}}, nil
}

// TypeScript packs the npm package, as publishing it would, and installs the tarball into a project in the directory. Its error
// is a *localtool.NotInstalledError where the compiler is missing, and ErrMissing without Node 20.
func TypeScript(ctx context.Context, directory string) (*Client, error) {
	if err := require(ctx, "Node 20 or newer with npm", "node", "-e", "process.exit(+process.versions.node.split('.')[0] < 20 ? 1 : 0)"); err != nil {
		return nil, err
	}
	tool, err := localtool.TypeScriptTool.Find()
	if err != nil {
		return nil, err
	}
	source, err := sourceOf("typescript")
	if err != nil {
		return nil, err
	}
	built, project := filepath.Join(directory, "package"), filepath.Join(directory, "project")
	if err := copyFiles(built, source, "package.json", "tsconfig.json", "README.md", "LICENSE", "src"); err != nil {
		return nil, err
	}
	if err := os.Symlink(filepath.Join(tool, "node_modules"), filepath.Join(built, "node_modules")); err != nil {
		return nil, err
	}
	// prepack runs the compiler.
	if err := run(ctx, built, "npm", "pack", "--silent", "--pack-destination", directory); err != nil {
		return nil, err
	}
	tarballs, err := filepath.Glob(filepath.Join(directory, "*.tgz"))
	if err != nil || len(tarballs) != 1 {
		return nil, fmt.Errorf("npm pack made %v, %w", tarballs, err)
	}
	if err := copyFiles(project, filepath.Join(source, "test"), "."); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(project, "package.json"), []byte(`{"name":"consumer","private":true,"type":"module"}`), 0o644); err != nil {
		return nil, err
	}
	if err := run(ctx, project, "npm", "install", "--offline", "--no-audit", "--no-fund", "--silent", tarballs[0]); err != nil {
		return nil, err
	}
	return &Client{Name: "typescript", Directory: project, command: []string{"node", filepath.Join(project, "driver.mjs")}}, nil
}

// Python builds the wheel and installs it into an environment of its own in the directory, outside of the project's folder. Its
// error is a *localtool.NotInstalledError where what builds it is missing.
func Python(ctx context.Context, directory string) (*Client, error) {
	tool, err := localtool.PythonClientTool.Find()
	if err != nil {
		return nil, err
	}
	source, err := sourceOf("python")
	if err != nil {
		return nil, err
	}
	built, project, bin := filepath.Join(directory, "package"), filepath.Join(directory, "project"), filepath.Join(tool, "venv", "bin")
	if err := copyFiles(built, source, "pyproject.toml", "README.md", "LICENSE", "src"); err != nil {
		return nil, err
	}
	if err := run(ctx, built, filepath.Join(bin, "hatchling"), "build", "--target", "wheel", "--directory", directory); err != nil {
		return nil, err
	}
	wheels, err := filepath.Glob(filepath.Join(directory, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return nil, fmt.Errorf("hatchling made %v, %w", wheels, err)
	}
	environment := filepath.Join(directory, "venv")
	if err := run(ctx, directory, filepath.Join(bin, "python"), "-m", "venv", "--without-pip", environment); err != nil {
		return nil, err
	}
	python := filepath.Join(environment, "bin", "python")
	if err := run(ctx, directory, filepath.Join(bin, "python"), "-m", "pip", "--python", python, "install", "--quiet",
		"--disable-pip-version-check", "--no-index", "--find-links", filepath.Join(tool, "wheels"), wheels[0]); err != nil {
		return nil, err
	}
	if err := copyFiles(project, filepath.Join(source, "tests"), "."); err != nil {
		return nil, err
	}
	return &Client{Name: "python", Directory: project, command: []string{python, "-I", filepath.Join(project, "driver.py")}}, nil
}

// Async is the Python client with its asynchronous transport.
func (c *Client) Async() *Client {
	async := *c
	async.Name, async.command = c.Name+"-async", append(c.command[:len(c.command):len(c.command)], "async")
	return &async
}

// ErrMissing says that a program which no target installs is missing.
var ErrMissing = errors.New("missing")

func require(ctx context.Context, what, program string, arguments ...string) error {
	if err := exec.CommandContext(ctx, program, arguments...).Run(); err != nil {
		return fmt.Errorf("%w: %s is needed (%w)", ErrMissing, what, err)
	}
	return nil
}

// OverlayVariable names a file as go build -overlay takes it. The sources of the clients in other languages are read through it, so that
// a change for a test needs no other checkout.
const OverlayVariable = "IDEM_CLIENT_OVERLAY"

// overlay replaces what was copied.
func overlay(to, from string) error {
	name := os.Getenv(OverlayVariable)
	if name == "" {
		return nil
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var changed struct{ Replace map[string]string }
	if err := json.Unmarshal(raw, &changed); err != nil {
		return err
	}
	for path, by := range changed.Replace {
		inside, err := filepath.Rel(from, path)
		if err != nil || !filepath.IsLocal(inside) {
			continue // of another client, or of Go
		}
		content, err := os.ReadFile(by)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, inside), content, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyFiles copies files and folders. A build in the checkout would leave its results there, and two at once would meet.
func copyFiles(to, from string, names ...string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		info, err := os.Stat(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if info.IsDir() {
			if err := os.CopyFS(filepath.Join(to, name), os.DirFS(filepath.Join(from, name))); err != nil {
				return err
			}
			continue
		}
		content, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), content, 0o644); err != nil {
			return err
		}
	}
	return overlay(to, from)
}

func run(ctx context.Context, directory string, program string, arguments ...string) error {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = directory
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", filepath.Base(program), arguments, err, localtool.Tail(string(said)))
	}
	return nil
}

// Process is a running driver.
type Process struct {
	Results <-chan Result

	command *exec.Cmd
	stdin   io.WriteCloser
	errors  bytes.Buffer
	read    sync.WaitGroup
	failed  error
}

// Start starts the client's driver, in a process of its own that ends with ctx.
func (c *Client) Start(ctx context.Context) (*Process, error) {
	p := &Process{command: exec.CommandContext(ctx, c.command[0], c.command[1:]...)}
	p.command.Dir, p.command.Stderr = c.Directory, &p.errors
	stdin, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	results := make(chan Result)
	p.stdin, p.Results = stdin, results
	p.read.Go(func() {
		defer close(results)
		p.failed = readResults(stdout, results)
	})
	return p, nil
}

const resultBytesMax = 16 << 20

func readResults(from io.Reader, results chan<- Result) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, resultBytesMax)
	for lines.Scan() {
		var result Result
		if err := json.Unmarshal(lines.Bytes(), &result); err != nil {
			return fmt.Errorf("a driver said %q: %w", lines.Text(), err)
		}
		results <- result
	}
	return lines.Err()
}

// Send gives the driver tasks, the last ones.
func (p *Process) Send(tasks ...Task) error {
	for _, task := range tasks {
		line, err := json.Marshal(task)
		if err != nil {
			return err
		}
		if _, err := p.stdin.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return p.stdin.Close()
}

// Kill ends the process as a failing host does.
func (p *Process) Kill() error { return p.command.Process.Kill() }

// Wait returns all results by id, once the process has ended.
func (p *Process) Wait() (map[string]Result, error) {
	all := map[string]Result{}
	for result := range p.Results {
		all[result.ID] = result
	}
	p.read.Wait()
	if err := errors.Join(p.command.Wait(), p.failed); err != nil {
		return all, fmt.Errorf("%w\n%s", err, localtool.Tail(p.errors.String()))
	}
	return all, nil
}

// Run gives a process of the client the tasks, and returns their results by id.
func (c *Client) Run(ctx context.Context, tasks ...Task) (map[string]Result, error) {
	p, err := c.Start(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.Send(tasks...); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p.Wait()
}
