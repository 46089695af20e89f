package idemconstruct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awspipes"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

const image = "$.dynamodb.NewImage."

// newPipe moves wake-ups from the outbox stream to the queue without code: of a record it takes the message's id, in the
// words that package sqsqueue reads, and the tenant as the message group.
func newPipe(scope constructs.Construct, props DeliveryProps) awspipes.CfnPipe {
	self := constructs.NewConstruct(scope, jsii.String("Pipe"))
	pattern := (*insertOfPending())["pattern"].(string)
	return awspipes.NewCfnPipe(self, jsii.String("Pipe"), &awspipes.CfnPipeProps{
		Description: jsii.String("A wake-up for each new message of the outbox"),
		RoleArn:     pipeRole(self, props).RoleArn(),
		Source:      props.Tables.Outbox.TableStreamArn(),
		SourceParameters: &awspipes.CfnPipe_PipeSourceParametersProperty{
			FilterCriteria: &awspipes.CfnPipe_FilterCriteriaProperty{
				Filters: []any{&awspipes.CfnPipe_FilterProperty{Pattern: &pattern}},
			},
			DynamoDbStreamParameters: &awspipes.CfnPipe_PipeSourceDynamoDBStreamParametersProperty{
				StartingPosition:          jsii.String("TRIM_HORIZON"),
				BatchSize:                 jsii.Number(batchRecords), // one SendMessageBatch
				ParallelizationFactor:     jsii.Number(shardBatches),
				MaximumRetryAttempts:      jsii.Number(streamRetriesMax),
				MaximumRecordAgeInSeconds: jsii.Number(streamAgeMax.Seconds()),
				OnPartialBatchItemFailure: jsii.String("AUTOMATIC_BISECT"),
				DeadLetterConfig:          &awspipes.CfnPipe_DeadLetterConfigProperty{Arn: props.Queues.DeadLetter.QueueArn()},
			},
		},
		Target: props.Queues.WakeUps.QueueArn(),
		TargetParameters: &awspipes.CfnPipe_PipeTargetParametersProperty{
			InputTemplate: jsii.String(`{"message":<` + image + schema.MessageID + `.S>}`),
			SqsQueueParameters: &awspipes.CfnPipe_PipeTargetSqsQueueParametersProperty{
				MessageGroupId: jsii.String(image + schema.Tenant + ".S"),
			},
		},
	})
}

// pipeRole may read the stream and send to both queues, for pipes of this account and Region only.
func pipeRole(scope constructs.Construct, props DeliveryProps) awsiam.Role {
	stack := awscdk.Stack_Of(scope)
	statements := append(props.Tables.StreamStatements(), props.Queues.SendStatements()...)
	return awsiam.NewRole(scope, jsii.String("Role"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("pipes.amazonaws.com"), &awsiam.ServicePrincipalOpts{
			// The pipe's own ARN would be a circle: it is made with the role.
			Conditions: &map[string]any{
				"StringEquals": map[string]any{"aws:SourceAccount": stack.Account()},
				"ArnLike": map[string]any{"aws:SourceArn": stack.FormatArn(&awscdk.ArnComponents{
					Service: jsii.String("pipes"), Resource: jsii.String("pipe"), ResourceName: jsii.String("*"),
				})},
			},
		}),
		InlinePolicies: &map[string]awsiam.PolicyDocument{
			"pipe": awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &statements}),
		},
	})
}
