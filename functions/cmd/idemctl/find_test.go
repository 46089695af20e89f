package main

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/internal/token"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// alike is randomness that begins alike each time. So ids that are made by it begin alike, but for the four bits of the record's key that
// their first character has.
type alike struct{}

func (alike) Read(p []byte) (int, error) {
	n, err := rand.Read(p)
	copy(p, "like")
	return n, err
}

// unknownPayment leaves a payment whose outcome is unknown, and returns its operation and its id.
func (d *desk) unknownPayment(key string) (idem.OperationID, string) {
	d.Helper()
	d.faults(provider.Rule{On: provider.LegacyCharge, Fault: provider.DropAfter, Times: 1})
	id := d.pay(key, "legacy_ok")
	d.deliver(id.Message(1))
	return id, payments.EntryID(payments.EntryPayment, id)
}

// anotherThatBegins leaves unknown payments until the id of one begins so.
func (d *desk) anotherThatBegins(text string) string {
	d.Helper()
	for n := range 200 {
		if _, id := d.unknownPayment(fmt.Sprint("another-", n)); strings.HasPrefix(id, text) {
			return id
		}
	}
	d.Fatalf("no other payment begins with %s", text)
	return ""
}

// hostile are texts that begin no id: they are searched for nowhere, and no terminal gets them back.
var hostile = []string{
	"pay_\x1b[2Jab", "pay_abc\ndef", "pay_abc/../", "pay_*", "pay_%25abc", "pay_abc#tenant", "pay_'abc'", "pay_" + strings.Repeat("a", 23),
	"pay_ａｂｃ", "payment#tenant-a/pay_abc", "key_abcdef", "acct_abcdef", "_abcdef", strings.Repeat("pay_", 10_000),
}

// docs/operator.md "Short ids": a payment whose message stands in a queue is inspected by the beginning of its id.
func TestAPaymentIsInspectedByTheBeginningOfItsID(t *testing.T) {
	d := newDeskOf(t, alike{})
	first, payment := d.unknownPayment("order-18")
	inspect := func(want int, id, tenant string) (stdout, stderr string) {
		t.Helper()
		return d.exits(want, "inspect", id, "--tenant", tenant)
	}
	begins := payment[:len("pay_")+5]
	for _, id := range []string{payment[:operator.BeginningMin], begins, payment[:20], payment} {
		if out, _ := inspect(idemctl.ExitOK, id, lambdatest.Tenant); !strings.HasPrefix(out, "operation "+string(first)+"\n") {
			t.Errorf("%s leads to\n%s", id, out)
		}
	}
	none := func(id, tenant string) {
		t.Helper()
		if out, errs := inspect(idemctl.ExitRefused, id, tenant); out != "" || !strings.Contains(errs, "\nnext: ") || !strings.Contains(errs, "found by their whole id") {
			t.Errorf("%s of %s: %s%s", id, tenant, out, errs)
		}
	}
	none(begins, "tenant-b")
	none("pay_zzzzzz", lambdatest.Tenant)
	none("po_"+begins[len("pay_"):], lambdatest.Tenant) // the operation made a payment
	inspect(idemctl.ExitUsage, payment[:operator.BeginningMin-1], lambdatest.Tenant)

	other := d.anotherThatBegins(begins)
	out, errs := inspect(idemctl.ExitRefused, begins, lambdatest.Tenant)
	for _, want := range []string{"Several payments begin with " + begins, payment, other, "\nnext: Give more characters"} {
		if out != "" || !strings.Contains(errs, want) {
			t.Errorf("it does not say %q:\n%s%s", want, out, errs)
		}
	}
	if out, _ := inspect(idemctl.ExitOK, payment[:20], lambdatest.Tenant); !strings.HasPrefix(out, "operation "+string(first)+"\n") {
		t.Errorf("more characters lead to\n%s", out)
	}

	ended := d.pay("order-20", "card_ok")
	d.deliver(ended.Message(1))
	none(payments.EntryID(payments.EntryPayment, ended)[:20], lambdatest.Tenant)
}

// docs/operator.md "DriftFound": the row of a charge whose record and message are gone is found by its own id, and by its operation's.
func TestAPaymentIsInspectedAfterItsRecordAndMessageAreGone(t *testing.T) {
	d := newDesk(t)
	ended := d.pay("order-21", "card_ok")
	d.deliver(ended.Message(1))
	key, err := ended.RecordKey()
	d.ok(err)
	for name, it := range map[string]map[string]types.AttributeValue{
		d.Outbox:      {schema.MessageID: &types.AttributeValueMemberS{Value: string(ended.Message(1))}},
		d.Idempotency: {schema.RecordKey: &types.AttributeValueMemberS{Value: string(key)}},
	} {
		_, err := d.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &name, Key: it})
		d.ok(err)
	}
	d.exits(idemctl.ExitRefused, "inspect", string(ended))
	for _, id := range []string{payments.EntryID(payments.EntryPayment, ended), string(ended), string(ended.Message(1))} {
		if out, _ := d.exits(idemctl.ExitOK, "inspect", id, "--tenant", lambdatest.Tenant); !strings.Contains(out, "record: removed") || !strings.Contains(out, `"status": "succeeded"`) {
			t.Errorf("%s leads to\n%s", id, out)
		}
	}
	if out, _ := d.exits(idemctl.ExitOK, "inspect", string(ended), "--tenant", "tenant-b"); !strings.Contains(out, `"row": null`) {
		t.Errorf("of another tenant\n%s", out)
	}
}

func TestHostileBeginningsOfPaymentsFindNothing(t *testing.T) {
	d := newDesk(t)
	d.unknownPayment("order-18")
	for _, id := range hostile {
		out, errs := d.exits(idemctl.ExitRefused, "inspect", id, "--tenant", lambdatest.Tenant)
		if out != "" || !strings.Contains(errs, "\nnext: ") || strings.ContainsAny(errs, "\x1b\x00") || strings.Contains(errs, id) {
			t.Errorf("%.40q: %s%.300q", id, out, errs)
		}
	}
}

// collecting has the accounts of tenant-b collect; the tables are after a loss of data, so that they can be compared.
func (d *desk) collecting(ids ...string) {
	d.Helper()
	for _, id := range ids {
		d.Account(d.T, "tenant-b", id, 7)
		d.exits(idemctl.ExitOK, "account", "collect", id, "--tenant", "tenant-b", "--partitions", "1", "--reason", "ticket 17", "--write")
	}
	d.exits(idemctl.ExitOK, "refuse-before", "set", time.Now().Add(time.Minute).UTC().Format(time.RFC3339), "--reason", "ticket 17", "--write")
}

// comparesOne runs account compare for the account.
func (d *desk) comparesOne(want int, id string, more ...string) (stdout, stderr string) {
	d.Helper()
	return d.exits(want, append([]string{"account", "compare", id, "--tenant", "tenant-b", "--reason", "ticket 17"}, more...)...)
}

// docs/operator.md "Short ids": an account is compared by the beginning of its id. The whole id is told before anything is
// done, and is what is written.
func TestAnAccountIsComparedByTheBeginningOfItsID(t *testing.T) {
	d := newDesk(t)
	d.Account(t, "tenant-b", "acct_shop", 7) // collects nothing
	d.Account(t, "tenant-b/x", "acct_shop_2", 7)
	d.collecting("acct_shop_17", "acct_market")
	d.ok((payments.Table{Client: d.Client, Name: d.Payments}).Collect(t.Context(), "tenant-b/x", "acct_shop_2", 1, time.Now()))

	if _, errs := d.comparesOne(idemctl.ExitOK, "acct_shop_"); errs != "idemctl: acct_shop_ is acct_shop_17\n" {
		t.Errorf("told %q", errs)
	}
	if out, errs := d.comparesOne(idemctl.ExitOK, "acct_shop", "--write"); errs != "" || !strings.Contains(out, "acct_shop of tenant-b") { // an account of exactly this id
		t.Errorf("%s%s", out, errs)
	}
	d.comparesOne(idemctl.ExitRefused, "acct_none", "--write")
	d.comparesOne(idemctl.ExitRefused, "acct", "--write")
	_, errs := d.comparesOne(idemctl.ExitRefused, "acct_s", "--write", "--tenant", "tenant-a")
	if !strings.Contains(errs, "\nnext: ") {
		t.Errorf("told %q", errs)
	}
	out, errs := d.comparesOne(idemctl.ExitOK, "acct_shop_", "--write", "--output", "json")
	if !strings.Contains(out, `"account": "acct_shop_17"`) || errs != "idemctl: acct_shop_ is acct_shop_17\n" {
		t.Errorf("%s%s", out, errs)
	}
	entries := answered[[]operator.Entry](d, "audit", "--subject", "acct_shop")
	i := slices.IndexFunc(entries, func(e operator.Entry) bool { return e.Action == "account compare" })
	if i < 0 || entries[i].Subject != "acct_shop_17" || entries[i].State != operator.EntryDone {
		t.Errorf("the log has %+v", entries)
	}
}

func TestBeginningsThatAccountsShareAreRefused(t *testing.T) {
	d := newDesk(t)
	d.collecting("acct_shop_17", "acct_shop_18")
	out, errs := d.comparesOne(idemctl.ExitRefused, "acct_shop", "--write")
	for _, want := range []string{"Several accounts begin with acct_shop:", "acct_shop_17", "acct_shop_18", "\nnext: Give more characters"} {
		if out != "" || !strings.Contains(errs, want) {
			t.Errorf("it does not say %q:\n%s%s", want, out, errs)
		}
	}
	for _, id := range append([]string{"/acct_shop", "x/acct_shop_1", "acct_shop\x1b[2J", "acct_shop_1#", "acct_shop*", strings.Repeat("acct_", 200)}, hostile...) {
		if out, errs := d.comparesOne(idemctl.ExitRefused, id, "--write"); out != "" || strings.ContainsAny(errs, "\x1b\x00") {
			t.Errorf("%.40q: %s%.300q", id, out, errs)
		}
	}
	entries := answered[[]operator.Entry](d, "audit")
	if slices.ContainsFunc(entries, func(e operator.Entry) bool { return e.Action == "account compare" }) {
		t.Errorf("the log has %+v", entries)
	}
	d.comparesOne(idemctl.ExitOK, "acct_shop_18", "--write")
}

// What only a scan of a table could find takes whole ids alone, and its help says so.
func TestWhatAScanCouldFindTakesWholeIDs(t *testing.T) {
	d := newDesk(t)
	d.collecting("acct_shop_17")
	id := token.ID(lambdatest.Token)
	for _, begins := range []string{id[:len(id)-1], id[:12], "key_", "key_" + strings.Repeat("g", 64), "key_\x1b[2J"} {
		if out, errs := d.exits(idemctl.ExitUsage, "apikey", "revoke", begins, "--reason", "r", "--write"); out != "" || strings.Contains(errs, begins+" ") || !strings.Contains(errs, "\nnext: ") {
			t.Errorf("%q: %s%s", begins, out, errs)
		}
	}
	if _, err := d.Keys(t).Caller(t.Context(), "Bearer "+lambdatest.Token); err != nil {
		t.Errorf("the key was revoked: %v", err)
	}
	d.exits(idemctl.ExitRefused, "account", "collect", hostile[len(hostile)-1], "--tenant", "tenant-b", "--partitions", "2", "--reason", "r", "--write")
	d.exits(idemctl.ExitRefused, "account", "collect", "acct_shop_1", "--tenant", "tenant-b", "--partitions", "2", "--reason", "r", "--write")
	for _, command := range [][]string{{"apikey", "revoke"}, {"account", "collect"}} {
		out, _ := d.exits(idemctl.ExitOK, append(command, "--help")...)
		if text := strings.Join(strings.Fields(out), " "); !strings.Contains(text, "Whole id") || !strings.Contains(text, "a scan of the table") {
			t.Errorf("the help of %q does not say so:\n%s", command, out)
		}
	}
}
