//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

type item = map[string]types.AttributeValue

// plain is what a row says in texts and numbers, for the message of a failure.
func plain(it item) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(it)) {
		if value := text(it, name); value != "" {
			all = append(all, name+"="+value)
		}
	}
	return strings.Join(all, " ")
}

// text is an attribute of type S or N, "" where there is none.
func text(it item, name string) string {
	switch value := it[name].(type) {
	case *types.AttributeValueMemberS:
		return value.Value
	case *types.AttributeValueMemberN:
		return value.Value
	}
	return ""
}

// operationOf is the operation of a record, "" where there is no record.
func operationOf(record item) idem.OperationID {
	id, _ := dynamo.OperationOf(record)
	return id
}

func number(it item, name string) int64 {
	n, _ := strconv.ParseInt(text(it, name), 10, 64) // absent counts as 0
	return n
}

// Attributes and keys of the payments table.
const (
	paymentKeys  = "payment#"
	refundKeys   = "refund#"
	payoutKeys   = "payout#"
	accountKeys  = "account#"
	transferKeys = "transfer#"

	attributeKey      = "pk"
	attributeTenant   = "tn"
	attributeID       = "id"
	attributeStatus   = "st"
	attributeAmount   = "amt"
	attributeCurrency = "cur"
	attributeBalance  = "bal"
	attributeWaits    = "lh" // of a transfer: it is not folded into the receiver's balance yet
	attributeProvider = "prv"
	attributeRefunded = "rfd"
	attributePayment  = "pay"
	attributeFrom     = "frm"
	attributeTo       = "to"
)

// scan reads a whole table, IDEMPOTENCY, OUTBOX or PAYMENTS, but for the mark of the secret that records are named under
// and the number of shards.
func scan(ctx context.Context, table string) ([]item, error) {
	pages := dynamodb.NewScanPaginator(deployed.tables, &dynamodb.ScanInput{
		TableName: aws.String(deployed.table(table)), ConsistentRead: aws.Bool(true),
	})
	var items []item
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("scan %s: %w", table, err)
		}
		for _, it := range page.Items {
			if it[schema.ScopeMark] == nil && it[schema.Shards] == nil {
				items = append(items, it)
			}
		}
	}
	return items, nil
}

// row reads one item strongly, beside the fault proxy; nil where there is none.
func row(t *testing.T, table, keyName, key string) item {
	t.Helper()
	out, err := deployed.tables.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(deployed.table(table)), ConsistentRead: aws.Bool(true),
		Key: item{keyName: &types.AttributeValueMemberS{Value: key}},
	})
	must(t, err)
	return out.Item
}

// record is the record of tenant A's key of that name.
func record(t *testing.T, operation, name string) item {
	t.Helper()
	return row(t, "IDEMPOTENCY", schema.RecordKey, string(scopeOf(operation, name)))
}

// messageRow is the first message of an operation.
func messageRow(t *testing.T, a accepted) item {
	t.Helper()
	return phaseRow(t, a.Operation, 1)
}

// phaseRow is the n-th message of an operation; nil where there is none.
func phaseRow(t *testing.T, operation idem.OperationID, n int) item {
	t.Helper()
	return row(t, "OUTBOX", schema.MessageID, string(operation.Message(n)))
}

// opened are the accounts that tests of this run have opened, with their first balances.
var opened struct {
	sync.Mutex
	balances map[string]int64 // by partition key
}

// accountName is the id of the account that a test opens under a name; it is known before the account is there.
func accountName(name string) string { return "acct_" + run + "_" + name }

// open makes an account of tenant A in EUR, as the stack's seed does, and returns its id. Its put is unconditional: the
// SDK may send it again after a lost answer.
func open(t *testing.T, name string, balance int64) string {
	t.Helper()
	return openFor(t, "tenant-a", name, balance)
}

func openFor(t *testing.T, tenant, name string, balance int64) string {
	t.Helper()
	id := accountName(name)
	key := accountKeys + tenant + "/" + id
	opened.Lock()
	defer opened.Unlock()
	if opened.balances == nil {
		opened.balances = map[string]int64{}
	}
	if _, twice := opened.balances[key]; twice {
		t.Fatalf("two tests have opened the account %q", name)
	}
	opened.balances[key] = balance
	_, err := deployed.tables.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String(deployed.table("PAYMENTS")),
		Item: item{
			attributeKey:      &types.AttributeValueMemberS{Value: key},
			attributeTenant:   &types.AttributeValueMemberS{Value: tenant},
			attributeID:       &types.AttributeValueMemberS{Value: id},
			attributeCurrency: &types.AttributeValueMemberS{Value: "EUR"},
			attributeBalance:  &types.AttributeValueMemberN{Value: strconv.FormatInt(balance, 10)},
		},
	})
	must(t, err)
	return id
}

// haveCollect makes an account that is open collect, as idemctl account collect does.
func haveCollect(t *testing.T, tenant, id string, partitions int) {
	t.Helper()
	_, err := deployed.tables.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:        aws.String(deployed.table("PAYMENTS")),
		Key:              item{attributeKey: &types.AttributeValueMemberS{Value: accountKeys + tenant + "/" + id}},
		UpdateExpression: aws.String("SET col = :n, lh = :collecting, ca = :at, cmp = :at"), ConditionExpression: aws.String("attribute_exists(bal)"),
		ExpressionAttributeValues: item{
			":n": &types.AttributeValueMemberN{Value: strconv.Itoa(partitions)}, ":collecting": &types.AttributeValueMemberS{Value: "collecting"},
			":at": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().UnixMilli(), 10)},
		},
	})
	must(t, err)
}

// transfersFrom are the transfers that left an account of tenant A.
func transfersFrom(t *testing.T, account string) []item {
	t.Helper()
	rows, err := scan(t.Context(), "PAYMENTS")
	must(t, err)
	var found []item
	for _, it := range rows {
		if text(it, attributeFrom) == account && text(it, attributeTenant) == "tenant-a" {
			found = append(found, it)
		}
	}
	return found
}

// movedOnce fails the test unless exactly one transfer left the account that held before, and both balances say so.
func movedOnce(t *testing.T, from, to string, before, amount int64) {
	t.Helper()
	if made := transfersFrom(t, from); len(made) != 1 || number(made[0], attributeAmount) != amount {
		t.Errorf("transfers from %s: %v, want one of %d", from, made, amount)
	}
	if got := balance(t, from); got != before-amount {
		t.Errorf("balance of %s is %d, want %d", from, got, before-amount)
	}
	if got := balance(t, to); got != amount {
		t.Errorf("balance of %s is %d, want %d", to, got, amount)
	}
}
