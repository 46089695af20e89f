package idemconstruct_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// resource is one resource of a CloudFormation template.
type resource struct {
	Type           string
	DeletionPolicy string
	Properties     map[string]any
}

type template struct {
	document  map[string]any
	resources map[string]resource
}

func templateOf(t *testing.T, document map[string]any) template {
	t.Helper()
	text, err := json.Marshal(document["Resources"])
	if err != nil {
		t.Fatal(err)
	}
	made := template{document: document}
	if err := json.Unmarshal(text, &made.resources); err != nil {
		t.Fatal(err)
	}
	return made
}

// synthesize is the template of an application alone, in a stack "shop", under the id "Idem".
func synthesize(t *testing.T, props idemconstruct.ApplicationProps) template {
	t.Helper()
	return synthesizeWith(t, props, func(*idemconstruct.Application) {})
}

// synthesizeWith is synthesize with what a team adds.
func synthesizeWith(t *testing.T, props idemconstruct.ApplicationProps, add func(*idemconstruct.Application)) template {
	t.Helper()
	build := t.TempDir()
	if err := os.WriteFile(filepath.Join(build, "bootstrap"), []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	stack := awscdk.NewStack(awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(t.TempDir())}), jsii.String("shop"), &awscdk.StackProps{Env: idemconstruct.StackEnv(props.Emulated)})
	props.Code, props.AlarmTopic = awslambda.Code_FromAsset(jsii.String(build), nil), idemconstruct.NoTopic
	add(idemconstruct.NewApplication(stack, "Idem", props))
	return templateOf(t, *assertions.Template_FromStack(stack, nil).ToJSON())
}

var hash = regexp.MustCompile(`^Idem(.*)[0-9A-F]{8}$`)

// plain writes a value as text: "TablesOutbox.Arn" for an attribute, joined strings joined.
func plain(value any) string {
	switch v := value.(type) {
	case map[string]any:
		if name, ok := v["Ref"]; ok {
			return hash.ReplaceAllString(fmt.Sprint(name), "$1")
		}
		if pair, ok := v["Fn::GetAtt"].([]any); ok {
			return hash.ReplaceAllString(fmt.Sprint(pair[0]), "$1") + "." + fmt.Sprint(pair[1])
		}
		if join, ok := v["Fn::Join"].([]any); ok {
			var text strings.Builder
			for _, part := range join[1].([]any) {
				text.WriteString(plain(part))
			}
			return text.String()
		}
	}
	return fmt.Sprint(value)
}

// list is a value that CloudFormation writes as a list, or bare when there is one.
func list(value any) []any {
	if many, ok := value.([]any); ok {
		return many
	}
	return []any{value}
}

// permissions are what the role of each function may do: actions on one resource.
func (m template) permissions() map[string][]string {
	all := map[string][]string{}
	for name, r := range m.resources {
		if r.Type != "AWS::IAM::Role" || r.Properties["Policies"] == nil {
			continue
		}
		for _, policy := range r.Properties["Policies"].([]any) {
			for _, statement := range list(policy.(map[string]any)["PolicyDocument"].(map[string]any)["Statement"]) {
				s := statement.(map[string]any)
				var actions []string
				for _, action := range list(s["Action"]) {
					actions = append(actions, fmt.Sprint(action))
				}
				slices.Sort(actions)
				for _, on := range list(s["Resource"]) {
					role := strings.TrimSuffix(hash.ReplaceAllString(name, "$1"), "Role")
					all[role] = append(all[role], fmt.Sprint(s["Effect"], " ", strings.Join(actions, " "), " on ", plain(on)))
				}
			}
		}
	}
	for role := range all {
		slices.Sort(all[role])
	}
	return all
}

func contains(said []byte, text string) bool { return bytes.Contains(said, []byte(text)) }

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
