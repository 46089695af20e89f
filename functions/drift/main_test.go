package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// compared invokes the function with an event, as its environment makes it.
func compared(ctx context.Context, t *testing.T, payload string) (drift.Report, error) {
	t.Helper()
	answer, err := invoked(ctx, t, payload)
	report, _ := answer.(drift.Report)
	return report, err
}

// invoked is what the function answers.
func invoked(ctx context.Context, t *testing.T, payload string) (any, error) {
	t.Helper()
	cfg, err := config.Read[config.DriftJob]()
	if err != nil {
		t.Fatal(err)
	}
	run, err := handler(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return run(ctx, json.RawMessage(payload))
}

// A release that has raised the number of shards may be gone back from: the function starts all the same, and reads them too.
func TestTheFunctionStartsWithFewerLedgerShardsThanWritten(t *testing.T) {
	s := lambdatest.New(t)
	if err := (payments.LedgerShards{Client: s.Client, Table: s.Payments, Number: 8}).Record(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, number := range []string{"4", "8", "9"} {
		t.Setenv("LEDGER_SHARDS", number)
		cfg, err := config.Read[config.DriftJob]()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := handler(t.Context(), cfg); err != nil {
			t.Errorf("%s shards: %v", number, err)
		}
	}
}

// The schedule has the function plan: the hours that are due go into the queue, piece by piece, and each message has one of them
// compared. When all are done, the next plan counts the hour.
func TestHoursAreComparedThroughTheQueue(t *testing.T) {
	s := lambdatest.New(t)
	hour := time.Now().UTC().Truncate(time.Hour).Add(-2 * time.Hour)
	s.Put(t, s.Drift, map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: "begin"}, "hr": &types.AttributeValueMemberS{Value: hour.Format(time.RFC3339)},
		"rv": &types.AttributeValueMemberN{Value: "1"},
	})
	t.Setenv("DRIFT_PARTS", "3")
	a := s.Accept(t, time.Since(hour.Add(30*time.Minute)))
	log := lambdatest.Log(t)
	if _, err := invoked(t.Context(), t, `{"plan":true}`); err != nil {
		t.Fatal(err)
	}
	sent := s.Queues.Pieces()
	if len(sent) < 3 {
		t.Fatalf("%+v", sent)
	}
	for i, message := range sent {
		event, err := json.Marshal(events.SQSEvent{Records: []events.SQSMessage{{MessageId: fmt.Sprint(i), Body: message.Body, EventSource: "aws:sqs"}}})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := invoked(t.Context(), t, string(event))
		if text, _ := answer.(json.RawMessage); err != nil || strings.Contains(string(text), "itemIdentifier") {
			t.Errorf("%s: %s, %v", message.Body, text, err)
		}
	}
	a.Charge(t)
	if _, err := invoked(t.Context(), t, `{"plan":true}`); err != nil {
		t.Fatal(err)
	}
	hours := 0.0
	for _, line := range log() {
		hours += line.Metrics["drift.run"]
	}
	if hours*3 != float64(len(sent)) {
		t.Errorf("%g passes are done, of %d pieces", hours, len(sent))
	}
}

// A message that is no piece comes again, and to the dead-letter queue in the end; it stops no other.
func TestAMessageThatIsNoPieceFailsAlone(t *testing.T) {
	lambdatest.New(t)
	answer, err := invoked(t.Context(), t, `{"Records":[{"messageId":"m1","eventSource":"aws:sqs","body":"{}"}]}`)
	if text, _ := answer.(json.RawMessage); err != nil || !strings.Contains(string(text), "m1") {
		t.Errorf("%s, %v", text, err)
	}
}

// A run keeps time for its report and for the call that it is in.
func TestAFunctionTimeoutThatLeavesNoTimeIsRefusedAtStart(t *testing.T) {
	lambdatest.New(t)
	t.Setenv("FUNCTION_TIMEOUT", "7s")
	cfg, err := config.Read[config.DriftJob]()
	if err != nil {
		t.Fatal(err)
	}
	var broken *idem.ConfigError
	if _, err := handler(t.Context(), cfg); !errors.As(err, &broken) || broken.Field != "FUNCTION_TIMEOUT" || broken.Value != 7*time.Second {
		t.Errorf("%v, want FUNCTION_TIMEOUT refused", err)
	}
}

// scheduled is what a rule of EventBridge sends.
const scheduled = `{"version":"0","id":"53dc4d37","detail-type":"Scheduled Event","source":"aws.events","account":"111122223333","time":"2026-11-21T10:00:00Z","region":"eu-central-1","resources":[],"detail":{}}`

// Drift is in the report and a metric, whatever LOG_LEVEL says; it is no error of the function.
func TestAScheduledRunReports(t *testing.T) {
	s := lambdatest.New(t)
	t.Setenv("DRIFT_GRACE", "1ms")
	log := lambdatest.Log(t)
	a := s.Accept(t, 30*time.Minute)
	report, err := compared(t.Context(), t, scheduled)
	if err != nil || !report.Clean() || report.Compared.Rows != 1 || report.Open != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	if lines := log(); len(lines) != 1 || lines[0].Metrics["drift.run"] != 1 {
		t.Errorf("%+v", lines)
	}
	a.Charge(t)
	_, err = s.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &s.Payments, UpdateExpression: aws.String("SET amt = :a"),
		Key:                       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "payment#" + lambdatest.Tenant + "/" + a.Payment.ID}},
		ExpressionAttributeValues: map[string]types.AttributeValue{":a": &types.AttributeValueMemberN{Value: "1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err = compared(t.Context(), t, scheduled)
	if err != nil || report.Clean() || report.Drift[drift.AmountDiffers] != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	if lines := log(); len(lines) != 2 || lines[0].Metrics["drift.found"] != 1 || lines[0].Tenant != lambdatest.Tenant {
		t.Errorf("%+v", lines)
	}
}

// The event names a window; without one it is the last DRIFT_WINDOW, and with a length it is that long.
func TestTheEventNamesTheWindow(t *testing.T) {
	s := lambdatest.New(t)
	s.Accept(t, 5*time.Hour)
	at := time.Now().UTC().Add(-5 * time.Hour)
	for payload, rows := range map[string]int{
		`{}`:                                 0,
		`{"window":"50h"}`:                   1,
		`{"window":"4h"}`:                    0,
		`{"tenant":"nobody","window":"50h"}`: 0,
		`{"from":"` + at.Add(-time.Minute).Format(time.RFC3339) + `","to":"` + at.Add(time.Minute).Format(time.RFC3339) + `"}`: 1,
		`{"window":"1h","to":"` + at.Add(time.Minute).Format(time.RFC3339) + `"}`:                                              1,
		`{"to":"` + at.Add(-time.Minute).Format(time.RFC3339) + `"}`:                                                           0,
	} {
		if report, err := compared(t.Context(), t, payload); err != nil || report.Compared.Rows != rows {
			t.Errorf("%s: %+v, %v, want %d rows", payload, report, err, rows)
		}
	}
	for _, payload := range []string{`{"window":"long"}`, `{"window":"-1h"}`, `{"window":"1h","from":"2026-11-21T10:00:00Z"}`} {
		if report, err := compared(t.Context(), t, payload); err == nil {
			t.Errorf("%s: %+v", payload, report)
		}
	}
	var refused *idem.ConfigError
	if _, err := compared(t.Context(), t, `{"from":"2026-11-21T10:00:00Z","to":"2026-11-21T09:00:00Z"}`); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
}

// A run that could not compare is an error, and counted; one that is out of time says so before Lambda ends it.
func TestARunThatCantCompareFails(t *testing.T) {
	lambdatest.New(t)
	log := lambdatest.Log(t)
	ctx, cancel := context.WithTimeout(t.Context(), reporting-time.Millisecond)
	defer cancel()
	report, err := compared(ctx, t, `{}`)
	if !errors.Is(err, context.DeadlineExceeded) || !report.Unfinished || ctx.Err() != nil {
		t.Errorf("%+v, %v", report, err)
	}
	lambdatest.Unreachable(t)
	if report, err := compared(t.Context(), t, `{}`); err == nil || !report.Unfinished {
		t.Errorf("%+v, %v", report, err)
	}
	if lines := log(); len(lines) != 2 || lines[0].Metrics["drift.failed"] != 1 || lines[1].Metrics["drift.failed"] != 1 {
		t.Errorf("%+v", lines)
	}
}

// What is encrypted is compared by what is not: neither keys nor payloads are needed.
func TestEncryptedMessagesAreCompared(t *testing.T) {
	s := lambdatest.New(t)
	s.Seal(t)
	s.Accept(t, time.Hour).Charge(t)
	t.Setenv("KEYS_TABLE", "")
	t.Setenv("KMS_KEY_ID", "")
	report, err := compared(t.Context(), t, `{}`)
	if err != nil || !report.Clean() || report.Open != 1 || report.Compared.Messages != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

// docs/operator.md "DriftSilent": a run counts itself, and one that could look at nothing does not.
func TestDriftCountsItsRuns(t *testing.T) {
	lambdatest.New(t)
	log := lambdatest.Log(t)
	if _, err := compared(t.Context(), t, scheduled); err != nil {
		t.Error(err)
	}
	if lines := log(); len(lines) != 1 || lines[0].Metrics["drift.run"] != 1 {
		t.Errorf("%+v, want one run counted", lines)
	}
	lambdatest.Unreachable(t)
	if _, err := compared(t.Context(), t, scheduled); err == nil {
		t.Error("no error without a store")
	}
	for _, line := range log() {
		if line.Metrics["drift.run"] != 0 {
			t.Errorf("%+v: counted all the same", line)
		}
	}
}
