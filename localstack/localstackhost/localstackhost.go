// Package localstackhost installs and runs LocalStack 4.14.0, its newest release that needs no token, without Docker. The
// package belongs to this repository's tools and has no compatibility promise.
//
// LocalStack's own runtime is installed into a virtual environment. What its image would bring is added: DynamoDB Local
// from Maven, and processexec, a plugin that runs the Go functions as processes of this machine.
package localstackhost

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/emulator"
)

// processexec is the plugin's Python package; the pattern names the files, because __init__.py would be left out.
//
//go:embed processexec/pyproject.toml processexec/processexec/*.py
var processexec embed.FS

//go:embed requirements.txt
var requirements []byte

// Version is LocalStack's.
const Version = "4.14.0"

const (
	// pythonMinor is the Python that LocalStack's runtime was released for.
	pythonMinor = 13
	// dynamoDBLocalVersion is the one that LocalStack 4.14.0 would download.
	dynamoDBLocalVersion = "2.6.1"
)

// Tool is LocalStack on this machine: 500 MB, about a minute. It needs Python 3.13, a JDK 17 and Maven. Its version carries
// a hash of what is installed beside LocalStack, so that another plugin is another folder.
func Tool() emulator.Tool {
	hash := sha256.New()
	hash.Write(requirements)
	err := fs.WalkDir(processexec, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := processexec.ReadFile(path)
		fmt.Fprintf(hash, "%s %d\n%s", path, len(content), content)
		return err
	})
	if err != nil { // what is embedded can be read
		panic(err)
	}
	return emulator.Tool{
		Tool:  localtool.Tool{Name: "localstack", Version: Version + "-" + hex.EncodeToString(hash.Sum(nil)[:4]), Holds: []string{localtool.EnvironmentPython, filepath.ToSlash(javaLink("fs"))}},
		Check: check, Install: install,
	}
}

func check(ctx context.Context) error {
	_, err := emulator.Python(ctx, pythonMinor)
	return errors.Join(err, emulator.RequireJDK(ctx))
}

func install(ctx context.Context, directory string) error {
	if err := os.CopyFS(directory, processexec); err != nil {
		return err
	}
	file := filepath.Join(directory, "requirements.txt")
	if err := os.WriteFile(file, requirements, 0o644); err != nil {
		return err
	}
	if err := emulator.VirtualEnvironment(ctx, directory, pythonMinor, "-r", file); err != nil {
		return err
	}
	python := filepath.Join(directory, "venv", "bin", "python")
	err := emulator.Run(ctx, directory, nil, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
		"--no-deps", filepath.Join(directory, "processexec"))
	if err != nil {
		return err
	}
	return installJava(ctx, directory)
}

// libraries is where LocalStack looks for what its package manager installs.
func libraries(root string) string { return filepath.Join(root, "var", "lib", "localstack", "lib") }

// javaLink is where LocalStack looks for the Java runtime: a link to the machine's.
func javaLink(root string) string { return filepath.Join(libraries(root), "java", "21") }

func filesystem(directory string) string { return filepath.Join(directory, "fs") }

// installJava lays DynamoDB Local and the Java runtime out as LocalStack's package manager would.
func installJava(ctx context.Context, directory string) error {
	root := libraries(filesystem(directory))
	dynamodb := filepath.Join(root, "dynamodb-local", "2")
	jars := filepath.Join(dynamodb, "DynamoDBLocal_lib")
	for _, folder := range []string{jars, filepath.Join(root, "java")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	if err := emulator.MavenCopy(ctx, directory, jars, "com.amazonaws", "DynamoDBLocal", dynamoDBLocalVersion); err != nil {
		return err
	}
	if err := writeLauncher(jars, filepath.Join(dynamodb, "DynamoDBLocal.jar")); err != nil {
		return err
	}
	if err := writeAgent(ctx, directory, filepath.Join(dynamodb, "ddb-local-loader-0.1.jar")); err != nil {
		return err
	}
	home, err := javaHome(ctx)
	if err != nil {
		return err
	}
	return os.Symlink(home, javaLink(filesystem(directory)))
}

// writeLauncher makes the jar that `java -jar` is given: a manifest that names the main class and every library.
func writeLauncher(libraries, path string) error {
	jars, err := filepath.Glob(filepath.Join(libraries, "*.jar"))
	if err != nil {
		return err
	}
	var manifest strings.Builder
	manifest.WriteString("Manifest-Version: 1.0\nMain-Class: com.amazonaws.services.dynamodbv2.local.main.ServerRunner\nClass-Path:")
	for _, jar := range jars {
		manifest.WriteString(" \n  DynamoDBLocal_lib/" + filepath.Base(jar)) // a line of a manifest holds 72 bytes, and " " continues it
	}
	manifest.WriteString("\n")
	return writeJar(path, manifest.String(), "", nil)
}

// agentSource stands in for LocalStack's Java agent, which patches what a local DynamoDB does not need.
const agentSource = "public class NoAgent { public static void premain(String arguments) {} }\n"

func writeAgent(ctx context.Context, directory, path string) error {
	source := filepath.Join(directory, "NoAgent.java")
	if err := os.WriteFile(source, []byte(agentSource), 0o644); err != nil {
		return err
	}
	if err := emulator.Run(ctx, directory, nil, "javac", "-d", directory, source); err != nil {
		return err
	}
	class, err := os.ReadFile(filepath.Join(directory, "NoAgent.class"))
	if err != nil {
		return err
	}
	return writeJar(path, "Manifest-Version: 1.0\nPremain-Class: NoAgent\n", "NoAgent.class", class)
}

// writeJar writes a jar with a manifest and, where member is not empty, one more file.
func writeJar(path, manifest, member string, content []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	jar := zip.NewWriter(file)
	members := []string{"META-INF/MANIFEST.MF", member} // Java wants the manifest first
	for i, data := range [][]byte{[]byte(manifest), content} {
		if members[i] == "" {
			continue
		}
		writer, err := jar.Create(members[i])
		if err != nil {
			return err
		}
		if _, err := writer.Write(data); err != nil {
			return err
		}
	}
	return errors.Join(jar.Close(), file.Close())
}

func javaHome(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "java", "-XshowSettings:properties", "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("java: %w", err)
	}
	for line := range strings.Lines(string(output)) {
		if _, home, found := strings.Cut(line, "java.home = "); found {
			return strings.TrimSpace(home), nil
		}
	}
	return "", errors.New("java does not say where its home is")
}

// Command is LocalStack, to be started by the caller, listening on 127.0.0.1:port only. Its volatile files go to state,
// which is made, and temporary; what is installed in directory stays as it is.
func Command(directory, state, temporary string, port int) (*exec.Cmd, error) {
	root, err := prepareState(directory, state)
	if err != nil {
		return nil, fmt.Errorf("localstack: %w", err)
	}
	command := exec.Command(filepath.Join(directory, "venv", "bin", "python"), "-m", "localstack.runtime.main")
	command.Dir = state
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + state, "TMPDIR=" + temporary, "FILESYSTEM_ROOT=" + root,
		"GATEWAY_LISTEN=127.0.0.1:" + strconv.Itoa(port), "LAMBDA_RUNTIME_EXECUTOR=process",
		"LOCALSTACK_HOST=127.0.0.1:" + strconv.Itoa(port), "SQS_ENDPOINT_STRATEGY=path", // no names that only public DNS knows
		"DISABLE_EVENTS=1", "SKIP_SSL_CERT_DOWNLOAD=1", "DNS_ADDRESS=0", "OVERRIDE_IN_DOCKER=0", "PYTHONUNBUFFERED=1",
		"DYNAMODB_IN_MEMORY=1", "PROVIDER_OVERRIDE_DYNAMODB=v2", "PROVIDER_OVERRIDE_DYNAMODBSTREAMS=v2",
		"CFN_IGNORE_UNSUPPORTED_RESOURCE_TYPES=1", "AWS_EC2_METADATA_DISABLED=true",
		"JAVA_TOOL_OPTIONS=-XX:+UseSerialGC -XX:TieredStopAtLevel=1", // its DynamoDB lives for minutes: see dynamoDBLocalCommand
		// A mapping is one thread, which takes one batch and waits for its function. By default it then pauses for a second,
		// and after empty polls for up to 15.
		"LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC=0.5", "LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC=1",
	}
	return command, nil
}

// prepareState makes a file system root of its own for each stack, so that two of them never share one, with the
// installed libraries linked into it.
func prepareState(directory, state string) (root string, err error) {
	root = filesystem(state)
	if err := os.RemoveAll(root); err != nil {
		return "", err
	}
	linked := libraries(root)
	if err := os.MkdirAll(filepath.Dir(linked), 0o755); err != nil {
		return "", err
	}
	if err := os.Symlink(libraries(filesystem(directory)), linked); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return root, nil
}
