package quota_test

import (
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/quota"
)

// On AWS Lambda every wait is another process's, so only counters that the instances share can bound them: 81 repetitions a second of
// one payment, each waiting 5 s, held 405 executions. One that asks for no wait counts for nothing.
func TestWaitsAreBoundedAcrossInstances(t *testing.T) {
	f := newFleet(t, quota.Limits{WaitsPerSecond: 20}, make([]time.Duration, 405)...)
	waits := 0
	for i := range 405 { // in five seconds, each in an instance of its own
		if err := f.instances[i].Wait(f.Context(), "a"); err == nil {
			waits++
		} else if over := (*idem.QuotaError)(nil); !errors.As(err, &over) || over.Limit != "waits per second" {
			t.Fatal(err)
		}
		f.now = f.now.Add(5 * time.Second / 405)
	}
	if waits > 120 || waits < 80 {
		t.Errorf("%d waits in 5 s, want at most 20 a second", waits)
	}
	f.counters.forget()
	if _, err := f.instances[0].NewKey(f.Context(), "a"); err != nil || f.counters.adds != 0 {
		t.Errorf("a new key: %v, %d additions", err, f.counters.adds)
	}
	if err := newFleet(t, quota.Limits{}, 0).instances[0].Wait(f.Context(), "a"); err != nil {
		t.Error(err)
	}
}
