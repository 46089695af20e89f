//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/chaos"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/progress"
	"github.com/idem-go/idem-aws/localstack/provider"
)

var weatherSeed = flag.Uint64("weather.seed", 7, "seed of the faults that DynamoDB answers at a rate")

// skies are what DynamoDB answers at a rate, by operation: every error of the real service that a request of it can meet.
// Two of five transactions meet one.
var skies = map[string][]struct {
	chance float64
	steps  []faultproxy.Step
}{
	"TransactWriteItems": {
		{0.04, []faultproxy.Step{{Fault: faultproxy.Conflict}}},
		{0.04, []faultproxy.Step{{Fault: faultproxy.Conflict, Item: faultproxy.EveryItem}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.Throttle}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.Throttle, Code: faultproxy.Throttling}}},
		{0.02, []faultproxy.Step{{Fault: faultproxy.Throttle, Code: faultproxy.RequestLimitExceeded}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.Throttle, Code: faultproxy.TransactionCanceled}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.Throttle, Code: faultproxy.TransactionCanceled, Reason: faultproxy.ReasonThroughput, Item: 1}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.InProgress}}},
		{0.02, []faultproxy.Step{{Fault: faultproxy.Mismatch}}},
		{0.02, []faultproxy.Step{{Fault: faultproxy.Expired}}},
		{0.02, []faultproxy.Step{{Fault: faultproxy.Refuse500}}},
		{0.02, []faultproxy.Step{{Fault: faultproxy.Refuse503}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.Fail500}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.Fail503}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.CutReply}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.DelayReply, DelayMillis: 400}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.Late, DelayMillis: 400}}},
		{0.04, []faultproxy.Step{{Fault: faultproxy.DropReply}, {Fault: faultproxy.Throttle}, {Fault: faultproxy.InProgress}}},
	},
	"PutItem": { // reserves, claims, releases
		{0.04, []faultproxy.Step{{Fault: faultproxy.Conflict}}},
		{0.04, []faultproxy.Step{{Fault: faultproxy.Throttle}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.Throttle, Code: faultproxy.Throttling}}},
		{0.02, []faultproxy.Step{{Fault: faultproxy.Throttle, Code: faultproxy.RequestLimitExceeded}}},
		{0.02, []faultproxy.Step{{Fault: faultproxy.Refuse500}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.Fail503}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.CutReply}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.Late, DelayMillis: 400}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.DropReply}}},
	},
	"GetItem": {
		{0.04, []faultproxy.Step{{Fault: faultproxy.Throttle}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.Refuse500}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.CutReply}}},
	},
	"Query": { // the queues of sweep and reconciler
		{0.04, []faultproxy.Step{{Fault: faultproxy.Throttle}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.Refuse500}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.CutReply}}},
		{0.03, []faultproxy.Step{{Fault: faultproxy.DelayReply, DelayMillis: 400}}},
	},
}

// weatherRules are the skies' under a seed, each with its own. Each fault is injected once for certain, spread over the
// first requests, so that no run shows less than another.
func weatherRules(seed uint64) (certain, atRate []faultproxy.Rule) {
	for operation, clouds := range skies {
		for i, cloud := range clouds {
			rule := wireError{step: cloud.steps[0]}.rule(operation, 2*i, 1)
			rule.Then = cloud.steps[1:]
			certain = append(certain, rule)
			rule.After, rule.Times, rule.Chance, rule.Seed = 0, 0, cloud.chance, seed*100+uint64(i)
			atRate = append(atRate, rule)
		}
	}
	return certain, atRate
}

// What the test begins with, and what its clients ask for, all at once.
const (
	weatherPurse   = 50 // each of three accounts at first
	weatherMoved   = 30 // by each transfer; not all of them are possible
	weatherMoves   = 60
	weatherPaid    = 20
	weatherKeyless = 10  // payments whose provider ignores keys: it is called once at most
	weatherRefund  = 300 // of the 1999 of one payment
	weatherRefunds = 12
	weatherPayouts = 10 // of orderAmount, from one account of orderFunds
)

// weather is one run: the requests, and what is theirs alone.
type weather struct {
	*loop
	purses [3]string
	paid   payment
	charge provider.Object
	order  order
}

// TestMoneyAddsUpInBadWeather runs alone. Transfers among three accounts, refunds of one payment, payouts from one account,
// and payments race each other, while DynamoDB answers with every error of the real service at a rate. The clients send
// again as documented. In the end the provider's books, the rows and what clients were told are the same.
func TestMoneyAddsUpInBadWeather(t *testing.T) { // design.md I1 to I6, I9
	defer during(ofWeather)()
	w := newWeather(t)
	defer w.figures.print(w.out)
	certain, atRate := weatherRules(*weatherSeed)
	w.out.Line("weather: seed %d; again: -run %s -weather.seed %d", *weatherSeed, t.Name(), *weatherSeed)
	must(t, deployed.dynamodb.Reset(t.Context())) // the counts are this test's
	calm := disturb(t, slices.Concat(certain, atRate)...)
	w.race(t)
	w.tally(t, len(certain))
	calm()
	w.end(t)
	w.judge(t)
	for _, what := range w.wrong {
		t.Error(what)
	}
}

func newWeather(t *testing.T) *weather {
	t.Helper()
	w := &weather{loop: &loop{out: progress.New(os.Stdout), began: time.Now()}}
	for i := range w.purses {
		w.purses[i] = open(t, fmt.Sprintf("weather-%d", i), weatherPurse)
	}
	w.paid, w.charge = paid(t, "weather-paid", card("weather"))
	w.order = placeable(t, "weather-payouts", iban("weather"))
	for i := range weatherMoves {
		from := i % len(w.purses)
		to := (from + 1 + i%2) % len(w.purses)
		w.story(operationTransfers, move(fmt.Sprintf("weather-move-%d", i), w.purses[from], w.purses[to], weatherMoved))
	}
	for i := range weatherPaid {
		w.story(operationPayments, pay(fmt.Sprintf("weather-pay-%d", i), card("weather")))
	}
	for i := range weatherKeyless {
		w.story(operationPayments, pay(fmt.Sprintf("weather-keyless-%d", i), fmt.Sprintf("legacy_weather_%s_%d", run, i)))
	}
	for i := range weatherRefunds {
		w.story(operationRefunds, giveBack(fmt.Sprintf("weather-refund-%d", i), w.paid.ID, weatherRefund))
	}
	for i := range weatherPayouts {
		w.story(operationPayouts, send(fmt.Sprintf("weather-payout-%d", i), w.order.from, w.order.destination, orderAmount))
	}
	return w
}

// story adds a request, and hears all that its client is told.
func (w *weather) story(operation string, r request) {
	w.stories = append(w.stories, &story{
		loop: w.loop, plan: chaos.Request{Tenant: chaos.TenantA}, operation: operation, name: r.key, request: r,
	})
}

// race lets all clients begin at once. Half of them use idem/client; the others send again by Retry-After. Meanwhile sweep and
// reconciler run every second: they read queues in this weather, too.
func (w *weather) race(t *testing.T) {
	t.Helper()
	began := time.Now()
	ctx, over := context.WithCancel(t.Context())
	var runs, clients sync.WaitGroup
	runs.Go(func() {
		for ctx.Err() == nil {
			if err := hasten(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("beside the clients: %v", err)
			}
			idle(ctx, time.Second)
		}
	})
	defer runs.Wait()
	defer over()
	for i, s := range w.stories {
		clients.Go(func() {
			if i%2 == 0 {
				s.library(t.Context(), true)
			} else {
				s.insist(t.Context(), finally)
			}
		})
	}
	clients.Wait()
	w.figures.add(tableSpans, fmt.Sprintf("%d clients at once, until the last was answered or gave up", len(w.stories)), int(time.Since(began).Milliseconds()))
}

// tally counts what was injected, and fails the test where one of the first rules never applied: then the test would show
// less than it says.
func (w *weather) tally(t *testing.T, certain int) {
	t.Helper()
	counts, err := deployed.dynamodb.Counts(t.Context())
	must(t, err)
	total := 0
	for _, c := range counts.Faults {
		w.figures.add(tableDynamoDB, strings.TrimRight(fmt.Sprintf("%s %s %s", c.Operation, c.Fault, c.Code), " "), c.Count)
		total += c.Count
	}
	w.figures.add(tableDynamoDB, "all faults", total)
	w.figures.add(tableDynamoDB, "all requests", counts.Requests)
	for _, of := range counts.Operations {
		w.figures.add(tableRetries, "requests to DynamoDB, "+of.Operation, of.Requests)
		if of.Again > 0 {
			w.figures.add(tableRetries, "writes that a function sent again as they were, "+of.Operation, of.Again)
		}
	}
	w.figures.add(tableRetries, "requests that clients sent again", w.figures.sum(tableRequests, "requests sent")-len(w.stories))
	states, err := deployed.dynamodb.Rules(t.Context())
	must(t, err)
	for _, rule := range states[:certain] {
		if rule.Applied == 0 {
			t.Errorf("%s %s %s never applied in %d matches", rule.Operation, rule.Fault, rule.Code, rule.Matched)
		}
	}
}

// end waits until nothing is open, and takes every request to its final answer, without faults: the judges hear whether it
// is the one that was told before.
func (w *weather) end(t *testing.T) {
	t.Helper()
	began := time.Now()
	w.settle(t)
	var clients sync.WaitGroup
	for _, s := range w.stories {
		clients.Go(func() {
			for range 3 {
				if s.insist(t.Context(), finally) {
					return
				}
			}
			s.blame("I3: no final answer")
		})
	}
	clients.Wait()
	w.settle(t)
	w.figures.add(tableSpans, "until all had their end and their final answer, without faults", int(time.Since(began).Milliseconds()))
}

// settle runs the sweep until nothing of the run is open, as its schedule does every minute: a stream mapping of the
// emulator drops what a worker reports as failed.
func (w *weather) settle(t *testing.T) {
	t.Helper()
	eventually(t, delivered, func() string {
		left, err := w.mine(t.Context())
		must(t, err)
		unfinished := left.unfinished()
		if len(unfinished) > 0 {
			must(t, hasten(t.Context()))
		}
		return strings.Join(unfinished, "; ")
	})
}

// mine are the records of the run's requests, and their messages.
func (w *weather) mine(ctx context.Context) (mine leftovers, err error) {
	left, err := collect(ctx)
	if err != nil {
		return mine, err
	}
	records, operations := by(left.records, schema.RecordKey), map[string]bool{}
	for _, s := range w.stories {
		if r := records[string(s.key())]; r != nil {
			mine.records = append(mine.records, r)
			operations[string(operationOf(r))] = true
		}
	}
	for _, m := range left.messages {
		if operation, _, _ := strings.Cut(text(m, schema.MessageID), "."); operations[operation] {
			mine.messages = append(mine.messages, m)
		}
	}
	mine.rows = left.rows
	return mine, nil
}

// judge compares what clients were told with rows and with the provider's books.
func (w *weather) judge(t *testing.T) {
	t.Helper()
	left, err := w.mine(t.Context())
	must(t, err)
	for _, m := range left.messages {
		if parked(m) {
			t.Errorf("I3: message %s is dead", text(m, schema.MessageID))
		}
	}
	records, told := by(left.records, schema.RecordKey), map[string]int{}
	for _, s := range w.stories {
		r := records[string(s.key())]
		s.notLost(r)
		if !storage.State(text(r, schema.State)).Final() || s.final == nil {
			s.blame("I3: the record is %q", text(r, schema.State))
			continue
		}
		if status := s.final.status; status != http.StatusCreated && status != http.StatusPaymentRequired {
			s.blame("I4: ended by %v", s.final)
		}
		told[fmt.Sprintf("%s %d", s.operation, s.final.status)]++
		if s.operation == operationPayments {
			charges := chargesOf(t, s.request.key)
			s.chargedAsTold(r, charges)
			w.called(s, charges)
		}
	}
	for what, n := range told {
		w.figures.add(tableOperations, what, n)
	}
	w.moved(t, left.rows)
	w.givenBack(t, told)
	w.paidOut(t, told)
}

// called: a provider that ignores keys was called once, and what was called again under a key is counted. That there was no call more
// than claims is looked at when all tests are over.
func (w *weather) called(s *story, charges []provider.Object) {
	for _, charge := range charges {
		if charge.Kind == provider.LegacyCharge {
			w.figures.add(tableRetries, "calls of a provider that ignores keys, beyond one for each charge", charge.Attempts-1)
			if charge.Attempts != 1 {
				s.blame("I2: a provider that ignores keys was called %d times: %+v", charge.Attempts, charge)
			}
			continue
		}
		w.repeated("charges", charge)
	}
}

// repeated counts the calls under a key that the provider had seen.
func (w *weather) repeated(what string, made ...provider.Object) {
	for _, object := range made {
		w.figures.add(tableRetries, "calls of the provider under a key that it had seen, for "+what, object.Attempts-1)
	}
}

// moved: each transfer that a client was told has one row, each other none, and the balances follow from what was told.
func (w *weather) moved(t *testing.T, rows []item) {
	t.Helper()
	want := map[string]int64{}
	for _, purse := range w.purses {
		want[purse] = weatherPurse
	}
	told := map[string]bool{}
	for _, s := range w.stories {
		if s.operation == operationTransfers && s.final != nil && s.final.status == http.StatusCreated {
			made := decode[transfer](t, *s.final)
			want[made.From] -= made.Amount
			want[made.To] += made.Amount
			told[made.ID] = true
		}
	}
	for _, it := range rows {
		if _, mine := want[text(it, attributeFrom)]; !mine || !strings.HasPrefix(text(it, attributeKey), transferKeys) {
			continue
		}
		if id := text(it, attributeID); !told[id] {
			t.Errorf("I2: transfer %v, which nobody was told of", it)
		} else {
			delete(told, id)
		}
	}
	if len(told) > 0 {
		t.Errorf("I3: transfers that were told and are not there: %v", told)
	}
	sum := int64(0)
	for purse, holds := range want {
		got := balance(t, purse)
		sum += got
		if got != holds || got < 0 {
			t.Errorf("I6: %s holds %d, want %d", purse, got, holds)
		}
	}
	if sum != weatherPurse*int64(len(w.purses)) {
		t.Errorf("I6: the accounts hold %d together, want %d", sum, weatherPurse*len(w.purses))
	}
}

// givenBack: the provider has one refund for each that was told, and the payment says their sum.
func (w *weather) givenBack(t *testing.T, told map[string]int) {
	t.Helper()
	n := told[operationRefunds+" 201"]
	made := refundsOf(t, w.charge)
	w.repeated("refunds", made...)
	if len(made) != n || n != int(w.paid.Amount/weatherRefund) {
		t.Errorf("I2: the provider made %d refunds, %d were told, and %d fit into the payment", len(made), n, w.paid.Amount/weatherRefund)
	}
	refunded(t, w.paid.ID, int64(n)*weatherRefund)
}

// paidOut: the provider has one screening and one payout for each that was told, and the account holds the rest.
func (w *weather) paidOut(t *testing.T, told map[string]int) {
	t.Helper()
	n := told[operationPayouts+" 201"]
	if n != orderFunds/orderAmount {
		t.Errorf("I6: %d payouts were told, and the account affords %d", n, orderFunds/orderAmount)
	}
	screened, paid := w.order.made(t)
	w.repeated("screenings and payouts", slices.Concat(screened, paid)...)
	w.order.cost(t, n, n, int64(n)*orderAmount)
	w.order.holds(t, n)
}
