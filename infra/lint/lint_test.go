package lint_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/lint"
	"github.com/idem-go/idem-aws/internal/localtool"
)

// faulty is a template that both tools must have something against: a bucket without protection, a property that no bucket
// has, and a role with a wildcard.
func faulty(accepted map[string]any) lint.Templates {
	text := `{"Resources": {
		"Bucket12345678": {"Type": "AWS::S3::Bucket", "Properties": {"BucketNames": "x"}},
		"Role": {"Type": "AWS::IAM::Role", "Properties": {
			"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [
				{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}]},
			"Policies": [{"PolicyName": "all", "PolicyDocument": {"Version": "2012-10-17", "Statement": [
				{"Effect": "Allow", "Action": "s3:GetObject", "Resource": {"Fn::Join": ["", [{"Fn::GetAtt": ["Bucket12345678", "Arn"]}, "/*"]]}}]}}]}}
	}}`
	var template map[string]any
	if err := json.Unmarshal([]byte(text), &template); err != nil {
		panic(err)
	}
	template["Resources"].(map[string]any)["Role"].(map[string]any)["Metadata"] = map[string]any{"idem:accepted-findings": accepted}
	return lint.Templates{"faulty": template}
}

// look is what both tools find in the faulty template: they are told of no explanation, and so it is the same in each test.
var look = sync.OnceValues(func() ([]lint.Finding, error) {
	folder, err := os.MkdirTemp("", "faulty")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	linted, err := lint.CfnLint(context.Background(), folder, faulty(nil))
	if err != nil {
		return nil, err
	}
	nagged, err := lint.CDKNag(context.Background(), folder, faulty(nil))
	return append(linted, nagged...), err
})

func found(t *testing.T) []lint.Finding {
	t.Helper()
	findings, err := look()
	if localtool.Excuses(err) {
		t.Skipf("not run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

func has(findings []lint.Finding, rule, resource string) bool {
	return slices.ContainsFunc(findings, func(f lint.Finding) bool { return f.Rule == rule && f.Resource == resource && f.Text != "" })
}

const wildcard = "AwsSolutions-IAM5[Resource::<Bucket.Arn>/*]"

func TestBothToolsFindWhatIsWrong(t *testing.T) {
	findings := found(t)
	for _, want := range [][2]string{{"E3002", "Bucket12345678"}, {"AwsSolutions-S1", "Bucket12345678"}, {wildcard, "Role"}} {
		if !has(findings, want[0], want[1]) {
			t.Errorf("%s of %s is not among %v", want[0], want[1], findings)
		}
	}
}

// A resource accepts the rules that it names, and no others; an explanation that nothing needs is found.
func TestJudge(t *testing.T) {
	templates := faulty(map[string]any{wildcard: "objects have no names that are known here", "W3005": "left over"})
	findings := found(t)
	open, idle := lint.Judge(templates, findings)
	if has(open, wildcard, "Role") || !has(open, "E3002", "Bucket12345678") || len(open) != len(findings)-1 {
		t.Errorf("open: %v, of %v", open, findings)
	}
	if !slices.Equal(idle, []string{"W3005 of Role"}) {
		t.Errorf("idle: %q", idle)
	}
}

func TestAcceptKeepsWhatWasAcceptedBefore(t *testing.T) {
	made := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("stack"), nil)
	queue := awssqs.NewQueue(made, jsii.String("Queue"), nil)
	lint.Accept(queue, map[string]string{"AwsSolutions-SQS3": "one"})
	lint.Accept(queue, map[string]string{"AwsSolutions-SQS4": "two"})
	for _, value := range *assertions.Template_FromStack(made, nil).FindResources(jsii.String("AWS::SQS::Queue"), nil) {
		rules := (*value)["Metadata"].(map[string]any)["idem:accepted-findings"].(map[string]any)
		if len(rules) != 2 || rules["AwsSolutions-SQS3"] != "one" || rules["AwsSolutions-SQS4"] != "two" {
			t.Errorf("got %v", rules)
		}
	}
	defer func() {
		if failure := recover(); failure == nil {
			t.Error("an empty reason was taken")
		}
	}()
	lint.Accept(queue, map[string]string{"AwsSolutions-SQS2": " "})
}

// cdk-nag reads templates by the release of the CDK library that writes them.
func TestCDKNagHasTheLibraryOfTheApp(t *testing.T) {
	text, err := os.ReadFile("../../localstack/emulator/cdknag/package.json")
	if err != nil {
		t.Fatal(err)
	}
	var pinned struct{ Dependencies map[string]string }
	if err := json.Unmarshal(text, &pinned); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "github.com/aws/aws-cdk-go/awscdk/v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	if version := strings.TrimPrefix(strings.TrimSpace(string(out)), "v"); pinned.Dependencies["aws-cdk-lib"] != version {
		t.Errorf("aws-cdk-lib %s, and the app has %s", pinned.Dependencies["aws-cdk-lib"], version)
	}
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(pinned.Dependencies["cdk-nag"]) {
		t.Errorf("cdk-nag is not pinned: %q", pinned.Dependencies["cdk-nag"])
	}
}

func TestRowsOfATableHaveThousandsApart(t *testing.T) {
	if got, want := lint.Row("both", 229, 1_004_719), "| both | 229 | 1,004,719 | 0 |"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
