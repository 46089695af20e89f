package awslambda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var errStore = errors.New("the store can't be asked")

// queueEvent makes a batch of messages m0, m1, … from the sample.
func queueEvent(t testing.TB, n int, arn string) []byte {
	t.Helper()
	var event events.SQSEvent
	if err := json.Unmarshal(sample(t, "worker-queue"), &event); err != nil {
		t.Fatal(err)
	}
	message := event.Records[0]
	if arn != "" {
		message.EventSourceARN = arn
	}
	event.Records = nil
	for i := range n {
		message.MessageId = fmt.Sprintf("m%d", i)
		event.Records = append(event.Records, message)
	}
	raw, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// streamEvent makes a batch of records with sequence numbers s0, s1, … from the sample.
func streamEvent(t testing.TB, n int) []byte {
	t.Helper()
	var event map[string][]map[string]any
	if err := json.Unmarshal(sample(t, "worker-stream-insert"), &event); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(event["Records"][0])
	if err != nil {
		t.Fatal(err)
	}
	event["Records"] = nil
	for i := range n {
		var record map[string]any
		if err := json.Unmarshal(raw, &record); err != nil {
			t.Fatal(err)
		}
		record["dynamodb"].(map[string]any)["SequenceNumber"] = fmt.Sprintf("s%d", i)
		event["Records"] = append(event["Records"], record)
	}
	if raw, err = json.Marshal(event); err != nil {
		t.Fatal(err)
	}
	return raw
}

func failures(t *testing.T, ctx context.Context, h Handler, event []byte) []string {
	t.Helper()
	payload, err := h.Invoke(ctx, event)
	if err != nil {
		t.Fatal(err)
	}
	var report events.SQSEventResponse
	if err := json.Unmarshal(payload, &report); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, failure := range report.BatchItemFailures {
		ids = append(ids, failure.ItemIdentifier)
	}
	return ids
}

// What failed is named, and nothing else: a failure that is not named is lost without a word.
func TestQueueReportsWhatFailed(t *testing.T) {
	var seen []string
	handle := func(_ context.Context, m events.SQSMessage) error {
		seen = append(seen, m.MessageId)
		switch m.MessageId {
		case "m1":
			return errStore
		case "m3":
			panic("boom")
		}
		return nil
	}
	for _, test := range []struct {
		name, arn    string
		seen, failed []string
	}{
		{"standard", "", []string{"m0", "m1", "m2", "m3", "m4"}, []string{"m1", "m3"}},
		{"FIFO", "arn:aws:sqs:us-east-1:1:q.fifo", []string{"m0", "m1"}, []string{"m1", "m2", "m3", "m4"}},
	} {
		seen = nil
		failed := failures(t, context.Background(), SQS(handle, Config{}), queueEvent(t, 5, test.arn))
		if !slices.Equal(failed, test.failed) || !slices.Equal(seen, test.seen) {
			t.Errorf("%s: failed %v, seen %v", test.name, failed, seen)
		}
	}
	if failed := failures(t, context.Background(), SQS(func(context.Context, events.SQSMessage) error { return nil }, Config{}), sample(t, "worker-queue")); failed != nil {
		t.Errorf("all went well: %v", failed)
	}
}

func TestStreamStopsAtTheFirstFailure(t *testing.T) {
	for name, fail := range map[string]func() error{"error": func() error { return errStore }, "panic": func() error { panic("boom") }} {
		var seen []string
		handle := func(_ context.Context, r events.DynamoDBEventRecord) error {
			seen = append(seen, r.Change.SequenceNumber)
			if r.Change.SequenceNumber == "s2" {
				return fail()
			}
			return nil
		}
		failed := failures(t, context.Background(), Stream(handle, Config{}), streamEvent(t, 5))
		if !slices.Equal(failed, []string{"s2"}) || !slices.Equal(seen, []string{"s0", "s1", "s2"}) {
			t.Errorf("%s: failed %v, seen %v", name, failed, seen)
		}
	}
}

// Batches: each call is capped, and what was not reached is reported (docs/design.md "One message, step by step").
func TestRecordsThatAreNotReachedAreFailures(t *testing.T) {
	for _, test := range []struct {
		name      string
		allowed   time.Duration
		each      time.Duration
		handled   int
		stream    bool
		wantFirst string
	}{
		{"queue: time for two", 25 * time.Second, 7 * time.Second, 3, false, "m3"},
		{"stream: time for two", 25 * time.Second, 7 * time.Second, 3, true, "s3"},
		{"the first is always begun", 3 * time.Second, time.Second, 1, false, "m1"},
		{"time for all", time.Minute, time.Second, 5, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), test.allowed)
				defer cancel()
				handled := 0
				work := func(ctx context.Context) error {
					handled++
					time.Sleep(test.each)
					return ctx.Err()
				}
				handler, event := SQS(func(ctx context.Context, _ events.SQSMessage) error { return work(ctx) }, Config{}), queueEvent(t, 5, "")
				if test.stream {
					handler, event = Stream(func(ctx context.Context, _ events.DynamoDBEventRecord) error { return work(ctx) }, Config{}), streamEvent(t, 5)
				}
				failed := failures(t, ctx, handler, event)
				if handled != test.handled || test.wantFirst == "" && failed != nil || test.wantFirst != "" && (len(failed) == 0 || failed[0] != test.wantFirst) {
					t.Errorf("handled %d, failed %v", handled, failed)
				}
			})
		})
	}
}

// A handler that ends its goroutine, as testing.FailNow does, fails its message, and holds nothing else up.
func TestAHandlerThatEndsItsGoroutineFailsItsMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		queue := SQS(func(_ context.Context, m events.SQSMessage) error {
			if m.MessageId == "m1" {
				runtime.Goexit()
			}
			return nil
		}, Config{Concurrency: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for arn, want := range map[string][]string{"": {"m1"}, "arn:aws:sqs:eu-central-1:000000000000:queue.fifo": {"m1", "m2", "m3"}} {
			if failed := failures(t, t.Context(), queue, queueEvent(t, 4, arn)); !slices.Equal(failed, want) {
				t.Errorf("failed %v, want %v", failed, want)
			}
			if told := strings.Count(log.String(), "record=m1"); told != 1 || !strings.Contains(log.String(), "ended its goroutine") {
				t.Errorf("the log is %s", log.String())
			}
			log.Reset()
		}
	})
}

// One slow provider never holds up what is behind it (docs/design.md "One message, step by step").
func TestRecordsAtOnceDoNotWaitForASlowOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[string]time.Duration{}
		begun := time.Now()
		handle := func(_ context.Context, r events.DynamoDBEventRecord) error {
			id := r.Change.SequenceNumber
			if id == "s0" || id == "s1" {
				time.Sleep(5 * time.Second)
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[id] = time.Since(begun); id == "s3" {
				return errStore
			}
			return nil
		}
		failed := failures(t, context.Background(), Stream(handle, Config{Concurrency: 3}), streamEvent(t, 5))
		if !slices.Equal(failed, []string{"s3"}) {
			t.Errorf("failed %v, want the first that was not handled: s3", failed)
		}
		if _, ok := seen["s4"]; ok || seen["s2"] != 0 || seen["s1"] != 5*time.Second || len(seen) != 4 {
			t.Errorf("handled %v: want s2 at once, both slow ones side by side, and nothing begun after the failure", seen)
		}
	})
}

func TestFIFOQueueKeepsItsOrderWhateverTheConcurrency(t *testing.T) {
	var seen []string
	handle := func(_ context.Context, m events.SQSMessage) error {
		if seen = append(seen, m.MessageId); m.MessageId == "m1" {
			return errStore
		}
		return nil
	}
	failed := failures(t, context.Background(), SQS(handle, Config{Concurrency: 10}), queueEvent(t, 4, "arn:aws:sqs:us-east-1:1:q.fifo"))
	if !slices.Equal(failed, []string{"m1", "m2", "m3"}) || !slices.Equal(seen, []string{"m0", "m1"}) {
		t.Errorf("failed %v, seen %v", failed, seen)
	}
}

func TestRecordThatHangsLeavesTimeForTheReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		hang := SQS(func(ctx context.Context, m events.SQSMessage) error {
			if m.MessageId == "m0" {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}, Config{})
		if failed := failures(t, ctx, hang, queueEvent(t, 3, "")); !slices.Equal(failed, []string{"m1", "m2"}) || ctx.Err() != nil {
			t.Errorf("failed %v, the function's own deadline: %v", failed, ctx.Err())
		}
	})
}

func TestSourcesAreToldApart(t *testing.T) {
	var got string
	handler := Sources(map[string]Handler{
		SourceSQS:      SQS(func(context.Context, events.SQSMessage) error { got = "queue"; return nil }, Config{}),
		SourceDynamoDB: Stream(func(context.Context, events.DynamoDBEventRecord) error { got = "stream"; return nil }, Config{}),
	})
	for name, want := range map[string]string{"worker-queue": "queue", "worker-stream-insert": "stream", "worker-stream-ttl": "stream"} {
		if failed := failures(t, context.Background(), handler, sample(t, name)); failed != nil || got != want {
			t.Errorf("%s: went to %s, failed %v", name, got, failed)
		}
	}
	for _, event := range []string{`{}`, `{"Records":[]}`, `{"Records":[{"eventSource":"aws:s3"}]}`, `{"Records":[null]}`, `null`, `x`} {
		if _, err := handler.Invoke(context.Background(), []byte(event)); !errors.Is(err, ErrEvent) {
			t.Errorf("%s: %v", event, err)
		}
	}
}

func TestInsertedImages(t *testing.T) {
	for name, want := range map[string]int{"worker-stream-insert": 1, "worker-stream-modify": 0, "worker-stream-ttl": 0} {
		var items []map[string]types.AttributeValue
		handle := Inserted(func(_ context.Context, item map[string]types.AttributeValue) error {
			items = append(items, item)
			return nil
		})
		if failed := failures(t, context.Background(), Stream(handle, Config{}), sample(t, name)); failed != nil || len(items) != want {
			t.Errorf("%s: %d items, failed %v", name, len(items), failed)
		}
		if want == 0 {
			continue
		}
		if state, ok := items[0]["st"].(*types.AttributeValueMemberS); !ok || state.Value != "pending" {
			t.Errorf("%s: state %v", name, items[0]["st"])
		}
		if payload, ok := items[0]["pl"].(*types.AttributeValueMemberB); !ok || !json.Valid(payload.Value) {
			t.Errorf("%s: payload %v", name, items[0]["pl"])
		}
	}
}

// decodeImage decodes a record with this image.
func decodeImage(image string) (map[string]types.AttributeValue, error) {
	var record events.DynamoDBEventRecord
	if err := json.Unmarshal([]byte(`{"eventName":"INSERT","dynamodb":{"NewImage":`+image+`}}`), &record); err != nil {
		return nil, err
	}
	return Image(record)
}

func TestImageOfEveryType(t *testing.T) {
	got, err := decodeImage(`{"s":{"S":"x"},"n":{"N":"1.5"},"b":{"B":"AAE="},"t":{"BOOL":true},"u":{"NULL":true},"ss":{"SS":["a"]},
		"ns":{"NS":["1"]},"bs":{"BS":["AA=="]},"l":{"L":[{"S":"y"},{"M":{}}]},"m":{"M":{"k":{"N":"2"}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]types.AttributeValue{
		"s": &types.AttributeValueMemberS{Value: "x"}, "n": &types.AttributeValueMemberN{Value: "1.5"},
		"b": &types.AttributeValueMemberB{Value: []byte{0, 1}}, "t": &types.AttributeValueMemberBOOL{Value: true},
		"u": &types.AttributeValueMemberNULL{Value: true}, "ss": &types.AttributeValueMemberSS{Value: []string{"a"}},
		"ns": &types.AttributeValueMemberNS{Value: []string{"1"}}, "bs": &types.AttributeValueMemberBS{Value: [][]byte{{0}}},
		"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{
			&types.AttributeValueMemberS{Value: "y"}, &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}},
		}},
		"m": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"k": &types.AttributeValueMemberN{Value: "2"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestImageRefused(t *testing.T) {
	deep := `{"S":"x"}`
	for range imageDepthMax + 2 {
		deep = `{"L":[` + deep + `]}`
	}
	for name, image := range map[string]string{"none": `{}`, "too deep": `{"a":` + deep + `}`} {
		if _, err := decodeImage(image); !errors.Is(err, ErrImage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The zero value of the AWS library's type panics in its own accessors.
	record := events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{NewImage: map[string]events.DynamoDBAttributeValue{"a": {}}}}
	if _, err := Image(record); !errors.Is(err, ErrImage) {
		t.Errorf("zero value: %v", err)
	}
}

func TestMalformedRecordFailsItself(t *testing.T) {
	handle := Stream(func(context.Context, events.DynamoDBEventRecord) error { return nil }, Config{})
	for name, event := range map[string]string{
		"set of numbers": `{"Records":[{"dynamodb":{"SequenceNumber":"s0","NewImage":{"a":{"BS":[5]}}}}]}`,
		"type unknown":   `{"Records":[{"dynamodb":{"SequenceNumber":"s0","NewImage":{"a":{"X":5}}}}]}`,
	} {
		if failed := failures(t, context.Background(), handle, []byte(event)); !slices.Equal(failed, []string{"s0"}) {
			t.Errorf("%s: failed %v", name, failed)
		}
	}
	for _, event := range []string{`{"Records":[{}]}`, `{"Records":[5]}`, `{"Records":[{"dynamodb":{"SequenceNumber":""}}]}`} {
		if _, err := handle.Invoke(context.Background(), []byte(event)); !errors.Is(err, ErrEvent) {
			t.Errorf("%s: %v", event, err)
		}
	}
}
