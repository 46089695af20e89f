package lambdaapp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
)

// Relay returns the handler of the relay function, which reads the outbox table's stream in the worker's place: it puts a wake-up
// for each new message into the queue at the URL.
func Relay(client *sqs.Client, queueURL string, cfg awslambda.Config) awslambda.Handler {
	r := relay{client: client, queueURL: queueURL, logger: cmp.Or(cfg.Logger, slog.Default())}
	return awslambda.StreamBatch(r.pass, cfg)
}

type relay struct {
	client   *sqs.Client
	queueURL string
	logger   *slog.Logger
}

// pass asks for a wake-up for each message that was born pending. Nothing else of a record leaves the stream, and a record
// that is no message's is acknowledged, with an alarm.
func (r relay) pass(ctx context.Context, records []events.DynamoDBEventRecord) []error {
	failed := make([]error, len(records))
	var wakeUps []sqsqueue.WakeUp
	var of []int // the record of each
	for i, record := range records {
		switch w, born, err := wakeUp(record); {
		case err != nil: // it stops nobody behind it; a release that can read the row offers it
			r.logger.ErrorContext(ctx, "outbox.unknown_topic", "error", err, "alarm", true)
		case born:
			wakeUps, of = append(wakeUps, w), append(of, i)
		}
	}
	lost := 0
	for n, err := range sqsqueue.Send(ctx, r.client, r.queueURL, wakeUps) {
		if failed[of[n]] = err; err != nil {
			lost++
		}
	}
	r.logger.InfoContext(ctx, "relay.sent", "records", len(records), "wake_ups", len(wakeUps)-lost)
	return failed
}

var errImage = errors.New("lambdaapp: relay: the stream image is not a message")

// wakeUp is what a record asks for, if it shows a message born pending. The mapping's filter says so too; not everywhere.
func wakeUp(record events.DynamoDBEventRecord) (w sqsqueue.WakeUp, born bool, err error) {
	image := record.Change.NewImage
	if record.EventName != string(events.DynamoDBOperationTypeInsert) || text(image, schema.State) != schema.MessageStatePending {
		return w, false, nil
	}
	w = sqsqueue.WakeUp{Tenant: text(image, schema.Tenant), Message: idem.MessageID(text(image, schema.MessageID))}
	if _, _, err := w.Message.Operation(); err != nil || w.Tenant == "" {
		return w, true, errors.Join(errImage, err)
	}
	return w, true, nil
}

// text is a string attribute; empty where there is none.
func text(image map[string]events.DynamoDBAttributeValue, name string) string {
	if value := image[name]; value.DataType() == events.DataTypeString {
		return value.String()
	}
	return ""
}
