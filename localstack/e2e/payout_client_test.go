//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// payout is a payout as GET and the final answer show it.
type payout struct {
	ID                string  `json:"id"`
	Status            string  `json:"status"`
	From              string  `json:"from"`
	Amount            int64   `json:"amount"`
	Currency          string  `json:"currency"`
	Destination       string  `json:"destination"`
	ProviderReference *string `json:"provider_reference"`
	CreatedAt         string  `json:"created_at"`
}

// order is a payout of a test. Account and destination are its own, so that what became of the money shows.
type order struct{ name, from, destination string }

// What an order's account holds at first, and what is paid out.
const (
	orderFunds  = 1000
	orderAmount = 300
)

// iban is a destination that no fault meets.
func iban(name string) string { return "iban_" + name + "_" + run }

// placeable opens the account of an order.
func placeable(t *testing.T, name, destination string) order {
	t.Helper()
	return order{name, open(t, name, orderFunds), destination}
}

func (o order) request() request { return send(o.name, o.from, o.destination, orderAmount) }

// send is the request of a payout; its key is the name.
func send(name, from, destination string, amount int64) request {
	body := fmt.Sprintf(`{"from":%q,"amount":%d,"currency":"EUR","destination":%q}`, from, amount, destination)
	return request{method: http.MethodPost, path: payouts, key: named(name), body: body}
}

// operation is the id of the order's operation, known without asking the API; "" where there is none.
func (o order) operation(t *testing.T) idem.OperationID {
	t.Helper()
	return operationOf(record(t, operationPayouts, o.name))
}

// made are the objects that the order has at the provider: its screenings and its payouts.
func (o order) made(t *testing.T) (screened, paid []provider.Object) {
	t.Helper()
	screenings, err := deployed.provider.Screenings(t.Context())
	must(t, err)
	payouts, err := deployed.provider.Payouts(t.Context())
	must(t, err)
	return o.among(screenings), o.among(payouts)
}

// released are the releases that the order has at the provider.
func (o order) released(t *testing.T) []provider.Object {
	t.Helper()
	releases, err := deployed.provider.Releases(t.Context())
	must(t, err)
	return o.among(releases)
}

// holds fails the test unless so many of the order's screenings hold still, and each other hold was released once.
func (o order) holds(t *testing.T, standing int) {
	t.Helper()
	screened, _ := o.made(t)
	holds := map[provider.Hold]int{}
	for _, s := range screened {
		holds[s.Hold]++
	}
	released := slices.DeleteFunc(o.released(t), func(r provider.Object) bool { return r.Status != provider.Succeeded })
	if holds[provider.Standing] != standing || holds[provider.Released] != len(released) {
		t.Errorf("%d holds stand and %d do not, want %d to stand; released by %+v", holds[provider.Standing], holds[provider.Released], standing, released)
	}
}

func (o order) among(objects []provider.Object) (its []provider.Object) {
	for _, object := range objects {
		if object.Destination == o.destination {
			its = append(its, object)
		}
	}
	return its
}

// cost fails the test unless the provider has made that many objects of each kind, and the account holds that much less
// than at first.
func (o order) cost(t *testing.T, screenings, payouts int, spent int64) {
	t.Helper()
	if screened, paid := o.made(t); len(screened) != screenings || len(paid) != payouts {
		t.Errorf("the provider made %+v and %+v, want %d screenings and %d payouts", screened, paid, screenings, payouts)
	}
	if got := balance(t, o.from); got != orderFunds-spent {
		t.Errorf("the account holds %d, want %d", got, orderFunds-spent)
	}
}

// readPayout is the payout as it stands.
func (a api) readPayout(t *testing.T, id string) payout {
	t.Helper()
	return decode[payout](t, a.get(t, payouts+"/"+id).is(t, http.StatusOK))
}

// ended fails the test unless the order's operation and its payout say that they have ended by the answer, with the
// payout's status, and the answer is replayed byte for byte.
func (o order) ended(t *testing.T, payoutID, status string, final reply) {
	t.Helper()
	for range 2 {
		same(t, deployed.tenantA.do(t, o.request()).says(t, "replayed"), final)
	}
	if now := deployed.tenantA.readPayout(t, payoutID); now.Status != status {
		t.Errorf("GET shows %+v, want it %s", now, status)
	}
	op := deployed.tenantA.readOperation(t, o.operation(t))
	if op.CompletedAt == nil || op.Response == nil || op.Response.Status != final.status || op.Response.Body != string(final.body) {
		t.Errorf("operation %+v, want it ended by %v", op, final)
	}
}

// paidOnce takes the order to its end and fails the test unless it was screened once and paid out once, under the ids of
// its messages, and every way to ask says so. It returns the final answer and the two objects.
func (o order) paidOnce(t *testing.T) (final reply, screened, paid provider.Object) {
	t.Helper()
	final = deployed.tenantA.settle(t, o.request()).is(t, http.StatusCreated)
	o.cost(t, 1, 1, orderAmount)
	o.holds(t, 1)
	screenings, paidOut := o.made(t)
	if t.Failed() {
		t.FailNow()
	}
	screened, paid = screenings[0], paidOut[0]
	told := decode[payout](t, final)
	for n, object := range []provider.Object{screened, paid} {
		if key := o.operation(t).Message(n + 1); object.Key != string(key) || object.Reference != told.ID ||
			object.Amount != orderAmount || object.Status != provider.Succeeded {
			t.Errorf("phase %d made %+v, want %s under the key %s", n+1, object, told.ID, key)
		}
	}
	if told.ProviderReference == nil || *told.ProviderReference != paid.ID || told.Status != "succeeded" ||
		told.From != o.from || told.Amount != orderAmount || told.Currency != "EUR" || told.Destination != o.destination {
		t.Errorf("final answer %s, want it succeeded by %s", final.body, paid.ID)
	}
	o.ended(t, told.ID, "succeeded", final)
	return final, screened, paid
}

// unmade is why the provider does not make a payout after its screening, and how its operation ends.
type unmade struct {
	fault provider.Fault
	// payouts are its objects: one that is declined is an object.
	payouts      int
	status       int
	code, detail string
	// row and operation are the final states, and message that of the payout's message.
	row, operation, message string
}

var unmades = map[string]unmade{
	"declined": {provider.Decline, 1, http.StatusPaymentRequired, "payout_declined", "The funds are back on the account.", "declined", "failed", "declined"},
	"refused":  notExecuted(provider.Refuse),
	"starved":  notExecuted(provider.RateLimit),
}

func notExecuted(fault provider.Fault) unmade {
	return unmade{
		fault, 0, http.StatusBadGateway, "provider_unavailable", "The screening was executed and its hold released; the payout was not executed.",
		"failed", "failed", "cancelled",
	}
}

// releasedOnce takes the order to its end and fails the test unless it ended as a payout does that is not made: screened
// once, released once under the ids of its messages, the funds back, and every way to ask says so. It returns the release.
func (o order) releasedOnce(t *testing.T, u unmade) (released provider.Object) {
	t.Helper()
	final := deployed.tenantA.settle(t, o.request())
	final.isProblem(t, u.status, u.code)
	if !strings.Contains(string(final.body), u.detail) {
		t.Errorf("final answer %s, want %q", final.body, u.detail)
	}
	o.cost(t, 1, u.payouts, 0)
	o.holds(t, 0)
	screened, paid := o.made(t)
	releases := o.released(t)
	if t.Failed() || len(releases) != 1 {
		t.Fatalf("released by %+v, want one release", releases)
	}
	id, operation := screened[0].Reference, o.operation(t)
	if r := releases[0]; r.Key != string(operation.Message(3)) || r.Screening != screened[0].ID || r.Reference != id || r.Amount != orderAmount {
		t.Errorf("released by %+v, want it for %s under the key of message 3", r, id)
	}
	for n, want := range []string{"delivered", u.message, "delivered"} {
		if got := text(phaseRow(t, operation, n+1), schema.State); got != want {
			t.Errorf("message %d is %q, want it %q", n+1, got, want)
		}
	}
	o.ended(t, id, u.row, final)
	if now := deployed.tenantA.readPayout(t, id); (now.ProviderReference != nil) != (len(paid) > 0) {
		t.Errorf("GET shows %+v, want a reference to %+v", now, paid)
	}
	if op := deployed.tenantA.readOperation(t, operation); op.State != u.operation {
		t.Errorf("operation %+v, want it %s", op, u.operation)
	}
	o.cost(t, 1, u.payouts, 0) // whoever asked gave nothing back twice
	return releases[0]
}
