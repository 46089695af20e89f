//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// chained is a deferred operation, what it is about, and the provider's objects for its messages, in their order. The last
// phase moves its money. Where that one was not executed, a message follows that undoes the phase before.
type chained struct {
	operation, rows, prefix string
	phases                  [][]provider.Kind
	undoing                 []provider.Kind
}

var chains = []chained{
	{operationPayments, paymentKeys, "pay_", [][]provider.Kind{{provider.Charge, provider.LegacyCharge}}, nil},
	{operationRefunds, refundKeys, "re_", [][]provider.Kind{{provider.Refund}}, nil},
	{operationPayouts, payoutKeys, "po_", [][]provider.Kind{{provider.Screening}, {provider.Payout, provider.LegacyPayout}}, []provider.Kind{provider.Release}},
}

// most is how many messages the operation has at most.
func (c chained) most() int { return len(c.phases) + min(len(c.undoing), 1) }

// makes are the kinds that the n-th message makes, from 0.
func (c chained) makes(n int) []provider.Kind {
	if n < len(c.phases) {
		return c.phases[n]
	}
	return c.undoing
}

// row is the key of the row that the operation of a record is about.
func (c chained) row(record item) string {
	const random = 22 // characters of an operation id that are its own; its row's id has them too
	id := string(operationOf(record))
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
// request for each claim (I2).
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
			broken = append(broken, fmt.Sprintf("I2: %d claims of %s sent %d requests", claims, object.Key, object.Attempts))
		}
	}
	return broken
}

// together: the record of a deferred operation, its chain and its row are all there, or there is only the record, of what
// was refused, or of what did not happen and whose client never came back (I1).
func (l leftovers) together() (broken []string) {
	messages, rows := by(l.messages, schema.MessageID), by(l.rows, attributeKey)
	linked, known := 0, 0
	for _, c := range chains {
		for _, r := range l.records {
			if text(r, schema.OperationName) != c.operation {
				continue
			}
			id := operationOf(r)
			all := chain(messages, id)
			linked += len(all)
			state := storage.State(text(r, schema.State))
			nothing := state == storage.StateFailedRetryable || state.Final() && number(r, schema.ResponseStatus) >= 400
			if there := rows[c.row(r)] != nil; there != (len(all) > 0) || !there && !nothing || len(all) > c.most() {
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
			all := chain(messages, operationOf(r))
			if wrong := c.wrong(it, all, objects); wrong != "" {
				broken = append(broken, fmt.Sprintf("I2: %s is %s, but %s", text(it, attributeKey), text(it, attributeStatus), wrong))
			}
		}
	}
	return broken
}

// wrong is what contradicts a row, "" where nothing does. The row is about the phase that moves the money, or about the one
// that the chain ended with before.
func (c chained) wrong(it item, all []item, objects map[string]provider.Object) string {
	status, reference, money := text(it, attributeStatus), "", len(c.phases)-1
	for n, m := range all {
		object, made := objects[text(m, schema.MessageID)]
		if made && !slices.Contains(c.makes(n), object.Kind) {
			return fmt.Sprintf("message %d made a %s", n+1, object.Kind)
		}
		if !consistent(m, object, made, c.want(n, all, status)) {
			return fmt.Sprintf("message %d is %s and made %+v", n+1, text(m, schema.State), object)
		}
		if n == money && status != "pending" {
			reference = object.ID
		}
	}
	switch got := text(it, attributeProvider); {
	case status == "succeeded" && len(all) != len(c.phases):
		return fmt.Sprintf("%d messages for %d phases", len(all), len(c.phases))
	case status != "succeeded" && status != "pending" && len(all) == len(c.phases) && len(c.undoing) > 0:
		return "nothing was undone"
	case got != reference:
		return fmt.Sprintf("its reference is %q, not %q", got, reference)
	}
	return ""
}

// want is how the n-th message of a chain must have ended, from 0, by its row's status and its place: each before the one
// that moves the money was delivered if another follows, and so was the undoing if the operation has ended. "unmade" is what
// moved no money while its undoing has not ended.
func (c chained) want(n int, all []item, status string) string {
	last := n == len(all)-1
	switch {
	case !last && n < len(c.phases)-1:
		return "succeeded"
	case !last && status == "pending":
		return "unmade"
	case n == len(c.phases) && status != "pending":
		return "succeeded"
	}
	return status
}

// consistent says whether a message and what it made at the provider have ended so.
func consistent(m item, object provider.Object, made bool, want string) bool {
	state := storage.MessageState(text(m, schema.State))
	declined := made && object.Status == provider.Declined && state == storage.MessageDeclined
	switch want {
	case "succeeded":
		return made && object.Status == provider.Succeeded && state == storage.MessageDelivered
	case "declined":
		return declined
	case "failed":
		return !made && (state == storage.MessageDead || state == storage.MessageCancelled)
	case "unmade":
		return declined || !made && state == storage.MessageCancelled
	case "pending":
		return parked(m)
	}
	return false
}
