package idemconstruct_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// What the roles may do, written by hand: a widened permission shows here.
var (
	logs = func(role string) string {
		return "Allow logs:CreateLogStream logs:PutLogEvents on " + role + "Logs.Arn"
	}
	delivers = []string{
		"Allow dynamodb:ConditionCheckItem dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on TablesIdempotency.Arn",
		"Allow dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on TablesOutbox.Arn",
		"Allow sqs:SendMessage on QueuesDeadLetter.Arn",
		"Allow sqs:SendMessage on QueuesWakeUps.Arn",
	}
	lists = []string{
		"Allow dynamodb:Query on TablesIdempotency.Arn/index/sweep",
		"Allow dynamodb:Query on TablesOutbox.Arn/index/queue",
	}
	executes = []string{
		"Allow dynamodb:BatchGetItem dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on TablesIdempotency.Arn",
		"Allow dynamodb:GetItem dynamodb:PutItem on TablesOutbox.Arn",
	}
	// settles is what an API needs besides that settles messages.
	settles = []string{"Allow dynamodb:UpdateItem on TablesOutbox.Arn", "Allow dynamodb:ConditionCheckItem on TablesIdempotency.Arn"}
	streams = []string{
		"Allow dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator on TablesOutbox.StreamArn",
		"Allow dynamodb:ListStreams on TablesOutbox.Arn/stream/*",
	}
	// offers is what a sweep needs with outbox.Config.WakeUpsMax.
	offers   = "Allow sqs:GetQueueAttributes on QueuesWakeUps.Arn"
	consumes = "Allow sqs:DeleteMessage sqs:GetQueueAttributes sqs:ReceiveMessage on QueuesWakeUps.Arn"
	// readsScopeSecret is what an API needs that keys the names of records.
	readsScopeSecret = "Allow secretsmanager:GetSecretValue on arn:AWS::Partition:secretsmanager:AWS::Region:AWS::AccountId:secret:shop/scopes-??????"
)

func TestEachRoleMayDoWhatItNeedsAndNoMore(t *testing.T) {
	sweeps := slices.Concat(delivers, lists)
	for name, c := range map[string]struct {
		props idemconstruct.ApplicationProps
		want  map[string][]string
	}{
		"worker reads the stream": {idemconstruct.ApplicationProps{}, map[string][]string{
			"Api":       append(slices.Clone(executes), logs("Api")),
			"Worker":    append(slices.Concat(delivers, streams), consumes, logs("Worker")),
			"Sweep":     append(slices.Clone(sweeps), offers, logs("Sweep")),
			"Reconcile": append(slices.Clone(sweeps), logs("Reconcile")),
		}},
		"relay and inline": {idemconstruct.ApplicationProps{Relay: true, Inline: true}, map[string][]string{
			"Api":       append(slices.Clone(executes), settles[0], settles[1], delivers[2], delivers[3], logs("Api")),
			"Worker":    append(slices.Clone(delivers), consumes, logs("Worker")),
			"Sweep":     append(slices.Clone(sweeps), offers, logs("Sweep")),
			"Reconcile": append(slices.Clone(sweeps), logs("Reconcile")),
			"Relay":     append(slices.Clone(streams), delivers[2], delivers[3], logs("Relay")),
		}},
		"a scope secret": {idemconstruct.ApplicationProps{ScopeSecret: "shop/scopes"}, map[string][]string{
			"Api":       append(slices.Clone(executes), readsScopeSecret, logs("Api")),
			"Worker":    append(slices.Concat(delivers, streams), consumes, logs("Worker")),
			"Sweep":     append(slices.Clone(sweeps), offers, logs("Sweep")),
			"Reconcile": append(slices.Clone(sweeps), logs("Reconcile")),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			template := synthesize(t, c.props)
			got := template.permissions()
			if !slices.Equal(keys(got), keys(c.want)) {
				t.Fatalf("roles %v, want %v", keys(got), keys(c.want))
			}
			for role, want := range c.want {
				slices.Sort(want)
				if !slices.Equal(got[role], want) {
					t.Errorf("%s may\n%s\nwant\n%s", role, strings.Join(got[role], "\n"), strings.Join(want, "\n"))
				}
			}
			for id, r := range template.resources {
				if r.Type == "AWS::IAM::Policy" {
					t.Errorf("%s widens a role beside what is listed", id)
				}
			}
		})
	}
}

// A transaction of an operation, and one of a settlement, may put, update, delete and check a condition in the application's own
// table. Emulators permit all of it, so a delete that is denied would be met on AWS first, and in a settlement after the effect.
func TestTransactionsMayDoEverythingInATableOfTheApplications(t *testing.T) {
	roles := 0
	for id, r := range operated(t, idemconstruct.ApplicationProps{}).resources {
		if r.Type != "AWS::IAM::Policy" {
			continue
		}
		for _, statement := range list(r.Properties["PolicyDocument"].(map[string]any)["Statement"]) {
			s := statement.(map[string]any)
			if plain(s["Resource"]) != "Orders.Arn" {
				continue
			}
			roles++
			for _, action := range []string{"GetItem", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"} {
				if !slices.Contains(list(s["Action"]), any("dynamodb:"+action)) {
					t.Errorf("%s may %v, and not %s", id, s["Action"], action)
				}
			}
		}
	}
	if roles != 4 { // API, worker, sweep and reconciler
		t.Errorf("%d roles may write the application's own table", roles)
	}
}

// Every table, queue and log that holds data stays when a production stack goes, and nothing does of an emulated one.
func TestDataOutlivesAProductionStack(t *testing.T) {
	for _, emulated := range []bool{false, true} {
		stays := map[string]bool{}
		for id, r := range synthesize(t, idemconstruct.ApplicationProps{Emulated: emulated}).resources {
			stays[plain(map[string]any{"Ref": id})] = r.DeletionPolicy == "Retain"
		}
		for _, id := range []string{"TablesIdempotency", "TablesOutbox", "QueuesDeadLetter", "WorkerLogs"} {
			if stays[id] == emulated {
				t.Errorf("emulated %v: %s stays: %v", emulated, id, stays[id])
			}
		}
	}
}

// EMULATED=true that is left in a shell changes no stack in AWS: an emulated one has an account that nobody has there.
func TestAnEmulatedApplicationIsInTheAccountOfAnEmulator(t *testing.T) {
	made := func(env *awscdk.Environment) (said string) {
		defer func() {
			if refused := recover(); refused != nil {
				said = fmt.Sprint(refused)
			}
		}()
		stack := awscdk.NewStack(awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(t.TempDir())}), jsii.String("shop"), &awscdk.StackProps{Env: env})
		idemconstruct.NewApplication(stack, "Idem", idemconstruct.ApplicationProps{
			Emulated: true, AlarmTopic: idemconstruct.NoTopic, Code: awslambda.Code_FromAsset(jsii.String(t.TempDir()), nil),
		})
		return "account " + *stack.Account()
	}
	const refused = "ApplicationProps.Emulated = true: must be in a stack whose StackProps.Env is idemconstruct.StackEnv(true)"
	for name, c := range map[string]struct {
		env  *awscdk.Environment
		want string
	}{
		"where the credentials are":  {nil, refused},
		"an account of AWS":          {&awscdk.Environment{Account: jsii.String("111122223333")}, refused},
		"the Env of production":      {idemconstruct.StackEnv(false), refused},
		"the account of an emulator": {idemconstruct.StackEnv(true), "account 000000000000"},
	} {
		if said := made(c.env); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s, want %s", name, said, c.want)
		}
	}
}

// All functions of a service start from one configuration: what it reads must be there in each of them, or one starts never. The relay
// reads no table, and may not.
func TestEveryFunctionIsToldOfATableOfTheApplications(t *testing.T) {
	for _, props := range []idemconstruct.ApplicationProps{{}, {Relay: true}, {Relay: true, Inline: true}} {
		template := synthesizeWith(t, props, func(a *idemconstruct.Application) { a.NewTable("Orders", schema.Table{Key: "id"}, "ORDERS_TABLE") })
		told, may := 0, map[string]bool{}
		for id, r := range template.resources {
			if r.Type == "AWS::IAM::Policy" && strings.Contains(fmt.Sprint(r.Properties["PolicyDocument"]), "Orders") {
				may[plain(map[string]any{"Ref": id})] = true
			}
			if r.Type != "AWS::Lambda::Function" {
				continue
			}
			told++
			if variables := r.Properties["Environment"].(map[string]any)["Variables"].(map[string]any); plain(variables["ORDERS_TABLE"]) != "Orders" {
				t.Errorf("%s finds %v", id, plain(variables["ORDERS_TABLE"]))
			}
		}
		if want := map[bool]int{false: 4, true: 5}[props.Relay]; told != want {
			t.Errorf("%d functions, want %d", told, want)
		}
		if want := []string{"ApiRoleDefaultPolicy", "ReconcileRoleDefaultPolicy", "SweepRoleDefaultPolicy", "WorkerRoleDefaultPolicy"}; !slices.Equal(slices.Sorted(maps.Keys(may)), want) {
			t.Errorf("the application's table may be touched by %v, want %v", slices.Sorted(maps.Keys(may)), want)
		}
	}
}

// Only the API counts what tenants ask for, by one write and one read of a batch. All functions start from one configuration, and so
// does an operator's command: each is told of the table.
func TestOnlyTheAPIMayCountInTheTableOfQuotas(t *testing.T) {
	template := synthesizeWith(t, idemconstruct.ApplicationProps{Operators: true}, func(a *idemconstruct.Application) { a.NewQuotaTable("Quota", "QUOTA_TABLE") })
	told := 0
	var may []string
	for id, r := range template.resources {
		switch r.Type {
		case "AWS::IAM::Policy":
			for _, statement := range list(r.Properties["PolicyDocument"].(map[string]any)["Statement"]) {
				s := statement.(map[string]any)
				may = append(may, plain(map[string]any{"Ref": id})+fmt.Sprint(list(s["Action"]))+plain(s["Resource"]))
			}
		case "AWS::Lambda::Function":
			if plain(r.Properties["Environment"].(map[string]any)["Variables"].(map[string]any)["QUOTA_TABLE"]) == "Quota" {
				told++
			}
		}
	}
	if want := []string{"ApiRoleDefaultPolicy[dynamodb:UpdateItem dynamodb:BatchGetItem]Quota.Arn"}; !slices.Equal(may, want) {
		t.Errorf("the table may be used by %v, want %v", may, want)
	}
	if told != 4 {
		t.Errorf("%d functions are told of the table, want 4", told)
	}
	if outputs := template.document["Outputs"].(map[string]any); outputs["QuotaTable"] == nil {
		t.Error("no output tells an operator's command of the table")
	}
}

// Where executions are reserved for the worker, wake-ups have what the stream leaves: one that finds no execution waits for
// six time-outs of the worker.
func TestWakeUpsHaveWhatIsLeftOfTheWorker(t *testing.T) {
	for _, c := range []struct {
		props idemconstruct.ApplicationProps
		want  any
	}{
		{idemconstruct.ApplicationProps{}, nil},
		{idemconstruct.ApplicationProps{WorkerConcurrency: 7}, 7.0},
		{idemconstruct.ApplicationProps{Reserved: idemconstruct.ReservedOfDefaultQuota(8, false)}, 150.0},
		{idemconstruct.ApplicationProps{Relay: true, Reserved: idemconstruct.ReservedOfDefaultQuota(8, true)}, 190.0},
		{idemconstruct.ApplicationProps{Relay: true, Reserved: map[string]int{"worker": 3000}}, 1000.0},
	} {
		reserved := map[string]int{}
		for id, r := range synthesize(t, c.props).resources {
			name := plain(map[string]any{"Ref": id})
			if scaling, _ := r.Properties["ScalingConfig"].(map[string]any); name == "DeliveryWakeUps" && scaling["MaximumConcurrency"] != c.want {
				t.Errorf("%v: %v wake-ups at once, want %v", c.props.Reserved, scaling["MaximumConcurrency"], c.want)
			}
			if n, has := r.Properties["ReservedConcurrentExecutions"].(float64); has {
				reserved[strings.ToLower(strings.TrimSuffix(name, "Function"))] = int(n)
			}
		}
		if len(reserved) != len(c.props.Reserved) || !maps.Equal(reserved, c.props.Reserved) && len(c.props.Reserved) > 0 {
			t.Errorf("reserved %v, want %v", reserved, c.props.Reserved)
		}
	}
}

func TestApplicationRefusesWrongPropertiesByName(t *testing.T) {
	stack := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("shop"), nil)
	code := awslambda.Code_FromAsset(jsii.String(t.TempDir()), nil)
	for want, props := range map[string]idemconstruct.ApplicationProps{
		"ApplicationProps.Code":              {AlarmTopic: "none"},
		"ApplicationProps.AlarmTopic":        {Code: code},
		"ApplicationProps.Shards = 257":      {Code: code, AlarmTopic: "none", Shards: 257},
		"ApplicationProps.WorkerConcurrency": {Code: code, AlarmTopic: "none", WorkerConcurrency: 1},
		"ApplicationProps.ScopeSecret = …: must be the name or the whole ARN of a secret": {Code: code, AlarmTopic: "none", ScopeSecret: "the secret itself!"},
		"ApplicationProps.Reserved[relay]":                                                {Code: code, AlarmTopic: "none", Reserved: map[string]int{"relay": 3}},
		"ApplicationProps.Reserved[worker] = 51: must be 52 or more":                      {Code: code, AlarmTopic: "none", Reserved: map[string]int{"worker": 51}},
		"ApplicationProps.Reserved[worker] = 30: must be 31 or more":                      {Code: code, AlarmTopic: "none", Relay: true, WorkerConcurrency: 21, Reserved: map[string]int{"worker": 30}},
		"ApplicationProps.WorkerBatch = 9: must be 10 to 40":                              {Code: code, AlarmTopic: "none", WorkerBatch: 9},
		"ApplicationProps.Reserved[sweep] = 7: must be 8 or more":                         {Code: code, AlarmTopic: "none", Reserved: map[string]int{"sweep": 7}},
		"ApplicationProps.Codes[wroker]":                                                  {Code: code, AlarmTopic: "none", Codes: map[string]awslambda.Code{"wroker": code}},
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, want) {
					t.Errorf("got %q, want %q in it", said, want)
				}
			}()
			idemconstruct.NewApplication(stack, "Idem", props)
		}()
	}
	if n := len(*stack.Node().Children()); n != 0 {
		t.Errorf("%d constructs were made", n)
	}
}

// docs/guides/containers.md: a task may do what the requests, the worker, the sweep and the reconciler of package spec may, and poll.
func TestATaskMayDoWhatItsContainersDoAndNoMore(t *testing.T) {
	stack := awscdk.NewStack(awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(t.TempDir())}), jsii.String("shop"), nil)
	task := awsiam.NewRole(stack, jsii.String("Task"), &awsiam.RoleProps{AssumedBy: awsiam.NewServicePrincipal(jsii.String("ecs-tasks.amazonaws.com"), nil)})
	containers(stack, task, "arn:aws:sns:eu-central-1:111122223333:oncall")
	may, alarms := map[string]bool{}, map[string]bool{}
	for id, r := range templateOf(t, *assertions.Template_FromStack(stack, nil).ToJSON()).resources {
		switch r.Type {
		case "AWS::IAM::Policy":
			for _, statement := range list(r.Properties["PolicyDocument"].(map[string]any)["Statement"]) {
				s := statement.(map[string]any)
				for _, action := range list(s["Action"]) {
					for _, on := range list(s["Resource"]) {
						may[fmt.Sprint(action, " on ", hashes.ReplaceAllString(plain(on), ""))] = true
					}
				}
			}
		case "AWS::CloudWatch::Alarm":
			alarms[hashes.ReplaceAllString(id, "")] = true
		}
	}
	want := []string{
		"dynamodb:BatchGetItem on TablesIdempotency.Arn", "dynamodb:ConditionCheckItem on Orders.Arn", "dynamodb:ConditionCheckItem on TablesIdempotency.Arn",
		"dynamodb:DeleteItem on Orders.Arn", "dynamodb:GetItem on Orders.Arn", "dynamodb:GetItem on TablesIdempotency.Arn", "dynamodb:GetItem on TablesOutbox.Arn",
		"dynamodb:PutItem on Orders.Arn", "dynamodb:PutItem on TablesIdempotency.Arn", "dynamodb:PutItem on TablesOutbox.Arn",
		"dynamodb:Query on TablesIdempotency.Arn/index/sweep", "dynamodb:Query on TablesOutbox.Arn/index/queue",
		"dynamodb:UpdateItem on Orders.Arn", "dynamodb:UpdateItem on TablesIdempotency.Arn", "dynamodb:UpdateItem on TablesOutbox.Arn",
		"sqs:ChangeMessageVisibility on QueuesWakeUps.Arn", "sqs:DeleteMessage on QueuesWakeUps.Arn", "sqs:GetQueueAttributes on QueuesWakeUps.Arn",
		"sqs:ReceiveMessage on QueuesWakeUps.Arn", "sqs:SendMessage on QueuesDeadLetter.Arn", "sqs:SendMessage on QueuesWakeUps.Arn",
	}
	if got := slices.Sorted(maps.Keys(may)); !slices.Equal(got, want) {
		t.Errorf("the task may\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, alarm := range []string{"AlarmsStoreError", "AlarmsSweepSilent", "AlarmsReconcileSilent", "AlarmsDueOld", "AlarmsDeadLetters", "AlarmsTableThrottledOrders"} {
		if !alarms[alarm] {
			t.Errorf("there is no alarm %s", alarm)
		}
	}
}

// hashes are what the CDK adds to names.
var hashes = regexp.MustCompile(`[0-9A-F]{8}\b`)

// A container that fails at a wake-up gets it again when its visibility is over: as often as that may be in the wake-up's life, it is no
// dead letter (ADR 0064). docs/guides/containers.md has the visibility that sqsqueue.ConsumerConfig has where none is chosen.
func TestNoContainerThatFailsMakesDeadLettersOfWakeUps(t *testing.T) {
	stack := awscdk.NewStack(awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(t.TempDir())}), jsii.String("shop"), nil)
	task := awsiam.NewRole(stack, jsii.String("Task"), &awsiam.RoleProps{AssumedBy: awsiam.NewServicePrincipal(jsii.String("ecs-tasks.amazonaws.com"), nil)})
	containers(stack, task, "arn:aws:sns:eu-central-1:111122223333:oncall")
	redriven := 0
	for id, r := range templateOf(t, *assertions.Template_FromStack(stack, nil).ToJSON()).resources {
		policy, ok := r.Properties["RedrivePolicy"].(map[string]any)
		if !ok {
			continue
		}
		redriven++
		most, hidden, life := policy["maxReceiveCount"].(float64), r.Properties["VisibilityTimeout"], r.Properties["MessageRetentionPeriod"].(float64)
		if most*time.Minute.Seconds() < life || most > 1000 || hidden != time.Minute.Seconds() {
			t.Errorf("%s: after %v receives, each of which hides it for a minute and not for %v s, a wake-up that lives for %v s is a dead letter", id, most, hidden, life)
		}
	}
	if redriven != 1 {
		t.Errorf("%d queues have dead letters, want 1", redriven)
	}
}

// An alarm on an age that no wake-up reaches would never ring: SQS drops each after an hour, however long its consumer may hide it.
func TestWakeUpsLateRingsBeforeSQSDropsAWakeUp(t *testing.T) {
	for _, c := range []struct {
		props idemconstruct.QueuesProps
		want  time.Duration
	}{
		{idemconstruct.QueuesProps{ConsumerVisibility: time.Minute}, 16 * time.Minute},
		{idemconstruct.QueuesProps{WorkerTimeout: time.Minute}, 21 * time.Minute},
		{idemconstruct.QueuesProps{WorkerTimeout: 15 * time.Minute}, 50 * time.Minute},
		{idemconstruct.QueuesProps{ConsumerVisibility: 12 * time.Hour}, 50 * time.Minute},
	} {
		stack := awscdk.NewStack(awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(t.TempDir())}), jsii.String("shop"), nil)
		monitor := idemconstruct.NewMonitor(stack, "Alarms", idemconstruct.MonitorProps{Topic: "arn:aws:sns:eu-central-1:111122223333:oncall", Service: "shop"})
		monitor.Queues(idemconstruct.NewQueues(stack, "Queues", c.props))
		var thresholds []any
		for id, r := range templateOf(t, *assertions.Template_FromStack(stack, nil).ToJSON()).resources {
			if r.Type == "AWS::CloudWatch::Alarm" && strings.Contains(id, "WakeUpsLate") {
				thresholds = append(thresholds, r.Properties["Threshold"])
			}
		}
		if len(thresholds) != 1 || thresholds[0] != c.want.Seconds() {
			t.Errorf("%+v: WakeUpsLate rings at %v s, want %v", c.props, thresholds, c.want.Seconds())
		}
	}
}

// A queue is told of one consumer, and SQS takes the number of receives that follows.
func TestQueuesAreRefusedWithoutTheirConsumer(t *testing.T) {
	for name, props := range map[string]idemconstruct.QueuesProps{
		"none":              {},
		"two":               {WorkerTimeout: time.Minute, ConsumerVisibility: time.Minute},
		"too many receives": {ConsumerVisibility: 3 * time.Second},
		"half a second":     {ConsumerVisibility: 4500 * time.Millisecond},
		"longer than SQS":   {ConsumerVisibility: 13 * time.Hour},
		"a batch":           {ConsumerVisibility: time.Minute, WakeUpBatch: 20},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.HasPrefix(said, "idemconstruct: QueuesProps") {
					t.Errorf("refused with %s", said)
				}
			}()
			idemconstruct.NewQueues(awscdk.NewStack(awscdk.NewApp(nil), jsii.String("shop"), nil), "Queues", props)
		})
	}
}

// Beside containers, a relay takes from the stream what is born pending, and there are no mapping of the queue and no schedule.
func TestARelayAloneReadsTheStream(t *testing.T) {
	stack := awscdk.NewStack(awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(t.TempDir())}), jsii.String("shop"), nil)
	tables := idemconstruct.NewTables(stack, "Tables", idemconstruct.TablesProps{})
	queues := idemconstruct.NewQueues(stack, "Queues", idemconstruct.QueuesProps{WorkerTimeout: time.Minute})
	relay := awslambda.Function_FromFunctionName(stack, jsii.String("Function"), jsii.String("relay"))
	idemconstruct.NewRelay(stack, "Relay", tables, queues, relay)
	mappings := 0
	for id, r := range templateOf(t, *assertions.Template_FromStack(stack, nil).ToJSON()).resources {
		switch r.Type {
		case "AWS::Lambda::EventSourceMapping":
			mappings++
			if source, filter := plain(r.Properties["EventSourceArn"]), fmt.Sprint(r.Properties["FilterCriteria"]); !strings.HasSuffix(source, ".StreamArn") || !strings.Contains(filter, "pending") {
				t.Errorf("%s maps %s by %s", id, source, filter)
			}
		case "AWS::Events::Rule":
			t.Errorf("%s is a schedule", id)
		}
	}
	if mappings != 1 {
		t.Errorf("%d mappings, want 1", mappings)
	}
}
