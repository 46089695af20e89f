package payments_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// This test takes the application through every way to go wrong once, and then once more. Each process that runs it has
// one cut: the n-th call that it makes to the outside, be it the store, the ledger or the provider, goes wrong, for every
// n until the process gets through. Another process follows with a cut of its own, and then one without; the client sends
// its request to each of them. At the end, and in every answer on the way, the invariants of docs/design.md hold.

// A check that has to be quick plays a part of the accidents with a second cut, and the next one another part.
var (
	secondCuts = flag.Int("crash.every", 1, "of the accidents with a second cut, TestCrashAtEveryCall plays every n-th")
	skipped    = flag.Int("crash.skipped", 0, "how many of them it leaves out before the first")
)

func TestCrashAtEveryCall(t *testing.T) {
	for name, request := range crashing() {
		for _, gap := range request.gaps() {
			t.Run(fmt.Sprintf("%s, next process after %v", name, gap), func(t *testing.T) {
				t.Parallel()
				runs := 0
				run := func(landAt int, cuts ...cut) []int {
					runs++
					calls, err := newAccident(request, landAt).run(cuts, gap)
					if err != nil {
						t.Fatalf("cuts %v, late requests land at call %d: %v", cuts, landAt, err)
					}
					return calls
				}
				everyCut(run, gap)
				t.Logf("%d accidents", runs)
				if runs < 100 {
					t.Errorf("%d accidents: the test proves less than it says", runs)
				}
			})
		}
	}
}

// crashing are the requests whose processes crash. Payouts that the provider does not make are compensated.
func crashing() map[string]request {
	all := map[string]request{
		"transfer":       {"/v1/transfers", transfer("acct_1", "acct_2", 500), byBoth, nil, 0, false},
		"collected":      {"/v1/transfers", transfer("acct_1", "acct_2", 500), byBoth, nil, 2, false},
		"payment":        {"/v1/payments", order("card_ok"), byBoth, nil, 0, false},
		"legacy payment": {"/v1/payments", order("legacy_card"), byBoth, nil, 0, false},
		"refund":         {"/v1/payments/pay_1/refunds", `{"amount":500}`, byBoth, nil, 0, false},
	}
	declined, refused := outbox.Declined{Reference: "po_1"}, outbox.Refused{Cause: errors.New("refused")}
	for by, who := range map[finisher]string{byBoth: "", byClient: ", by retries", byPlatform: ", client gone"} {
		all["payout"+who] = request{"/v1/payouts", send("iban_ok", 500), by, nil, 0, false}
		all["payout refused"+who] = request{"/v1/payouts", send("iban_ok", 500), by, refused, 0, false}
		all["legacy payout"+who] = request{"/v1/payouts", send("legacy_iban", 500), by, nil, 0, false}
	}
	all["legacy payment, no look-ups"] = request{"/v1/payments", order("legacy_card"), byBoth, nil, 0, true}
	all["legacy payout, no look-ups"] = request{"/v1/payouts", send("legacy_iban", 500), byBoth, nil, 0, true}
	all["legacy payout declined, no look-ups"] = request{"/v1/payouts", send("legacy_iban", 500), byBoth, declined, 0, true}
	all["payout declined"] = request{"/v1/payouts", send("iban_ok", 500), byBoth, declined, 0, false}
	all["legacy payout declined"] = request{"/v1/payouts", send("legacy_iban", 500), byBoth, declined, 0, false}
	all["legacy payout refused"] = request{"/v1/payouts", send("legacy_iban", 500), byBoth, refused, 0, false}
	return all
}

// gaps are how long after a process the next one comes: at once, when its leases are over, and, where it may leave a doubt that is no
// client's business, when the provider's books are proof.
func (r request) gaps() []time.Duration {
	const proof = 2 * longestRequest
	_, refused := r.paidOut.(outbox.Refused)
	switch doubts := refused || strings.Contains(r.body, "legacy"); {
	case r.blind:
		return []time.Duration{proof}
	case doubts && r.by == byBoth:
		return []time.Duration{0, 45 * time.Second, proof}
	}
	return []time.Duration{0, 45 * time.Second}
}

// everyCut tries every cut of a first process, and after each the main ones of a second; a request that is late lands at
// each of the second's calls, or after all. Every cut of the first is tried whatever the flags say.
func everyCut(run func(landAt int, cuts ...cut) []int, gap time.Duration) {
	seconds := -*skipped
	reached := func(one, second cut) bool {
		seconds++
		return (seconds-1)%*secondCuts != 0 || run(0, one, second)[1] >= second.at
	}
	for first := range modes {
		for at := 1; ; at++ {
			one := cut{at, first}
			if calls := run(0, one); calls[0] < at {
				break
			}
			if first == late || first == dieLate || first == outage {
				if gap >= longestRequest { // it has landed before the next process comes
					run(0, one, cut{})
					continue
				}
				for landAt := 1; run(landAt, one, cut{})[1] >= landAt; landAt++ {
				}
				continue
			}
			for _, second := range []mode{loseReply, dieBefore, dieAfter} {
				for n := 1; reached(one, cut{n, second}); n++ {
				}
			}
		}
	}
}

// run is a whole accident. It returns how many calls each process with a cut made, and what is wrong at the end.
func (a *accident) run(cuts []cut, gap time.Duration) (calls []int, err error) {
	for _, c := range cuts {
		l := a.begin(c)
		l.live()
		calls = append(calls, l.calls)
		a.clock.Advance(gap)
		a.overdue()
	}
	l := a.begin(cut{})
	for n := 0; n < 5 && !a.settled(); n++ {
		l.live()
		a.clock.Advance(time.Minute)
	}
	a.land()
	for n := 0; n < 3 && (n == 0 || !a.settled()); n++ { // one for each phase
		l.live()
	}
	if a.doubtful() != "" { // that is never its client's business
		for n := 0; n < 10 && a.doubtful()+a.unfinished() != ""; n++ {
			a.clock.Advance(time.Minute)
			l.serve()
		}
	}
	if left := a.unfinished() + a.doubtful(); left != "" {
		return calls, errors.New("I9: " + left)
	}
	l.post()
	if a.unfinished() != "" { // its client came no earlier, and its release is left to the platform
		l.serve()
		l.post()
	}
	l.fold() // what the client's last request moved
	return calls, a.check()
}

// settled says whether nothing is left to happen, on the wire or in the background, and the client knows the end if it is there.
func (a *accident) settled() bool {
	if len(a.wire) > 0 || a.unfinished() != "" || len(a.answers) == 0 {
		return false
	}
	last := a.answers[len(a.answers)-1]
	return a.by == byPlatform || last[:3] != "202" && last[:3] != "409" && last[:3] != "503"
}

// unfinished names what still waits for the one who is not there.
func (a *accident) unfinished() string {
	for _, m := range a.inner.Messages() {
		if m.State == storage.MessagePending || m.State == storage.MessageClaimed || m.State == storage.MessageEvidenced {
			return fmt.Sprintf("message %s of %s", m.State, m.Topic)
		}
	}
	return ""
}

// doubtful names what waits for evidence.
func (a *accident) doubtful() string {
	for _, m := range a.inner.Messages() {
		if m.State == storage.MessageUnknown || m.State == storage.MessageDead {
			return fmt.Sprintf("message %s of %s", m.State, m.Topic)
		}
	}
	return ""
}

// check judges the end (docs/design.md I1, I2, I4, I6): one incarnation's writes, one object for each effect, one final
// answer, no money lost; and every answer on the way was either that one, the one 202 before it, or a request to come again.
func (a *accident) check() error {
	records := a.inner.Records()
	if len(records) != 1 {
		return fmt.Errorf("I1: %d records", len(records))
	}
	if err := a.checkAnswers(records[0]); err != nil {
		return err
	}
	made, sum := "", int64(0)
	var end entity
	for key, raw := range a.inner.Rows() {
		kind, id, _ := strings.Cut(key, "#")
		var row entity
		if err := json.Unmarshal(raw, &row); err != nil {
			return err
		}
		sum += row.Balance + row.paidOut(kind)
		if kind != "account" && id != tenantA+"/pay_1" {
			made, end = made+kind, row
		}
	}
	moved, err := a.rows.Account(context.Background(), tenantA, "acct_2")
	paid, errPaid := a.rows.Payment(context.Background(), tenantA, "pay_1")
	switch {
	case err != nil || errPaid != nil:
		return errors.Join(err, errPaid)
	case sum != seedBalance:
		return fmt.Errorf("I6: %d became %d", seedBalance, sum)
	case made != "payment" && made != "refund" && made != "payout" && made != "transfer":
		return fmt.Errorf("I1: made %s", made)
	case made == "transfer" && moved.Balance != 500:
		return fmt.Errorf("I1: %d moved, want 500", moved.Balance)
	case made == "refund" && paid.Refunded != 500:
		return fmt.Errorf("I1: %d refunded, want 500", paid.Refunded)
	case made == "transfer":
		return nil
	}
	return a.checkChain(records[0], end)
}

// entity is what rows of different kinds have in common, and what tells of money.
type entity struct {
	Status  payments.Status
	Balance int64
	Amount  int64
}

// paidOut is what left the accounts, or will.
func (e entity) paidOut(kind string) int64 {
	if kind == "payout" && (e.Status == payments.StatusPending || e.Status == payments.StatusSucceeded) {
		return e.Amount
	}
	return 0
}

func (a *accident) checkAnswers(r storage.Record) error {
	stored := fmt.Sprintf("%d %s", r.Response.Status, r.Response.Body)
	first := ""
	for i, got := range a.answers {
		switch status := got[:3]; status {
		case "202":
			if first == "" {
				first = got
			}
			if got != first {
				return fmt.Errorf("I4: accepted as %s and as %s", first, got)
			}
		case "409":
			if first != "" {
				return fmt.Errorf("I4: %s after %s", got, first)
			}
		case "503": // come again, whatever was answered before
		default:
			if got != stored {
				return fmt.Errorf("I4: answer %d is %s, stored is %s", i, got, stored)
			}
			first = stored
		}
	}
	if last := a.answers[len(a.answers)-1]; last != stored {
		return fmt.Errorf("promise 3: the last answer is %s, stored is %s", last, stored)
	}
	return nil
}

// checkChain demands that the entity, its messages, its record and the provider tell the same.
func (a *accident) checkChain(r storage.Record, e entity) error {
	messages := a.inner.Messages()
	slices.SortFunc(messages, func(a, b storage.Message) int { return a.Index - b.Index })
	if len(messages) == 0 {
		return errors.New("I1: there is no message")
	}
	told, states, asked := "", "", []idem.MessageID{}
	for _, m := range messages {
		told += fmt.Sprintf("%s is %s, ", m.Topic, m.State)
		states += string(m.State) + " "
		if m.State == storage.MessageDelivered || m.State == storage.MessageDeclined {
			asked = append(asked, m.ID)
		}
	}
	told += fmt.Sprintf("entity %s, record %s %d, made %v", e.Status, r.State, r.Response.Status, a.till.made)
	made := slices.Sorted(slices.Values(a.till.made))
	switch {
	case len(slices.Compact(slices.Clone(made))) != len(made):
		return errors.New("I2: " + told)
	case !slices.Equal(made, asked), !a.ends(states, e.Status, r):
		return errors.New("I3: " + told)
	}
	return nil
}

// ends says whether a chain that ended in the states has told so. A payout that was not made has released its hold.
func (a *accident) ends(states string, entity payments.Status, r storage.Record) bool {
	failed := entity == payments.StatusFailed && r.State == storage.StateFailed && r.Response.Status == 502
	if a.blind && failed { // an operator has closed what the provider's books had nothing of
		return states == "cancelled " || states == "delivered cancelled delivered "
	}
	switch a.paidOut.(type) {
	case outbox.Declined:
		return states == "delivered declined delivered " && entity == payments.StatusDeclined && r.State == storage.StateFailed && r.Response.Status == 402
	case outbox.Refused:
		return states == "delivered cancelled delivered " && failed
	}
	return strings.Trim(states, "delivr ") == "" && entity == payments.StatusSucceeded && r.State == storage.StateCompleted && r.Response.Status == 201
}
