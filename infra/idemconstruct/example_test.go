package idemconstruct_test

import (
	"slices"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// A stack of one's own: two tables, two queues, and the outbox wired to a worker, a sweep and a reconciler.
func Example() {
	stack := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("shop"), nil)
	tables := idemconstruct.NewTables(stack, "Tables", idemconstruct.TablesProps{})
	queues := idemconstruct.NewQueues(stack, "Queues", idemconstruct.QueuesProps{WorkerTimeout: time.Minute})

	function := func(id string) awslambda.Function {
		return awslambda.NewFunction(stack, jsii.String(id), &awslambda.FunctionProps{
			Runtime: awslambda.Runtime_PROVIDED_AL2023(),
			Handler: jsii.String("bootstrap"),
			Code:    awslambda.Code_FromAsset(jsii.String("build/"+id), nil),
			Timeout: awscdk.Duration_Minutes(jsii.Number(1)),
		})
	}
	worker, sweep, reconcile := function("worker"), function("sweep"), function("reconcile")
	for _, statement := range tables.DeliverStatements() {
		worker.AddToRolePolicy(statement)
		sweep.AddToRolePolicy(statement)
		reconcile.AddToRolePolicy(statement)
	}
	for _, statement := range tables.StreamStatements() {
		worker.AddToRolePolicy(statement)
	}
	for _, statement := range tables.SweepStatements() {
		sweep.AddToRolePolicy(statement)
		reconcile.AddToRolePolicy(statement)
	}
	idemconstruct.NewDelivery(stack, "Delivery", idemconstruct.DeliveryProps{
		Tables: tables, Queues: queues, Worker: worker, Sweep: sweep, Reconcile: reconcile,
	})
}

// An alarm of one's own, on lines that the API function logs with lambdaapp's Logger under the name of a metric.
func ExampleMonitor_Counts() {
	stack := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("shop"), nil)
	idem := idemconstruct.NewApplication(stack, "Idem", idemconstruct.ApplicationProps{
		Code: awslambda.Code_FromAsset(jsii.String("build"), nil), AlarmTopic: "arn:aws:sns:eu-central-1:111122223333:oncall", Inline: true,
	})
	idem.Monitor.Counts(idem.API, idemconstruct.Count{
		ID: "WebhookContradicts", Metric: metric.WebhookContradicts, Threshold: 1, Period: time.Minute, Periods: 1, OfLast: 5,
		Description: "A signed webhook contradicts what was sent. It was acknowledged, and settled nothing.",
	})
}

// The table of what tenants have used up. The API finds its name in the variable, for dynamoquota.New.
func ExampleApplication_NewQuotaTable() {
	stack := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("shop"), nil)
	idem := idemconstruct.NewApplication(stack, "Idem", idemconstruct.ApplicationProps{
		Code: awslambda.Code_FromAsset(jsii.String("build"), nil), AlarmTopic: idemconstruct.NoTopic,
	})
	idem.NewQuotaTable("Quota", "QUOTA_TABLE")
}

// Containers instead of functions: each serves the API and runs the worker. The task's role gets what they do, and nothing else.
func Example_containers() {
	stack := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("shop"), nil)
	task := awsiam.NewRole(stack, jsii.String("Task"), &awsiam.RoleProps{AssumedBy: awsiam.NewServicePrincipal(jsii.String("ecs-tasks.amazonaws.com"), nil)})
	containers(stack, task, "arn:aws:sns:eu-central-1:111122223333:oncall")
}

func containers(stack awscdk.Stack, task awsiam.Role, alarmTopic string) {
	const visibility = time.Minute // that of sqsqueue.ConsumerConfig
	tables := idemconstruct.NewTables(stack, "Tables", idemconstruct.TablesProps{})
	queues := idemconstruct.NewQueues(stack, "Queues", idemconstruct.QueuesProps{ConsumerVisibility: visibility})
	orders := idemconstruct.NewTable(stack, "Orders", schema.Table{Key: "id"}, idemconstruct.TablesProps{})
	own := idemconstruct.Allow([]string{
		"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem",
	}, orders.TableArn())
	for _, statement := range slices.Concat(
		tables.ExecuteStatements(), // requests
		tables.DeliverStatements(), // worker, inline deliveries, sweep and reconciler
		tables.SweepStatements(),   // the indexes of what waits
		queues.SendStatements(),    // wake-ups and dead letters
		queues.PollStatements(),    // wake-ups
		queues.OfferStatements(),   // how many wake-ups wait, with outbox.Config.WakeUpsMax
		[]awsiam.PolicyStatement{own},
	) {
		task.AddToPolicy(statement)
	}

	monitor := idemconstruct.NewMonitor(stack, "Alarms", idemconstruct.MonitorProps{Topic: alarmTopic, Service: "shop"})
	monitor.Counts(nil, idemconstruct.Counts()...)
	monitor.Queues(queues)
	monitor.Heartbeats(0) // one round a minute is enough, of whichever container
	monitor.Backlog()
	monitor.Table("Idempotency", tables.Idempotency, schema.Idempotency().Index.Name)
	monitor.Table("Outbox", tables.Outbox, schema.Outbox().Index.Name)
	monitor.Table("Orders", orders, "")
}
