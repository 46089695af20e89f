package stack

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/stageplan"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// world is what a stage meets outside, and remembers what the stage asked of it.
type world struct {
	external
	caller caller
	plan   stageplan.Plan
	// outputs is what the CDK writes as the stack's outputs; empty where it writes none.
	outputs string
	// did are the steps in order, and environment that of the last one of the CDK.
	did         []string
	environment []string
}

func newWorld() *world {
	w := &world{
		caller: caller{account: "111122223333", arn: "arn:aws:sts::111122223333:assumed-role/deployer/me", region: "eu-central-1"},
		plan: stageplan.Plan{
			Stage: "prod", Account: "111122223333", Region: "eu-central-1", Stack: "idem-payments", Arch: "arm64", Protected: true,
			Context: map[string]string{
				"stack": "idem-payments", "account": "111122223333", "region": "eu-central-1", "stage": "prod", "owner": "payments",
				"providerUrl": "https://provider.example/", "alarmTopic": "none", "scopeSecret": "payments/scopes", "providerSecret": "payments/provider",
			},
		},
		outputs: stageOutputs,
	}
	w.external = external{
		environment: []string{"PATH=/bin", "AWS_PROFILE=production"},
		plan: func(_ context.Context, path string) (stageplan.Plan, error) {
			w.did = append(w.did, "plan "+filepath.ToSlash(path[strings.Index(path, "infra"):]))
			return w.plan, nil
		},
		identify: func(_ context.Context, region string) (caller, error) {
			w.did = append(w.did, "identify in "+region)
			return w.caller, nil
		},
		install: func(context.Context) error { w.did = append(w.did, "install"); return nil },
		build:   func(_ context.Context, arch string) error { w.did = append(w.did, "build "+arch); return nil },
		cdk:     w.cdk,
	}
	return w
}

func (w *world) cdk(_ context.Context, environment []string, arguments ...string) error {
	w.did, w.environment = append(w.did, "cdk "+strings.Join(arguments, " ")), environment
	if i := slices.Index(arguments, "--outputs-file"); i >= 0 && w.outputs != "" {
		return os.WriteFile(arguments[i+1], []byte(w.outputs), 0o600)
	}
	return nil
}

// stageOutputs is what the CDK writes after a deployment.
const stageOutputs = `{"idem-payments": {
	"ApiUrl": "https://a1b2.execute-api.eu-central-1.amazonaws.com/", "IdempotencyTable": "t-idempotency", "OutboxTable": "t-outbox",
	"PaymentsTable": "t-payments", "AuditTable": "t-audit", "WakeUpQueueUrl": "https://sqs/wake", "DeadLetterQueueUrl": "https://sqs/dead",
	"ClaimLease": "10s", "LongestRequest": "1m", "FreezeAllowance": "1m", "DriftGrace": "15m", "OutboxShards": "8", "LedgerShards": "4", "ApiKeysTable": "t-api-keys", "KeysTable": "t-keys", "KmsKeyId": "k-1",
	"FunctionApi": "f-api"
}}`

func root(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, ".local"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

func (w *world) open(t *testing.T, root, name string) (*Stage, error) {
	t.Helper()
	return openStage(t.Context(), root, name, progress.New(&bytes.Buffer{}), w.external)
}

// whole is the context of the world's plan as the command line has it.
const whole = " --context account=111122223333 --context alarmTopic=none --context owner=payments" +
	" --context providerSecret=payments/provider --context providerUrl=https://provider.example/ --context region=eu-central-1 --context scopeSecret=payments/scopes" +
	" --context stack=idem-payments --context stage=prod"

func TestStageCommandLines(t *testing.T) {
	before := []string{"plan infra/stages/prod.json", "identify in eu-central-1"}
	for _, c := range []struct {
		name string
		run  func(*Stage, context.Context) error
		want []string
	}{
		{"bootstrap", (*Stage).Bootstrap, []string{"install", "cdk bootstrap aws://111122223333/eu-central-1 --termination-protection --app "}},
		{"deploy", (*Stage).Deploy, []string{"install", "build arm64", "cdk deploy idem-payments --outputs-file ROOT/.local/prod.outputs.json" + whole}},
		{"deploy now", (*Stage).DeployNow, []string{
			"install", "build arm64", "cdk deploy idem-payments --outputs-file ROOT/.local/prod.outputs.json" + strings.Replace(whole, " --context owner", " --context deployment=now --context owner", 1),
		}},
		{"diff", (*Stage).Diff, []string{"install", "build arm64", "cdk diff idem-payments" + whole}},
		{"destroy", (*Stage).Destroy, []string{"install", "build arm64", "cdk destroy idem-payments" + whole}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, root := newWorld(), root(t)
			w.plan.Protected = c.name != "destroy"
			stage, err := w.open(t, root, "prod")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.run(stage, t.Context()); err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(strings.Join(w.did, "\n"), root, "ROOT")
			if want := strings.Join(slices.Concat(before, c.want), "\n"); got != want {
				t.Errorf("did\n%s\nwant\n%s", got, want)
			}
			want := []string{"PATH=/bin", "AWS_PROFILE=production", "AWS_REGION=eu-central-1", "AWS_DEFAULT_REGION=eu-central-1"}
			if !slices.Equal(w.environment, want) {
				t.Errorf("environment %v, want %v", w.environment, want)
			}
		})
	}
}

// Nothing is asked of the CDK, and nothing of AWS where that is avoidable.
func TestStageIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, stage string
		change      func(*world)
		want        string
		did         int
	}{
		{"no stage", "", func(*world) {}, "STAGE=prod", 0},
		{"the local stack's name", "run", func(*world) {}, "run.env", 0},
		{"an endpoint", "prod", func(w *world) {
			w.external.environment = []string{"AWS_ENDPOINT_URL_S3=http://127.0.0.1:4566"}
		}, "AWS_ENDPOINT_URL_S3 is set", 0},
		{"a file that is refused", "prod", func(w *world) {
			w.external.plan = func(context.Context, string) (stageplan.Plan, error) {
				return stageplan.Plan{}, errors.New(`account="1" is refused`)
			}
		}, `account="1" is refused`, 0},
		{"no credentials", "prod", func(w *world) {
			w.identify = func(context.Context, string) (caller, error) { return caller{}, errors.New("no credentials") }
		}, "whose the credentials are: no credentials", 1},
		{"another account", "prod", func(w *world) { w.caller.account = "444455556666" },
			`infra/stages/prod.json: account="111122223333" is refused: the credentials are of account 444455556666 (arn:aws:sts::`, 2},
		{"another Region", "prod", func(w *world) { w.caller.region = "us-east-1" }, "names us-east-1; set AWS_REGION=eu-central-1", 2},
		{"another partition", "prod", func(w *world) { w.plan.Region, w.caller.region = "cn-north-1", "" }, "partition aws-cn", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			c.change(w)
			_, err := w.open(t, root(t), c.stage)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
			if len(w.did) != c.did {
				t.Errorf("did %v, want %d steps", w.did, c.did)
			}
		})
	}
}

func TestCallerWithoutARegionIsAccepted(t *testing.T) {
	for region, arn := range map[string]string{"eu-central-1": "arn:aws:iam::1:user/x", "cn-north-1": "arn:aws-cn:iam::1:user/x", "us-gov-west-1": "arn:aws-us-gov:iam::1:user/x"} {
		if err := (caller{account: "1", arn: arn}).check(stageplan.Plan{Account: "1", Region: region}); err != nil {
			t.Errorf("%s: %v", region, err)
		}
	}
}

func TestDestroyRefusesWhileProtected(t *testing.T) {
	w := newWorld()
	stage, err := w.open(t, root(t), "prod")
	if err != nil {
		t.Fatal(err)
	}
	err = stage.Destroy(t.Context())
	if err == nil || !strings.Contains(err.Error(), `"terminationProtection": false`) || !strings.Contains(err.Error(), "--no-enable-termination-protection --region eu-central-1 --stack-name idem-payments\n") || strings.Contains(err.Error(), "make deploy") {
		t.Errorf("got %v", err)
	}
	if len(w.did) != 2 { // plan, identify
		t.Errorf("did %v", w.did)
	}
}

func TestDeployWritesTheVariablesOfIdemctl(t *testing.T) {
	w, root := newWorld(), root(t)
	stage, err := w.open(t, root, "prod")
	if err != nil {
		t.Fatal(err)
	}
	if err := stage.Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, ".local", "prod.env"))
	want := `API_KEYS_TABLE=t-api-keys
API_URL=https://a1b2.execute-api.eu-central-1.amazonaws.com
AUDIT_TABLE=t-audit
AWS_REGION=eu-central-1
CLAIM_LEASE=10s
DEAD_LETTER_QUEUE_URL=https://sqs/dead
DRIFT_GRACE=15m
FREEZE_ALLOWANCE=1m
FUNCTION_API=f-api
IDEMPOTENCY_TABLE=t-idempotency
KEYS_TABLE=t-keys
KMS_KEY_ID=k-1
LEDGER_SHARDS=4
LONGEST_REQUEST=1m
LOST_RECORDS=false
OUTBOX_SHARDS=8
OUTBOX_TABLE=t-outbox
PAYMENTS_TABLE=t-payments
PROVIDER_CREDENTIAL_ID=payments/provider
PROVIDER_URL=https://provider.example
SCOPE_SECRET_ID=payments/scopes
WAKE_UP_QUEUE_URL=https://sqs/wake
`
	if err != nil || string(got) != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
}

// With encryption=open the functions encrypt nothing, and an operator's command must not either.
func TestVariablesSayThatNothingIsEncrypted(t *testing.T) {
	w, root := newWorld(), root(t)
	w.plan.Context["encryption"] = "open"
	stage, err := w.open(t, root, "prod")
	if err != nil {
		t.Fatal(err)
	}
	if err := stage.Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := ReadVariables(stageFile(root, "prod"))
	if err != nil || got["SEAL_OPEN_ONLY"] != "true" {
		t.Errorf("%v, %v", got, err)
	}
}

// docs/recovery.md "What keeps money from moving twice": an operator's command knows, as the functions do, that records were lost, and
// that they are not any more: a shell that has loaded the file before is told so when it loads it again.
func TestVariablesSayThatRecordsWereLost(t *testing.T) {
	for lost, want := range map[string]string{"records": "true", "nothing": "false", "": "false"} {
		w, root := newWorld(), root(t)
		w.plan.Context["lost"] = lost
		stage, err := w.open(t, root, "prod")
		if err != nil {
			t.Fatal(err)
		}
		if err := stage.Deploy(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := ReadVariables(stageFile(root, "prod"))
		if err != nil || got["LOST_RECORDS"] != want {
			t.Errorf("lost=%s: %v, %v", lost, got, err)
		}
	}
}

// Outputs of an earlier deployment are not taken for this one's.
func TestDeployWithoutOutputsWritesNothing(t *testing.T) {
	for name, outputs := range map[string]string{"none": "", "of no stack": "{}", "not JSON": "x"} {
		w, root := newWorld(), root(t)
		w.outputs = outputs
		if err := os.WriteFile(filepath.Join(root, ".local", "prod.outputs.json"), []byte(stageOutputs), 0o600); err != nil {
			t.Fatal(err)
		}
		stage, err := w.open(t, root, "prod")
		if err != nil {
			t.Fatal(err)
		}
		if err := stage.Deploy(t.Context()); err == nil {
			t.Errorf("outputs %s: no error", name)
		}
		if _, err := os.Stat(stageFile(root, "prod")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("outputs %s: variables are written: %v", name, err)
		}
	}
}

func TestIdemctlOnAStage(t *testing.T) {
	root := root(t)
	environment := []string{"PATH=/bin", "AWS_REGION=us-east-1", "OUTBOX_TABLE=local", "AWS_PROFILE=production"}
	if _, err := idemctlCommand(t.Context(), root, "prod", environment, nil); err == nil || !strings.Contains(err.Error(), "make deploy STAGE=prod") {
		t.Errorf("without variables: %v", err)
	}
	file := stageFile(root, "prod")
	if err := (Variables{"AWS_REGION": "eu-central-1", "OUTBOX_TABLE": "t-outbox"}).Write(file); err != nil {
		t.Fatal(err)
	}
	command, err := idemctlCommand(t.Context(), root, "prod", environment, []string{"list", "unknown"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"go", "run", "./functions/cmd/idemctl", "--env-file", file, "list", "unknown"}; !slices.Equal(command.Args, want) || command.Dir != root {
		t.Errorf("runs %v in %s, want %v", command.Args, command.Dir, want)
	}
	// idemctl takes from a file only what its environment does not have.
	if want := []string{"PATH=/bin", "AWS_PROFILE=production"}; !slices.Equal(command.Env, want) {
		t.Errorf("environment %v, want %v", command.Env, want)
	}
	if _, err := idemctlCommand(t.Context(), root, "../prod", environment, nil); err == nil {
		t.Error("a path is taken for a stage")
	}
	redirected := append(environment, "AWS_ENDPOINT_URL=http://127.0.0.1:4566")
	if _, err := idemctlCommand(t.Context(), root, "prod", redirected, nil); err == nil || !strings.Contains(err.Error(), "AWS_ENDPOINT_URL is set") {
		t.Errorf("with an endpoint: %v", err)
	}
}

// The CDK app says what it refuses on stderr, and its answer is the plan.
func TestReadPlan(t *testing.T) {
	app := filepath.Join(t.TempDir(), "app")
	script := "#!/bin/sh\n[ \"$1 $2\" = 'stage good.json' ] || { echo 'account=\"1\" is refused' >&2; exit 1; }\n" +
		`echo '{"stage":"good","account":"111122223333","protected":true,"context":{"api":"http"}}'` + "\n"
	if err := os.WriteFile(app, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	plan, err := readPlan(t.Context(), app, "good.json")
	if err != nil || plan.Stage != "good" || plan.Account != "111122223333" || !plan.Protected || plan.Context["api"] != "http" {
		t.Errorf("got %+v, %v", plan, err)
	}
	if _, err := readPlan(t.Context(), app, "bad.json"); err == nil || err.Error() != `account="1" is refused` {
		t.Errorf("got %v", err)
	}
	if _, err := readPlan(t.Context(), app+"x", "good.json"); err == nil {
		t.Error("an app that is not there is no error")
	}
}
