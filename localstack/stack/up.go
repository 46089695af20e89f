package stack

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/localstackhost"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// Up brings the stack up: installs what is missing, builds what changed, starts what is not running, deploys if anything
// changed, seeds what is not there, and writes the env file. On a stack that is up it does only what is needed.
func (s *Stack) Up(ctx context.Context) error {
	started := time.Now()
	running, environment, err := s.prepare(ctx)
	if err != nil {
		return err
	}
	variables, err := ReadVariables(s.options.EnvFile)
	if err != nil {
		return err
	}
	secret := variables.secret(variableWebhookSecret, "whsec_")
	provider, err := s.ensureProvider(ctx, secret)
	if err != nil {
		return err
	}
	next := Variables{
		variableProvider: provider, variableEndpoint: running.URL(), variableWebhookSecret: secret,
		"AWS_REGION": localRegion, "AWS_ACCESS_KEY_ID": localCredentials, "AWS_SECRET_ACCESS_KEY": localCredentials,
		"EMULATOR": string(s.options.Emulator), "IAM": onOff(s.options.IAM), "STACK_STATE": s.options.State, variableCode: s.temporary(),
		variableTokenA: variables.apiKey(variableTokenA), variableTokenB: variables.apiKey(variableTokenB),
	}
	contexts := map[string]string{
		"stack": stackName, "local": "true", "arch": hostArchitecture, "build": buildDirectory(s.checkout()),
		"api": s.options.Emulator.api(), "auth": s.options.Emulator.auth(), "providerUrl": provider,
		"corsOrigins": Origin, "localWebhookSecret": secret, "alarmTopic": "none",
	}
	if s.options.Encryption {
		contexts["encryption"] = "on"
	}
	if s.options.Outbox != "" {
		contexts["outbox"] = s.options.Outbox
	}
	if s.options.FaultProxy {
		proxy, err := s.ensureProgram(ctx, daemonFaultProxy, "/control/log", 0, "", "--target", running.URL())
		if err != nil {
			return err
		}
		contexts["dynamodbEndpoint"], next[variableFaultProxy] = proxy.URL(), proxy.URL()
	}
	if s.options.Traces {
		collector, err := s.ensureProgram(ctx, daemonCollector, "/control/spans", 0, "")
		if err != nil {
			return err
		}
		contexts["otlpEndpoint"], next[variableCollector] = collector.URL(), collector.URL()
	}
	maps.Copy(contexts, s.options.Contexts)
	next.addLoss(contexts)
	result, err := s.deploy(ctx, running, environment, contexts)
	if err != nil {
		return err
	}
	if err := next.addOutputs(running.URL(), result); err != nil {
		return err
	}
	if err := s.finish(ctx, next); err != nil {
		return err
	}
	s.out.Line("%7.1f s  up: %s (variables in %s)", time.Since(started).Seconds(), next[variableAPI], s.relative(s.options.EnvFile))
	return nil
}

// Start starts the emulator, and deploys nothing to it. It returns its endpoint.
func (s *Stack) Start(ctx context.Context) (endpoint string, err error) {
	running, _, err := s.prepareEmulator(ctx)
	if err != nil {
		return "", err
	}
	return running.URL(), nil
}

// ensureProvider returns where the provider simulator is, started if it is the stack's own.
func (s *Stack) ensureProvider(ctx context.Context, secret string) (string, error) {
	if s.options.ProviderURL != "" {
		return s.options.ProviderURL, nil
	}
	provider, err := s.ensureProgram(ctx, daemonProvider, "/control/charges", s.options.ProviderPort, secret)
	return provider.URL(), err
}

// With is the same stack with other contexts of the CDK app's: Up deploys it anew.
func (s *Stack) With(contexts map[string]string) *Stack {
	other := *s
	other.options.Contexts = contexts
	return &other
}

// From is the same stack with the functions and the CDK app of another checkout: Up deploys it anew.
func (s *Stack) From(checkout string) *Stack {
	other := *s
	other.options.Checkout = checkout
	return &other
}

// Waking is the same stack with another way for new messages to reach the worker: Up deploys it anew.
func (s *Stack) Waking(outbox string) *Stack {
	other := *s
	other.options.Outbox = outbox
	return &other
}

// Elsewhere is a stack of the same settings in another Region, with a folder and an emulator of its own: the two share the provider only.
func (s *Stack) Elsewhere(state, providerURL string) (*Stack, error) {
	options := s.options
	options.State, options.EnvFile, options.ProviderURL = state, filepath.Join(state, "run.env"), providerURL
	options.Port, options.ProviderPort, options.Contexts, options.Traces = 0, 0, nil, false
	return New(options, s.out)
}

// Contexts are the contexts of the CDK app's that the stack has beside its own.
func (s *Stack) Contexts() map[string]string { return s.options.Contexts }

// EnvFile is where the variables of the stack are.
func (s *Stack) EnvFile() string { return s.options.EnvFile }

// Destroy deletes the CloudFormation stack, as make destroy does with a stage's. Emulator and provider run on, and tables stay
// where the context retainTables is true.
func (s *Stack) Destroy(ctx context.Context) error {
	running, environment, err := s.prepareEmulator(ctx)
	if err != nil {
		return err
	}
	if err := s.forgetDeployment(); err != nil {
		return err
	}
	arguments := []string{"destroy", stackName, "--force", "--app", s.path("cdk.out")}
	return s.out.Step("cdk destroy on "+running.URL(), func() error { return s.cdk(ctx, environment, "destroy", arguments...) })
}

// Lose ends the emulator as the loss of a Region does: at once, with everything in it. The provider runs on.
func (s *Stack) Lose() error {
	for _, name := range []string{daemonFaultProxy, daemonEmulator} {
		running, alive, err := readDaemon(s.options.State, name)
		if err != nil {
			return err
		}
		if !alive {
			continue
		}
		if err := s.out.Step("stop "+name, func() error { return running.stop(s.options.State) }); err != nil {
			return err
		}
	}
	return nil
}

// prepare does what deploying needs, in three lanes: tools and emulator, our own programs, and the CDK app, whose first
// build takes longest.
func (s *Stack) prepare(ctx context.Context) (running daemon, environment []string, err error) {
	if err := s.require(ctx); err != nil {
		return daemon{}, nil, err
	}
	root, checkout := s.options.Root, s.checkout()
	lanes, ctx := errgroup.WithContext(ctx)
	lanes.Go(func() (err error) {
		if running, environment, err = s.prepareEmulator(ctx); err != nil {
			return err
		}
		return s.bootstrap(ctx, running, environment)
	})
	lanes.Go(func() error {
		err := s.out.Step("build functions for "+hostArchitecture, func() error { return BuildFunctions(ctx, checkout, hostArchitecture) })
		if err != nil {
			return err
		}
		err = s.out.Step("build provider and fault proxy", func() error { return buildPrograms(ctx, root, daemonProvider, daemonFaultProxy) })
		if err != nil || !s.options.Traces {
			return err
		}
		return s.out.Step("build collector", func() error { return buildCollector(ctx, root) })
	})
	lanes.Go(func() error { return s.out.Step("build CDK app", func() error { return buildInfra(ctx, checkout) }) })
	err = lanes.Wait()
	return running, environment, err
}

// require names a missing prerequisite before anything is downloaded.
func (s *Stack) require(ctx context.Context) error {
	for _, check := range []func(context.Context) error{emulator.RequireGo, emulator.RequireNode, s.emulatorTool().Check} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stack) emulatorTool() emulator.Tool {
	if s.options.Emulator == LocalStack {
		return localstackhost.Tool()
	}
	return emulator.MinistackTool()
}

func (s *Stack) prepareEmulator(ctx context.Context) (daemon, []string, error) {
	cdk, err := emulator.CDKTool(s.options.Root)
	if err != nil {
		return daemon{}, nil, err
	}
	tools := []emulator.Tool{cdk}
	if s.options.Emulator != LocalStack || !dockerAnswers(ctx) {
		tools = append(tools, s.emulatorTool())
	}
	if err := emulator.Install(ctx, s.options.Root, s.out, tools...); err != nil {
		return daemon{}, nil, err
	}
	running, err := s.ensureEmulator(ctx)
	if err != nil {
		return daemon{}, nil, err
	}
	environment, err := LocalEnvironment(os.Environ(), running.URL())
	return running, environment, err
}

// outputVariables are the env file's names of the stack's outputs.
var outputVariables = map[string]string{
	"IdempotencyTable": "IDEMPOTENCY_TABLE", "OutboxTable": "OUTBOX_TABLE", "PaymentsTable": "PAYMENTS_TABLE",
	"WakeUpQueueUrl": "WAKE_UP_QUEUE_URL", "DeadLetterQueueUrl": "DEAD_LETTER_QUEUE_URL", "AuditTable": "AUDIT_TABLE", "ApiKeysTable": "API_KEYS_TABLE",
	"ClaimLease": "CLAIM_LEASE", "LongestRequest": "LONGEST_REQUEST", "DriftGrace": "DRIFT_GRACE",
	"OutboxShards": "OUTBOX_SHARDS", "LedgerShards": "LEDGER_SHARDS",
}

// optionalVariables are those of what a stack has with encryption only, and of what an earlier release's local stack has not.
var optionalVariables = map[string]string{
	"KeysTable": "KEYS_TABLE", "KmsKeyId": "KMS_KEY_ID", "FreezeAllowance": "FREEZE_ALLOWANCE",
	"OperatorReadPolicyArn": "OPERATOR_READ_POLICY", "OperatorChangePolicyArn": "OPERATOR_CHANGE_POLICY", "OperatorKeysPolicyArn": "OPERATOR_KEYS_POLICY",
}

// addOutputs adds what the deployment made. An output that is missing is an error.
func (v Variables) addOutputs(endpoint string, result outputs) error {
	if err := v.addNames(result); err != nil {
		return err
	}
	var err error
	v[variableAPI], err = localAPI(endpoint, result["ApiUrl"])
	return err
}

// addNames adds where tables, queues and functions are, which is alike on an emulator and in AWS.
func (v Variables) addNames(result outputs) error {
	for output, variable := range outputVariables {
		if v[variable] = result[output]; v[variable] == "" {
			return fmt.Errorf("the stack has no output %s", output)
		}
	}
	for output, variable := range optionalVariables {
		if value, made := result[output]; made {
			v[variable] = value
		}
	}
	for output, value := range result {
		if name, isFunction := strings.CutPrefix(output, "Function"); isFunction {
			v[functionPrefix+strings.ToUpper(name)] = value
		}
	}
	return nil
}

// webhookPath is where the application takes the provider's webhooks.
const webhookPath = "/v1/webhooks/provider"

// finish seeds, tells the provider where webhooks go once they are switched on, waits for the API and writes the env file.
func (s *Stack) finish(ctx context.Context, variables Variables) error {
	config, err := localConfig(variables[variableEndpoint])
	if err != nil {
		return err
	}
	err = s.out.Step("seed two tenants", func() error {
		return seed(ctx, dynamodb.NewFromConfig(config), variables["PAYMENTS_TABLE"], variables["API_KEYS_TABLE"],
			tenant{"tenant-a", variables[variableTokenA]}, tenant{"tenant-b", variables[variableTokenB]})
	})
	if err != nil {
		return err
	}
	to := variables[variableAPI] + webhookPath
	err = provider.Control{URL: variables[variableProvider]}.Settings(ctx, provider.SettingsPatch{Webhooks: &provider.WebhooksPatch{URL: &to}})
	if err != nil {
		return err
	}
	if s.options.Contexts["stopped"] != "true" {
		err = s.out.Step("first answer of the API", func() error { return firstAnswer(ctx, variables) })
		if err != nil {
			return err
		}
	}
	return variables.Write(s.options.EnvFile)
}

// firstAnswerEach is for how long one request for the first answer is waited for: one that hangs leaves time for another.
const firstAnswerEach = 10 * time.Second

// firstAnswer reads a seeded account until the API answers: emulators report a deployment before its routes work.
func firstAnswer(ctx context.Context, variables Variables) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := readAccount(ctx, variables)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// readAccount reads a seeded account once.
func readAccount(ctx context.Context, variables Variables) error {
	ctx, cancel := context.WithTimeout(ctx, firstAnswerEach)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, variables[variableAPI]+"/v1/accounts/acct_1", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+variables[variableTokenA])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /v1/accounts/acct_1 with tenant-a's token: %s", response.Status)
	}
	return nil
}

// Down stops exactly the processes that Up started, and forgets the deployment, which lived in the emulator's memory.
func (s *Stack) Down(context.Context) error {
	for _, name := range daemonNames {
		running, alive, err := readDaemon(s.options.State, name)
		if err != nil {
			return err
		}
		if !alive {
			continue
		}
		if err := s.out.Step("stop "+name, func() error { return running.stop(s.options.State) }); err != nil {
			return err
		}
	}
	return os.RemoveAll(s.temporary())
}

func (s *Stack) relative(path string) string {
	if short, err := filepath.Rel(s.options.Root, path); err == nil && !strings.HasPrefix(short, "..") {
		return short
	}
	return path
}
