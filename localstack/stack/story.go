package stack

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/localstack/progress"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// story sends real requests to the stack and tells what came back. It fails where an answer is not the one promised, so
// that it never tells a fairy tale.
type story struct {
	client   *client
	provider provider.Control
	out      *progress.Printer
	keys     string // makes the keys of this telling its own
}

// Story tells what the stack does with a payment, its retry, duplicates, a mismatch and a dropped connection, and with a
// payout. The stack has to be up. An answer that breaks a promise is an error.
func (s *Stack) Story(ctx context.Context) error {
	variables, err := ReadVariables(s.options.EnvFile)
	if err != nil {
		return err
	}
	t := story{
		client: newClient(variables, variableTokenA), provider: provider.Control{URL: variables[variableProvider]},
		out: s.out, keys: strings.ToLower(rand.Text()[:8]),
	}
	t.out.Line("\nThe story: one tenant, its keys, and what they are worth. API_URL=%s", variables[variableAPI])
	for _, chapter := range []func(context.Context) error{t.payment, t.duplicates, t.droppedConnection, t.payout} {
		if err := chapter(ctx); err != nil {
			return fmt.Errorf("story: %w", err)
		}
	}
	t.out.Line("\nThe story is over; the stack stays up. `make down` stops it.")
	return nil
}

// payment follows one payment until it is settled, replays it and misuses its key.
func (t *story) payment(ctx context.Context) error {
	key := t.keys + "-first"
	body := fmt.Sprintf(`{"amount":1999,"currency":"EUR","source":"card_ok","reference":%q}`, key)
	t.out.Line("\n1. A payment. It is accepted at once; a worker charges the card afterwards.")
	first, err := t.post(ctx, paymentsPath, key, body, http.StatusAccepted)
	if err != nil {
		return err
	}
	final, err := t.settled(ctx, first)
	if err != nil {
		return err
	}
	t.out.Line("   GET %s: %s", t.paymentPath(first), final)
	t.out.Line("\n2. The same request again, as a client sends it that lost the answer: the stored answer, nothing is charged.")
	var bodies []string
	for range 2 {
		retry, err := t.post(ctx, paymentsPath, key, body, http.StatusCreated)
		if err != nil {
			return err
		}
		bodies = append(bodies, string(retry.body))
	}
	if bodies[0] != bodies[1] {
		return fmt.Errorf("two replays differ: %s and %s", bodies[0], bodies[1])
	}
	if err := t.charges(ctx, key); err != nil {
		return err
	}
	t.out.Line("\n3. The same key for another amount: a mistake of the client, told as such.")
	_, err = t.post(ctx, paymentsPath, key, strings.Replace(body, "1999", "2999", 1), http.StatusUnprocessableEntity)
	return err
}

const duplicateCount = 20

// duplicates sends the same request many times at once.
func (t *story) duplicates(ctx context.Context) error {
	key := t.keys + "-twenty"
	body := fmt.Sprintf(`{"amount":500,"currency":"EUR","source":"card_twenty","reference":%q}`, key)
	t.out.Line("\n4. %d duplicates at the same moment: one executes, all the others get its answer or are told to come back.", duplicateCount)
	var group sync.WaitGroup
	answers, failed := make([]answer, duplicateCount), make([]error, duplicateCount)
	for i := range duplicateCount {
		group.Go(func() { answers[i], failed[i] = t.client.post(ctx, paymentsPath, key, body) })
	}
	group.Wait()
	counts := map[string]int{}
	accepted := answer{}
	for i, one := range answers {
		if failed[i] != nil {
			return failed[i]
		}
		counts[fmt.Sprintf("%d %s", one.status, one.header.Get("Idempotency-Status"))]++
		if one.status == http.StatusAccepted {
			accepted = one
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		t.out.Line("   %2d × %s", counts[kind], kind)
	}
	if accepted.status == 0 {
		return fmt.Errorf("none of %d duplicates was accepted: %v", duplicateCount, counts)
	}
	if _, err := t.settled(ctx, accepted); err != nil {
		return err
	}
	return t.charges(ctx, key)
}

// droppedConnection makes the provider charge and then hang up: nobody knows what happened, until the same downstream
// key is sent again.
func (t *story) droppedConnection(ctx context.Context) error {
	key, source := t.keys+"-dropped", "card_dropped_"+t.keys
	t.out.Line("\n5. The provider charges the card, then drops the connection before it answers.")
	err := t.provider.Faults(ctx, provider.Rule{On: provider.Charge, Source: source, Fault: provider.DropAfter, Times: 1})
	if err != nil {
		return err
	}
	body := fmt.Sprintf(`{"amount":700,"currency":"EUR","source":%q,"reference":%q}`, source, key)
	first, err := t.post(ctx, paymentsPath, key, body, http.StatusAccepted)
	if err != nil {
		return err
	}
	final, err := t.settled(ctx, first)
	if err != nil {
		return err
	}
	t.out.Line("   GET %s: %s, because the worker asked again with the same key", t.paymentPath(first), final)
	return t.charges(ctx, key)
}

// payout goes through both of its phases within its own request.
func (t *story) payout(ctx context.Context) error {
	key, destination := t.keys+"-payout", "iban_"+t.keys
	t.out.Line("\n6. A payout: a screening and a payment out, two calls to the provider, in one request. A worker finishes what is left.")
	body := fmt.Sprintf(`{"from":"acct_1","amount":500,"currency":"EUR","destination":%q}`, destination)
	first, err := t.post(ctx, "/v1/payouts", key, body, http.StatusCreated)
	if err != nil {
		return err
	}
	retry, err := t.post(ctx, "/v1/payouts", key, body, http.StatusCreated)
	if err != nil {
		return err
	}
	if string(retry.body) != string(first.body) {
		return fmt.Errorf("a replay differs: %s and %s", first.body, retry.body)
	}
	return t.paidOut(ctx, first.text("id"))
}

// paidOut tells how many screenings and payouts the provider has made for a payout, and fails where it is not one of each.
func (t *story) paidOut(ctx context.Context, payout string) error {
	screenings, err := t.provider.Screenings(ctx)
	if err != nil {
		return err
	}
	payouts, err := t.provider.Payouts(ctx)
	if err != nil {
		return err
	}
	screened, paid := madeFor(screenings, payout), madeFor(payouts, payout)
	t.out.Line("   provider: screenings made: %d, payouts made: %d", len(screened), len(paid))
	if len(screened) != 1 || len(paid) != 1 {
		return fmt.Errorf("the provider made %d screenings and %d payouts for %s, expected one of each", len(screened), len(paid), payout)
	}
	return nil
}

// madeFor are the objects with the reference.
func madeFor(objects []provider.Object, reference string) []provider.Object {
	return slices.DeleteFunc(objects, func(o provider.Object) bool { return o.Reference != reference })
}

const paymentsPath = "/v1/payments"

// post sends a request, tells the answer, and fails where its status is another than want.
func (t *story) post(ctx context.Context, path, key, body string, want int) (answer, error) {
	got, err := t.client.post(ctx, path, key, body)
	if err != nil {
		return answer{}, err
	}
	t.out.Line("   POST %s  Idempotency-Key: %q  %s", path, key, body)
	t.out.Line("   → %d %s  %s", got.status, got.header.Get("Idempotency-Status"), abridged(got.body))
	if got.status != want {
		return got, fmt.Errorf("POST %s answered %d, expected %d: %s", path, got.status, want, got.body)
	}
	return got, nil
}

func (t *story) paymentPath(accepted answer) string {
	return paymentsPath + "/" + accepted.text("payment", "id")
}

// Bounds of the wait for a worker: the emulators poll streams about once a second; a lost answer costs a lease on top.
const (
	settledWithin = 60 * time.Second
	settledPoll   = 200 * time.Millisecond
)

// settled waits until the operation of a 202 has a final answer, and returns the payment's status.
func (t *story) settled(ctx context.Context, accepted answer) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, settledWithin)
	defer cancel()
	location := accepted.header.Get("Location")
	for {
		operation, err := t.client.get(ctx, location)
		if err != nil {
			return "", err
		}
		state := operation.text("state")
		if operation.status == http.StatusOK && (state == "completed" || state == "failed") {
			break
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%s is %q after %s: %w", location, state, settledWithin, ctx.Err())
		case <-time.After(settledPoll):
		}
	}
	payment, err := t.client.get(ctx, t.paymentPath(accepted))
	return payment.text("status"), err
}

// charges tells how many charges the provider has made for a reference, and fails where it is not exactly one.
func (t *story) charges(ctx context.Context, reference string) error {
	all, err := t.provider.Charges(ctx)
	if err != nil {
		return err
	}
	made, attempts := madeFor(all, reference), 0
	for _, charge := range made {
		attempts += charge.Attempts
	}
	t.out.Line("   provider: charges made: %d, requests for them: %d", len(made), attempts)
	if len(made) != 1 {
		return fmt.Errorf("the provider made %d charges for %s, expected one", len(made), reference)
	}
	return nil
}

const abridgedMax = 160

// abridged is a body on one line.
func abridged(body []byte) string {
	line := strings.Join(strings.Fields(string(body)), " ")
	if len(line) > abridgedMax {
		return line[:abridgedMax] + "…"
	}
	return line
}
