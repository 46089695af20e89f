//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/idem-go/idem-aws/internal/outside"
	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/progress"
	"github.com/idem-go/idem-aws/localstack/stack"
)

// A team that uses AWS SAM copies infra/sam/template.yaml, and adds its gateway, its table and its roles' policies. What AWS's own
// translator makes of it is deployed: a retry gets the first answer, and the message of the order is delivered once, although the
// first answer about it is lost.
func TestSAMTemplateReplaysAndDelivers(t *testing.T) {
	t.Parallel()
	depot := &warehouse{shipments: map[string]string{}}
	server := httptest.NewServer(depot)
	t.Cleanup(server.Close)
	deploySAM(t, server.URL).shipsOnce(t, depot)
}

const (
	samStack = "samshop"
	// samCode and samUploaded are the objects of the functions' zip and of the template in the bucket of CDK's deployments, which every
	// emulated stack has.
	samBucket, samCode, samUploaded = stack.AssetsBucket, samStack + "-function.zip", samStack + ".template.json"
)

// samTemplate is the exported template with what a team adds to it.
func samTemplate(t *testing.T, root, warehouse string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "infra", "sam", "template.yaml"))
	must(t, err)
	var template map[string]any
	must(t, yaml.Unmarshal(text, &template))
	architecture := map[string]string{"amd64": "x86_64", "arm64": "arm64"}[runtime.GOARCH]
	function := template["Globals"].(map[string]any)["Function"].(map[string]any)
	maps.Copy(function, map[string]any{
		"CodeUri": "s3://" + samBucket + "/" + samCode, "Architectures": []any{architecture},
		"Environment": map[string]any{"Variables": map[string]any{"WAREHOUSE_URL": warehouse, "ORDERS_TABLE": map[string]any{"Ref": "OrdersTable"}}},
	})
	template["Parameters"].(map[string]any)["AlarmTopic"].(map[string]any)["Default"] = "none" // as the team's answer to sam deploy --guided
	resources := template["Resources"].(map[string]any)
	resources["OrdersTable"] = map[string]any{
		"Type": "AWS::Serverless::SimpleTable", "Properties": map[string]any{"PrimaryKey": map[string]any{"Name": "id", "Type": "String"}},
	}
	roles := []any{}
	for _, role := range []string{"Api", "Worker", "Sweep", "Reconcile"} {
		roles = append(roles, map[string]any{"Ref": role + "Role"})
	}
	resources["OrdersPolicy"] = map[string]any{"Type": "AWS::IAM::Policy", "Properties": map[string]any{
		"PolicyName": "orders", "Roles": roles,
		"PolicyDocument": map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
			"Effect": "Allow", "Resource": map[string]any{"Fn::GetAtt": []any{"OrdersTable", "Arn"}},
			"Action": []any{"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"},
		}}},
	}}
	maps.Copy(resources, samGateway())
	template["Outputs"].(map[string]any)["ApiUrl"] = map[string]any{
		"Value": map[string]any{"Fn::Sub": "https://${Gateway}.execute-api.${AWS::Region}.amazonaws.com/prod/"},
	}
	return template
}

// samGateway is a REST API before the API function, in resources of its own: ministack makes no routes of the OpenAPI document that SAM
// writes for an event of a function.
func samGateway() map[string]any {
	ref := func(name string) map[string]any { return map[string]any{"Ref": name} }
	arn := "arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/${ApiFunction.Arn}/invocations"
	resource := func(kind string, properties map[string]any) map[string]any {
		return map[string]any{"Type": kind, "Properties": properties}
	}
	deployment := resource("AWS::ApiGateway::Deployment", map[string]any{"RestApiId": ref("Gateway")})
	deployment["DependsOn"] = "GatewayMethod"
	return map[string]any{
		"Gateway": resource("AWS::ApiGateway::RestApi", map[string]any{"Name": samStack, "BinaryMediaTypes": []any{"*/*"}}),
		"GatewayPath": resource("AWS::ApiGateway::Resource", map[string]any{
			"RestApiId": ref("Gateway"), "ParentId": map[string]any{"Fn::GetAtt": []any{"Gateway", "RootResourceId"}}, "PathPart": "{proxy+}",
		}),
		"GatewayMethod": resource("AWS::ApiGateway::Method", map[string]any{
			"RestApiId": ref("Gateway"), "ResourceId": ref("GatewayPath"), "HttpMethod": "ANY", "AuthorizationType": "NONE",
			"Integration": map[string]any{"Type": "AWS_PROXY", "IntegrationHttpMethod": "POST", "Uri": map[string]any{"Fn::Sub": arn}},
		}),
		"GatewayDeployment": deployment,
		"GatewayStage": resource("AWS::ApiGateway::Stage", map[string]any{
			"RestApiId": ref("Gateway"), "DeploymentId": ref("GatewayDeployment"), "StageName": "prod",
		}),
		"GatewayMayCall": resource("AWS::Lambda::Permission", map[string]any{
			"Action": "lambda:InvokeFunction", "Principal": "apigateway.amazonaws.com", "FunctionName": ref("ApiFunction"),
			"SourceArn": map[string]any{"Fn::Sub": "arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Gateway}/*"},
		}),
	}
}

// forEmulator leaves out of a CloudFormation template what emulators can't do: they refuse alarms on expressions, and what stays when
// a stack goes would meet the next run. It returns how many alarms stay, and how many were left out.
func forEmulator(template map[string]any) (alarms, expressions int) {
	resources := template["Resources"].(map[string]any)
	for id, value := range resources {
		resource := value.(map[string]any)
		delete(resource, "DeletionPolicy")
		delete(resource, "UpdateReplacePolicy")
		properties, _ := resource["Properties"].(map[string]any)
		switch resource["Type"] {
		case "AWS::CloudWatch::Alarm":
			if properties["Metrics"] != nil {
				delete(resources, id)
				expressions++
				continue
			}
			alarms++
		case "AWS::DynamoDB::GlobalTable":
			for _, replica := range properties["Replicas"].([]any) {
				replica.(map[string]any)["DeletionProtectionEnabled"] = false
			}
		}
	}
	return alarms, expressions
}

// deploySAM deploys the transformed template with the functions of docs/examples/ownstack, and returns its API.
func deploySAM(t *testing.T, warehouse string) api {
	t.Helper()
	root, err := filepath.Abs("../..")
	must(t, err)
	made, err := emulator.TransformSAM(t.Context(), "us-east-1", samTemplate(t, root, warehouse))
	must(t, err)
	if alarms, expressions := forEmulator(made); alarms != 26 || expressions != 15 {
		t.Errorf("%d alarms are deployed, and %d left out", alarms, expressions)
	}
	built := t.TempDir()
	module, err := outside.Copy(t.Context(), root, "docs/examples/ownstack", t.TempDir())
	must(t, err)
	must(t, module.Build(t.Context(), "./function", filepath.Join(built, "function", "bootstrap"), "GOOS=linux", "GOARCH="+runtime.GOARCH, "CGO_ENABLED=0"))
	assemble(t, built, made)

	local, err := stack.New(stack.Options{
		Root: root, State: deployed.variables["STACK_STATE"], EnvFile: filepath.Join(built, "unused.env"),
		Emulator: stack.Emulator(deployed.variables["EMULATOR"]),
	}, progress.New(io.Discard))
	must(t, err)
	shop := stack.Other{Name: samStack, App: built}
	outputs, err := local.DeployOther(t.Context(), shop)
	must(t, err)
	t.Cleanup(func() {
		if err := local.DestroyOther(context.WithoutCancel(t.Context()), shop); err != nil {
			t.Error(err)
		}
	})
	url, err := stack.LocalAPI(deployed.variables["AWS_ENDPOINT_URL"], outputs["ApiUrl"])
	must(t, err)
	return newAPI(url, "", "")
}

// assemble writes the template into folder, with the code beside it, as the CDK's command line deploys it: it uploads both, because
// CloudFormation takes no template over 51,200 bytes within a request.
func assemble(t *testing.T, folder string, template map[string]any) {
	t.Helper()
	const version = "36.0.0" // of the assembly's own schema
	for name, document := range map[string]any{
		samStack + ".template.json": template,
		samStack + ".assets.json": map[string]any{
			"version": version, "dockerImages": map[string]any{}, "files": map[string]any{
				"function": asset("function", "zip", samCode), "template": asset(samStack+".template.json", "file", samUploaded),
			},
		},
		"manifest.json": map[string]any{"version": version, "artifacts": map[string]any{
			samStack + ".assets": map[string]any{"type": "cdk:asset-manifest", "properties": map[string]any{"file": samStack + ".assets.json"}},
			samStack: map[string]any{
				"type": "aws:cloudformation:stack", "environment": "aws://000000000000/us-east-1", "dependencies": []string{samStack + ".assets"},
				"properties": map[string]any{
					"templateFile": samStack + ".template.json", "stackName": samStack, "stackTemplateAssetObjectUrl": "s3://" + samBucket + "/" + samUploaded,
				},
			},
		}},
	} {
		text, err := json.Marshal(document)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(folder, name), text, 0o644))
	}
}

// asset is a file that is uploaded, and the object that it becomes.
func asset(path, packaging, key string) map[string]any {
	return map[string]any{
		"source":       map[string]any{"path": path, "packaging": packaging},
		"destinations": map[string]any{"current": map[string]any{"bucketName": samBucket, "objectKey": key}},
	}
}
