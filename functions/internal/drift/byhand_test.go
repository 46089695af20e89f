package drift_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/functions/internal/payments"
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
