package idemconstruct

import (
	"regexp"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/lint"
	"github.com/idem-go/idem-aws/infra/spec"
)

// Why findings of cfn-lint and cdk-nag are right, in the words of each resource's Metadata.
const (
	missedRuns        = "A run that was not made is the next run's work, and an alarm rings where runs are missing."
	calledInTurn      = "Called synchronously only, by the gateway or a mapping, which has the failure; dead-letter queues are for asynchronous calls."
	noTracing         = "X-Ray is off: it is billed by request. The functions record traces by OpenTelemetry, if the application has a tracer."
	listStreamsOfOne  = "ListStreams names no one stream; all streams of this one table are the narrowest there is."
	roleBeforeItsUser = "CDK adds the dependency whether or not a reference says the same; it changes nothing."
)

// accept says what the parts of the delivery have instead of dead-letter queues of their own.
func (d *Delivery) accept() {
	for _, schedule := range d.Schedules {
		lint.Accept(schedule, map[string]string{"Serverless-EventBusDLQ": missedRuns})
	}
	lint.Accept(d.WakeUps, map[string]string{
		"Serverless-LambdaEventSourceMappingDestination": "SQS mappings have no destination; the queue itself has a dead-letter queue.",
	})
}

// accept says what the linters find about a function of an application, and about its role.
func (a *Application) accept(f spec.Function, made awslambda.Function, role awsiam.Role) {
	lost := calledInTurn
	if f.Scheduled {
		lost = missedRuns
		lint.Accept(made.Node().FindChild(jsii.String("EventInvokeConfig")), map[string]string{"Serverless-LambdaAsyncFailureDestination": missedRuns})
	}
	lint.Accept(made, map[string]string{"W3005": roleBeforeItsUser, "Serverless-LambdaDLQ": lost, "Serverless-LambdaTracing": noTracing})
	if f.ReadsStream() && a.props.Tables.Import == nil {
		lint.Accept(role, map[string]string{"AwsSolutions-IAM5[Resource::<" + a.outboxID() + ".Arn>/stream/*]": listStreamsOfOne})
	}
}

var hashOfPath = regexp.MustCompile(`[0-9A-F]{8}$`)

// outboxID is the outbox table's logical name, without what CDK appends.
func (a *Application) outboxID() string {
	table := a.Tables.Outbox.Node().DefaultChild().(awscdk.CfnElement)
	return hashOfPath.ReplaceAllString(*a.Tables.Outbox.Stack().GetLogicalId(table), "")
}
