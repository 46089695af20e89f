package idemconstruct_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/idem-go/idem-aws/idem/scaffold"
	"github.com/idem-go/idem-aws/infra/lint"
	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/internal/outside"
)

// What `idemctl new` writes is vetted, tested and built as a module outside of this repository, under a name of its own.
func TestServiceOutsideTheRepository(t *testing.T) {
	program := buildOutside(t)
	t.Run("synthesizes what the linter accepts", func(t *testing.T) { synthesizes(t, program) })
	t.Run("needs an alarm topic", func(t *testing.T) { needsAnAlarmTopic(t, program) })
	t.Run("goes to an emulator only where it is emulated", func(t *testing.T) { goesToAnEmulator(t, program, "zebra") })
}

// The stack of docs/start/ten-minutes.md, which has its readers export EMULATED=true.
func TestTheStackOfTheFirstTenMinutesGoesToAnEmulatorOnlyWhereItIsEmulated(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	module, err := outside.Copy(t.Context(), root, "docs/examples/start/lambda", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "cdk")
	if err := module.Build(t.Context(), "./cdk", program); err != nil {
		t.Fatal(err)
	}
	goesToAnEmulator(t, program, "orders")
}

// goesToAnEmulator demands that an emulated stack has the account of an emulator, so that the CDK refuses credentials of AWS for it, and that
// any other goes where the credentials are.
func goesToAnEmulator(t *testing.T, program, stack string) {
	t.Helper()
	for emulated, want := range map[string]string{"": "aws://unknown-account/unknown-region", "true": "aws://000000000000/unknown-region"} {
		directory, folder := t.TempDir(), t.TempDir()
		if err := os.Mkdir(filepath.Join(directory, "build"), 0o755); err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), program)
		command.Dir = directory
		command.Env = append(os.Environ(), "EMULATED="+emulated, "BUILD=", "ALARM_TOPIC=none", "WAREHOUSE_URL=https://warehouse.example", "CDK_OUTDIR="+folder)
		if said, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		text, err := os.ReadFile(filepath.Join(folder, "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		var manifest struct {
			Artifacts map[string]struct{ Environment string }
		}
		if err := json.Unmarshal(text, &manifest); err != nil {
			t.Fatal(err)
		}
		if got := manifest.Artifacts[stack].Environment; got != want {
			t.Errorf("EMULATED=%q: the stack goes to %q, want %q", emulated, got, want)
		}
	}
}

func synthesizes(t *testing.T, program string) {
	template := synthesizeOutside(t, program)
	kinds := map[string]int{}
	for _, r := range template.resources {
		kinds[r.Type]++
	}
	for kind, want := range map[string]int{
		"AWS::DynamoDB::GlobalTable":      4, // the log of operators and the team's own are among them
		"AWS::IAM::ManagedPolicy":         2,
		"AWS::SQS::Queue":                 2,
		"AWS::Lambda::Function":           4,
		"AWS::Lambda::EventSourceMapping": 2,
		"AWS::Events::Rule":               4, // 8 shards, two functions, 5 targets a rule
		"AWS::CloudWatch::Dashboard":      1,
		"AWS::ApiGateway::RestApi":        1,
	} {
		if kinds[kind] != want {
			t.Errorf("%d × %s, want %d", kinds[kind], kind, want)
		}
	}
	if kinds["AWS::CloudWatch::Alarm"] < 40 {
		t.Errorf("%d alarms, want those of docs/operator.md", kinds["AWS::CloudWatch::Alarm"])
	}
	findings, err := lint.CfnLint(t.Context(), t.TempDir(), lint.Templates{"zebra": template.document})
	if localtool.Excuses(err) {
		t.Skipf("not run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range findings {
		if finding.Rule != "W3005" { // CDK adds a dependency whether or not a reference says the same
			t.Error(finding)
		}
	}
}

// What the team does not choose is refused with the field's name, and nothing is synthesized.
func needsAnAlarmTopic(t *testing.T, program string) {
	command := exec.CommandContext(t.Context(), program)
	command.Env = append(os.Environ(), "BUILD="+t.TempDir(), "ALARM_TOPIC=", "WAREHOUSE_URL=https://warehouse.example", "CDK_OUTDIR="+t.TempDir())
	said, err := command.CombinedOutput()
	if err == nil || !contains(said, `ApplicationProps.AlarmTopic = "": must be the ARN of an SNS topic`) {
		t.Errorf("%v: %s", err, said)
	}
}

func buildOutside(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if _, err := (scaffold.Service{Module: "example.org/team/zebra", Library: root}).Write(folder); err != nil {
		t.Fatal(err)
	}
	module := outside.At(folder)
	if err := module.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "cdk")
	if err := module.Build(t.Context(), "./cdk", program); err != nil {
		t.Fatal(err)
	}
	return program
}

func synthesizeOutside(t *testing.T, program string) template {
	t.Helper()
	build, folder := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(build, "bootstrap"), []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program)
	command.Env = append(os.Environ(), "BUILD="+build, "ALARM_TOPIC=none", "WAREHOUSE_URL=https://warehouse.example", "CDK_OUTDIR="+folder, "EMULATED=")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	text, err := os.ReadFile(filepath.Join(folder, "zebra.template.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	return templateOf(t, document)
}
