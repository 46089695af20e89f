package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// started is the handler as the function's environment makes it.
func started(t *testing.T) awslambda.Handler {
	t.Helper()
	cfg, err := config.Read[config.Relay]()
	if err != nil {
		t.Fatal(err)
	}
	h, err := handler(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// failed is the record from which the invocation wants the stream to go on; empty where all is well.
func failed(t *testing.T, h awslambda.Handler, event []byte) string {
	t.Helper()
	raw, err := h.Invoke(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	var report events.DynamoDBEventResponse
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatal(err)
	}
	switch len(report.BatchItemFailures) {
	case 0:
		return ""
	case 1:
		return report.BatchItemFailures[0].ItemIdentifier
	}
	t.Fatalf("%s: a stream goes on from one place", raw)
	return ""
}

const operation idem.OperationID = "op_E3KiTx7rQSR32nKyhZK_akUOzlOQAEFxi76MEOpMezgAAQIDBAUGBwgJCgsMDQ4P"

// batch is the sample's record n times, of messages 1, 2, … under sequence numbers s1, s2, ….
func batch(t *testing.T, n int) []byte {
	t.Helper()
	var event map[string][]json.RawMessage
	if err := json.Unmarshal(lambdatest.Sample(t, "relay-stream-insert"), &event); err != nil {
		t.Fatal(err)
	}
	record := string(event["Records"][0])
	event["Records"] = nil
	for i := range n {
		changed := strings.NewReplacer(string(operation.Message(1)), string(operation.Message(i+1)), "100000000000000000001", fmt.Sprintf("s%d", i+1)).Replace(record)
		event["Records"] = append(event["Records"], json.RawMessage(changed))
	}
	raw, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// changed is the event with the text replaced in the record of one sequence number.
func changed(t *testing.T, event []byte, sequence, from, to string) []byte {
	t.Helper()
	var decoded map[string][]json.RawMessage
	if err := json.Unmarshal(event, &decoded); err != nil {
		t.Fatal(err)
	}
	for i, record := range decoded["Records"] {
		if strings.Contains(string(record), `"`+sequence+`"`) {
			next := strings.Replace(string(record), from, to, 1)
			if next == string(record) {
				t.Fatalf("%q is not in %s", from, record)
			}
			decoded["Records"][i] = json.RawMessage(next)
		}
	}
	raw, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func wants(t *testing.T, s *lambdatest.Stage, messages ...int) {
	t.Helper()
	var want, got []string
	for _, n := range messages {
		want = append(want, fmt.Sprintf(`{"message":"%s"}`, operation.Message(n)))
	}
	for _, sent := range s.Queues.WakeUps() {
		got = append(got, sent.Body)
		if sent.Group != lambdatest.Tenant || sent.DelaySeconds != 0 {
			t.Errorf("%+v, want it in its tenant's group, at once", sent)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("queue %q, want %q", got, want)
	}
}

// A new message becomes a wake-up in its tenant's group, in the words that the worker reads: those of the sample of its
// queue. Of its payload nothing leaves the stream.
func TestNewMessageIsWoken(t *testing.T) {
	s := lambdatest.New(t)
	h := started(t)
	if f := failed(t, h, lambdatest.Sample(t, "relay-stream-insert")); f != "" {
		t.Errorf("record %s failed", f)
	}
	wants(t, s, 1)
	var queue events.SQSEvent
	if err := json.Unmarshal(lambdatest.Sample(t, "worker-queue"), &queue); err != nil {
		t.Fatal(err)
	}
	if sent := s.Queues.WakeUps(); sent[0].Body != queue.Records[0].Body || sent[0].Group != queue.Records[0].Attributes["MessageGroupId"] {
		t.Errorf("sent %+v, the worker's sample is %+v", sent[0], queue.Records[0])
	}
	if sent := s.Queues.Dead(); len(sent) > 0 {
		t.Errorf("dead letters %+v", sent)
	}
}

// A full batch is one request, and comes again whole as wake-ups, which is harmless.
func TestBatchIsWoken(t *testing.T) {
	s := lambdatest.New(t)
	h := started(t)
	for range 2 {
		if f := failed(t, h, batch(t, 10)); f != "" {
			t.Errorf("record %s failed", f)
		}
	}
	wants(t, s, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
}

// The filter of the mapping is not everywhere: what is no birth of a pending message needs no wake-up.
func TestRecordsThatNeedNothing(t *testing.T) {
	s := lambdatest.New(t)
	h := started(t)
	for _, event := range [][]byte{
		lambdatest.Sample(t, "worker-stream-modify"), lambdatest.Sample(t, "worker-stream-ttl"),
		changed(t, batch(t, 1), "s1", `"pending"`, `"claimed"`), // inline first: its request is at work
	} {
		if f := failed(t, h, event); f != "" {
			t.Errorf("record %s failed", f)
		}
	}
	wants(t, s)
}

// One record that can't be passed on keeps no other from its wake-up. What is no message's is acknowledged, because it would
// hold up whatever is behind it; everything else comes again.
func TestRecordsThatCanNotBePassedOn(t *testing.T) {
	for name, c := range map[string]struct {
		event func(*testing.T) []byte
		full  string
		again string
		woken []int
	}{
		"no message id": {func(t *testing.T) []byte {
			return changed(t, batch(t, 3), "s2", `"NewImage":{"id":{"S":"op_`, `"NewImage":{"id":{"S":"order_`)
		}, "", "", []int{1, 3}},
		"an id of another type": {func(t *testing.T) []byte {
			return changed(t, batch(t, 3), "s2", `"NewImage":{"id":{"S":"`+string(operation.Message(2))+`"`, `"NewImage":{"id":{"N":"7"`)
		}, "", "", []int{1, 3}},
		"no tenant": {func(t *testing.T) []byte {
			return changed(t, batch(t, 3), "s2", `"tn":{"S":"tenant-a"}`, `"tn":{"S":""}`)
		}, "", "", []int{1, 3}},
		"malformed":   {func(t *testing.T) []byte { return changed(t, batch(t, 3), "s2", `"na":{"N":`, `"na":{"NS":`) }, "", "s2", []int{1, 3}},
		"SQS refuses": {func(t *testing.T) []byte { return batch(t, 3) }, string(operation.Message(2)), "s2", []int{1, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			s := lambdatest.New(t)
			s.Queues.Refuse(c.full)
			if f := failed(t, started(t), c.event(t)); f != c.again {
				t.Errorf("record %q failed, want %q", f, c.again)
			}
			wants(t, s, c.woken...)
		})
	}
}

// While the queue can't be reached, the stream waits at the first record.
func TestQueueThatIsDown(t *testing.T) {
	s := lambdatest.New(t)
	t.Setenv("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:1")
	if f := failed(t, started(t), batch(t, 2)); f != "s1" {
		t.Errorf("record %q failed, want s1", f)
	}
	wants(t, s)
}

// The function's log says how much it passed on, and nothing of the messages.
func TestLogNamesNobody(t *testing.T) {
	lambdatest.New(t)
	t.Setenv("LOG_LEVEL", "INFO")
	said := lambdatest.Log(t)
	if f := failed(t, started(t), batch(t, 2)); f != "" {
		t.Fatalf("record %s failed", f)
	}
	if lines := said(); len(lines) != 1 || lines[0].Message != "relay.sent" || lines[0].Tenant != "" {
		t.Errorf("%+v", lines)
	}
}

func TestHandlerRefusesItsConfiguration(t *testing.T) {
	lambdatest.New(t)
	t.Setenv("WAKE_UP_QUEUE_URL", "")
	if _, err := config.Read[config.Relay](); err == nil || !strings.Contains(err.Error(), "WAKE_UP_QUEUE_URL") {
		t.Errorf("%v", err)
	}
	t.Setenv("WAKE_UP_QUEUE_URL", "http://127.0.0.1:1/0/wake-ups")
	for _, name := range []string{"sweep-schedule", "worker-queue"} {
		if _, err := started(t).Invoke(t.Context(), lambdatest.Sample(t, name)); err == nil {
			t.Errorf("%s is taken by the relay", name)
		}
	}
}
