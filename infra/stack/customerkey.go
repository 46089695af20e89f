package stack

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// customerKeys are the account's own KMS keys for what AWS would encrypt with keys of its own; all nil where that is not chosen.
// Who disables one stops what is encrypted with it. They stay when the stack goes, and rotate every year.
type customerKeys struct{ tables, queues, logs awskms.Key }

func (c Config) customerKeys(stack awscdk.Stack) customerKeys {
	if !c.CustomerKeys {
		return customerKeys{}
	}
	self := constructs.NewConstruct(stack, jsii.String("CustomerKeys"))
	made := func(id, description string, use awsiam.PolicyStatement) awskms.Key {
		key := awskms.NewKey(self, jsii.String(id), &awskms.KeyProps{
			Description: jsii.String(description), EnableKeyRotation: jsii.Bool(true), RemovalPolicy: awscdk.RemovalPolicy_RETAIN,
		})
		key.AddToResourcePolicy(use, nil)
		return key
	}
	return customerKeys{
		tables: made("Tables", "The tables of "+c.Stack, c.via("dynamodb", slices.Concat(keyUse, []string{"kms:CreateGrant"})...)),
		queues: made("Queues", "The queues of "+c.Stack, c.via("sqs", "kms:GenerateDataKey", "kms:Decrypt")),
		logs:   made("Logs", "The logs of "+c.Stack, c.logsMay()),
	}
}

// keyUse is what a service does with a key that encrypts what it keeps.
var keyUse = []string{
	"kms:Encrypt", "kms:Decrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo",
	"kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:DescribeKey",
}

// via lets those in the account who may use a table or a queue use its key, through the service only. DynamoDB and SQS use a key on
// behalf of their caller, so that the roles would need it otherwise, each for itself.
func (c Config) via(service string, actions ...string) awsiam.PolicyStatement {
	return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Principals: &[]awsiam.IPrincipal{awsiam.NewAnyPrincipal()},
		Actions:    jsii.Strings(actions...),
		Resources:  jsii.Strings("*"), // this key
		Conditions: &map[string]any{"StringEquals": map[string]any{
			"kms:CallerAccount": c.Account, "kms:ViaService": service + "." + c.Region + ".amazonaws.com",
		}},
	})
}

// logsMay lets CloudWatch Logs use the key for log groups of this stack: it names the group as the context of encryption.
func (c Config) logsMay() awsiam.PolicyStatement {
	return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("logs."+c.Region+".amazonaws.com"), nil)},
		Actions:    jsii.Strings(keyUse...),
		Resources:  jsii.Strings("*"), // this key
		Conditions: &map[string]any{"ArnLike": map[string]any{
			"kms:EncryptionContext:aws:logs:arn": "arn:" + *awscdk.Aws_PARTITION() + ":logs:" + c.Region + ":" + c.Account + ":log-group:" + c.Stack + "-*",
		}},
	})
}

// encryptLogs gives every log group of the stack the key, whichever construct made it.
func (k customerKeys) encryptLogs(stack awscdk.Stack) {
	if k.logs == nil {
		return
	}
	for _, each := range *stack.Node().FindAll(constructs.ConstructOrder_PREORDER) {
		if group, ok := each.(awslogs.CfnLogGroup); ok {
			group.SetKmsKeyId(k.logs.KeyArn())
		}
	}
}
