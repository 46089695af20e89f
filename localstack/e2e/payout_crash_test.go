//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// moment is when the API function dies on its way through a payout, and what is there then.
type moment struct {
	at string
	// dynamodb and provider hold it back at that moment.
	dynamodb []faultproxy.Rule
	provider provider.Rule
	// open is the message that waits: 0 before the commit, one more than there are when all is done.
	open int
	// screenings, payouts and releases are what the provider has made.
	screenings, payouts, releases int
	// refusal is why the provider does not pay out; "" where it does.
	refusal string
}

// payoutMoments lie before and after each call of each phase. A payout that is declined is compensated within the request;
// the release of one that is refused is left to whoever is woken for it, and may be made before the function is dead.
var payoutMoments = []moment{
	{"before the read", before("GetItem", 0), provider.Rule{}, 0, 0, 0, 0, ""},
	{"after the read", after("GetItem", 0), provider.Rule{}, 0, 0, 0, 0, ""},
	{"before the commit", before("TransactWriteItems", 0), provider.Rule{}, 0, 0, 0, 0, ""},
	{"after the commit", after("TransactWriteItems", 0), provider.Rule{}, 1, 0, 0, 0, ""},
	{"before the screening", nil, provider.Rule{On: provider.Screening, Fault: provider.HangBefore}, 1, 0, 0, 0, ""},
	{"after the screening", nil, provider.Rule{On: provider.Screening, Fault: provider.HangAfter}, 1, 1, 0, 0, ""},
	{"before the first settlement", before("TransactWriteItems", 1), provider.Rule{}, 1, 1, 0, 0, ""},
	{"after the first settlement", after("TransactWriteItems", 1), provider.Rule{}, 2, 1, 0, 0, ""},
	{"before the payout", nil, provider.Rule{On: provider.Payout, Fault: provider.HangBefore}, 2, 1, 0, 0, ""},
	{"after the payout", nil, provider.Rule{On: provider.Payout, Fault: provider.HangAfter}, 2, 1, 1, 0, ""},
	{"before the last settlement", before("TransactWriteItems", 2), provider.Rule{}, 2, 1, 1, 0, ""},
	{"after the last settlement", after("TransactWriteItems", 2), provider.Rule{}, 3, 1, 1, 0, ""},

	{"before the settlement of a decline", before("TransactWriteItems", 2), provider.Rule{}, 2, 1, 1, 0, "declined"},
	{"after the settlement of a decline", after("TransactWriteItems", 2), provider.Rule{}, 3, 1, 1, 0, "declined"},
	{"before the release", nil, provider.Rule{On: provider.Release, Fault: provider.HangBefore}, 3, 1, 1, 0, "declined"},
	{"after the release", nil, provider.Rule{On: provider.Release, Fault: provider.HangAfter}, 3, 1, 1, 1, "declined"},
	{"before the settlement of the release", before("TransactWriteItems", 3), provider.Rule{}, 3, 1, 1, 1, "declined"},
	{"after the settlement of the release", after("TransactWriteItems", 3), provider.Rule{}, 4, 1, 1, 1, "declined"},
	{"before the cancellation", before("TransactWriteItems", 2), provider.Rule{}, 2, 1, 0, 0, "refused"},
}

// before holds back the n-th request of its kind, from 0, and what follows.
func before(operation string, n int) []faultproxy.Rule {
	return []faultproxy.Rule{{Operation: operation, Fault: faultproxy.Pause, After: n}}
}

// after lets the n-th request of its kind happen, loses the answer, and holds its sender back when it asks again.
func after(operation string, n int) []faultproxy.Rule {
	return append([]faultproxy.Rule{{Operation: operation, Fault: faultproxy.DropReply, After: n, Times: 1}}, before(operation, n)...)
}

// finisher goes on where the function died.
type finisher string

const (
	byClient   finisher = "client"   // its retry, with no worker about
	byPlatform finisher = "platform" // sweep and worker, with no client about
)

// death is a payout whose API function dies.
type death struct {
	order
	moment
	by finisher
	// keyless says that the provider honours no keys for the destination.
	keyless bool
}

// deathTries is how often a death is laid out, each time under names of its own: a function that has answered before it was killed, as one
// does while the machine stands still, has not died at its moment.
const deathTries = 3

// deaths are every moment with each finisher; and, without keys, those at which nobody can know what happened. Each try has all of them.
var deaths = func() (tries [deathTries][]death) {
	for try := range tries {
		for n, m := range payoutMoments {
			for _, keyless := range []bool{false, true} {
				for _, by := range []finisher{byClient, byPlatform} {
					if keyless && (m.open != 2 || m.refusal != "") {
						continue
					}
					d := death{moment: m, by: by, keyless: keyless}
					d.order = order{
						name: fmt.Sprintf("die-%d-%s-%t-%d", n, by, keyless, try), destination: d.hold(fmt.Sprintf("die_%d_%s_%d", n, by, try)),
					}
					tries[try] = append(tries[try], d)
				}
			}
		}
	}
	return tries
}()

// hold returns the destination of the death, with the provider's hindrance for it.
func (d death) hold(name string) string {
	name = map[bool]string{false: "iban_", true: "legacy_"}[d.keyless] + name
	var rules []provider.Rule
	if d.refusal != "" {
		rules = append(rules, provider.Rule{On: provider.Payout, Fault: unmades[d.refusal].fault})
	}
	if rule := d.provider; rule.Fault != "" {
		rule.Times = 1
		if d.keyless && rule.On == provider.Payout {
			rule.On = provider.LegacyPayout
		}
		rules = append(rules, rule)
	}
	return hindered(name, rules...)
}

func (d death) String() string {
	return map[bool]string{false: "", true: "keyless "}[d.keyless] + d.at + ", then the " + string(d.by)
}

// held says whether the function has come to its moment.
func (d death) held(t *testing.T, rules []faultproxy.RuleState) bool {
	t.Helper()
	if d.provider.Fault != "" {
		return providerMetBy(t, d.destination, d.provider.Fault) > 0
	}
	return slices.ContainsFunc(rules, func(r faultproxy.RuleState) bool {
		return r.Contains == trace(operationPayouts, d.name) && r.Fault == faultproxy.Pause && r.Applied > 0
	})
}

// deathsAtOnce is how many functions are brought to their moments before all are killed: each has to stay there until
// the last has come.
const deathsAtOnce = 4

// deathGroups are the places, in each try, of those that die at once. Whom the provider holds back dies alone: its call lasts five seconds.
func deathGroups() (groups [][]int) {
	var patient []int
	for i, d := range deaths[0] {
		if d.provider.Fault != "" {
			groups = append(groups, []int{i})
		} else {
			patient = append(patient, i)
		}
	}
	return slices.AppendSeq(groups, slices.Chunk(patient, deathsAtOnce))
}

// TestPayoutWhoseAPIFunctionDies runs alone until every function is dead and the clients' retries, with the worker deaf,
// have finished what is theirs. The platform finishes the rest beside other tests.
func TestPayoutWhoseAPIFunctionDies(t *testing.T) { // I1, I2, I6, I9; design.md: there is one recovery mechanism
	var mine []death
	t.Run("client", func(t *testing.T) {
		stream, queue := mappings(t) // a worker takes a claim over once it is over
		deafen(t, stream)
		deafen(t, queue)
		lease, err := time.ParseDuration(deployed.variables["CLAIM_LEASE"])
		must(t, err)
		for _, group := range deathGroups() {
			died, began := dieTogether(t, group)
			for _, d := range died {
				d.left(t, func() bool { return time.Since(began) >= lease })
			}
			mine = append(mine, died...)
		}
		for _, d := range mine {
			if d.by == byClient {
				t.Run(d.String(), func(t *testing.T) { t.Parallel(); d.finish(t) })
			}
		}
	})
	t.Parallel()
	eventually(t, delivered, func() string {
		sweep(t)
		for _, d := range mine {
			if d.by == byPlatform && d.unfinished(t) != "" {
				return d.String() + ": " + d.unfinished(t)
			}
		}
		return ""
	})
	for _, d := range mine {
		if d.by == byPlatform {
			t.Run(d.String(), func(t *testing.T) { t.Parallel(); d.finish(t) })
		}
	}
}

// dieTogether returns the deaths of a group in the first try in which every function has died at its moment, and when that began.
func dieTogether(t *testing.T, group []int) (some []death, began time.Time) {
	t.Helper()
	for _, all := range deaths {
		some = nil
		for _, i := range group {
			d := all[i]
			d.from = open(t, d.name, orderFunds)
			some = append(some, d)
		}
		began = time.Now()
		answered := killTogether(t, some)
		if len(answered) == 0 {
			return some, began
		}
		t.Logf("a function that was to die answered before: %q", answered)
	}
	t.Fatalf("in %d tries a function that was to die answered before", deathTries)
	return nil, began
}

// dying is a death whose request was sent.
type dying struct {
	death
	answer <-chan outcome
	got    *outcome // nil while there is none
}

// answered says that there was an answer already.
func (d *dying) answered() bool {
	if d.got == nil {
		select {
		case got := <-d.answer:
			d.got = &got
		default:
		}
	}
	return d.got != nil && d.got.err == nil
}

// wait waits for the answer, or until there is none.
func (d *dying) wait() {
	if d.got == nil {
		got := <-d.answer
		d.got = &got
	}
}

// killTogether brings the API function to the moment of each death, all at once, and kills it there. Nobody is killed where one was answered
// before: that is returned.
func killTogether(t *testing.T, some []death) (answered []string) {
	t.Helper()
	var rules []faultproxy.Rule
	for _, d := range some {
		for _, rule := range d.dynamodb {
			rule.Contains = trace(operationPayouts, d.name)
			rules = append(rules, rule)
		}
	}
	calm := disturb(t, rules...)
	all := make([]*dying, len(some))
	for i, d := range some {
		all[i] = &dying{death: d, answer: deployed.tenantA.begin(t, d.request())}
	}
	eventually(t, soon, func() string {
		now, err := deployed.dynamodb.Rules(t.Context())
		must(t, err)
		if slices.ContainsFunc(all, (*dying).answered) {
			return ""
		}
		for _, d := range all {
			if !d.held(t, now) {
				return "the function does not die " + d.String()
			}
		}
		return ""
	})
	die := !slices.ContainsFunc(all, (*dying).answered)
	if die {
		kill(t, deployed.variables["FUNCTION_API"])
		for _, d := range all {
			d.wait()
		}
	}
	for _, d := range all {
		if d.answered() && !(die && d.got.status >= http.StatusInternalServerError) { // the gateway's, of a dead function
			d.explained(t, d.got.reply)
			answered = append(answered, fmt.Sprintf("%s: %v", d, d.got.reply))
		}
	}
	calm()
	for _, d := range all { // who was held and lives goes on
		d.wait()
	}
	return answered
}

// explained fails the test unless a stall explains what was answered before the function died. What is held back was not committed: only a
// function that has found the last settlement in the table, whose reply was lost, knows the end.
func (d death) explained(t *testing.T, got reply) {
	t.Helper()
	end := http.StatusCreated
	if d.refusal != "" {
		end = unmades[d.refusal].status
	}
	ended := storage.State(text(record(t, operationPayouts, d.name), schema.State)).Final()
	if got.status != http.StatusAccepted && !got.starved() && !got.cutOff() && !(ended && got.status == end) {
		t.Errorf("%s: answered before it was committed: %v", d, got)
	}
}

// left fails the test unless the dead function has left what its moment says: the whole commit or nothing, and the
// chain's open message claimed. Once the claim may be over, what runs by schedule may have found out that nobody can know.
func (d death) left(t *testing.T, over func() bool) {
	t.Helper()
	id := d.operation(t)
	if (id != "") != (d.open > 0) {
		t.Errorf("%s: operation %q, want one after the commit only", d, id)
	}
	for n := 1; n <= 3; n++ {
		got := text(phaseRow(t, id, n), schema.State)
		foundOut := n == d.open && d.ambiguous() && got == string(storage.MessageUnknown) && over()
		if got != d.state(n) && !foundOut {
			t.Errorf("%s: message %d is %q, want it %q", d, n, got, d.state(n))
		}
	}
	screened, paid := d.made(t)
	if released := d.released(t); len(screened) != d.screenings || len(paid) != d.payouts || len(released) != d.releases {
		t.Errorf("%s: the provider made %+v, %+v and %+v, want %d, %d and %d", d, screened, paid, released, d.screenings, d.payouts, d.releases)
	}
}

// state is that of the n-th message when the function has died; "" where there is none.
func (d death) state(n int) string {
	switch {
	case n == 3 && d.refusal == "":
		return ""
	case n == 2 && n < d.open && d.refusal != "":
		return unmades[d.refusal].message
	case n < d.open:
		return "delivered"
	case n == 2 && n == d.open && d.refusal == "refused":
		return "pending" // the call was answered, and nothing is open
	case n == d.open:
		return "claimed"
	}
	return ""
}

// ambiguous says that nobody can know any more whether the payout was made.
func (d death) ambiguous() bool { return d.keyless && d.open == 2 }

// unfinished is what the platform has still to do for the operation; "" where nothing was committed.
func (d death) unfinished(t *testing.T) string {
	t.Helper()
	r := record(t, operationPayouts, d.name)
	if r == nil {
		return ""
	}
	id := operationOf(r)
	message, state := text(phaseRow(t, id, 2), schema.State), text(r, schema.State)
	switch {
	case d.ambiguous() && message == string(storage.MessageUnknown):
	case storage.State(state).Final():
	default:
		return fmt.Sprintf("the record is %s, the second message %q", state, message)
	}
	return ""
}

// finish takes the payout to its end by the client's requests, or finds it there.
func (d death) finish(t *testing.T) {
	t.Helper()
	if d.open == 0 && d.by == byPlatform {
		d.cost(t, 0, 0, 0)
	}
	if !d.ambiguous() {
		if d.refusal != "" {
			d.releasedOnce(t, unmades[d.refusal])
		} else {
			d.paidOnce(t)
		}
		if d.state(d.open) != "claimed" {
			return
		}
		if m := phaseRow(t, d.operation(t), d.open); m != nil && number(m, schema.Epoch) < 2 {
			t.Errorf("message %v, want it claimed by another than the dead", m)
		}
		return
	}
	d.probed(t, d.payouts)
}
