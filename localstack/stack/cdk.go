package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/localstack/emulator"
)

// stackName is the CloudFormation stack's name of a local stack.
const stackName = "idem-payments"

// outputs are the stack outputs by name, as infra defines them.
type outputs map[string]string

// deployment is what is remembered of the last one: its inputs' hash and its result.
type deployment struct {
	Hash    string  `json:"hash"`
	Outputs outputs `json:"outputs"`
}

// cdk runs the pinned CDK command line in the folder infra of the checkout that is deployed, with its output in a log file of
// the state folder.
func (s *Stack) cdk(ctx context.Context, environment []string, log string, arguments ...string) error {
	program, err := emulator.CDKProgram(s.options.Root)
	if err != nil {
		return err
	}
	file, err := os.Create(logFile(s.options.State, log))
	if err != nil {
		return err
	}
	defer file.Close()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = filepath.Join(s.checkout(), "infra")
	command.Env = slices.Concat(environment, quietNode)
	command.Stdout, command.Stderr = file, file
	if err := command.Run(); err != nil {
		said, _ := os.ReadFile(file.Name())
		return fmt.Errorf("cdk %s: %w\n%s", arguments[0], err, lastLines(string(said), 25))
	}
	return nil
}

// quietNode keeps jsii from commenting on the Node versions that work here, and the CDK from calling home.
var quietNode = []string{
	"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=20,21,23,25", "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION=20,22",
	"JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION=25,26,27", "CDK_DISABLE_CLI_TELEMETRY=1",
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

// bootstrap prepares the emulator for CDK deployments, once per start of the emulator: its state is in memory.
func (s *Stack) bootstrap(ctx context.Context, running daemon, environment []string) error {
	mark, identity := s.path("bootstrapped"), fmt.Sprintf("%d %s", running.PID, running.Started)
	if done, err := os.ReadFile(mark); err == nil && string(done) == identity {
		return nil
	}
	err := s.out.Step("cdk bootstrap", func() error {
		return s.cdk(ctx, environment, "bootstrap", "bootstrap", "aws://000000000000/"+localRegion, "--app", "", "--output", s.path("cdk.bootstrap"))
	})
	if err != nil {
		return err
	}
	if s.options.IAM {
		if err := admitPlainBucket(ctx, running.URL()); err != nil {
			return err
		}
	}
	return os.WriteFile(mark, []byte(identity), 0o644)
}

// deploy deploys the CDK app if anything that goes into it changed since the last time on this very emulator process.
func (s *Stack) deploy(ctx context.Context, running daemon, environment []string, contexts map[string]string) (outputs, error) {
	hash, err := s.deploymentHash(running, contexts)
	if err != nil {
		return nil, err
	}
	if last, err := s.lastDeployment(); err != nil || last.Hash == hash {
		return last.Outputs, err
	}
	// From here on the last deployment is not what is there: this one may end half-way.
	if err := s.forgetDeployment(); err != nil {
		return nil, err
	}
	file := s.path("outputs.json")
	arguments := []string{
		"deploy", stackName, "--require-approval", "never", "--method", "direct", "--progress", "events",
		"--app", s.infraProgram(), "--output", s.path("cdk.out"), "--outputs-file", file,
	}
	for name, value := range contexts {
		arguments = append(arguments, "--context", name+"="+value)
	}
	err = s.out.Step("cdk deploy", func() error { return s.cdk(ctx, environment, "deploy", arguments...) })
	if err != nil {
		return nil, err
	}
	if s.options.IAM {
		if err := AdmitPlainQueues(ctx, running.URL()); err != nil {
			return nil, err
		}
	}
	made, err := readOutputs(file, stackName)
	if err != nil {
		return nil, err
	}
	result := deployment{Hash: hash, Outputs: made}
	data, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	return result.Outputs, os.WriteFile(s.path("deployment.json"), data, 0o644)
}

// readOutputs reads the outputs of a stack from the file that the CDK wrote.
func readOutputs(file, name string) (outputs, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var byStack map[string]outputs
	if err := json.Unmarshal(data, &byStack); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return byStack[name], nil
}

func (s *Stack) lastDeployment() (deployment, error) {
	data, err := os.ReadFile(s.path("deployment.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return deployment{}, nil
	}
	if err != nil {
		return deployment{}, err
	}
	var last deployment
	return last, json.Unmarshal(data, &last)
}

func (s *Stack) forgetDeployment() error {
	if err := os.Remove(s.path("deployment.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// deploymentHash covers the functions, the CDK app with its settings, the contexts, and the emulator's identity: a new
// process has nothing deployed.
func (s *Stack) deploymentHash(running daemon, contexts map[string]string) (string, error) {
	files, err := filepath.Glob(filepath.Join(contexts["build"], hostArchitecture, "*", "bootstrap"))
	if err != nil {
		return "", err
	}
	files = append(files, s.infraProgram(), filepath.Join(s.checkout(), "infra", "cdk.json"))
	encoded, err := json.Marshal(contexts) // sorts the keys
	if err != nil {
		return "", err
	}
	return hashFiles(files, string(encoded), fmt.Sprint(running.PID), running.Started)
}

var executeAPI = regexp.MustCompile(`^([a-z0-9]+)\.execute-api\.`)

// localAPI turns the stack's ApiUrl, an address of AWS, into the emulator's for the same API, without a trailing slash.
func localAPI(endpoint, apiURL string) (string, error) {
	parsed, err := url.Parse(apiURL)
	if err != nil {
		return "", fmt.Errorf("output ApiUrl: %w", err)
	}
	id := executeAPI.FindStringSubmatch(parsed.Host)
	if id == nil {
		return "", fmt.Errorf("output ApiUrl: %q is not the address of an API Gateway", apiURL)
	}
	stage := strings.Trim(parsed.Path, "/")
	if stage == "" {
		stage = "%24default"
	}
	return endpoint + "/_aws/execute-api/" + id[1] + "/" + stage, nil
}
