package stack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/stack"
)

func TestReadRelay(t *testing.T) {
	for _, c := range []struct {
		context map[string]any
		want    stack.Relay
	}{
		{map[string]any{}, ""},
		{map[string]any{"outbox": "streams"}, ""},
		{map[string]any{"outbox": "sqs"}, stack.PipeRelay},
		{map[string]any{"outbox": "sqs", "relay": "function"}, stack.FunctionRelay},
		{map[string]any{"outbox": "sqs", "local": "true"}, stack.FunctionRelay},
		{map[string]any{"outbox": "sqs", "local": "true", "relay": "pipe"}, stack.PipeRelay},
	} {
		context := map[string]any{"providerUrl": "https://provider.example", "account": "111122223333", "region": "eu-central-1"}
		maps.Copy(context, c.context)
		if got, err := read(context, nil); err != nil || got.Relay != c.want {
			t.Errorf("%v: %q, %v, want %q", c.context, got.Relay, err, c.want)
		}
	}
	_, err := read(map[string]any{"providerUrl": "https://provider.example", "local": true, "outbox": "sqs", "relay": "bus"}, nil)
	if err == nil || !strings.Contains(err.Error(), `context relay="bus" is refused; allowed: function, pipe`) {
		t.Errorf("%v", err)
	}
}

// births is the filter that lets only messages through that are born pending: as JSON, or as the text of a pattern.
func births() map[string]any {
	return map[string]any{
		"eventName": []string{"INSERT"},
		"dynamodb":  map[string]any{"NewImage": map[string]any{schema.State: map[string]any{"S": []string{schema.MessageStatePending}}}},
	}
}

func TestStreamMapping(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		target := map[idemconstruct.Path]string{idemconstruct.PathStream: "WorkerFunction", idemconstruct.PathRelay: "RelayFunction"}[path(variant)]
		if target == "" {
			template.counts(t, "AWS::Lambda::EventSourceMapping", 1) // the queue's
			return
		}
		template.counts(t, "AWS::Lambda::EventSourceMapping", 2)
		got := template.only(t, "AWS::Lambda::EventSourceMapping", "DeliveryStream").Properties
		destination := got["DestinationConfig"].(map[string]any)["OnFailure"].(map[string]any)["Destination"]
		for name, pair := range map[string][2]string{
			"source":      {plain(got["EventSourceArn"]), "TablesOutbox.StreamArn"},
			"function":    {plain(got["FunctionName"]), target},
			"destination": {plain(destination), "QueuesDeadLetter.Arn"},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s is %s, want %s", name, pair[0], pair[1])
			}
		}
		template.has(t, "AWS::Lambda::EventSourceMapping", map[string]any{
			"StartingPosition":           "TRIM_HORIZON",
			"BatchSize":                  10,
			"ParallelizationFactor":      10,
			"BisectBatchOnFunctionError": true,
			"MaximumRetryAttempts":       5,
			"MaximumRecordAgeInSeconds":  900,
			"FunctionResponseTypes":      []string{"ReportBatchItemFailures"},
			"FilterCriteria": map[string]any{"Filters": []any{map[string]any{
				"Pattern": assertions.Match_SerializedJson(births()),
			}}},
		})
	})
}

// No emulator's Pipe delivers: everything that it must be is demanded here.
func TestPipe(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		if path(variant) != idemconstruct.PathPipe {
			template.counts(t, "AWS::Pipes::Pipe", 0)
			return
		}
		template.counts(t, "AWS::Pipes::Pipe", 1)
		got := template.only(t, "AWS::Pipes::Pipe", "DeliveryPipe").Properties
		for name, pair := range map[string][2]string{
			"source": {plain(got["Source"]), "TablesOutbox.StreamArn"},
			"target": {plain(got["Target"]), "QueuesWakeUps.Arn"},
			"role":   {plain(got["RoleArn"]), "DeliveryPipeRole.Arn"},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s is %s, want %s", name, pair[0], pair[1])
			}
		}
		source := got["SourceParameters"].(map[string]any)
		stream := source["DynamoDBStreamParameters"].(map[string]any)
		if dead := plain(stream["DeadLetterConfig"].(map[string]any)["Arn"]); dead != "QueuesDeadLetter.Arn" {
			t.Errorf("what is given up goes to %s", dead)
		}
		delete(stream, "DeadLetterConfig")
		want := map[string]any{
			"StartingPosition": "TRIM_HORIZON", "BatchSize": 10.0, "ParallelizationFactor": 10.0, "MaximumRetryAttempts": 5.0,
			"MaximumRecordAgeInSeconds": 900.0, "OnPartialBatchItemFailure": "AUTOMATIC_BISECT",
		}
		if !maps.Equal(stream, want) {
			t.Errorf("stream %v, want %v", stream, want)
		}
		template.has(t, "AWS::Pipes::Pipe", map[string]any{"SourceParameters": map[string]any{
			"FilterCriteria": map[string]any{"Filters": []any{map[string]any{"Pattern": assertions.Match_SerializedJson(births())}}},
		}})
	})
}

// The Pipe writes the body that the worker reads, in the tenant's group: applied to the sample of a stream record, its
// target's parameters give the sample of a wake-up. Nothing else of a record is named.
func TestPipeWritesWakeUps(t *testing.T) {
	got := synthesize(t, "rest-gateway").only(t, "AWS::Pipes::Pipe", "DeliveryPipe").Properties["TargetParameters"].(map[string]any)
	if len(got) != 2 {
		t.Errorf("target %v", got)
	}
	birth := record(t, "worker-stream-insert")["dynamodb"].(map[string]any)["NewImage"].(map[string]any)
	value := func(attribute string) string { return birth[attribute].(map[string]any)["S"].(string) }
	wakeUp := record(t, "worker-queue")

	const id, tenant = "$.dynamodb.NewImage." + schema.MessageID + ".S", "$.dynamodb.NewImage." + schema.Tenant + ".S"
	template := got["InputTemplate"].(string)
	if body := strings.ReplaceAll(template, "<"+id+">", `"`+value(schema.MessageID)+`"`); body != wakeUp["body"] {
		t.Errorf("%s makes %s, want %s", template, body, wakeUp["body"])
	}
	group := got["SqsQueueParameters"].(map[string]any)
	if len(group) != 1 || group["MessageGroupId"] != tenant || value(schema.Tenant) != wakeUp["attributes"].(map[string]any)["MessageGroupId"] {
		t.Errorf("group %v", group)
	}
}

// record is the one of a sample event.
func record(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../../events/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var event struct{ Records []map[string]any }
	if err := json.Unmarshal(text, &event); err != nil || len(event.Records) != 1 {
		t.Fatal(len(event.Records), err)
	}
	return event.Records[0]
}

// The Pipe's role reads the stream and sends to both queues, for pipes of this account and Region and nobody else.
func TestPipeMayDoExactlyThis(t *testing.T) {
	role := synthesize(t, "rest-gateway").only(t, "AWS::IAM::Role", "DeliveryPipeRole").Properties
	var may []string
	for _, policy := range role["Policies"].([]any) {
		for _, statement := range policy.(map[string]any)["PolicyDocument"].(map[string]any)["Statement"].([]any) {
			may = append(may, sentences(statement.(map[string]any))...)
		}
	}
	slices.Sort(may)
	want := []string{
		"dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator on TablesOutbox.StreamArn",
		"dynamodb:ListStreams on TablesOutbox.Arn/stream/*",
		"sqs:SendMessage on QueuesDeadLetter.Arn",
		"sqs:SendMessage on QueuesWakeUps.Arn",
	}
	if !slices.Equal(may, want) {
		t.Errorf("it may\n%s\nwant\n%s", strings.Join(may, "\n"), strings.Join(want, "\n"))
	}
	trust := role["AssumeRolePolicyDocument"].(map[string]any)["Statement"].([]any)
	statement := trust[0].(map[string]any)
	conditions := statement["Condition"].(map[string]any)
	source := plain(conditions["ArnLike"].(map[string]any)["aws:SourceArn"])
	if len(trust) != 1 || fmt.Sprint(statement["Principal"]) != "map[Service:pipes.amazonaws.com]" || len(conditions) != 2 ||
		conditions["StringEquals"].(map[string]any)["aws:SourceAccount"] != "111122223333" ||
		source != "arn:aws:pipes:eu-central-1:111122223333:pipe/*" {
		t.Errorf("trusts %v, from %s", trust, source)
	}
}

func TestQueues(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		template.counts(t, "AWS::SQS::Queue", 2)
		wakeUps := template.only(t, "AWS::SQS::Queue", "QueuesWakeUps").Properties
		redrive := wakeUps["RedrivePolicy"].(map[string]any)
		if plain(redrive["deadLetterTargetArn"]) != "QueuesDeadLetter.Arn" || redrive["maxReceiveCount"] != 5.0 {
			t.Errorf("redrive %v", redrive)
		}
		// A wake-up must live to be received for the last time, after the longest delay.
		kept := wakeUps["MessageRetentionPeriod"].(float64)
		if least := 900 + redrive["maxReceiveCount"].(float64)*wakeUps["VisibilityTimeout"].(float64); kept != 3600 || kept < least {
			t.Errorf("wake-ups are kept for %v s, want an hour and at least %v s", kept, least)
		}
		if wakeUps["FifoQueue"] != nil {
			t.Error("a FIFO queue serves one message of a tenant after the other")
		}
		mapping := template.only(t, "AWS::Lambda::EventSourceMapping", "DeliveryWakeUps").Properties
		if plain(mapping["EventSourceArn"]) != "QueuesWakeUps.Arn" || plain(mapping["FunctionName"]) != "WorkerFunction" ||
			fmt.Sprint(mapping["FunctionResponseTypes"]) != "[ReportBatchItemFailures]" || mapping["BatchSize"] != 10.0 || mapping["MaximumBatchingWindowInSeconds"] != nil {
			t.Errorf("mapping %v", mapping)
		}
		scaling, bounded := mapping["ScalingConfig"].(map[string]any)
		if bounded != chosen(variant, "workerConcurrency") || bounded && scaling["MaximumConcurrency"] != 20.0 {
			t.Errorf("concurrency %v", scaling)
		}
		dead := template.only(t, "AWS::SQS::Queue", "QueuesDeadLetter")
		if dead.Properties["MessageRetentionPeriod"] != (14 * 24 * time.Hour).Seconds() {
			t.Errorf("dead letters are kept for %v s", dead.Properties["MessageRetentionPeriod"])
		}
		if policy := retained(strings.HasSuffix(variant, "gateway")); dead.DeletionPolicy != policy {
			t.Errorf("dead letters: %s, want %s", dead.DeletionPolicy, policy)
		}
		for _, queue := range []map[string]any{wakeUps, dead.Properties} {
			if queue["SqsManagedSseEnabled"] != true {
				t.Errorf("not encrypted: %v", queue)
			}
		}
	})
}

// Props that contradict each other are found at the synthesis.
func TestDeliveryRefusesItsProps(t *testing.T) {
	for name, c := range map[string]struct {
		path  idemconstruct.Path
		relay bool
		said  string
	}{
		"no relay":         {idemconstruct.PathRelay, false, "DeliveryProps.Relay"},
		"a relay too many": {idemconstruct.PathPipe, true, "DeliveryProps.Relay"},
		"no such path":     {"bus", false, "DeliveryProps.Path"},
	} {
		t.Run(name, func(t *testing.T) {
			made := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("shop"), nil)
			props := idemconstruct.DeliveryProps{
				Tables: idemconstruct.NewTables(made, "Tables", idemconstruct.TablesProps{}),
				Queues: idemconstruct.NewQueues(made, "Queues", idemconstruct.QueuesProps{WorkerTimeout: time.Minute}),
				Path:   c.path,
			}
			arn := func(name string) awslambda.IFunction {
				return awslambda.Function_FromFunctionArn(made, jsii.String(name), jsii.String("arn:aws:lambda:eu-central-1:111122223333:function:"+name))
			}
			props.Worker, props.Sweep, props.Reconcile = arn("worker"), arn("sweep"), arn("reconcile")
			if c.relay {
				props.Relay = arn("relay")
			}
			idemconstruct.NewDelivery(made, "Delivery", props)
			errors := assertions.Annotations_FromStack(made).FindError(jsii.String("*"), assertions.Match_StringLikeRegexp(jsii.String(c.said)))
			if len(*errors) != 1 {
				t.Errorf("%d errors name %s, want 1", len(*errors), c.said)
			}
		})
	}
}
