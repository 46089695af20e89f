package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
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
	others    = 20 // messages of the other tenant: in every other round their calls to the provider hang
	asked     = 10 // messages of the neighbour
	// enough is how many invocations hold all of these messages, ten each, and one more, because a batch may have fewer; few hold not all.
	enough, few = 4, 2
)

// Messages of one tenant that hang at the provider hold up nobody else's, in batches that have both and with invocations bounded: the
// neighbour's are delivered while all of the other tenant's hang. That must not be so where a batch is handled one message after the other.
func TestMessagesThatHangAreTheirTenantsAlone(t *testing.T) {
	s := lambdatest.New(t)
	m := s.Mapping(t)
	t.Setenv("PROVIDER_TIMEOUT", "1m") // no call ends before the test lets it
	t.Setenv("CLAIM_LEASE", "2m")
	h := started(t)
	round := func(source string) func() []time.Duration {
		return func() []time.Duration {
			for range 3 { // a message that is held up is each time, and a machine that stands for so long does not
				if took := delivered(t, s, m, h, enough, source, lambdatest.Patience); took != nil {
					return took
				}
			}
			t.Fatalf("not all messages are delivered beside another tenant's that charge %s, or those do not all hang", source)
			return nil
		}
	}
	got := lambdatest.Measure(round("card_ok"), round("card_hang"))
	t.Logf("%d messages beside %d, %d invocations at once: %v", asked, others, enough, got)
	if !got.Isolated() {
		t.Errorf("messages are slower beside another tenant's that hang: %v", got)
	}
	if delivered(t, s, m, oneByOne(h), enough, "card_hang", got.Enough()) != nil {
		t.Error("batches that are handled one by one are not noticed")
	}
	// Nobody can hand out what waits behind invocations that are all taken: it waits until a call ends, as few messages as it may be.
	if delivered(t, s, m, h, few, "card_hang", got.Enough()) != nil {
		t.Errorf("messages that wait behind %d invocations, which are all taken, are not noticed", few)
	}
}

// delivered is how long the neighbour's messages take from their wake-up to the provider's answer: nil where not all of them are answered
// within patience, with all of the other tenant's hanging then if they charge card_hang. In the end all messages are delivered.
func delivered(t *testing.T, s *lambdatest.Stage, m *lambdatest.Mapping, h awslambda.Handler, atOnce int, source string, patience time.Duration) (took []time.Duration) {
	t.Helper()
	rule := provider.Rule{On: provider.Charge, Source: "card_hang", Fault: provider.HangAfter, DelayMillis: time.Hour.Milliseconds()}
	if err := s.Provider.Faults(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	var wakeUps []sqsqueue.WakeUp
	var all []idem.MessageID
	for range others {
		id := s.AcceptOf(t, lambdatest.Tenant, source, 0)
		all = append(all, id)
		wakeUps = append(wakeUps, sqsqueue.WakeUp{Tenant: lambdatest.Tenant, Message: id})
	}
	for n := range asked { // mixed: three of each batch of ten are the neighbour's
		id := s.AcceptOf(t, neighbour, "card_ok", 0)
		all = append(all, id)
		wakeUps = slices.Insert(wakeUps, min(len(wakeUps), 2*n+n), sqsqueue.WakeUp{Tenant: neighbour, Message: id})
	}
	ctx, stop := context.WithCancel(t.Context())
	var mapping sync.WaitGroup
	defer func() { stop(); mapping.Wait() }()
	began := time.Now()
	m.Send(t, wakeUps...)
	mapping.Go(func() { m.Run(ctx, t, h, atOnce, 10*time.Minute) })
	// answered says that messages are by the time that patience ends, and each time lets some pass.
	answered := func(patience time.Duration, also func() bool, ids ...idem.MessageID) bool {
		for until := time.Now().Add(patience); slices.ContainsFunc(ids, func(id idem.MessageID) bool { return s.Answered(string(id)).IsZero() }) || !also(); {
			if time.Now().After(until) {
				return false
			}
			time.Sleep(5 * time.Millisecond)
		}
		return true
	}
	hanging := func() bool { return source != "card_hang" || lambdatest.Hanging(s.Charges(t), source) == others }
	if answered(patience, hanging, all[others:]...) {
		for _, id := range all[others:] {
			took = append(took, s.Answered(string(id)).Sub(began))
		}
	}
	if err := errors.Join(s.Provider.Faults(t.Context()), s.Provider.Resume(t.Context())); err != nil {
		t.Fatal(err)
	}
	if !answered(lambdatest.Patience, func() bool { return true }, all...) {
		t.Fatal("not all messages are delivered in the end")
	}
	return took
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
