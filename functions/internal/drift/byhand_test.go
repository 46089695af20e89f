package drift_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// payoutRow is the key of the one row of a payout that has the status.
func (w *world) payoutRow(status payments.Status) (pk string) {
	w.Helper()
	out, err := w.client.Scan(w.Context(), &dynamodb.ScanInput{
		TableName: &w.payments, ConsistentRead: aws.Bool(true), FilterExpression: aws.String("begins_with(pk, :payouts) AND st = :status"),
		ExpressionAttributeValues: item{":payouts": attributeValue("payout#"), ":status": attributeValue(string(status))},
	})
	w.ok(err)
	if len(out.Items) != 1 {
		w.Fatalf("%d payouts are %s", len(out.Items), status)
	}
	return out.Items[0]["pk"].(*types.AttributeValueMemberS).Value
}

// unset removes an attribute behind everybody's back.
func (w *world) unset(name, key, id, attribute string) {
	w.Helper()
	_, err := w.client.UpdateItem(w.Context(), &dynamodb.UpdateItemInput{
		TableName: &name, Key: item{key: attributeValue(id)},
		UpdateExpression: aws.String("REMOVE #a"), ConditionExpression: aws.String("attribute_exists(#a)"),
		ExpressionAttributeNames: map[string]string{"#a": attribute},
	})
	w.ok(err)
}

// docs/recovery.md "End a row by hand": whose payout was not made is given the money back by the mark, and nobody else. No total of the
// account differs from its rows where the mark is wrong.
func TestAPayoutThatWasEndedByHandWithAnotherMark(t *testing.T) {
	w := newWorld(t)
	w.faults(provider.Rule{On: provider.Payout, Destination: "iban_closed", Fault: provider.Decline})
	w.payOut("iban_closed")
	w.payOut("iban_ok")
	w.drain(time.Hour)
	w.drifts(w.check())
	closed, paid := w.payoutRow(payments.StatusDeclined), w.payoutRow(payments.StatusSucceeded)
	w.unset(w.payments, "pk", closed, "gvb")
	w.drifts(w.check(), drift.StateDiffers)
	w.set(w.payments, "pk", closed, "gvb", 1)
	w.drifts(w.check())
	w.set(w.payments, "pk", paid, "gvb", 1)
	w.drifts(w.check(), drift.StateDiffers)
}

// A message that was given up is closed when a person comes to it. Its record, which had failed when it was given up, may have expired by
// then.
func TestAMessageThatIsClosedAfterItsRecordHasExpired(t *testing.T) {
	w := newWorld(t)
	w.faults(provider.Rule{On: provider.Charge, Source: "card_busy", Fault: provider.RateLimit})
	m := w.pay("card_busy")
	w.drain(time.Hour)
	w.drifts(w.check())
	w.clock.Advance(30 * time.Hour)
	w.removeRecord(m)
	w.drifts(w.check())
	id := m.Operation.Message(1)
	dead, err := w.store.Message(w.Context(), id)
	w.ok(err)
	w.ok(w.operator.Close(w.Context(), id, outbox.Seen{Revision: dead.Revision}))
	w.drifts(w.check())
	w.set(w.tables.Outbox, schema.MessageID, string(id), schema.SettledBy, "w") // by a worker, who writes the record's end beside it
	w.drifts(w.check(), drift.RecordMessageDiffers)
}

// docs/recovery.md "Where the hold was released by hand": there is no object under the key of the release, and maybe one under another. What a
// person has ended so is no drift, unless the provider shows the hold as standing.
func TestAHoldThatWasReleasedByHand(t *testing.T) {
	for name, released := range map[string]bool{"at the provider": true, "by a word alone": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.faults(provider.Rule{On: provider.Payout, Fault: provider.Decline}, provider.Rule{On: provider.Release, Fault: provider.RateLimit})
			w.payOut("iban_ok")
			w.drain(time.Hour)
			w.faults()
			screened, err := w.provider.Screenings(w.Context())
			w.ok(err)
			operation, _, err := idem.MessageID(screened[0].Key).Operation()
			w.ok(err)
			id := operation.Message(3)
			dead, err := w.store.Message(w.Context(), id)
			w.ok(err)
			if released {
				w.charge("/screenings/"+screened[0].ID+"/releases", "", `{"amount":500,"currency":"EUR","reference":"`+screened[0].Reference+`"}`)
			}
			decision, err := w.operator.Settle(w.Context(), id, outbox.Seen{Revision: dead.Revision}, outbox.Delivered{Reference: "ticket 17"})
			if w.ok(err); decision != outbox.DecisionSettled {
				t.Fatal(decision)
			}
			if !released {
				w.drifts(w.check(), drift.MissingThere)
				return
			}
			w.drifts(w.check())
			w.clock.Advance(50 * time.Hour)
			for n := range 3 { // as TTL does
				w.remove(w.tables.Outbox, schema.MessageID, string(operation.Message(n+1)))
			}
			w.remove(w.tables.Idempotency, schema.RecordKey, made{Operation: operation}.record())
			w.drifts(w.check())
			w.charge("/payouts", "", `{"amount":500,"currency":"EUR","destination":"iban_ok","reference":"`+screened[0].Reference+`"}`)
			w.drifts(w.check(), drift.MissingHere) // nobody asked for that
		})
	}
}

// docs/recovery.md "End a row by hand", of a tenant whose keys are erased: a person says what became of the message, the operation fails, and
// nothing follows.
func TestWhatNobodyCanOpenAndAPersonHasEnded(t *testing.T) {
	w := newWorld(t)
	paid := w.pay("card_ok")
	erase := func(record string) {
		w.set(w.tables.Idempotency, schema.RecordKey, record, schema.State, "failed")
		w.set(w.tables.Idempotency, schema.RecordKey, record, schema.LastError, "idempotency_response_erased")
	}
	erase(paid.record())
	w.drifts(w.check())
	w.set(w.tables.Outbox, schema.MessageID, string(paid.Operation.Message(1)), schema.State, "unknown")
	w.setRow(paid, "st", "pending") // the message has not ended, so that nobody may have said so
	w.drifts(w.check(), drift.RecordMessageDiffers)
}
