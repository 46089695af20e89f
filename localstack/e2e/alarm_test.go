//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

// alarms are CloudWatch of the stack, and a topic with a queue behind it for what alarms say.
type alarms struct {
	*testing.T
	client *cloudwatch.Client
	topic  string
	queue  string
}

func newAlarms(t *testing.T) *alarms {
	t.Helper()
	name := named(t.Name()) // tests beside each other have one each
	topics := sns.NewFromConfig(deployed.config)
	topic, err := topics.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: &name})
	must(t, err)
	queue, err := deployed.queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	must(t, err)
	attributes, err := deployed.queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: queue.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn},
	})
	must(t, err)
	_, err = topics.Subscribe(t.Context(), &sns.SubscribeInput{
		TopicArn: topic.TopicArn, Protocol: aws.String("sqs"), Endpoint: aws.String(attributes.Attributes["QueueArn"]),
		Attributes: map[string]string{"RawMessageDelivery": "true"},
	})
	must(t, err)
	return &alarms{t, cloudwatch.NewFromConfig(deployed.config), aws.ToString(topic.TopicArn), aws.ToString(queue.QueueUrl)}
}

// deployed is the one alarm of the stack on a metric of its own.
func (a *alarms) deployed(name string) types.MetricAlarm {
	a.Helper()
	var found []types.MetricAlarm
	for pages := cloudwatch.NewDescribeAlarmsPaginator(a.client, &cloudwatch.DescribeAlarmsInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(a.Context())
		must(a.T, err)
		found = append(found, page.MetricAlarms...)
	}
	found = slices.DeleteFunc(found, func(one types.MetricAlarm) bool {
		return aws.ToString(one.MetricName) != name || strings.HasPrefix(aws.ToString(one.AlarmName), hastened)
	})
	if len(found) != 1 {
		a.Fatalf("the stack has %d alarms on %s, want 1", len(found), name)
	}
	return found[0]
}

// hastened begins the names of alarms that this test makes, and hastenedPeriod is theirs, in seconds.
const (
	hastened       = "hastened"
	hastenedPeriod = 10
)

// hasten makes an alarm of a deployed one that is judged sooner and tells the topic: by the same metric, statistic, threshold, comparison
// and treatment of missing data.
func (a *alarms) hasten(of types.MetricAlarm) (name string) {
	a.Helper()
	name = hastened + strings.NewReplacer(".", "", "-", "").Replace(strings.ToLower(aws.ToString(of.MetricName)+named("")))
	_, err := a.client.PutMetricAlarm(a.Context(), &cloudwatch.PutMetricAlarmInput{
		AlarmName: &name, AlarmActions: []string{a.topic}, ActionsEnabled: aws.Bool(true),
		Namespace: of.Namespace, MetricName: of.MetricName, Dimensions: of.Dimensions, Statistic: of.Statistic,
		Threshold: of.Threshold, ComparisonOperator: of.ComparisonOperator, TreatMissingData: of.TreatMissingData,
		Period: aws.Int32(hastenedPeriod), EvaluationPeriods: aws.Int32(1), DatapointsToAlarm: aws.Int32(1),
	})
	must(a.T, err)
	a.Cleanup(func() {
		_, _ = a.client.DeleteAlarms(a.Context(), &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{name}}) // the emulator ends with the tests
	})
	return name
}

// put counts something as a function does.
func (a *alarms) put(of types.MetricAlarm, value float64) {
	a.Helper()
	_, err := a.client.PutMetricData(a.Context(), &cloudwatch.PutMetricDataInput{Namespace: of.Namespace, MetricData: []types.MetricDatum{{
		MetricName: of.MetricName, Dimensions: of.Dimensions, Value: &value, Timestamp: aws.Time(time.Now()),
	}}})
	must(a.T, err)
}

// quiet waits until an alarm does not ring, while something goes on.
func (a *alarms) quiet(name string, meanwhile func()) {
	a.Helper()
	eventually(a.T, time.Minute, func() string {
		meanwhile()
		out, err := a.client.DescribeAlarms(a.Context(), &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{name}})
		must(a.T, err)
		if len(out.MetricAlarms) != 1 || out.MetricAlarms[0].StateValue != types.StateValueOk {
			return fmt.Sprintf("%s is not quiet: %+v", name, out.MetricAlarms)
		}
		return ""
	})
}

// told waits until the topic has told of an alarm that was quiet and rings, while something goes on, and returns why it does.
func (a *alarms) told(name string, meanwhile func()) (why string) {
	a.Helper()
	eventually(a.T, 2*time.Minute, func() string {
		meanwhile()
		out, err := deployed.queues.ReceiveMessage(a.Context(), &sqs.ReceiveMessageInput{QueueUrl: &a.queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		must(a.T, err)
		for _, m := range out.Messages {
			var said struct{ AlarmName, OldStateValue, NewStateValue, NewStateReason string }
			must(a.T, json.Unmarshal([]byte(aws.ToString(m.Body)), &said))
			if said.AlarmName == name && said.OldStateValue == string(types.StateValueOk) && said.NewStateValue == string(types.StateValueAlarm) {
				why = said.NewStateReason
				return ""
			}
		}
		return "nobody was told that " + name + " rings"
	})
	return why
}

// What is counted makes an alarm of the stack ring, and its action tells the topic's subscribers. docs/operator.md has the runbook.
func TestAnAlarmTellsItsTopic(t *testing.T) {
	t.Parallel()
	a := newAlarms(t)
	of := a.deployed(metric.WebhookContradicts)
	name := a.hasten(of)
	a.quiet(name, func() {}) // nothing is counted, and that is not wrong
	var last time.Time
	a.told(name, func() { // again and again: an emulator that stalls may look too late for one; and never two in one period
		if time.Since(last) >= 2*hastenedPeriod*time.Second {
			last = time.Now()
			a.put(of, 1)
		}
	})
}

// A heartbeat rings once there is no data: what is scheduled does not run, whatever the cause.
func TestAHeartbeatThatStopsTellsItsTopic(t *testing.T) {
	t.Parallel()
	a := newAlarms(t)
	of := a.deployed(metric.SweepRun)
	name := a.hasten(of)
	a.quiet(name, func() { a.put(of, aws.ToFloat64(of.Threshold)) })
	if why := a.told(name, func() {}); !strings.Contains(why, "no datapoints were received") {
		a.Errorf("it rings because %q, want because nothing was counted", why)
	}
}
