package payments_test

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// A row that can't be read is an error: never an account without money, or a payment of nothing.
func TestTableRefusesMalformedRows(t *testing.T) {
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]))
	name := "rows-" + strconv.FormatInt(prefixes.Add(1), 10)
	if err := dynamotest.CreateTable(t.Context(), client, name, schema.Table{Key: "pk"}); err != nil {
		t.Fatal(err)
	}
	table := payments.Table{Client: client, Name: name}
	whole := accountItem(payments.Account{Tenant: tenantA, ID: "acct_1", Currency: "EUR", Balance: 7})
	for what, change := range map[string]func(map[string]types.AttributeValue){
		"no balance":             func(it map[string]types.AttributeValue) { delete(it, "bal") },
		"balance as text":        func(it map[string]types.AttributeValue) { it["bal"] = &types.AttributeValueMemberS{Value: "7"} },
		"balance with a point":   func(it map[string]types.AttributeValue) { it["bal"] = &types.AttributeValueMemberN{Value: "7.5"} },
		"currency as a number":   func(it map[string]types.AttributeValue) { it["cur"] = &types.AttributeValueMemberN{Value: "978"} },
		"balance of many digits": func(it map[string]types.AttributeValue) { it["bal"] = &types.AttributeValueMemberN{Value: "1e30"} },
	} {
		it := maps.Clone(whole)
		change(it)
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: it}); err != nil {
			t.Fatal(err)
		}
		if a, err := table.Account(t.Context(), tenantA, "acct_1"); err == nil {
			t.Errorf("%s: read as %+v", what, a)
		}
	}
	it := maps.Clone(whole)
	it["pk"] = &types.AttributeValueMemberS{Value: "payment#" + tenantA + "/pay_1"}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: it}); err != nil {
		t.Fatal(err)
	}
	if p, err := table.Payment(t.Context(), tenantA, "pay_1"); err == nil {
		t.Errorf("an account is read as the payment %+v", p)
	}
	it["pk"] = &types.AttributeValueMemberS{Value: "payout#" + tenantA + "/po_1"}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: it}); err != nil {
		t.Fatal(err)
	}
	if p, err := table.Payout(t.Context(), tenantA, "po_1"); err == nil {
		t.Errorf("an account is read as the payout %+v", p)
	}
}

// docs/recovery.md "Compare the balances": a row counts for the tenant and the id in its key. One that says another one's, as a copy of another
// row does, ends the comparison with its name: it would pay one account twice, and take the money off the other.
func TestTableRefusesRowsThatSayTheyAreOthers(t *testing.T) {
	b := newBooks(t)
	for row, fields := range map[string]map[string]types.AttributeValue{
		"account": {"bal": number(7)},
		"payment": {"st": text("pending"), "amt": number(500), "rfd": number(500), "ca": number(1)},
		"refund":  {"st": text("pending"), "amt": number(500), "pay": text("pay_1"), "ca": number(1)},
		"payout":  {"st": text("failed"), "amt": number(500), "frm": text("acct_1"), "ca": number(1), "cnt": number(1), "gvb": number(1)},
		"transfer": {
			"amt": number(500), "frm": text("acct_1"), "to": text("acct_2"), "ca": number(1), "cnt": number(1),
		},
	} {
		for what, change := range map[string]func(map[string]types.AttributeValue){
			"its own":                     nil,
			"no tenant":                   func(it map[string]types.AttributeValue) { delete(it, "tn") },
			"no id":                       func(it map[string]types.AttributeValue) { delete(it, "id") },
			"another tenant":              func(it map[string]types.AttributeValue) { it["tn"] = text(tenantB) },
			"another id":                  func(it map[string]types.AttributeValue) { it["id"] = text("other") },
			"a mark of 0":                 func(it map[string]types.AttributeValue) { it["cnt"] = number(0) },
			"a mark of text":              func(it map[string]types.AttributeValue) { it["gvb"] = text("1") },
			"a mark of what is under way": func(it map[string]types.AttributeValue) { it["st"] = text("pending") },
			"a mark of what was made":     func(it map[string]types.AttributeValue) { it["st"] = text("succeeded") },
			"a status that is none":       func(it map[string]types.AttributeValue) { it["st"] = text("succeded"); delete(it, "gvb") },
			"a status that is derived":    func(it map[string]types.AttributeValue) { it["st"] = text("unknown"); delete(it, "gvb") },
			"no status":                   func(it map[string]types.AttributeValue) { delete(it, "st"); delete(it, "gvb") },
		} {
			if strings.HasPrefix(what, "a mark of") && row != "payout" || strings.Contains(what, "status") && fields["st"] == nil {
				continue
			}
			pk := row + "#" + tenantA + "/own"
			it := maps.Clone(fields)
			it["pk"], it["tn"], it["id"], it["cur"] = text(pk), text(tenantA), text("own"), text("EUR")
			if change != nil {
				change(it)
			}
			b.put(pk, it)
			_, accounts := b.Accounts(t.Context())
			_, rows := b.Rows(t.Context())
			_, refunds := b.RefundSums(t.Context())
			err := errors.Join(accounts, rows, refunds)
			if change == nil && err != nil {
				t.Errorf("%s: %v", row, err)
			}
			if change != nil && (err == nil || !strings.Contains(err.Error(), "malformed attribute") || !strings.Contains(err.Error(), pk)) {
				t.Errorf("%s with %s: %v, want it to be named", row, what, err)
			}
			if alone := b.alone(row); row != "transfer" && (alone == nil) != (change == nil) || alone != nil && !strings.Contains(alone.Error(), pk) {
				t.Errorf("%s with %s, read alone: %v", row, what, alone)
			}
			b.put(pk, nil)
		}
	}
}

// alone reads one row as requests do.
func (b books) alone(row string) (err error) {
	switch row {
	case "account":
		_, err = b.Account(b.Context(), tenantA, "own")
	case "payment":
		_, err = b.Payment(b.Context(), tenantA, "own")
	case "refund":
		_, err = b.Refund(b.Context(), tenantA, "own")
	case "payout":
		_, err = b.Payout(b.Context(), tenantA, "own")
	}
	return err
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Trouble with the store is told from an absent row, and says when to come again.
func TestTableWhileItIsDown(t *testing.T) {
	client := dynamotest.Client("http://127.0.0.1:1", func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	table := payments.Table{Client: client, Name: "payments"}
	var unavailable *idem.UnavailableError
	if a, err := table.Account(t.Context(), tenantA, "acct_1"); a != nil || !errors.As(err, &unavailable) || unavailable.RetryAfter <= 0 {
		t.Errorf("account %+v, %v", a, err)
	}
	if p, err := table.Payment(t.Context(), tenantA, "pay_1"); p != nil || !errors.As(err, &unavailable) || unavailable.RetryAfter <= 0 {
		t.Errorf("payment %+v, %v", p, err)
	}
	if p, err := table.Payout(t.Context(), tenantA, "po_1"); p != nil || !errors.As(err, &unavailable) || unavailable.RetryAfter <= 0 {
		t.Errorf("payout %+v, %v", p, err)
	}
}
