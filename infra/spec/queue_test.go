package spec_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem-aws/infra/spec"
)

// A wake-up that comes back whenever it may, for as long as SQS keeps it, is no dead letter; and SQS takes the number for any time-out.
func TestNoWorkerThatFailsMakesDeadLettersOfWakeUps(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, 7 * time.Second, spec.WorkerTimeout, 15 * time.Minute} {
		received := 0
		for at := time.Duration(0); at <= spec.WakeUpRetention; at += spec.Visibility(timeout, spec.BatchRecords) {
			received++
		}
		if most := spec.ReceivesMax(timeout); received > most || most < 5 || most > 1000 {
			t.Errorf("time-out %v: %d receives in the life of a wake-up, of %d", timeout, received, most)
		}
	}
}
