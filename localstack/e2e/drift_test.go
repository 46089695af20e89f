//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// reconciliation is what the drift function answers, as far as a test looks at it.
type reconciliation struct {
	Window struct {
		From, To time.Time
	}
	Unfinished bool
	Unanswered int
	Compared   struct{ Rows, Messages, Records, Objects int }
	Drifts     []struct {
		Kind, Tenant, Entry string
		Sides               []struct {
			What, ID, State string
			Amount          int64
		}
	}
}

// runDriftJob invokes the drift function for the span; missing says why it has not compared all of it.
func runDriftJob(ctx context.Context, from, to time.Time) (r reconciliation, missing string, err error) {
	event := fmt.Sprintf(`{"from":%q,"to":%q}`, from.UTC().Format(time.RFC3339Nano), to.UTC().Format(time.RFC3339Nano))
	out, err := deployed.functions.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: aws.String(deployed.variables["FUNCTION_DRIFT"]), Payload: []byte(event),
	})
	if err != nil {
		return r, "", err
	}
	if out.FunctionError != nil {
		return r, fmt.Sprintf("the drift function fails: %s", out.Payload), nil
	}
	if err := json.Unmarshal(out.Payload, &r); err != nil {
		return r, "", fmt.Errorf("the drift function answers %s: %w", out.Payload, err)
	}
	if r.Unfinished || r.Window.To.Before(to.Truncate(time.Millisecond)) { // its grace is not over
		return r, fmt.Sprintf("compared only %s to %s", r.Window.From, r.Window.To), nil
	}
	return r, "", nil
}

// began is when this run did: what is older is another's.
var began = time.Now()

// drifting compares all that this run has left, as the drift function does on schedule: whatever became of a request, both
// sides agree about it in the end.
func drifting(ctx context.Context) (broken []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, delivered)
	defer cancel()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for to := time.Now(); ; {
		report, missing, err := runDriftJob(ctx, began, to)
		if err != nil {
			return nil, fmt.Errorf("drift: %w", err)
		}
		if missing == "" && report.Unanswered > 0 {
			missing = fmt.Sprintf("the provider did not answer the drift job about %d rows", report.Unanswered)
		}
		if missing == "" {
			for _, d := range report.Drifts {
				broken = append(broken, fmt.Sprintf("drift: %+v", d))
			}
			return broken, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return []string{missing}, nil
		}
	}
}

// of are the kinds of drift of the entries, sorted.
func (r reconciliation) of(entries ...string) (kinds []string) {
	for _, d := range r.Drifts {
		if d.Tenant == "tenant-a" && slices.Contains(entries, d.Entry) {
			kinds = append(kinds, d.Kind+" "+d.Entry)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// The window has other tests' rows too, which are left in all ways; what this test made is
// clean, and each thing that it spoils is found, and only that.
func TestTheDriftJobFindsWhatDrifts(t *testing.T) {
	t.Parallel()
	from := time.Now().Add(-time.Second)
	first, _ := paid(t, "drift", card("drift"))
	keyless, _ := paid(t, "drift-keyless", "legacy_drift_"+run)
	back := decode[refund](t, deployed.tenantA.settle(t, giveBack("drift-refund", first.ID, 500)))
	out := decode[payout](t, deployed.tenantA.settle(t, placeable(t, "drift", iban("drift")).request()))
	to := time.Now().Add(time.Second)
	mine := []string{first.ID, keyless.ID, back.ID, out.ID}

	reports := func(within time.Duration, want ...string) {
		t.Helper()
		slices.Sort(want)
		eventually(t, within, func() string {
			report, missing, err := runDriftJob(t.Context(), from, to)
			must(t, err)
			if missing != "" {
				return missing
			}
			if c := report.Compared; c.Rows < 4 || c.Messages < 5 || c.Records < 4 || c.Objects < 5 {
				return fmt.Sprintf("compared %+v, and there are four rows of this test alone", c)
			}
			if got := report.of(mine...); !slices.Equal(got, want) {
				return fmt.Sprintf("drift %v, want %v: %+v", got, want, report.Drifts)
			}
			return ""
		})
	}
	reports(delivered) // the grace is over after seconds

	spoil(t, "PAYMENTS", attributeKey, paymentKeys+"tenant-a/"+keyless.ID, attributeAmount, &types.AttributeValueMemberN{Value: "1998"})
	spoil(t, "PAYMENTS", attributeKey, payoutKeys+"tenant-a/"+out.ID, attributeProvider, &types.AttributeValueMemberS{Value: "po_other"})
	spoil(t, "IDEMPOTENCY", schema.RecordKey, string(scopeOf(operationRefunds, "drift-refund")), schema.State, &types.AttributeValueMemberS{Value: "pending"})
	reports(soon, "amount_differs "+keyless.ID, "state_differs "+out.ID, "record_message_differs "+back.ID)
}

// spoil changes an attribute beside all protocol, until the test ends.
func spoil(t *testing.T, table, key, id, attribute string, value types.AttributeValue) {
	t.Helper()
	before := row(t, table, key, id)[attribute]
	write := func(value types.AttributeValue) *dynamodb.UpdateItemInput {
		return &dynamodb.UpdateItemInput{
			TableName: aws.String(deployed.table(table)), Key: item{key: &types.AttributeValueMemberS{Value: id}},
			UpdateExpression: aws.String("SET #a = :v"), ConditionExpression: aws.String("attribute_exists(#a)"),
			ExpressionAttributeNames: map[string]string{"#a": attribute}, ExpressionAttributeValues: item{":v": value},
		}
	}
	_, err := deployed.tables.UpdateItem(t.Context(), write(value))
	must(t, err)
	t.Cleanup(func() {
		// The test's own context is over by now.
		if _, err := deployed.tables.UpdateItem(context.Background(), write(before)); err != nil {
			t.Error(err)
		}
	})
}
