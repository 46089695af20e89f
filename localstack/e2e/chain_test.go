//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// chained is a deferred operation, what it is about, and the provider's objects for its messages, in their order.
type chained struct {
	operation, rows, prefix string
	phases                  [][]provider.Kind
}

var chains = []chained{
	{operationPayments, paymentKeys, "pay_", [][]provider.Kind{{provider.Charge, provider.LegacyCharge}}},
	{operationRefunds, refundKeys, "re_", [][]provider.Kind{{provider.Refund}}},
	{operationPayouts, payoutKeys, "po_", [][]provider.Kind{{provider.Screening}, {provider.Payout, provider.LegacyPayout}}},
}

// row is the key of the row that the operation of a record is about.
func (c chained) row(record item) string {
	const random = 22 // characters of an operation id that are its own; its row's id has them too
	id := text(record, schema.OperationID)
	return c.rows + text(record, schema.Tenant) + "/" + c.prefix + strings.NewReplacer("-", "0", "_", "1").Replace(id[len(id)-random:])
}

// chain is the messages of an operation, in their order.
func chain(messages map[string]item, id idem.OperationID) (all []item) {
	for {
		m, there := messages[string(id.Message(len(all)+1))]
		if !there {
			return all
		}
		all = append(all, m)
	}
}

// madeOnce: at the provider at most one object for each downstream key, none that no message asked for, and at most one
// request for each claim (I2; peers.md H18).
func (l leftovers) madeOnce() (broken []string) {
	messages, made := by(l.messages, schema.MessageID), map[string]int{}
	for _, object := range l.objects {
		if made[object.Key]++; made[object.Key] > 1 {
			broken = append(broken, fmt.Sprintf("I2: %d objects with the key %s", made[object.Key], object.Key))
		}
		m, known := messages[object.Key]
		if !known {
			broken = append(broken, fmt.Sprintf("I2: %s %s has a key that no message has", object.Kind, object.ID))
		}
		if claims := number(m, schema.Epoch); int64(object.Attempts) > claims {
			broken = append(broken, fmt.Sprintf("H18: %d claims of %s sent %d requests", claims, object.Key, object.Attempts))
		}
	}
	return broken
}

// together: the record of a deferred operation, its chain and its row are all there, or there is only the record, of what
// was refused (I1).
func (l leftovers) together() (broken []string) {
	messages, rows := by(l.messages, schema.MessageID), by(l.rows, attributeKey)
	linked, known := 0, 0
	for _, c := range chains {
		for _, r := range l.records {
			if text(r, schema.OperationName) != c.operation {
				continue
			}
			id := idem.OperationID(text(r, schema.OperationID))
			all := chain(messages, id)
			linked += len(all)
			refused := idem.State(text(r, schema.State)).Final() && number(r, schema.ResponseStatus) >= 400
			if there := rows[c.row(r)] != nil; there != (len(all) > 0) || !there && !refused || len(all) > len(c.phases) {
				broken = append(broken, fmt.Sprintf("I1: the record of %s is %s, there are %d messages, its row is there: %t",
					id, text(r, schema.State), len(all), there))
			}
			if rows[c.row(r)] != nil {
				known++
			}
		}
		for key := range rows {
			if strings.HasPrefix(key, c.rows) {
				known--
			}
		}
	}
	if linked != len(l.messages) || known != 0 {
		broken = append(broken, fmt.Sprintf("I1: %d messages and %d rows belong to no record", len(l.messages)-linked, -known))
	}
	return broken
}

// statuses: what a row says is what its chain and the provider's objects say, and the provider has no others (I2).
func (l leftovers) statuses() (broken []string) {
	messages, rows := by(l.messages, schema.MessageID), by(l.rows, attributeKey)
	objects := map[string]provider.Object{}
	for _, object := range l.objects {
		objects[object.Key] = object
	}
	for _, c := range chains {
		for _, r := range l.records {
			it := rows[c.row(r)]
			if text(r, schema.OperationName) != c.operation || it == nil {
				continue
			}
			all := chain(messages, idem.OperationID(text(r, schema.OperationID)))
			if wrong := c.wrong(it, all, objects); wrong != "" {
				broken = append(broken, fmt.Sprintf("I2: %s is %s, but %s", text(it, attributeKey), text(it, attributeStatus), wrong))
			}
		}
	}
	return broken
}

// wrong is what contradicts a row, "" where nothing does. Each message of its chain but the last was delivered.
func (c chained) wrong(it item, all []item, objects map[string]provider.Object) string {
	reference := ""
	for n, m := range all {
		object, made := objects[text(m, schema.MessageID)]
		if made && !slices.Contains(c.phases[n], object.Kind) {
			return fmt.Sprintf("phase %d made a %s", n+1, object.Kind)
		}
		want := text(it, attributeStatus)
		if n < len(all)-1 {
			want = string(provider.Succeeded)
		}
		state := idem.MessageState(text(m, schema.State))
		consistent := false
		switch want {
		case "succeeded":
			consistent = made && object.Status == provider.Succeeded && state == idem.MessageDelivered
		case "declined":
			consistent = made && object.Status == provider.Declined && state == idem.MessageDeclined
		case "failed":
			consistent = !made && (state == idem.MessageDead || state == idem.MessageCancelled)
		case "pending":
			consistent = parked(m)
		}
		if !consistent {
			return fmt.Sprintf("message %d is %s and made %+v", n+1, state, object)
		}
		if n == len(c.phases)-1 && want != "pending" {
			reference = object.ID
		}
	}
	if text(it, attributeStatus) == "succeeded" && len(all) != len(c.phases) {
		return fmt.Sprintf("%d of %d phases ran", len(all), len(c.phases))
	}
	if got := text(it, attributeProvider); got != reference {
		return fmt.Sprintf("its reference is %q, not %q", got, reference)
	}
	return ""
}
