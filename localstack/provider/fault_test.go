package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/localstack/provider"
)

// lost is a client that waits for an answer no longer than the context, and gets none.
func (s simulator) lost(ctx context.Context, method, path, key, body string) error {
	s.t.Helper()
	r, err := s.doWithin(ctx, method, path, key, body)
	if err == nil {
		s.t.Fatalf("%s %s was answered: %d %s", method, path, r.status, r.body)
	}
	return err
}

func TestEachFaultOnEachKind(t *testing.T) {
	s := start(t)
	for _, e := range endpoints(s) {
		for _, c := range []struct {
			fault  provider.Fault
			status int // 0 = no answer
			made   int
		}{
			{provider.ErrorBefore, 500, 0},
			{provider.ErrorAfter, 500, 1},
			{provider.HangBefore, 504, 0},
			{provider.HangAfter, 201, 1},
			{provider.DropBefore, 0, 0},
			{provider.DropAfter, 0, 1},
			{provider.Decline, 402, 1},
			{provider.RateLimit, 429, 0},
			{provider.Refuse, 400, 0},
			{provider.Delay, 201, 1},
		} {
			t.Run(fmt.Sprintf("%s/%s", e.kind, c.fault), func(t *testing.T) {
				e, key := e.fresh(s), fmt.Sprintf("%s-%s", e.kind, c.fault)
				s.faults(provider.Rule{On: e.kind, Fault: c.fault, Times: 1, DelayMillis: 20})
				began := time.Now()
				if c.status == 0 {
					_ = s.lost(t.Context(), "POST", e.path, key, e.body)
				} else {
					s.want(c.status, "POST", e.path, key, e.body)
				}
				switch c.fault {
				case provider.HangBefore, provider.HangAfter, provider.Delay:
					if waited := time.Since(began); waited < 20*time.Millisecond {
						t.Errorf("waited %v", waited)
					}
				default:
				}
				if got := s.want(200, "GET", e.look+"?key="+key, "", "").list(t); len(got) != c.made {
					t.Fatalf("made %+v, want %d", got, c.made)
				}
				if !e.honoursKeys || c.fault == provider.Decline {
					return
				}
				// The retry gets the object, whoever made it, and there is one.
				s.want(201, "POST", e.path, key, e.body)
				if got := s.want(200, "GET", e.look+"?key="+key, "", "").list(t); len(got) != 1 || got[0].Attempts != 2 {
					t.Errorf("after the retry %+v, want one with 2 attempts", got)
				}
			})
		}
	}
}

func TestEachFaultOnLookUps(t *testing.T) {
	s := start(t)
	for _, e := range endpoints(s) {
		o := s.want(201, "POST", e.path, "k-"+string(e.kind), e.body).object(t)
		for kind, path := range map[provider.Kind]string{provider.List: e.look + "?key=" + o.Key, provider.Get: e.look + "/" + o.ID} {
			for fault, status := range map[provider.Fault]int{
				provider.ErrorBefore: 500, provider.ErrorAfter: 500, provider.HangBefore: 504, provider.HangAfter: 200,
				provider.DropBefore: 0, provider.DropAfter: 0, provider.RateLimit: 429, provider.Delay: 200,
			} {
				t.Run(fmt.Sprintf("%s/%s/%s", e.kind, kind, fault), func(t *testing.T) {
					s.faults(provider.Rule{On: kind, Fault: fault, DelayMillis: 1})
					if status != 0 {
						s.want(status, "GET", path, "", "")
						return
					}
					// The transport repeats a GET by itself on a fresh connection, so the rule holds for ever.
					_ = s.lost(t.Context(), "GET", path, "", "")
				})
			}
		}
		s.faults()
	}
}

func TestRulesOfLookUpsMatchWhatTheyConcern(t *testing.T) {
	s := start(t)
	charge := s.want(201, "POST", "/charges", "k", order).object(t)
	payout := s.want(201, "POST", "/payouts", "p", `{"amount":5,"currency":"EUR","destination":"iban_x"}`).object(t)
	s.faults(
		provider.Rule{On: provider.List, Source: "card_ok", Fault: provider.ErrorBefore},
		provider.Rule{On: provider.Get, Destination: "iban_x", Fault: provider.ErrorBefore},
	)
	s.want(500, "GET", "/charges?key=k", "", "")
	s.want(200, "GET", "/charges/"+charge.ID, "", "")
	s.want(200, "GET", "/payouts?key=p", "", "")
	s.want(500, "GET", "/payouts/"+payout.ID, "", "")
	s.want(200, "GET", "/charges?key=none", "", "")
	s.want(404, "GET", "/payouts/po_none", "", "")
}

func TestTheFirstRuleThatIsNotUsedUpWins(t *testing.T) {
	s := start(t)
	s.faults(
		provider.Rule{On: provider.Payout, Fault: provider.DropBefore},
		provider.Rule{On: provider.Charge, Source: "card_other", Fault: provider.DropBefore},
		provider.Rule{On: provider.Charge, Source: "card_ok", Fault: provider.ErrorBefore, Times: 2},
		provider.Rule{On: provider.Charge, Fault: provider.RateLimit, Times: 1},
	)
	for i, status := range []int{500, 500, 429, 201, 201} {
		s.want(status, "POST", "/charges", fmt.Sprint(i), order)
	}
	rules, err := s.Rules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, applied := range []int{0, 0, 2, 1} {
		if rules[i].Applied != applied {
			t.Errorf("rule %d applied %d times, want %d", i, rules[i].Applied, applied)
		}
	}
	s.faults(provider.Rule{On: provider.Charge, Fault: provider.ErrorBefore})
	for range 5 {
		s.want(500, "POST", "/charges", "", order)
	}
	s.faults()
	s.want(201, "POST", "/charges", "", order)
}

func TestRulesMatchDestinationsAndTheSourceOfARefundedCharge(t *testing.T) {
	s := start(t)
	charge := s.want(201, "POST", "/charges", "", order).object(t)
	s.faults(
		provider.Rule{On: provider.Refund, Source: "card_ok", Fault: provider.Decline, Times: 1},
		provider.Rule{On: provider.Payout, Destination: "iban_x", Source: "acct_1", Fault: provider.ErrorBefore},
		provider.Rule{On: provider.Screening, Destination: "iban_x", Fault: provider.Decline},
	)
	refund := s.want(402, "POST", "/charges/"+charge.ID+"/refunds", "", `{"amount":1999}`).object(t)
	if refund.Status != provider.Declined {
		t.Errorf("%+v", refund)
	}
	s.want(201, "POST", "/charges/"+charge.ID+"/refunds", "", `{"amount":1999}`) // a declined refund gave nothing back
	s.want(201, "POST", "/payouts", "", `{"amount":5,"currency":"EUR","destination":"iban_x"}`)
	s.want(500, "POST", "/payouts", "", `{"amount":5,"currency":"EUR","destination":"iban_x","source":"acct_1"}`)
	s.want(402, "POST", "/screenings", "", `{"amount":5,"currency":"EUR","destination":"iban_x"}`)
	s.want(201, "POST", "/screenings", "", `{"amount":5,"currency":"EUR","destination":"iban_y"}`)
}

func TestProbabilityRepeatsWithItsSeed(t *testing.T) {
	s := start(t)
	s.faults(
		provider.Rule{On: provider.Charge, Fault: provider.ErrorBefore, Probability: new(0.5)},
		provider.Rule{On: provider.Charge, Fault: provider.RateLimit, Probability: new(0.0)},
	)
	run := func(seed int64) (statuses [64]int) {
		s.settings(provider.SettingsPatch{Seed: &seed})
		for i := range statuses {
			r, err := s.do("POST", "/charges", "", order)
			if err != nil {
				t.Fatal(err)
			}
			statuses[i] = r.status
		}
		return statuses
	}
	first := run(1)
	if run(1) != first {
		t.Error("the same seed, another run")
	}
	if run(2) == first {
		t.Error("another seed, the same run")
	}
	failed := 0
	for _, status := range first {
		switch status {
		case 500:
			failed++
		case 201:
		default:
			t.Errorf("status %d: probability 0 applied", status)
		}
	}
	if failed < 16 || failed > 48 {
		t.Errorf("%d of 64 failed at probability 0.5", failed)
	}
}

func TestRetryAfterOfARateLimit(t *testing.T) {
	s := start(t)
	s.faults(
		provider.Rule{On: provider.Charge, Fault: provider.RateLimit, Times: 1},
		provider.Rule{On: provider.Charge, Fault: provider.RateLimit, DelayMillis: 2001},
	)
	for _, want := range []string{"1", "3"} {
		if got := s.want(429, "POST", "/charges", "", order).header.Get("Retry-After"); got != want {
			t.Errorf("Retry-After %q, want %q", got, want)
		}
	}
}

func TestAttemptsCountRequestsThatMadeNothing(t *testing.T) {
	s := start(t)
	s.faults(
		provider.Rule{On: provider.Charge, Fault: provider.ErrorBefore, Times: 1},
		provider.Rule{On: provider.Charge, Fault: provider.DropBefore, Times: 1},
	)
	s.want(500, "POST", "/charges", "k", order)
	_ = s.lost(t.Context(), "POST", "/charges", "k", order)
	s.want(201, "POST", "/charges", "k", order)
	if all := s.charges(); len(all) != 1 || all[0].Attempts != 3 {
		t.Errorf("%+v, want one with 3 attempts", all)
	}
}

// What hangs is open until its client has its answer, or has given up.
func TestOpenCountsRequestsThatWait(t *testing.T) {
	s := start(t)
	s.faults(provider.Rule{On: provider.Charge, Fault: provider.HangAfter, Times: 1})
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	ended := make(chan error, 1)
	go func() {
		_, err := s.doWithin(ctx, "POST", "/charges", "k", order)
		ended <- err
	}()
	open := func(want int) {
		t.Helper()
		for range 500 {
			if all := s.charges(); len(all) == 1 && all[0].Open == want {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("%+v, want one with %d open", s.charges(), want)
	}
	open(1)
	s.want(201, "POST", "/charges", "k", order)
	open(1)
	giveUp()
	<-ended
	open(0)
}

// applied waits until the first rule has applied so often.
func (s simulator) applied(times int) {
	s.t.Helper()
	for {
		rules, err := s.Rules(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if rules[0].Applied == times {
			return
		}
	}
}

// A client that gives up: what hangs makes nothing more, what is only slow lands late.
func TestAClientThatGivesUp(t *testing.T) {
	s := start(t)
	for fault, late := range map[provider.Fault]int{provider.HangBefore: 0, provider.HangAfter: 1, provider.Delay: 1} {
		t.Run(string(fault), func(t *testing.T) {
			s.faults(provider.Rule{On: provider.Charge, Fault: fault, Times: 1, DelayMillis: time.Hour.Milliseconds()})
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			ended := make(chan error, 1)
			go func() {
				_, err := s.doWithin(ctx, "POST", "/charges", string(fault), order)
				ended <- err
			}()
			s.applied(1)
			giveUp()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			if err := s.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			// A second request, which is slow, ends after the first would have. What lands late is waited for.
			s.faults(provider.Rule{On: provider.Get, Fault: provider.HangBefore, DelayMillis: 100})
			for n := 0; ; n++ {
				s.want(504, "GET", "/charges/none", "", "")
				got := s.want(200, "GET", "/charges?key="+string(fault), "", "").list(t)
				if len(got) == late {
					return
				}
				if len(got) > late || n == 100 {
					t.Fatalf("made %+v, want %d", got, late)
				}
			}
		})
	}
}

func TestADelayedDuplicateGetsTheStoredAnswer(t *testing.T) {
	s := start(t)
	s.faults(provider.Rule{On: provider.Charge, Fault: provider.Delay, Times: 1, DelayMillis: time.Hour.Milliseconds()})
	slow := make(chan response, 1)
	go func() {
		r, _ := s.do("POST", "/charges", "k", order)
		slow <- r
	}()
	s.applied(1)
	fast := s.want(201, "POST", "/charges", "k", order)
	if err := s.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-slow; r.status != 201 || string(r.body) != string(fast.body) {
		t.Errorf("%d %s, want the bytes of %s", r.status, r.body, fast.body)
	}
}

// Resume answers what hangs or is delayed as its delay would have, and nothing that comes later.
func TestResumeAnswersWhatHangs(t *testing.T) {
	s := start(t)
	for fault, want := range map[provider.Fault]struct{ status, made int }{
		provider.HangBefore: {504, 0}, provider.HangAfter: {201, 1}, provider.Delay: {201, 1},
	} {
		s.faults(provider.Rule{On: provider.Charge, Fault: fault, DelayMillis: time.Hour.Milliseconds()})
		answers := make(chan int, 2)
		send := func(key string) {
			r, err := s.do("POST", "/charges", key, order)
			if err != nil {
				t.Error(err)
			}
			answers <- r.status
		}
		for n, key := range []string{"first-" + string(fault), "second-" + string(fault)} {
			go send(key)
			s.applied(n + 1)
			select {
			case got := <-answers:
				t.Errorf("%s: %s was answered %d before it was resumed", fault, key, got)
			default:
			}
			if err := s.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := <-answers; got != want.status {
				t.Errorf("%s: %s was answered %d, want %d", fault, key, got, want.status)
			}
			if got := s.want(200, "GET", "/charges?key="+key, "", "").list(t); len(got) != want.made {
				t.Errorf("%s made %+v, want %d", fault, got, want.made)
			}
		}
	}
}

// Reset and Close end what hangs or is delayed, with the connection; and it leaves nothing behind.
func TestResetEndsWhatHangs(t *testing.T) {
	s := start(t)
	for _, fault := range []provider.Fault{provider.HangBefore, provider.HangAfter, provider.Delay} {
		s.faults(provider.Rule{On: provider.Charge, Fault: fault, DelayMillis: time.Hour.Milliseconds()})
		ended := make(chan error, 1)
		go func() {
			_, err := s.do("POST", "/charges", "k", order)
			ended <- err
		}()
		s.applied(1)
		if err := s.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil {
			t.Errorf("%s was answered", fault)
		}
		if all := s.charges(); len(all) != 0 {
			t.Errorf("%s left %+v", fault, all)
		}
	}
}

// A drop on a connection that was used before is what makes Go's transport send a POST with a key again by itself:
// the simulator must show both arrivals.
func TestADropOnAReusedConnectionShowsAResend(t *testing.T) {
	s := start(t)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	send := func(key string, again bool) error {
		body, err := json.Marshal(map[string]any{"amount": 1, "currency": "EUR", "source": "card_ok"})
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/charges", newReader(body))
		if err != nil {
			return err
		}
		if again {
			req.GetBody = getBody(body)
		}
		req.Header.Set("Idempotency-Key", key)
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil { // else the connection is not used again
			return err
		}
		return res.Body.Close()
	}
	for _, c := range []struct {
		key      string
		again    bool
		attempts int
	}{{"resent", true, 2}, {"once", false, 1}} {
		if err := send("warm-"+c.key, false); err != nil {
			t.Fatal(err)
		}
		s.faults(provider.Rule{On: provider.Charge, Fault: provider.DropAfter, Times: 1})
		err := send(c.key, c.again)
		if (err == nil) != c.again {
			t.Errorf("%s: %v", c.key, err)
		}
		if got := s.want(200, "GET", "/charges?key="+c.key, "", "").list(t); len(got) != 1 || got[0].Attempts != c.attempts {
			t.Errorf("%+v, want one with %d attempts", got, c.attempts)
		}
	}
}
