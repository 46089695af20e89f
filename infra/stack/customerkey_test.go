package stack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// With customer-managed keys every table, queue and log group has one, and each key serves one service of one account only.
func TestCustomerKeys(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		on := chosen(variant, "customerKeys")
		for name, r := range template.Resources {
			switch r.Type {
			case "AWS::DynamoDB::GlobalTable":
				replica := r.Properties["Replicas"].([]any)[0].(map[string]any)["SSESpecification"]
				if (replica != nil) != on || on && plain(replica.(map[string]any)["KMSMasterKeyId"]) != "CustomerKeysTables.Arn" {
					t.Errorf("%s: %v", name, replica)
				}
			case "AWS::SQS::Queue":
				if on != (r.Properties["SqsManagedSseEnabled"] == nil) || on && plain(r.Properties["KmsMasterKeyId"]) != "CustomerKeysQueues.Arn" {
					t.Errorf("%s: %v", name, r.Properties["KmsMasterKeyId"])
				}
			case "AWS::Logs::LogGroup":
				if key := r.Properties["KmsKeyId"]; (key != nil) != on || on && plain(key) != "CustomerKeysLogs.Arn" {
					t.Errorf("%s: %v", name, key)
				}
			}
		}
		if !on {
			return
		}
		const logs = "map[ArnLike:map[kms:EncryptionContext:aws:logs:arn:"
		for name, want := range map[string]struct{ actions, principal, condition string }{
			"Tables": {"kms:CreateGrant kms:Decrypt kms:DescribeKey kms:Encrypt kms:GenerateDataKey kms:GenerateDataKeyWithoutPlaintext kms:ReEncryptFrom kms:ReEncryptTo",
				"map[AWS:*]", "map[StringEquals:map[kms:CallerAccount:111122223333 kms:ViaService:dynamodb.eu-central-1.amazonaws.com]]"},
			"Queues": {"kms:Decrypt kms:GenerateDataKey",
				"map[AWS:*]", "map[StringEquals:map[kms:CallerAccount:111122223333 kms:ViaService:sqs.eu-central-1.amazonaws.com]]"},
			"Logs": {"kms:Decrypt kms:DescribeKey kms:Encrypt kms:GenerateDataKey kms:GenerateDataKeyWithoutPlaintext kms:ReEncryptFrom kms:ReEncryptTo",
				"map[Service:logs.eu-central-1.amazonaws.com]", logs},
		} {
			key := template.only(t, "AWS::KMS::Key", "CustomerKeys"+name)
			if key.DeletionPolicy != "Retain" || key.Properties["EnableKeyRotation"] != true {
				t.Errorf("%s: %s, rotated: %v", name, key.DeletionPolicy, key.Properties["EnableKeyRotation"])
			}
			statements := key.Properties["KeyPolicy"].(map[string]any)["Statement"].([]any)
			if len(statements) != 2 { // the first leaves it to IAM who administers the key
				t.Fatalf("%s: %d statements", name, len(statements))
			}
			statement := statements[1].(map[string]any)
			var actions []string
			for _, action := range list(statement["Action"]) {
				actions = append(actions, action.(string))
			}
			slices.Sort(actions)
			if strings.Join(actions, " ") != want.actions || fmt.Sprint(statement["Principal"]) != want.principal ||
				!strings.HasPrefix(fmt.Sprint(statement["Condition"]), want.condition) {
				t.Errorf("%s: %v", name, statement)
			}
			if group := plain(logsOf(statement)); name == "Logs" && group != "arn:AWS::Partition:logs:eu-central-1:111122223333:log-group:idem-payments-*" {
				t.Errorf("log groups %s", group)
			}
		}
	})
}

// logsOf is the log groups that a statement is for.
func logsOf(statement map[string]any) any {
	like, _ := statement["Condition"].(map[string]any)["ArnLike"].(map[string]any)
	return like["kms:EncryptionContext:aws:logs:arn"]
}
