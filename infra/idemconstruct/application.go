package idemconstruct

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/lambdaapp/environment"
	"github.com/idem-go/idem-aws/idem/telemetry/metric"
	"github.com/idem-go/idem-aws/infra/spec"
)

// ApplicationProps are the choices for Application. Code and AlarmTopic are required.
type ApplicationProps struct {
	// Code is the asset of every function: a folder with an executable file named bootstrap, for Linux, which starts the handler
	// of package lambdaapp.
	Code awslambda.Code
	// Codes are assets of single functions, by their roles ("worker"), where one is another binary. Default: Code.
	Codes map[string]awslambda.Code
	// AlarmTopic is the ARN of the SNS topic that alarms go to, or [NoTopic] for alarms that only show.
	AlarmTopic string
	// Architecture of the binaries. Default ARM_64; where Emulated, this machine's.
	Architecture awslambda.Architecture
	// Environment has variables of the application's own, for all functions: no secrets. Each value stands in the template, and with
	// Operators it is an output of the stack, which many may read. Default: none.
	Environment map[string]string
	// ScopeSecret is the name or the whole ARN of a secret in AWS Secrets Manager: what the names of records are keyed with
	// (idem.Config.ScopeSecret). The API function finds the name in SCOPE_SECRET_ID and may read the secret, and so may operators who
	// read; the application reads it itself, before lambdaapp.New. The other functions need none. A secret under a KMS key of your own needs that
	// key's policy to let them decrypt. It can't be added after the first request. Default: none.
	ScopeSecret string
	// Shards is how many partitions the queues of the indexes are spread over, 1 to 256: 500 messages a second fill one. It may be
	// raised; to lower it again frees nothing. Default 8.
	Shards int
	// Relay has new messages go through the queue of wake-ups, which is fair between tenants; WorkerConcurrency then bounds all
	// deliveries. Default: the worker reads the outbox table's stream itself.
	Relay bool
	// Inline lets the API function settle messages: it delivers its own within the request (outbox.NewInline), or takes a provider's
	// webhooks. Default: it may not.
	Inline bool
	// WorkerConcurrency bounds how many workers take wake-ups at once, 2 to 1000. Default: what Reserved leaves to the worker after a
	// margin of 10 and, without a Relay, after 10 batches of each of the 4 shards of a new table's stream; no bound without Reserved.
	WorkerConcurrency int
	// WorkerBatch is how many wake-ups a worker takes at once at most, 10 to 40: see DeliveryProps.WakeUpBatch. Default: 10.
	WorkerBatch int
	// Reserved are executions that are reserved for single functions, by their roles, and the most that each gets. Without them a
	// provider that hangs can take all executions of the account. Leave 100 of the account's unreserved; 0 reserves nothing. Default: none,
	// because a new account has 10; see [ReservedOfDefaultQuota].
	Reserved map[string]int
	// Tables are the choices for the tables. Default: for production.
	Tables TablesProps
	// Operators adds what the application's idemctl needs (package awsctl): the log of what operators change, a managed policy to read
	// and one to change, and outputs of the stack that have the values of its variables, every one of Environment's too. One
	// application of a stack may have them. Default: none.
	Operators bool
	// Emulated is for an emulator: everything goes with the stack, alarms on expressions and the dashboard are left out, and one
	// call of sweep and reconciler a minute looks into all shards. The stack must have the account of an emulator, which StackEnv
	// gives it: in an account of AWS it would take the protection off tables that are there already.
	Emulated bool
}

// Application is everything that an application of idem needs but its gateway and its own tables: the two tables, the queues, the
// functions with roles of their own, mappings, schedules, alarms and a dashboard.
type Application struct {
	constructs.Construct
	// Tables are the tables of records and messages, and Queues the wake-ups and dead letters.
	Tables *Tables
	Queues *Queues
	// API executes operations: put it behind a gateway. The others need nothing more. Relay is nil without ApplicationProps.Relay.
	API, Worker, Sweep, Reconcile, Relay awslambda.Function
	// Delivery wires the worker, the sweep and the reconciler to their sources.
	Delivery *Delivery
	// Operators is what people need who use idemctl; nil without ApplicationProps.Operators.
	Operators *Operators
	// Monitor adds alarms beside those of the application, such as Monitor.Gateway and Monitor.Table.
	Monitor *Monitor

	props     ApplicationProps
	functions map[string]awslambda.Function
}

// NewApplication adds an application to scope under id. It panics where a property is missing or out of range, as the CDK does.
func NewApplication(scope constructs.Construct, id string, props ApplicationProps) *Application {
	props.Shards = cmp.Or(props.Shards, spec.Shards)
	if props.Architecture == nil {
		props.Architecture = props.architecture()
	}
	functions := spec.Functions(spec.Choices{Relay: props.Relay, Inline: props.Inline})
	props.check(scope, functions)
	props.Tables.Disposable = props.Tables.Disposable || props.Emulated
	self := constructs.NewConstruct(scope, jsii.String(id))
	a := &Application{
		Construct: self, props: props, functions: map[string]awslambda.Function{},
		Tables: NewTables(self, "Tables", props.Tables),
		Queues: NewQueues(self, "Queues", QueuesProps{WorkerTimeout: spec.WorkerTimeout, WakeUpBatch: props.WorkerBatch, Disposable: props.Emulated}),
	}
	service := *awscdk.Stack_Of(self).StackName() + "-" + id
	for _, f := range functions {
		a.functions[f.Role] = a.function(self, f, service)
	}
	a.API, a.Worker, a.Relay = a.functions[environment.API], a.functions[environment.Worker], a.functions[environment.Relay]
	a.Sweep, a.Reconcile = a.functions[environment.Sweep], a.functions[environment.Reconcile]
	a.Delivery = NewDelivery(self, "Delivery", a.delivery())
	if props.Operators {
		a.operate(self)
	}
	a.watch(self, service)
	return a
}

// EmulatorAccount is the account that an emulator takes everybody's to be. It is none of AWS's: with credentials of AWS the CDK
// deploys no stack that has it.
const EmulatorAccount = "000000000000"

// StackEnv is the Env of a stack that may go to an emulator. Where it does, its account is EmulatorAccount; else it is nil: the stack
// goes where the credentials are.
func StackEnv(emulated bool) *awscdk.Environment {
	if !emulated {
		return nil
	}
	return &awscdk.Environment{Account: jsii.String(EmulatorAccount)}
}

// architecture is the default. Emulators run functions as processes of this machine.
func (p ApplicationProps) architecture() awslambda.Architecture {
	if p.Emulated && runtime.GOARCH == "amd64" {
		return awslambda.Architecture_X86_64()
	}
	return awslambda.Architecture_ARM_64()
}

// check panics with everything that is wrong with the properties.
func (p ApplicationProps) check(scope constructs.Construct, functions []spec.Function) {
	var wrong []string
	refuse := func(field string, value any, rule string) {
		wrong = append(wrong, fmt.Sprintf("ApplicationProps.%s = %v: must be %s", field, value, rule))
	}
	var roles []string
	for _, f := range functions {
		if roles = append(roles, f.Role); p.Code == nil && p.Codes[f.Role] == nil {
			refuse("Code", p.Code, "the asset of the functions; Codes has none for "+f.Role)
		}
	}
	if p.AlarmTopic == "" {
		refuse("AlarmTopic", `""`, "the ARN of an SNS topic, or idemconstruct.NoTopic")
	}
	if p.Emulated && *awscdk.Stack_Of(scope).Account() != EmulatorAccount {
		refuse("Emulated", true, "in a stack whose StackProps.Env is idemconstruct.StackEnv(true): with another account it could replace a stack in AWS")
	}
	if p.Shards < 1 || p.Shards > shardsMax {
		refuse("Shards", p.Shards, "1 to 256")
	}
	if !spec.SecretForm.MatchString(p.ScopeSecret) { // which may be the secret itself
		refuse("ScopeSecret", "…", spec.SecretRule)
	}
	if n := p.WorkerConcurrency; n != 0 && (n < 2 || n > 1000) {
		refuse("WorkerConcurrency", n, "2 to 1000, or 0 for no bound")
	}
	if n := p.WorkerBatch; n != 0 && (n < spec.BatchRecords || n > spec.BatchWakeUpsMax) {
		refuse("WorkerBatch", n, fmt.Sprintf("%d to %d", spec.BatchRecords, spec.BatchWakeUpsMax))
	}
	for _, role := range slices.Sorted(maps.Keys(p.Reserved)) {
		if !slices.Contains(roles, role) || p.Reserved[role] < 0 {
			refuse("Reserved["+role+"]", p.Reserved[role], "0 or more, of one of "+strings.Join(roles, ", "))
		}
	}
	p.checkReserved(refuse)
	for _, variable := range slices.Sorted(maps.Keys(p.Environment)) {
		if p.Operators && !outputForm.MatchString(variable) {
			refuse("Environment["+variable+"]", p.Environment[variable], outputRule)
		}
	}
	for _, role := range slices.Sorted(maps.Keys(p.Codes)) {
		if !slices.Contains(roles, role) {
			refuse("Codes["+role+"]", "an asset", "of one of "+strings.Join(roles, ", "))
		}
	}
	if len(wrong) > 0 {
		panic("idemconstruct: " + strings.Join(wrong, "; "))
	}
}

// shardsMax is the store's bound.
const shardsMax = 256

// function makes one function with its log group and its role. What the role may do with tables and queues is that of package spec.
func (a *Application) function(scope constructs.Construct, f spec.Function, service string) awslambda.Function {
	self := constructs.NewConstruct(scope, jsii.String(strings.ToUpper(f.Role[:1])+f.Role[1:]))
	logs := awslogs.NewLogGroup(self, jsii.String("Logs"), a.props.logGroup())
	statements := append(allow(f.Permissions, a.arn), Allow([]string{"logs:CreateLogStream", "logs:PutLogEvents"}, logs.LogGroupArn()))
	if f.Role == environment.API && a.props.ScopeSecret != "" {
		statements = append(statements, a.props.readScopeSecret())
	}
	role := awsiam.NewRole(self, jsii.String("Role"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{
			f.Role: awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &statements}),
		},
	})
	variables := map[string]*string{}
	for name, value := range a.props.Environment {
		variables[name] = jsii.String(value)
	}
	maps.Copy(variables, a.environment(f, service))
	props := &awslambda.FunctionProps{
		Description: jsii.String(f.Description), Code: a.props.code(f.Role), Handler: jsii.String("bootstrap"),
		Runtime: awslambda.Runtime_PROVIDED_AL2023(), Architecture: a.props.Architecture,
		MemorySize: jsii.Number(f.MemoryMiB), Timeout: seconds(f.Timeout), Environment: &variables, LogGroup: logs, Role: role,
	}
	if n := a.props.Reserved[f.Role]; n != 0 {
		props.ReservedConcurrentExecutions = jsii.Number(n)
	}
	if f.Scheduled {
		props.RetryAttempts, props.MaxEventAge = jsii.Number(0), seconds(spec.SchedulePeriod)
	}
	made := awslambda.NewFunction(self, jsii.String("Function"), props)
	a.accept(f, made, role)
	return made
}

// readScopeSecret allows to read the secret. An ARN ends with six characters that are not in the name.
func (p ApplicationProps) readScopeSecret() awsiam.PolicyStatement {
	arn := p.ScopeSecret
	if !strings.HasPrefix(arn, "arn:") {
		arn = "arn:" + *awscdk.Aws_PARTITION() + ":secretsmanager:" + *awscdk.Aws_REGION() + ":" + *awscdk.Aws_ACCOUNT_ID() + ":secret:" + arn + "-??????"
	}
	return Allow([]string{"secretsmanager:GetSecretValue"}, jsii.String(arn))
}

func (p ApplicationProps) code(role string) awslambda.Code {
	if own := p.Codes[role]; own != nil {
		return own
	}
	return p.Code
}

// logGroup keeps logs for three months, longer than any default retention of a key; they stay when the stack goes.
func (p ApplicationProps) logGroup() *awslogs.LogGroupProps {
	if p.Emulated {
		return &awslogs.LogGroupProps{Retention: awslogs.RetentionDays_ONE_DAY, RemovalPolicy: awscdk.RemovalPolicy_DESTROY}
	}
	return &awslogs.LogGroupProps{Retention: awslogs.RetentionDays_THREE_MONTHS, RemovalPolicy: awscdk.RemovalPolicy_RETAIN}
}

// arn is that of a table's or a queue's.
func (a *Application) arn(of spec.Resource) *string {
	if arn := a.Queues.arn(of); arn != nil {
		return arn
	}
	return a.Tables.arn(of)
}

// environment is what package lambdaapp reads.
func (a *Application) environment(f spec.Function, service string) map[string]*string {
	variables := map[string]*string{
		environment.Function:           jsii.String(f.Role),
		environment.IdempotencyTable:   a.Tables.Idempotency.TableName(),
		environment.OutboxTable:        a.Tables.Outbox.TableName(),
		environment.OutboxShards:       jsii.String(strconv.Itoa(a.props.Shards)),
		environment.WakeUpQueueURL:     a.Queues.WakeUps.QueueUrl(),
		environment.DeadLetterQueueURL: a.Queues.DeadLetter.QueueUrl(),
		environment.FunctionTimeout:    jsii.String(f.Timeout.String()),
		environment.MetricsNamespace:   jsii.String(metric.Namespace),
		environment.MetricsService:     jsii.String(service),
	}
	if f.Role == environment.API && a.props.ScopeSecret != "" {
		variables[environment.ScopeSecretID] = jsii.String(a.props.ScopeSecret)
	}
	return variables
}

func (a *Application) delivery() DeliveryProps {
	props := DeliveryProps{
		Tables: a.Tables, Queues: a.Queues, Worker: a.Worker, Sweep: a.Sweep, Reconcile: a.Reconcile,
		Shards: a.props.scheduledShards(), ConcurrencyMax: a.props.wakeUpWorkers(), WakeUpBatch: a.props.WorkerBatch,
	}
	if a.Relay != nil {
		props.Relay = a.Relay
	}
	return props
}

// scheduledShards is how many shards the runs share; 0 has one run look into all.
func (p ApplicationProps) scheduledShards() int {
	if p.Emulated {
		return 0
	}
	return p.Shards
}

// watch adds the alarms of docs/operator.md that are not the payments application's own, and the dashboard.
func (a *Application) watch(scope constructs.Construct, service string) {
	reader := awslambda.IFunction(a.Worker)
	if a.Relay != nil {
		reader = a.Relay
	}
	a.Monitor = NewMonitor(scope, "Alarms", MonitorProps{Topic: a.props.AlarmTopic, Service: service, Plain: a.props.Emulated})
	a.Monitor.Counts(a.API, Counts()...)
	a.Monitor.Queues(a.Queues)
	a.Monitor.Heartbeats(a.props.scheduledShards())
	a.Monitor.Backlog()
	a.Monitor.Stream(reader)
	if a.props.Emulated {
		return
	}
	functions := map[string]awslambda.IFunction{}
	for _, role := range slices.Sorted(maps.Keys(a.functions)) {
		id := strings.ToUpper(role[:1]) + role[1:]
		functions[id] = a.functions[role]
		a.Monitor.Function(id, a.functions[role], Often)
	}
	a.Monitor.Table("Idempotency", a.Tables.Idempotency, schema.Idempotency().Index.Name)
	a.Monitor.Table("Outbox", a.Tables.Outbox, schema.Outbox().Index.Name)
	a.Monitor.Schedules(a.Delivery.Schedules...)
	a.Monitor.Dashboard(scope, "Dashboard", DashboardProps{Functions: functions, Reader: reader, Queues: a.Queues})
}

// NewTable adds a table of the application's own, protected like the tables of records and messages, and watched like them. The
// functions may write it as [Application.Uses] says, and operators too.
func (a *Application) NewTable(id string, shape schema.Table, variable string) awsdynamodb.TableV2 {
	table := NewTable(a.Construct, id, shape, a.props.Tables)
	a.Uses(table, variable)
	if !a.props.Emulated {
		a.Monitor.Table(id, table, shape.Index.Name)
	}
	return table
}

// NewQuotaTable adds the table of what tenants have used up (package idem/quota/dynamoquota), and watches it. All functions find its name
// in the variable; only the API may count there. What it holds is gone within hours, so it goes with its stack.
func (a *Application) NewQuotaTable(id, variable string) awsdynamodb.TableV2 {
	props := a.props.Tables
	props.Disposable = true
	table := NewTable(a.Construct, id, schema.Quota(), props)
	a.tell(table, variable)
	a.API.AddToRolePolicy(Allow([]string{"dynamodb:UpdateItem", "dynamodb:BatchGetItem"}, table.TableArn()))
	if a.Operators != nil {
		a.names(table, variable)
	}
	if !a.props.Emulated {
		a.Monitor.Table(id, table, "")
	}
	return table
}

// tell gives the table's name to all functions.
func (a *Application) tell(table awsdynamodb.ITableV2, variable string) {
	for _, role := range slices.Sorted(maps.Keys(a.functions)) {
		a.functions[role].AddEnvironment(jsii.String(variable), table.TableName(), nil)
	}
}

// written is what a transaction may do with a table of the application's own.
var written = []string{"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem"}

// Uses has the application write a table of its own in the transactions of its operations and settlements: all functions find its
// name in the variable, because they start from one configuration. Those that execute or settle may read a row there, and do what a
// transaction can: put, update, delete and check a condition; the relay may do nothing, and none may query or scan. For more use the
// table's own grants. With ApplicationProps.Operators an operator's --write may do what a settlement does.
func (a *Application) Uses(table awsdynamodb.ITableV2, variable string) {
	a.tell(table, variable)
	for _, role := range []string{environment.API, environment.Worker, environment.Sweep, environment.Reconcile} {
		a.functions[role].AddToRolePolicy(Allow(written, table.TableArn()))
	}
	if a.Operators != nil {
		a.operates(table, variable)
	}
}
