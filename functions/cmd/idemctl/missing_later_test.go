package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// tearsAndEnds loses the message and the row of a payment of an hour ago, which was charged, and ends the refusal that followed.
func (d *desk) tearsAndEnds() idem.OperationID {
	d.Helper()
	id := d.pay("order-17", "card_ok")
	records := d.Items(d.T, d.Idempotency)
	d.deliver(id.Message(1))
	d.lose()
	for _, it := range records {
		it[schema.CreatedAt] = &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(-time.Hour).UnixMilli(), 10)}
		d.Put(d.T, d.Idempotency, it)
	}
	_, err := d.Client.DeleteItem(d.Context(), &dynamodb.DeleteItemInput{
		TableName: &d.Idempotency, Key: map[string]types.AttributeValue{schema.RecordKey: &types.AttributeValueMemberS{Value: schema.LossKey}},
	})
	d.ok(err)
	return id
}

// docs/recovery.md "When the refusal ends": a torn operation may be found only when its client asks. It is made whole by a cut-over that a person
// says of it alone. Set for everybody, that would refuse every client again.
func TestATornOperationThatIsFoundAfterTheRefusal(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	id := d.tearsAndEnds()
	ago := func(past time.Duration) string { return time.Now().Add(-past).UTC().Format(time.RFC3339) }
	one := []string{"--operation", string(id)}
	before := func(past time.Duration, more ...string) []string {
		return append(append(one, "--lost-before", ago(past)), more...)
	}
	if _, errs := d.exits(idemctl.ExitRefused, missingRestore(one...)...); !strings.Contains(errs, "--lost-before") || !strings.Contains(errs, "don't set it again") {
		t.Errorf("without the cut-over: %s", errs)
	}
	d.exits(idemctl.ExitUsage, missingRestore("--lost-before", ago(10*time.Minute))...) // of everything
	d.exits(idemctl.ExitUsage, missingRestore(before(time.Minute)...)...)               // of what may be under way
	if left := d.restores(idemctl.ExitRefused, before(2*time.Hour, "--write")...); len(left) != 1 || left[0].Code != payments.CodeNotLost {
		t.Errorf("it is younger than the loss: %+v", left)
	}
	if would := d.restores(idemctl.ExitOK, before(10*time.Minute)...); len(would) != 1 || !strings.Contains(would[0].Did, "as lost before") {
		t.Errorf("dry run: %+v", would)
	}
	if done := d.restores(idemctl.ExitOK, before(10*time.Minute, "--write")...); len(done) != 1 || !strings.HasPrefix(done[0].Did, "restored, as lost before ") {
		t.Errorf("%+v", done)
	}
	d.deliver(id.Message(1))
	d.demands(d.inspect(string(id)), "completed delivered succeeded", "nothing: it has ended")
	if n := len(d.Charges(t)); n != 1 {
		t.Errorf("%d charges", n)
	}
	d.logged(id, operator.EntryRefused, operator.EntryDone)
}

// While the table says up to when data was lost that counts, and nothing that a person says beside it.
func TestTheTablesCutOverCounts(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	id := d.tearsAndEnds()
	d.exits(idemctl.ExitOK, "refuse-before", "set", time.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339), "--reason", "ticket 17", "--write")
	one := []string{"--operation", string(id), "--lost-before", time.Now().Add(-10 * time.Minute).UTC().Format(time.RFC3339), "--write"}
	if _, errs := d.exits(idemctl.ExitRefused, missingRestore(one...)...); !strings.Contains(errs, "leave --lost-before out") {
		t.Error(errs)
	}
	if left := d.restores(idemctl.ExitRefused, "--operation", string(id), "--write"); len(left) != 1 || left[0].Code != payments.CodeNotLost {
		t.Errorf("%+v", left)
	}
}
