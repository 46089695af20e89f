package stack_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// births is the filter that lets only messages through that are born pending.
func births() map[string]any {
	return map[string]any{
		"eventName": []string{"INSERT"},
		"dynamodb":  map[string]any{"NewImage": map[string]any{schema.State: map[string]any{"S": []string{schema.MessageStatePending}}}},
	}
}

func TestStreamMapping(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		target := "WorkerLive:live"
		if relayed(variant) {
			target = "RelayLive:live"
		}
		template.counts(t, "AWS::Lambda::EventSourceMapping", 3)
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
			"ParallelizationFactor":      map[bool]int{false: 10, true: 5}[chosen(variant, "streamBatches")],
			"BisectBatchOnFunctionError": true,
			"MaximumRetryAttempts":       assertions.Match_Absent(), // without bound
			"MaximumRecordAgeInSeconds":  map[bool]int{false: 7200, true: 82800}[relayed(variant)],
			"FunctionResponseTypes":      []string{"ReportBatchItemFailures"},
			"FilterCriteria": map[string]any{"Filters": []any{map[string]any{
				"Pattern": assertions.Match_SerializedJson(births()),
			}}},
		})
	})
}

func TestQueues(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		template.counts(t, "AWS::SQS::Queue", 4)
		wakeUps := template.only(t, "AWS::SQS::Queue", "QueuesWakeUps").Properties
		redrive := wakeUps["RedrivePolicy"].(map[string]any)
		if plain(redrive["deadLetterTargetArn"]) != "QueuesDeadLetter.Arn" {
			t.Errorf("redrive %v", redrive)
		}
		// A wake-up must live to be received again, after the longest delay.
		kept, hidden := wakeUps["MessageRetentionPeriod"].(float64), wakeUps["VisibilityTimeout"].(float64)
		if least := 900 + hidden; kept != 3600 || kept < least {
			t.Errorf("wake-ups are kept for %v s, want an hour and at least %v s", kept, least)
		}
		// A worker that fails at everything receives each as often as its visibility ends in its life, and once before: that makes no
		// dead letters, however long the outage is.
		if most, least := redrive["maxReceiveCount"].(float64), math.Ceil(kept/hidden)+1; most < least || most > 11 {
			t.Errorf("received %v times a wake-up is a dead letter; in %v s it is received %v times by a worker that fails", most, kept, least)
		}
		if wakeUps["FifoQueue"] != nil {
			t.Error("a FIFO queue serves one message of a tenant after the other")
		}
		mapping := template.only(t, "AWS::Lambda::EventSourceMapping", "DeliveryWakeUps").Properties
		if plain(mapping["EventSourceArn"]) != "QueuesWakeUps.Arn" || plain(mapping["FunctionName"]) != "WorkerLive:live" ||
			fmt.Sprint(mapping["FunctionResponseTypes"]) != "[ReportBatchItemFailures]" || mapping["BatchSize"] != map[bool]float64{false: 10, true: 20}[chosen(variant, "workerBatch")] {
			t.Errorf("mapping %v", mapping)
		}
		// Lambda fills batches above ten for a second at least; what waits there is hidden already, and AWS's rule counts it.
		window, waits := mapping["MaximumBatchingWindowInSeconds"].(float64)
		if waits != chosen(variant, "workerBatch") || waits && window != 1 || hidden != 6*60+window {
			t.Errorf("window %v, visibility %v", mapping["MaximumBatchingWindowInSeconds"], hidden)
		}
		scaling, bounded := mapping["ScalingConfig"].(map[string]any)
		// Of 200: without 10 for an operator, and without 10 batches of 4 shards, which the worker reads itself.
		most := map[string]any{"http-gateway": 150.0, "rest-gateway": 20.0}[variant]
		if bounded != (most != nil) || bounded && scaling["MaximumConcurrency"] != most {
			t.Errorf("concurrency %v, want %v", scaling, most)
		}
		dead := template.only(t, "AWS::SQS::Queue", "QueuesDeadLetter")
		if dead.Properties["MessageRetentionPeriod"] != (14 * 24 * time.Hour).Seconds() {
			t.Errorf("dead letters are kept for %v s", dead.Properties["MessageRetentionPeriod"])
		}
		if policy := retained(strings.HasSuffix(variant, "gateway")); dead.DeletionPolicy != policy {
			t.Errorf("dead letters: %s, want %s", dead.DeletionPolicy, policy)
		}
		for _, queue := range []map[string]any{wakeUps, dead.Properties} {
			if !chosen(variant, "customerKeys") && queue["SqsManagedSseEnabled"] != true { // TestCustomerKeys
				t.Errorf("not encrypted: %v", queue)
			}
		}
	})
}
