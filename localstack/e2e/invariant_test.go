//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// leftovers are everything that the stack holds after a run.
type leftovers struct {
	records, messages, rows []item
	objects                 []provider.Object
}

// brokenInvariants waits until everything has come to its end, with no client left, and returns what is wrong with what
// is there (docs/design.md "Invariants").
func brokenInvariants(ctx context.Context) []string {
	left, unfinished, err := quiet(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	drifted, err := drifting(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	logged, err := leaks(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	seen, err := audited(ctx, left)
	if err != nil {
		return []string{err.Error()}
	}
	return slices.Concat(unfinished, left.broken(), drifted, logged, seen)
}

// broken is what is wrong with what is there.
func (l leftovers) broken() []string {
	return slices.Concat(l.money(), l.refunds(), l.madeOnce(), l.together(), l.statuses())
}

// quiet collects what is there once nothing is under way. Sweep, worker and reconciler have to manage alone (I9): what does
// not end, and does not stand before an operator either, is returned as unfinished. So is that the fault proxy still holds requests:
// what they change is missing from what is there.
func quiet(ctx context.Context) (left leftovers, unfinished []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, delivered)
	defer cancel()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	unfinished = []string{"I9: there was no time to look at what is there"}
	for {
		current, open, err := look(ctx)
		if ctx.Err() != nil {
			return left, unfinished, nil
		}
		if err != nil {
			return left, nil, err
		}
		if left, unfinished = current, open; len(unfinished) == 0 {
			return left, nil, nil
		}
		if err := hasten(ctx); err != nil && ctx.Err() == nil {
			return left, nil, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return left, unfinished, nil
		}
	}
}

// look collects what is there now, and says what of it has not ended.
func look(ctx context.Context) (current leftovers, unfinished []string, err error) {
	if current, err = collect(ctx); err != nil {
		return current, nil, err
	}
	waiting, err := deployed.dynamodb.Waiting(ctx)
	return current, append(current.unfinished(), heldBack(waiting, err)...), nil
}

// heldBack says that the fault proxy holds requests, or that nobody knows.
func heldBack(waiting faultproxy.Waiting, err error) []string {
	switch {
	case err != nil:
		return []string{fmt.Sprintf("I9: nobody knows what the proxy still holds: %v", err)}
	case waiting != (faultproxy.Waiting{}):
		return []string{fmt.Sprintf("I9: the proxy still holds requests: %d paused, %d delayed, %d late", waiting.Paused, waiting.Delayed, waiting.Late)}
	}
	return nil
}

// hasten runs sweep and reconciler once, as their schedule does every minute.
func hasten(ctx context.Context) error {
	for _, name := range []string{"FUNCTION_SWEEP", "FUNCTION_RECONCILE"} {
		_, err := deployed.functions.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(deployed.variables[name]), Payload: []byte(`{}`)})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func collect(ctx context.Context) (left leftovers, err error) {
	for _, table := range []struct {
		name  string
		items *[]item
	}{{"IDEMPOTENCY", &left.records}, {"OUTBOX", &left.messages}, {"PAYMENTS", &left.rows}} {
		if *table.items, err = scan(ctx, table.name); err != nil {
			return left, err
		}
	}
	for _, list := range []func(context.Context) ([]provider.Object, error){
		deployed.provider.Charges, deployed.provider.Refunds, deployed.provider.Screenings, deployed.provider.Releases,
		deployed.provider.Payouts,
	} {
		objects, err := list(ctx)
		if err != nil {
			return left, err
		}
		left.objects = append(left.objects, objects...)
	}
	return left, nil
}

// by indexes items by an attribute.
func by(items []item, attribute string) map[string]item {
	index := make(map[string]item, len(items))
	for _, it := range items {
		index[text(it, attribute)] = it
	}
	return index
}

// parked says that a message stands before an operator. What is unknown does not: a probe decides it.
func parked(message item) bool {
	return storage.MessageState(text(message, schema.State)) == storage.MessageDead
}

// settled says that nothing is left to do for a message but by an operator.
func settled(message item) bool {
	return storage.MessageState(text(message, schema.State)).Final() || parked(message)
}

// unfinished are messages neither final nor parked, and records that nobody will end without a client (I3, I9).
func (l leftovers) unfinished() []string {
	messages := by(l.messages, schema.MessageID)
	var open []string
	for id, m := range messages {
		if !settled(m) {
			open = append(open, fmt.Sprintf("I3: message %s is %s", id, text(m, schema.State)))
		}
	}
	for _, r := range l.records {
		if !ended(r, messages) {
			open = append(open, fmt.Sprintf("I9: record of %s is %s", operationOf(r), text(r, schema.State)))
		}
	}
	return open
}

// ended: the record is final, or waits for a message that is parked, or is free for a retry and goes by TTL without one.
func ended(record item, messages map[string]item) bool {
	switch state := storage.State(text(record, schema.State)); state {
	case storage.StatePending:
		all := chain(messages, operationOf(record))
		return len(all) > 0 && parked(all[len(all)-1])
	case storage.StateInProgress, storage.StateFailedRetryable:
		free := state == storage.StateFailedRetryable || time.UnixMilli(number(record, schema.LeaseUntil)).Before(time.Now())
		return free && number(record, schema.TTL) > 0
	default:
		return state.Final()
	}
}

// money is conserved: each seeded account and each of this run's holds what it began with and what its transfers moved,
// less what its payouts have taken and not given back (I6). What waits for a collecting account is not in its balance yet.
func (l leftovers) money() (broken []string) {
	opened.Lock()
	defer opened.Unlock()
	began, moved := map[string]int64{}, map[string]int64{}
	for _, tenant := range []string{"tenant-a", "tenant-b"} {
		began[accountKeys+tenant+"/acct_1"], began[accountKeys+tenant+"/acct_2"] = 100_000_000, 0
	}
	maps.Copy(began, opened.balances)
	for _, it := range l.rows {
		key, prefix := text(it, attributeKey), accountKeys+text(it, attributeTenant)+"/"
		transferred := strings.HasPrefix(key, transferKeys)
		if transferred || strings.HasPrefix(key, payoutKeys) && kept(it) {
			moved[prefix+text(it, attributeFrom)] -= number(it, attributeAmount)
		}
		if _, waits := it[attributeWaits]; transferred && !waits {
			moved[prefix+text(it, attributeTo)] += number(it, attributeAmount)
		}
	}
	accounts := by(l.rows, attributeKey)
	for key, balance := range began {
		if got, want := number(accounts[key], attributeBalance), balance+moved[key]; got != want {
			broken = append(broken, fmt.Sprintf("I6: %s holds %d, want %d", key, got, want))
		}
	}
	return broken
}

// kept says that a payout or refund has its money: it left, or may have.
func kept(it item) bool {
	status := text(it, attributeStatus)
	return status == "succeeded" || status == "pending"
}

// refunds: of each payment that much is refunded as its refunds say, and never more than was paid (I6).
func (l leftovers) refunds() (broken []string) {
	sums := map[string]int64{}
	for _, it := range l.rows {
		if strings.HasPrefix(text(it, attributeKey), refundKeys) && kept(it) {
			sums[paymentKeys+text(it, attributeTenant)+"/"+text(it, attributePayment)] += number(it, attributeAmount)
		}
	}
	for _, it := range l.rows {
		key := text(it, attributeKey)
		if !strings.HasPrefix(key, paymentKeys) {
			continue
		}
		if got, most := number(it, attributeRefunded), number(it, attributeAmount); got != sums[key] || got > most {
			broken = append(broken, fmt.Sprintf("I6: %d of the %d of %s are refunded, its refunds say %d", got, most, key, sums[key]))
		}
		delete(sums, key)
	}
	if len(sums) > 0 {
		broken = append(broken, fmt.Sprintf("I6: refunds of payments that are not there: %v", sums))
	}
	return broken
}

// denied is what AWS and ministack say of what no policy allows. What is tried again later may end well, and nobody would notice.
const denied = "is not authorized to perform"

// leaks are log lines with anything that a client has sent: every key, source, reference and account of this run bears its
// name (logs carry a hash of the key and never bodies or tokens); and lines of what a function's role may not do.
func leaks(ctx context.Context) (broken []string, err error) {
	secrets := []string{run, deployed.tenantA.token, deployed.tenantB.token}
	lines := 0
	for _, name := range slices.Sorted(maps.Keys(deployed.variables)) {
		function := deployed.variables[name]
		if !strings.HasPrefix(name, "FUNCTION_") {
			continue
		}
		messages, err := logOf(ctx, function)
		if err != nil {
			return nil, err
		}
		lines += len(messages)
		for _, message := range messages {
			if strings.Contains(message, denied) {
				broken = append(broken, fmt.Sprintf("the role of %s lacks a permission: %.600s", name, message))
			}
			for i, secret := range secrets {
				if strings.Contains(message, secret) {
					broken = append(broken, fmt.Sprintf("the log of %s shows %s: %.300s", name, []string{"what a client sent", "a token", "a token"}[i], message))
				}
			}
		}
	}
	if lines == 0 {
		broken = append(broken, "the functions have logged nothing that could be looked at")
	}
	return broken, nil
}
