package lambdatest

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// What a report names comes again while the test runs, and what it does not name never: a wake-up that failed once, on a machine that stood,
// would be lost for as long as an invocation may take otherwise.
func TestWhatAReportNamesComesAgain(t *testing.T) {
	s := New(t)
	m := s.Mapping(t)
	m.Send(t, sqsqueue.WakeUp{Tenant: Tenant, Message: idem.MessageID("fails once")}, sqsqueue.WakeUp{Tenant: Tenant, Message: idem.MessageID("is delivered")})
	ctx, stop := context.WithTimeout(t.Context(), Patience)
	defer stop()
	var mu sync.Mutex
	invoked := map[string]int{}
	m.Run(ctx, t, func(_ context.Context, event []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		var in events.SQSEvent
		if err := json.Unmarshal(event, &in); err != nil {
			return nil, err
		}
		var report events.SQSEventResponse
		for _, record := range in.Records {
			var woken sqsqueue.WakeUp
			if err := json.Unmarshal([]byte(record.Body), &woken); err != nil {
				return nil, err
			}
			if invoked[string(woken.Message)]++; woken.Message == "fails once" && invoked["fails once"] == 1 {
				report.BatchItemFailures = append(report.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
			}
		}
		if invoked["fails once"] == 2 {
			time.AfterFunc(time.Second, stop)
		}
		return json.Marshal(report)
	}, 2, time.Minute)
	if invoked["fails once"] != 2 || invoked["is delivered"] != 1 {
		t.Errorf("invoked with %v", invoked)
	}
}
