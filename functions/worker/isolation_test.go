package main

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/awslambda"
	"github.com/idem-go/idem-aws/idem/outbox/sqsqueue"
	"github.com/idem-go/idem-aws/localstack/provider"
)

const (
	neighbour = "tenant-b"
	others    = 20          // messages of the other tenant: in every other round their calls to the provider hang
	asked     = 10          // messages of the neighbour
	hang      = time.Second // a call that hangs, until its time-out
	// enough is how many invocations hold all of these messages, ten each, and one more, because a batch may have fewer; few hold not all.
	enough, few = 4, 2
)

// Messages of one tenant that hang at the provider move nobody else's, in batches that have both and with invocations bounded. The same
// measurement must fail where a batch is handled one message after the other.
func TestMessagesThatHangAreTheirTenantsAlone(t *testing.T) {
	s := lambdatest.New(t)
	m := s.Mapping(t)
	t.Setenv("PROVIDER_TIMEOUT", hang.String())
	t.Setenv("CLAIM_LEASE", "4s")
	t.Setenv("BACKOFF_MIN", "10m") // none of them comes again within the test
	t.Setenv("BACKOFF_MAX", "10m")
	if err := s.Provider.Faults(t.Context(), provider.Rule{On: provider.Charge, Source: "card_hang", Fault: provider.HangBefore}); err != nil {
		t.Fatal(err)
	}
	h := started(t)
	got := measured(t, s, m, h, lambdatest.Rounds, enough)
	t.Logf("%d messages beside %d, %d invocations at once: %v", asked, others, enough, got)
	if !got.Isolated() {
		t.Errorf("messages wait for another tenant's that hang: %v", got)
	}
	planted := measured(t, s, m, oneByOne(h), lambdatest.RoundsMin, enough)
	t.Logf("handled one by one: %v", planted)
	if planted.Isolated() {
		t.Errorf("batches that are handled one by one are not noticed: %v", planted)
	}
	// Nobody can hand out what waits behind invocations that are all taken: it waits for the time-out of a call, as few messages as
	// it may be.
	taken := measured(t, s, m, h, lambdatest.RoundsMin, few)
	t.Logf("with %d invocations, which do not hold all: %v", few, taken)
	if taken.Isolated() {
		t.Errorf("messages that wait behind invocations that are all taken are not noticed: %v", taken)
	}
}

// measured is how long the neighbour's messages take from their wake-up to the provider's answer.
func measured(t *testing.T, s *lambdatest.Stage, m *lambdatest.Mapping, h awslambda.Handler, rounds, atOnce int) lambdatest.Apart {
	t.Helper()
	round := func(source string) []time.Duration {
		var wakeUps []sqsqueue.WakeUp
		for range others {
			wakeUps = append(wakeUps, sqsqueue.WakeUp{Tenant: lambdatest.Tenant, Message: s.AcceptOf(t, lambdatest.Tenant, source, 0)})
		}
		var own []idem.MessageID
		for n := range asked { // mixed: three of each batch of ten are the neighbour's
			id := s.AcceptOf(t, neighbour, "card_ok", 0)
			own = append(own, id)
			at := min(len(wakeUps), 2*n+n)
			wakeUps = append(wakeUps[:at:at], append([]sqsqueue.WakeUp{{Tenant: neighbour, Message: id}}, wakeUps[at:]...)...)
		}
		ctx, stop := context.WithCancel(t.Context())
		var mapping sync.WaitGroup
		defer func() { stop(); mapping.Wait() }()
		began := time.Now()
		m.Send(t, wakeUps...)
		mapping.Go(func() { m.Run(ctx, t, h, atOnce, time.Minute) })
		took := make([]time.Duration, len(own))
		for i, id := range own {
			for s.Answered(string(id)).IsZero() {
				if time.Since(began) > time.Minute {
					t.Fatalf("message %s is not delivered", id)
				}
				time.Sleep(time.Millisecond)
			}
			took[i] = s.Answered(string(id)).Sub(began)
		}
		return took
	}
	return lambdatest.Measure(rounds, hang, func() []time.Duration { return round("card_ok") }, func() []time.Duration { return round("card_hang") })
}

// oneByOne is the fault: what a handler does that does not run a whole batch at once.
func oneByOne(h awslambda.Handler) awslambda.Handler {
	return func(ctx context.Context, event []byte) ([]byte, error) {
		var in events.SQSEvent
		if err := json.Unmarshal(event, &in); err != nil {
			return nil, err
		}
		var all events.SQSEventResponse
		for _, record := range in.Records {
			single, err := json.Marshal(events.SQSEvent{Records: []events.SQSMessage{record}})
			if err != nil {
				return nil, err
			}
			raw, err := h.Invoke(ctx, single)
			if err != nil {
				return nil, err
			}
			var report events.SQSEventResponse
			if err := json.Unmarshal(raw, &report); err != nil {
				return nil, err
			}
			all.BatchItemFailures = append(all.BatchItemFailures, report.BatchItemFailures...)
		}
		return json.Marshal(all)
	}
}
