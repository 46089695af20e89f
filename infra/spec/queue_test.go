package spec_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem-aws/infra/spec"
)

// A wake-up that comes back whenever it may, for as long as SQS keeps it, is no dead letter; and SQS takes the number for any time-out.
func TestNoWorkerThatFailsMakesDeadLettersOfWakeUps(t *testing.T) {
	for _, hidden := range []time.Duration{4 * time.Second, 42 * time.Second, spec.Visibility(spec.WorkerTimeout, spec.BatchRecords), 12 * time.Hour} {
		received := 0
		for at := time.Duration(0); at <= spec.WakeUpRetention; at += hidden {
			received++
		}
		if most := spec.ReceivesMax(hidden); received > most || most < 5 || most > 1000 {
			t.Errorf("hidden for %v: %d receives in the life of a wake-up, of %d", hidden, received, most)
		}
	}
}
