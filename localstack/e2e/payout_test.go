//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/provider"
)

func TestPayoutIsDoneInOneRequest(t *testing.T) { // payments-api.md: 201 in one request when all goes well
	t.Parallel()
	o := placeable(t, "payout", iban("payout"))
	first := deployed.tenantA.do(t, o.request()).is(t, http.StatusCreated).says(t, "executed")
	if got := first.header.Get("Idempotency-Expires"); got == "" || first.header.Get("Location") != "" || first.header.Get("Retry-After") != "" {
		t.Errorf("headers %v, want those of a final answer", first.header)
	}
	final, screened, paid := o.paidOnce(t)
	same(t, final, first)
	if id := decode[payout](t, first).ID; !strings.HasPrefix(id, "po_") || screened.Attempts != 1 || paid.Attempts != 1 {
		t.Errorf("payout %s by %+v and %+v, want one request for each", id, screened, paid)
	}
	for n := 1; n <= 2; n++ {
		if m := phaseRow(t, o.operation(t), n); text(m, schema.State) != "delivered" || number(m, schema.Epoch) != 1 {
			t.Errorf("message %d is %v, want it delivered by the claim of its request", n, m)
		}
	}
	if third := phaseRow(t, o.operation(t), 3); third != nil {
		t.Errorf("a third message: %v", third)
	}
}

// refusals are what a provider says no to, and how many payouts it has made then.
var refusals = map[string]struct {
	destination string
	payouts     int
}{
	"screening": {hindered("iban_refused_1", provider.Rule{On: provider.Screening, Fault: provider.Decline}), 0},
	"payout":    {hindered("iban_refused_2", provider.Rule{On: provider.Payout, Fault: provider.Decline}), 1},
	"keyless":   {hindered("legacy_refused", provider.Rule{On: provider.LegacyPayout, Fault: provider.Decline}), 1},
}

func TestPayoutDeclinedGivesTheFundsBack(t *testing.T) { // payments-api.md: 402 payout_declined (funds given back)
	t.Parallel()
	for phase, refusal := range refusals {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			o := placeable(t, "payout-declined-"+phase, refusal.destination)
			final := deployed.tenantA.do(t, o.request()).says(t, "executed")
			final.isProblem(t, http.StatusPaymentRequired, "payout_declined")
			o.cost(t, 1, refusal.payouts, 0)
			screened, paid := o.made(t)
			id := screened[0].Reference
			o.ended(t, id, "declined", final)
			if now := deployed.tenantA.readPayout(t, id); (now.ProviderReference != nil) != (len(paid) > 0) {
				t.Errorf("GET shows %+v, want a reference to %+v", now, paid)
			}
			state := "completed" // a decline is a result
			if refusal.payouts > 0 {
				state = "failed" // what was screened is undone
			}
			if op := deployed.tenantA.readOperation(t, o.operation(t)); op.State != state {
				t.Errorf("operation %+v, want it %s", op, state)
			}
			o.cost(t, 1, refusal.payouts, 0) // whoever asked gave nothing back twice
			o.holds(t, 0)
			if got := len(o.released(t)); got != refusal.payouts {
				t.Errorf("%d releases, want one where the screening had passed", got)
			}
		})
	}
}

func TestPayoutThatIsNotPossible(t *testing.T) { // payments-api.md: 402 insufficient_funds; a stored answer stays
	t.Parallel()
	o := placeable(t, "payout-poor", iban("poor"))
	beyond := send(o.name, o.from, o.destination, orderFunds+1)
	first := deployed.tenantA.do(t, beyond).says(t, "executed")
	first.isProblem(t, http.StatusPaymentRequired, "insufficient_funds")
	rich := open(t, "payout-rich", 1)
	deployed.tenantA.do(t, move("payout-fund", rich, o.from, 1)).is(t, http.StatusCreated)
	same(t, deployed.tenantA.do(t, beyond).says(t, "replayed"), first)
	deployed.tenantA.do(t, o.request()).says(t, "mismatch").
		isProblem(t, http.StatusUnprocessableEntity, "idempotency_key_reused_with_different_payload")
	deployed.tenantA.do(t, send("payout-of-nobody", "acct_nobody", o.destination, 1)).isProblem(t, http.StatusNotFound, "account_not_found")
	o.cost(t, 0, 0, -1)
}

func TestPayoutIsSeenByItsTenantOnly(t *testing.T) { // I5
	t.Parallel()
	o := placeable(t, "payout-private", iban("private"))
	final, _, _ := o.paidOnce(t)
	id := decode[payout](t, final).ID
	deployed.tenantB.get(t, payouts+"/"+id).isProblem(t, http.StatusNotFound, "payout_not_found")
	deployed.tenantB.get(t, "/v1/operations/"+string(o.operation(t))).isProblem(t, http.StatusNotFound, "operation_not_found")
	deployed.tenantB.do(t, o.request()).says(t, "executed").isProblem(t, http.StatusNotFound, "account_not_found")
	deployed.tenantA.get(t, payouts+"/po_nobody").isProblem(t, http.StatusNotFound, "payout_not_found")
}

func TestTwentySimultaneousPayoutsAreOne(t *testing.T) { // semantics.md "States of a record": pending
	t.Parallel()
	var o order
	oneStorm(t, duplicateCount, func(name string) request {
		o = placeable(t, name+"-payouts", iban(name))
		return o.request()
	})
	if _, screened, paid := o.paidOnce(t); screened.Attempts != 1 || paid.Attempts != 1 {
		t.Errorf("the payout took %d and %d requests, want one each", screened.Attempts, paid.Attempts)
	}
}

func TestBalanceHoldsUnderConcurrentPayouts(t *testing.T) { // I6; the balance is a condition in the commit
	t.Parallel()
	const affordable, asked = orderFunds / orderAmount, 8
	o := placeable(t, "payout-race", iban("race"))
	requests := make([]request, asked)
	for i := range requests {
		requests[i] = send(fmt.Sprintf("payout-race-%d", i), o.from, o.destination, orderAmount)
	}
	counts := map[int]int{}
	for _, got := range together(t, requests, deployed.tenantA.resolve) {
		counts[got.status]++
	}
	if counts[http.StatusCreated] != affordable || counts[http.StatusPaymentRequired] != asked-affordable {
		t.Errorf("answers by status: %v, want %d of 201, all others 402", counts, affordable)
	}
	o.cost(t, affordable, affordable, affordable*orderAmount)
}

// payoutPhases are the provider's calls of a payout, in their order.
var payoutPhases = []provider.Kind{provider.Screening, provider.Payout}

// hindrance is what the provider does to the first call of one phase.
type hindrance struct {
	phase       int
	fault       provider.Fault
	destination string
}

var hindrances = func() (all []hindrance) {
	for n, kind := range payoutPhases {
		for _, fault := range []provider.Fault{
			provider.RateLimit, provider.ErrorBefore, provider.ErrorAfter, provider.DropAfter, provider.HangBefore, provider.HangAfter,
		} {
			name := fmt.Sprintf("iban_%s_%d", fault, n+1)
			all = append(all, hindrance{n + 1, fault, hindered(name, provider.Rule{On: kind, Fault: fault, Times: 1})})
		}
	}
	return all
}()

// TestPayoutLeftUnfinishedIsFinishedByTheWorker has its clients gone with their 202.
func TestPayoutLeftUnfinishedIsFinishedByTheWorker(t *testing.T) { // payments-api.md: else 202 and later the same 201; I2
	t.Parallel()
	for _, h := range hindrances {
		t.Run(fmt.Sprintf("%s/%s", payoutPhases[h.phase-1], h.fault), func(t *testing.T) {
			t.Parallel()
			o := placeable(t, h.destination, h.destination)
			first := deployed.tenantA.do(t, o.request()).is(t, http.StatusAccepted).says(t, "executed").comesBack(t)
			body := decode[accepted](t, first)
			if got := first.header.Get("Location"); got != "/v1/operations/"+string(body.Operation) || body.State != "pending" || body.Payout.Status != "pending" {
				t.Errorf("202 at %q: %s", got, first.body)
			}
			eventually(t, delivered, func() string {
				if state := deployed.tenantA.readOperation(t, body.Operation).State; state != "completed" {
					return "the operation is " + state + ", not completed"
				}
				return ""
			})
			final, screened, paid := o.paidOnce(t)
			if got := decode[payout](t, final).ID; got != body.Payout.ID {
				t.Errorf("the final answer is about %s, the 202 was about %s", got, body.Payout.ID)
			}
			attempts := []int{screened.Attempts, paid.Attempts}
			if attempts[h.phase-1] != 2 || attempts[2-h.phase] != 1 {
				t.Errorf("the phases took %v requests, want two for phase %d and one for the other", attempts, h.phase)
			}
		})
	}
}

// starved is a destination that the provider has no time to screen.
var starved = hindered("iban_starved_1", provider.Rule{On: provider.Screening, Fault: provider.RateLimit})

func TestAScreeningThatIsGivenUpFailsWithItsBusinessWrites(t *testing.T) {
	t.Parallel()
	o := placeable(t, starved, starved)
	body := decode[accepted](t, deployed.tenantA.do(t, o.request()).is(t, http.StatusAccepted))
	message := body.Operation.Message(1)
	o.cost(t, 0, 0, orderAmount)
	givenUp(t, message)
	eventually(t, delivered, func() string {
		must(t, wakeWorker(t.Context(), message))
		if state := deployed.tenantA.readOperation(t, body.Operation).State; state != "failed" {
			return "the operation is " + state + ", not failed"
		}
		return ""
	})
	final := deployed.tenantA.do(t, o.request()).says(t, "replayed")
	final.isProblem(t, http.StatusBadGateway, "provider_unavailable")
	o.ended(t, body.Payout.ID, "failed", final)
	o.cost(t, 0, 0, 0)
	o.holds(t, 0)
	buried(t, message)
}

// givenUp makes a message that the provider has no time for have its last attempt.
func givenUp(t *testing.T, message idem.MessageID) {
	t.Helper()
	eventually(t, delivered, func() string { return exhaust(t, message) })
}

// released is a payout that is not made, and what the provider does to the first call for its release.
type released struct {
	unmade
	fault       provider.Fault
	destination string
}

var releases = func() (all []released) {
	for _, why := range []string{"declined", "refused"} {
		u := unmades[why]
		for _, fault := range []provider.Fault{
			"", provider.RateLimit, provider.ErrorBefore, provider.ErrorAfter, provider.DropAfter, provider.HangBefore, provider.HangAfter,
		} {
			rules := []provider.Rule{{On: provider.Payout, Fault: u.fault}}
			if fault != "" {
				rules = append(rules, provider.Rule{On: provider.Release, Fault: fault, Times: 1})
			}
			all = append(all, released{u, fault, hindered(fmt.Sprintf("iban_%s_%s", why, fault), rules...)})
		}
	}
	return all
}()

// TestPayoutThatIsNotMadeReleasesItsHold has its clients gone with their 202, where the first request could not end it.
func TestPayoutThatIsNotMadeReleasesItsHold(t *testing.T) { // payments-api.md "How a payout is compensated"; I2, I6
	t.Parallel()
	for _, r := range releases {
		t.Run(fmt.Sprintf("%s/%s", r.row, r.fault), func(t *testing.T) {
			t.Parallel()
			o := placeable(t, r.destination, r.destination)
			deployed.tenantA.do(t, o.request()).says(t, "executed")
			eventually(t, delivered, func() string {
				if state := deployed.tenantA.readOperation(t, o.operation(t)).State; state != r.operation {
					return "the operation is " + state + ", not " + r.operation
				}
				return ""
			})
			want := 2
			if r.fault == "" {
				want = 1
			}
			if got := o.releasedOnce(t, r.unmade); got.Attempts != want {
				t.Errorf("the release took %d requests, want %d", got.Attempts, want)
			}
		})
	}
}

// unpaid is a destination that is screened, and that the provider has no time to pay out to.
var unpaid = hindered("iban_starved_2", provider.Rule{On: provider.Payout, Fault: provider.RateLimit})

func TestPayoutThatIsGivenUpReleasesItsHold(t *testing.T) { // nothing that was executed is denied
	t.Parallel()
	o := placeable(t, unpaid, unpaid)
	body := decode[accepted](t, deployed.tenantA.do(t, o.request()).is(t, http.StatusAccepted))
	message := body.Operation.Message(2)
	o.cost(t, 1, 0, orderAmount)
	o.holds(t, 1)
	givenUp(t, message)
	eventually(t, delivered, func() string {
		must(t, wakeWorker(t.Context(), message))
		if state := deployed.tenantA.readOperation(t, body.Operation).State; state != "failed" {
			return "the operation is " + state + ", not failed"
		}
		return ""
	})
	o.releasedOnce(t, unmades["starved"])
}

// stuck are destinations whose payout is not made and whose release is refused.
var stuck = func() map[string]string {
	all := map[string]string{}
	for _, why := range []string{"declined", "refused"} {
		all[why] = hindered("iban_stuck_"+why,
			provider.Rule{On: provider.Payout, Fault: unmades[why].fault}, provider.Rule{On: provider.Release, Fault: provider.Refuse})
	}
	return all
}()

func TestReleaseThatIsRefusedIsLeftToAnOperator(t *testing.T) { // payments-api.md "How a payout is compensated"
	t.Parallel()
	for why, destination := range stuck {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			o := placeable(t, destination, destination)
			body := decode[accepted](t, deployed.tenantA.do(t, o.request()).is(t, http.StatusAccepted).says(t, "executed").comesBack(t))
			release := body.Operation.Message(3)
			eventually(t, delivered, func() string {
				if state := text(phaseRow(t, body.Operation, 3), schema.State); state != "dead" {
					return fmt.Sprintf("the release is %q, not dead", state)
				}
				return ""
			})
			deployed.tenantA.do(t, o.request()).is(t, http.StatusAccepted).says(t, "replayed").comesBack(t)
			if op := deployed.tenantA.readOperation(t, body.Operation); op.State != "unknown" || op.Response != nil {
				t.Errorf("operation %+v, want it unknown and without an answer", op)
			}
			if now := deployed.tenantA.readPayout(t, body.Payout.ID); now.Status != "unknown" || now.ProviderReference != nil {
				t.Errorf("GET shows %+v, want it unknown", now)
			}
			o.cost(t, 1, unmades[why].payouts, orderAmount)
			o.holds(t, 1)
			buried(t, release)
		})
	}
}

// unanswered pays out and loses the answer; no key is honoured there.
var unanswered = hindered("legacy_unanswered", provider.Rule{On: provider.LegacyPayout, Fault: provider.DropAfter})

func TestKeylessPayoutWithoutAnswerIsUnknownAndNeverPaidAgain(t *testing.T) { // promise 2
	t.Parallel()
	o := placeable(t, "payout-keyless", unanswered)
	first := deployed.tenantA.do(t, o.request()).is(t, http.StatusAccepted).says(t, "executed")
	body := decode[accepted](t, first)
	if op := deployed.tenantA.readOperation(t, body.Operation); op.State != "unknown" || op.Response != nil {
		t.Errorf("operation %+v, want it unknown and without an answer", op)
	}
	if now := deployed.tenantA.readPayout(t, body.Payout.ID); now.Status != "unknown" || now.ProviderReference != nil {
		t.Errorf("GET shows %+v, want it unknown", now)
	}
	same(t, deployed.tenantA.do(t, o.request()).says(t, "replayed").comesBack(t), first)
	sweep(t)
	for n := range 2 {
		must(t, wakeWorker(t.Context(), body.Operation.Message(n+1)))
	}
	o.probed(t, 1)
}

// probed fails the test unless the order, whose payout was paid out so often when its caller died, is paid out once in all:
// what was made is found by a probe and not asked for again, and what provably was not is asked for once more. The funds
// stay taken until somebody knows.
func (o order) probed(t *testing.T, payouts int) {
	t.Helper()
	o.paidOnce(t)
	m := phaseRow(t, o.operation(t), 2)
	claims := number(m, schema.Epoch) // a claim that had no time left to call is followed by another one
	if payouts > 0 && claims != 1 || payouts == 0 && claims < 2 {
		t.Errorf("message %v was claimed %d times, %d payouts having been made by the first claim", m, claims, payouts)
	}
}
