package outbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// scenario interprets the commands of testdata/step/*.txt on one message:
//
//	topic keys=1h|none attempts=3 age=24h [abandon=1h] [probed]
//	                                        the topic's promises and bounds
//	insert [index=2] [detached]             a new message, now: of a later phase, or of a record that is complete already
//	at 3s                                   the time, since the start
//	wake W1                                 a wake-up of worker W1, which claims where it may
//	W1 not_executed [retry=20s]             the answer to the call that W1's last claim led to
//	W1 ambiguous | W1 refused [unproven]
//	evidence delivered|declined             a definite answer, from whatever source
//	unsettled                               evidence whose settlement failed
//	absent [epoch=1] | abandon | close | redrive
//	undecided [epoch=1] [unasked]           a probe that decided nothing, or nobody to ask; it backs off for 2m
type scenario struct {
	rules  outbox.Rules
	now    time.Time
	m      idem.Message
	claims map[string]idem.Message
	before map[string]bool
}

func (s *scenario) run(t *testing.T, words []string) string {
	t.Helper()
	options := map[string]string{}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		options[name] = value
	}
	switch words[0] {
	case "topic":
		return s.topic(t, options)
	case "insert":
		s.m = idem.Message{
			ID: "op_1.1", Index: 1, OperationID: "op_1", Topic: "a.b", State: idem.MessagePending, CreatedAt: s.now,
			NextAttemptAt: s.now, SweepAt: s.now.Add(s.rules.SweepGrace), Retention: time.Hour, SchemaVersion: idem.SchemaVersion,
		}
		if index, ok := options["index"]; ok {
			fmt.Sscan(index, &s.m.Index)
		}
		_, s.m.Detached = options["detached"]
		s.claims, s.before = map[string]idem.Message{}, map[string]bool{}
		return s.show()
	case "at":
		s.now = noon.Add(duration(t, words[1]))
		return s.now.Format(time.TimeOnly)
	case "wake":
		return s.wake(words[1])
	case "evidence":
		return s.step(outbox.Evidence{Outcome: definite(words[1])})
	case "unsettled":
		return s.step(outbox.Unsettled{Outcome: outbox.Delivered{Reference: "ch_1", Evidence: []byte("{}")}})
	case "absent":
		epoch := s.m.Epoch
		if value, ok := options["epoch"]; ok {
			fmt.Sscan(value, &epoch)
		}
		return s.step(outbox.ProvenAbsent{Epoch: epoch})
	case "undecided":
		undecided := outbox.Undecided{Epoch: s.m.Epoch, Backoff: 2 * time.Minute}
		if value, ok := options["epoch"]; ok {
			fmt.Sscan(value, &undecided.Epoch)
		}
		_, undecided.Unasked = options["unasked"]
		return s.step(undecided)
	case "abandon":
		return s.step(outbox.Abandoned{})
	case "close":
		return s.step(outbox.Closed{})
	case "redrive":
		return s.step(outbox.Redriven{})
	}
	claim, ok := s.claims[words[0]]
	if !ok {
		t.Fatalf("unknown command or worker without a claim: %s", strings.Join(words, " "))
	}
	return s.answer(t, claim, s.before[words[0]], words[1], options)
}

func (s *scenario) topic(t *testing.T, options map[string]string) string {
	if s.rules.KeysHonoured = options["keys"] != "none"; s.rules.KeysHonoured {
		s.rules.KeyRetention = duration(t, options["keys"])
	}
	if value, ok := options["attempts"]; ok {
		fmt.Sscan(value, &s.rules.AttemptsMax)
	}
	if value, ok := options["age"]; ok {
		s.rules.AgeMax = duration(t, value)
	}
	s.rules.AbandonAfter = s.rules.AgeMax
	if value, ok := options["abandon"]; ok {
		s.rules.AbandonAfter = duration(t, value)
	}
	_, s.rules.Probed = options["probed"]
	return fmt.Sprintf("margin %v, absence after %v", s.rules.Margin, s.rules.AbsentAfter)
}

func (s *scenario) wake(worker string) string {
	before := !s.m.OpenSince.IsZero()
	next, effect, err := outbox.Step(s.m, outbox.Woken{Owner: idem.Owner(worker), LeaseUntil: s.now.Add(lease)}, s.rules, s.now)
	if err == nil && effect == outbox.EffectClaim {
		s.claims[worker], s.before[worker] = next, before
	}
	return s.apply(next, effect, err)
}

func (s *scenario) answer(t *testing.T, claim idem.Message, before bool, name string, options map[string]string) string {
	answer := outbox.Answered{Owner: claim.Owner, Epoch: claim.Epoch, OpenBefore: before, Backoff: 2 * time.Second}
	switch name {
	case "not_executed":
		o := outbox.NotExecuted{}
		if value, ok := options["retry"]; ok {
			o.RetryAfter = duration(t, value)
		}
		answer.Outcome = o
	case "ambiguous":
		answer.Outcome = outbox.Ambiguous{}
	case "refused":
		_, unproven := options["unproven"]
		answer.Outcome = outbox.Refused{Unproven: unproven}
	}
	return s.step(answer)
}

func (s *scenario) step(event outbox.Event) string {
	return s.apply(outbox.Step(s.m, event, s.rules, s.now))
}

func (s *scenario) apply(next idem.Message, effect outbox.Effect, err error) string {
	if err != nil {
		return "refused: " + err.Error()
	}
	s.m = next
	return effect.String() + ": " + s.show()
}

func (s *scenario) show() string {
	m := s.m
	parts := []string{string(m.State), fmt.Sprintf("epoch %d", m.Epoch), fmt.Sprintf("attempts %d", m.Attempts)}
	if m.Owner != "" {
		parts = append(parts, "owner "+string(m.Owner))
	}
	for _, at := range []struct {
		name string
		at   time.Time
	}{{"open since", m.OpenSince}, {"lease until", m.LeaseUntil}, {"due", m.NextAttemptAt}, {"swept", m.SweepAt}, {"done", m.DoneAt}} {
		if !at.at.IsZero() {
			parts = append(parts, at.name+" "+at.at.Format(time.TimeOnly))
		}
	}
	if len(m.Evidence) > 0 {
		parts = append(parts, "evidence kept")
	}
	return strings.Join(parts, ", ")
}

func definite(name string) outbox.Outcome {
	if name == "declined" {
		return outbox.Declined{Reference: "ch_1"}
	}
	return outbox.Delivered{Reference: "ch_1"}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
