package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// docs/payments-api.md "Collecting accounts": an account collects from when an operator says so, in as many partitions or more.
func TestAccountCollects(t *testing.T) {
	d := newDesk(t)
	d.Account(t, "tenant-b", "acct_c", 7)
	command := func(account, partitions string, more ...string) []string {
		return append([]string{"account", "collect", account, "--tenant", "tenant-b", "--partitions", partitions, "--reason", "ticket 1"}, more...)
	}
	has := func(partitions int) {
		t.Helper()
		a, err := (payments.Table{Client: d.Client, Name: d.Payments}).Account(t.Context(), "tenant-b", "acct_c")
		if err != nil || a.Partitions != partitions || a.Balance != 7 {
			t.Errorf("%+v, %v, want %d partitions", a, err, partitions)
		}
	}
	if out, _ := d.exits(idemctl.ExitOK, command("acct_c", "8")...); !strings.Contains(out, "dry run: would have acct_c collect in 8 partitions; it has 0") {
		t.Error(out)
	}
	has(0)
	d.exits(idemctl.ExitOK, command("acct_c", "8", "--write")...)
	has(8)
	d.exits(idemctl.ExitRefused, command("acct_none", "4", "--write")...)
	for _, malformed := range []string{"4", "0", "65", "x"} { // fewer than it has
		d.exits(idemctl.ExitUsage, command("acct_c", malformed, "--write")...)
	}
	has(8)
	mend := d.entriesStayIntended()
	if out, errs := d.exits(idemctl.ExitTrouble, command("acct_c", "9", "--write")...); !strings.Contains(out, "collects") || !strings.Contains(errs, "stays intended") {
		t.Errorf("%s%s, want to be told that it collects and that its entry stays intended", out, errs)
	}
	has(9)
	mend()
	if out, _ := d.exits(idemctl.ExitOK, command("acct_c", "10", "--write")...); strings.Contains(out, "dry run") {
		t.Error(out)
	}
	has(10)
}

// docs/operator.md "Audit log": a collect whose condition is lost to somebody else's has changed nothing, and is refused.
func TestAccountCollectThatLostItsConditionIsRefused(t *testing.T) {
	s := lambdatest.New(t)
	s.Account(t, "tenant-b", "acct_c", 7)
	table := payments.Table{Client: s.Client, Name: s.Payments}
	if err := table.Collect(t.Context(), "tenant-b", "acct_c", 8, time.Now()); err != nil {
		t.Fatal(err)
	}
	err := refusedAccount(table.Collect(t.Context(), "tenant-b", "acct_c", 4, time.Now()))
	if !errors.Is(err, operator.ErrRefused) || !operator.Refused(err) {
		t.Errorf("%v is no refusal", err)
	}
}

// compares runs account compare, and returns its answer.
func (d *desk) compares(want int, more ...string) (answer comparison, errs string) {
	d.Helper()
	out, errs := d.exits(want, append([]string{"account", "compare", "--reason", "ticket 1", "--output", "json"}, more...)...)
	if want != idemctl.ExitUsage && out != "" {
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			d.Errorf("%s: %v", out, err)
		}
	}
	return answer, errs
}

// holds demands an account's balance.
func (d *desk) holds(tenant, account string, balance int64) {
	d.Helper()
	if a, err := (payments.Table{Client: d.Client, Name: d.Payments}).Account(d.Context(), tenant, account); err != nil || a.Balance != balance {
		d.Errorf("%+v, %v, want a balance of %d", a, err, balance)
	}
}

// docs/recovery.md "Compare the balances": the comparison says what a torn fold has left, corrects it where it is told to, and only then
// is the account folded again. Who repeats it changes nothing.
func TestAccountCompare(t *testing.T) {
	d := newDesk(t)
	d.Account(t, "tenant-b", "acct_c", 7)
	d.exits(idemctl.ExitOK, "account", "collect", "acct_c", "--tenant", "tenant-b", "--partitions", "1", "--reason", "ticket 1", "--write")
	d.foldedInPart(500)
	one := []string{"acct_c", "--tenant", "tenant-b"}
	differs, _ := d.compares(idemctl.ExitRefused, append(one, "--write")...)
	if a := differs.Accounts[0]; a.Code != codeDiffers || a.Held || a.Lacks != -500 || !strings.Contains(a.Rule, "--correct") {
		t.Errorf("%+v without a loss of data", a)
	}
	d.exits(idemctl.ExitOK, "refuse-before", "set", time.Now().Add(time.Minute).UTC().Format(time.RFC3339), "--reason", "ticket 1", "--write")
	if held, _ := d.compares(idemctl.ExitRefused, append(one, "--write")...); held.Accounts[0].Code != codeDiffers || !held.Accounts[0].Held {
		t.Errorf("%+v", held)
	}
	if out, _ := d.exits(idemctl.ExitOK, append([]string{"account", "compare", "--reason", "ticket 1", "--correct"}, one...)...); !strings.Contains(out, "dry run: would change the balance by -500, and fold again") {
		t.Error(out)
	}
	d.holds("tenant-b", "acct_c", 507)
	did, _ := d.compares(idemctl.ExitOK, append(one, "--correct", "--write")...)
	if a := did.Accounts[0]; !a.Held || a.Totals.Folded != (payments.Total{Transfers: 1, Amount: 500}) || a.Rows.Folded != (payments.Total{}) || a.Did == "" {
		t.Errorf("%+v", a)
	}
	d.holds("tenant-b", "acct_c", 7)
	if again, _ := d.compares(idemctl.ExitOK, append(one, "--correct", "--write")...); again.Accounts[0].Held || again.Accounts[0].Lacks != 0 {
		t.Errorf("%+v, want to be told that it agrees", again)
	}
	d.holds("tenant-b", "acct_c", 7)
	d.compares(idemctl.ExitRefused, "acct_none", "--tenant", "tenant-b", "--write")
	for _, malformed := range [][]string{
		{"acct_c", "--tenant", "a/b"}, {"acct_c"}, {"--tenant", "tenant-b"}, {"acct_c", "--tenant", "tenant-b", "--from", "2026-11-21T09:00:00Z"}, {"--from", "yesterday"},
	} {
		d.compares(idemctl.ExitUsage, append(malformed, "--write")...)
	}
}

// An account that collects and agrees is held after a loss, until a comparison without --correct has been written.
func TestAccountCompareFoldsAgainWhatAgrees(t *testing.T) {
	d := newDesk(t)
	d.Account(t, "tenant-b", "acct_c", 7)
	d.exits(idemctl.ExitOK, "account", "collect", "acct_c", "--tenant", "tenant-b", "--partitions", "1", "--reason", "ticket 1", "--write")
	d.exits(idemctl.ExitOK, "refuse-before", "set", time.Now().Add(time.Minute).UTC().Format(time.RFC3339), "--reason", "ticket 1", "--write")
	held := func(want int, write ...string) {
		t.Helper()
		if all, _ := d.compares(idemctl.ExitOK, write...); len(all.Accounts) != want || want == 1 && (!all.Accounts[0].Held || !strings.HasPrefix(all.Accounts[0].Did, "fold again")) {
			t.Errorf("%+v, want %d to be held", all, want)
		}
	}
	held(1)
	held(1, "--write")
	held(0, "--write")
	d.holds("tenant-b", "acct_c", 7)
}

// docs/recovery.md "Compare the balances": without the id of an account all of them are compared; transfers whose clients were told 201 are
// put back first; accounts that are not there are listed.
func TestAccountCompareOfAllAccounts(t *testing.T) {
	t.Run("plain", func(t *testing.T) { newDesk(t).comparesAllAccounts() })
	t.Run("sealed", func(t *testing.T) {
		newDesk(t, func(s *lambdatest.Stage) { s.Seal(t) }).comparesAllAccounts()
	})
}

func (d *desk) comparesAllAccounts() {
	d.Helper()
	t := d.T
	for account, balance := range map[string]int64{"acct_1": 1000, "acct_2": 0, "acct_3": 50} {
		d.Account(t, lambdatest.Tenant, account, balance)
	}
	d.answeredWithoutRow("acct_1", "acct_2", 300)
	d.row(payments.Transfer{Tenant: lambdatest.Tenant, ID: "tr_2", From: "acct_gone", To: "acct_3", Amount: 30, Currency: "EUR", CreatedAt: time.Now()})
	for _, write := range [][]string{nil, {"--write"}, {"--correct"}} {
		want := idemctl.ExitRefused
		found, _ := d.compares(want, write...)
		if found.Compared < 3 || len(found.Transfers) != 1 || len(found.Accounts) != 4 {
			t.Fatalf("%+v", found)
		}
		lacks := map[string]int64{}
		for _, a := range found.Accounts {
			lacks[a.Account] = a.Lacks
		}
		if !maps.Equal(lacks, map[string]int64{"acct_1": -300, "acct_2": 300, "acct_3": 30, "acct_gone": -30}) {
			t.Errorf("%v", lacks)
		}
	}
	d.holds(lambdatest.Tenant, "acct_1", 1000)
	if late, _ := d.compares(idemctl.ExitRefused, "--from", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)); len(late.Transfers) != 0 || len(late.Accounts) != 2 {
		t.Errorf("%+v, want no transfer of later", late)
	}
	did, _ := d.compares(idemctl.ExitRefused, "--correct", "--write") // one account is left
	if did.Transfers[0].Did == "" || did.Transfers[0].Code != "" {
		t.Errorf("%+v", did.Transfers)
	}
	for account, balance := range map[string]int64{"acct_1": 700, "acct_2": 300, "acct_3": 80} {
		d.holds(lambdatest.Tenant, account, balance)
	}
	left, _ := d.compares(idemctl.ExitRefused, "--correct", "--write")
	if len(left.Transfers) != 0 || len(left.Accounts) != 1 || left.Accounts[0].Account != "acct_gone" || left.Accounts[0].Code != codeAccountMissing {
		t.Errorf("%+v, want what only a person can do", left)
	}
	if out, _ := d.exits(idemctl.ExitRefused, "account", "compare", "--reason", "ticket 1"); !strings.Contains(out, "acct_gone of "+lambdatest.Tenant+": account_missing: ") {
		t.Error(out)
	}
	d.Account(t, lambdatest.Tenant, "acct_gone", 100+30) // the books prove 100
	d.compares(idemctl.ExitOK, "--correct", "--write")
	d.holds(lambdatest.Tenant, "acct_gone", 100)
	d.row(payments.Transfer{Tenant: lambdatest.Tenant, ID: "tr_3", From: "acct_1", To: "acct_2", Amount: 1, Currency: "EUR", CreatedAt: time.Now()})
	d.update("transfer#"+lambdatest.Tenant+"/tr_3", "SET amt = cur")
	if _, errs := d.exits(idemctl.ExitTrouble, "account", "compare", "--reason", "ticket 1", "--correct", "--write"); !strings.Contains(errs, "tr_3") {
		t.Errorf("%s, want the row that can't be read", errs)
	}
	d.holds(lambdatest.Tenant, "acct_1", 700)
}

// An account that a loss has taken is not another one whose id begins alike: that one would be corrected, and read as this one.
func TestAGoneAccountIsNoOtherThatBeginsAlike(t *testing.T) {
	d := newDesk(t)
	d.Account(t, lambdatest.Tenant, "acct_10", 500)
	d.Account(t, lambdatest.Tenant, "acct_2", 100)
	d.row(payments.Transfer{Tenant: lambdatest.Tenant, ID: "tr_1", From: "acct_2", To: "acct_1", Amount: 30, Currency: "EUR", CreatedAt: time.Now()})
	d.row(payments.Transfer{Tenant: lambdatest.Tenant, ID: "tr_2", From: "acct_2", To: "acct_10", Amount: 7, Currency: "EUR", CreatedAt: time.Now()})
	of := func(id string, more ...string) []string {
		return append([]string{id, "--tenant", lambdatest.Tenant}, more...)
	}
	for _, more := range [][]string{nil, {"--correct"}, {"--correct", "--write"}} {
		found, errs := d.compares(idemctl.ExitRefused, of("acct_1", more...)...)
		if len(found.Accounts) != 1 || found.Accounts[0].Account != "acct_1" || found.Accounts[0].Code != codeAccountMissing || strings.Contains(errs, "acct_10") {
			t.Errorf("%q: %+v, %s", more, found.Accounts, errs)
		}
	}
	d.holds(lambdatest.Tenant, "acct_10", 500)
	d.Account(t, lambdatest.Tenant, "acct_11", 0) // several begin so, and it is none of them
	if found, _ := d.compares(idemctl.ExitRefused, of("acct_1")...); len(found.Accounts) != 1 || found.Accounts[0].Code != codeAccountMissing {
		t.Errorf("%+v", found.Accounts)
	}
	if _, errs := d.compares(idemctl.ExitOK, of("acct_10", "--correct", "--write")...); strings.Contains(errs, " is ") {
		t.Errorf("%s", errs)
	}
	d.holds(lambdatest.Tenant, "acct_10", 507)
}

// The rows that wait for an account's folding are in no total. Where it is gone they name it all the same.
func TestAGoneAccountIsNamedByWhatWaitsForIt(t *testing.T) {
	d := newDesk(t)
	d.Account(t, lambdatest.Tenant, "acct_3", 100)
	d.row(payments.Transfer{Tenant: lambdatest.Tenant, ID: "tr_3", From: "acct_3", To: "acct_gone", Partition: 1, Amount: 30, Currency: "EUR", CreatedAt: time.Now()})
	found, _ := d.compares(idemctl.ExitRefused)
	var gone []string
	for _, a := range found.Accounts {
		if a.Code == codeAccountMissing && a.Lacks == 0 {
			gone = append(gone, a.Account)
		}
	}
	if !slices.Equal(gone, []string{"acct_gone"}) {
		t.Errorf("%+v, want the account that is gone", found.Accounts)
	}
}

// docs/recovery.md "Compare the balances": no account is corrected by rows that lack a transfer of it, because the client is told for ever
// that it was made. Other accounts are corrected, and a repeat puts all right once the row can be put back.
func TestNoAccountIsCorrectedByRowsThatLackATransferOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*desk) (mend func())
		// third is the balance of another account of the tenant meanwhile, and gone the code of one that is not there.
		third int64
		gone  string
	}{
		"its row can't be put back": {(*desk).refusingTransfers, 70, codeAccountMissing},
		"its answer can't be read":  {(*desk).withoutKeys, 100, codeTrouble}, // so nobody knows whose it is
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, func(s *lambdatest.Stage) { s.Seal(t) })
			d.withoutRow()
			for _, tenant := range []string{lambdatest.Tenant, "tenant-b"} {
				d.Account(t, tenant, "acct_3", 100)
				d.row(payments.Transfer{Tenant: tenant, ID: "tr_3", From: "acct_3", To: "acct_gone", Amount: 30, Currency: "EUR", CreatedAt: time.Now(), Counted: true})
			}
			mend := c.spoil(d)
			left, _ := d.compares(idemctl.ExitTrouble, "--correct", "--write")
			codes := map[string]string{}
			for _, a := range left.Accounts {
				codes[a.Tenant+"/"+a.Account] = a.Code
			}
			if len(left.Transfers) != 1 || codes[lambdatest.Tenant+"/acct_1"] != codeTrouble || codes[lambdatest.Tenant+"/acct_2"] != codeTrouble ||
				codes[lambdatest.Tenant+"/acct_gone"] != c.gone || codes["tenant-b/acct_gone"] != codeAccountMissing {
				t.Errorf("%+v", left)
			}
			d.holds(lambdatest.Tenant, "acct_1", 700)
			d.holds(lambdatest.Tenant, "acct_2", 300)
			d.holds(lambdatest.Tenant, "acct_3", c.third)
			d.holds("tenant-b", "acct_3", 70)
			mend()
			d.compares(idemctl.ExitRefused, "--correct", "--write") // acct_gone is still not there
			d.holds(lambdatest.Tenant, "acct_1", 700)
			d.holds(lambdatest.Tenant, "acct_2", 300)
			d.holds(lambdatest.Tenant, "acct_3", 70)
		})
	}
}

// One account by itself is not corrected either while a transfer of it has no row, or while nobody can read whose a transfer is.
func TestOneAccountIsNotCorrectedWhileATransferOfItHasNoRow(t *testing.T) {
	d := newDesk(t, func(s *lambdatest.Stage) { s.Seal(t) })
	d.withoutRow()
	d.Account(t, lambdatest.Tenant, "acct_3", 100)
	d.row(payments.Transfer{Tenant: lambdatest.Tenant, ID: "tr_3", From: "acct_3", To: "acct_4", Amount: 30, Currency: "EUR", CreatedAt: time.Now(), Counted: true})
	one := func(account string) []string {
		return []string{account, "--tenant", lambdatest.Tenant, "--correct", "--write"}
	}
	if left, _ := d.compares(idemctl.ExitRefused, one("acct_1")...); left.Accounts[0].Code != codeTransferLost || len(left.Transfers) != 0 {
		t.Errorf("%+v", left)
	}
	d.holds(lambdatest.Tenant, "acct_1", 700)
	mend := d.withoutKeys()
	if left, errs := d.compares(idemctl.ExitTrouble, one("acct_3")...); left.Accounts[0].Code != codeTrouble || !strings.Contains(errs, ", transfer tr_") {
		t.Errorf("%+v, %s", left, errs)
	}
	d.holds(lambdatest.Tenant, "acct_3", 100)
	mend()
	d.compares(idemctl.ExitOK, one("acct_3")...)
	d.holds(lambdatest.Tenant, "acct_3", 70)
}

// removes deletes an item.
func (d *desk) removes(table, key, value string) {
	d.Helper()
	_, err := d.Client.DeleteItem(d.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: map[string]types.AttributeValue{key: &types.AttributeValueMemberS{Value: value}}})
	d.ok(err)
}

// losesRow deletes the row of what an operation made, and returns it.
func (d *desk) losesRow(kind payments.EntryKind, operation idem.OperationID) (row map[string]types.AttributeValue) {
	d.Helper()
	pk, _ := payments.EntryOf(kind, lambdatest.Tenant, operation)
	for _, it := range d.Items(d.T, d.Payments) {
		if it["pk"].(*types.AttributeValueMemberS).Value == pk {
			row = it
		}
	}
	d.removes(d.Payments, "pk", pk)
	return row
}

// cuts says that data was lost up to now.
func (d *desk) cuts() {
	d.Helper()
	cut := time.Now().Add(10 * time.Millisecond)
	d.exits(idemctl.ExitOK, "refuse-before", "set", cut.UTC().Format(time.RFC3339Nano), "--reason", "ticket 17", "--write")
	<-time.After(time.Until(cut.Add(10 * time.Millisecond)))
}

// waits sends a payout whose screening waits for its next attempt, and returns its operation.
func (d *desk) waits(key string) idem.OperationID {
	d.Helper()
	d.faults(provider.Rule{On: provider.Screening, Fault: provider.RateLimit, Times: 1})
	return d.post("/v1/payouts", key, `{"from":"acct_1","amount":500,"currency":"EUR","destination":"iban_ok"}`)
}

// docs/recovery.md "Compare the balances": no account gets a payout's money back while that is under way, or was made, and its row is not
// there: it has left, or leaves with the next call. Once the row is put back, nothing differs, and what was under way is paid out.
func TestNoAccountIsCorrectedByRowsThatLackAPayoutOfIt(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	for name, c := range map[string]struct {
		begins func(*desk, string) idem.OperationID
		made   bool
	}{"made": {(*desk).payOut, true}, "under way": {(*desk).waits, false}} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.Account(t, lambdatest.Tenant, "acct_1", 1000)
			payout := c.begins(d, "out-17")
			d.losesRow(payments.EntryPayout, payout)
			d.putsRowBack(payout, 500)
			if agree, _ := d.compares(idemctl.ExitOK, "--correct", "--write"); len(agree.Accounts) != 0 {
				t.Errorf("%+v, want all to agree", agree.Accounts)
			}
			d.isPaidOut(payout, c.made)
		})
	}
}

// putsRowBack puts the row of a payout back, whose account holds so much. Before that no comparison corrects the account.
func (d *desk) putsRowBack(payout idem.OperationID, holds int64) {
	d.Helper()
	for _, more := range [][]string{nil, {"--correct", "--write"}, {"acct_1", "--tenant", lambdatest.Tenant, "--correct", "--write"}} {
		left, _ := d.compares(idemctl.ExitRefused, more...)
		if len(left.Accounts) != 1 || left.Accounts[0].Code != codePayoutLost || !strings.Contains(left.Accounts[0].Rule, string(payout)) {
			d.Errorf("%v: %+v", more, left)
		}
		d.holds(lambdatest.Tenant, "acct_1", holds)
	}
	d.cuts()
	if dry := d.restores(idemctl.ExitOK, "--operation", string(payout)); len(dry) != 1 || dry[0].Did != "put its row back" {
		d.Errorf("%+v, want the dry run to say that it would put the row back", dry)
	}
	if done := d.restores(idemctl.ExitOK, "--operation", string(payout), "--write"); len(done) != 1 || done[0].Did != rowPutBack {
		d.Errorf("%+v", done)
	}
}

// isPaidOut has the payout delivered, if it was not made yet, and demands that it has ended with its account debited once.
func (d *desk) isPaidOut(payout idem.OperationID, made bool) {
	d.Helper()
	if !made {
		d.due(payout.Message(1))
		d.deliver(payout.Message(1))
		d.deliver(payout.Message(2))
	}
	d.demands(d.inspect(string(payout)), "completed delivered delivered succeeded", "nothing: it has ended")
	d.holds(lambdatest.Tenant, "acct_1", 500)
}

// rowPutBack is the outcome of missing restore where nothing but a row was written.
const rowPutBack = "row put back, and no money moved: compare the balances"

// docs/recovery.md "Compare the balances": a payout that has lost its row and its debit is seen, though the account agrees with its rows: the
// provider is called, or was. Once the row is put back the account is debited, once.
func TestAPayoutThatLostItsRowAndItsDebitIsDebitedOnce(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	for name, c := range map[string]struct {
		begins func(*desk, string) idem.OperationID
		made   bool
	}{"made": {(*desk).payOut, true}, "under way": {(*desk).waits, false}} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.Account(t, lambdatest.Tenant, "acct_1", 1000)
			payout := c.begins(d, "out-17")
			d.losesRow(payments.EntryPayout, payout)
			d.Account(t, lambdatest.Tenant, "acct_1", 1000) // as it was before
			d.putsRowBack(payout, 1000)
			for range 2 {
				d.compares(idemctl.ExitOK, "--correct", "--write")
				d.holds(lambdatest.Tenant, "acct_1", 500)
			}
			d.isPaidOut(payout, c.made)
		})
	}
}

// docs/recovery.md "Fail-over to another Region": tables that were backed up one after the other may lack the row and the debit of a payout whose
// record is older than the instant of another table. No later --from may leave that record out.
func TestAPayoutWithoutItsRowIsFoundWhateverItsAgeWithoutFrom(t *testing.T) {
	d := newDesk(t)
	d.Account(t, lambdatest.Tenant, "acct_1", 1000)
	d.losesRow(payments.EntryPayout, d.payOut("out-17"))
	d.Account(t, lambdatest.Tenant, "acct_1", 1000) // as it was before
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	if hidden, _ := d.compares(idemctl.ExitOK, "--from", later); len(hidden.Accounts) != 0 {
		t.Errorf("%+v, want --from to leave it out", hidden)
	}
	if left, _ := d.compares(idemctl.ExitRefused); len(left.Accounts) != 1 || left.Accounts[0].Code != codePayoutLost {
		t.Errorf("%+v", left)
	}
}

// A restore may bring back a payout's second message alone: that pays out, and the account keeps the debit. Its row can only be made by hand,
// and is pending, whatever the provider has: the message ends it. As one that has failed it would give back what is paid out.
func TestNoAccountIsCorrectedWhileALaterMessageOfAPayoutIsThere(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	d.Account(t, lambdatest.Tenant, "acct_1", 1000)
	payout := d.waits("out-17")
	d.due(payout.Message(1))
	d.deliver(payout.Message(1))
	row := d.losesRow(payments.EntryPayout, payout)
	d.removes(d.Outbox, "id", string(payout.Message(1)))
	left, _ := d.compares(idemctl.ExitRefused, "--correct", "--write")
	if len(left.Accounts) != 1 || left.Accounts[0].Code != codePayoutLost || !strings.Contains(left.Accounts[0].Rule, payments.EntryID(payments.EntryPayout, payout)) || !strings.HasSuffix(left.Accounts[0].Rule, "status is pending") {
		t.Errorf("%+v", left)
	}
	d.holds(lambdatest.Tenant, "acct_1", 500)
	d.cuts()
	if byHand := d.restores(idemctl.ExitRefused, "--operation", string(payout), "--write"); len(byHand) != 1 || byHand[0].Code != payments.CodePartlyThere {
		t.Errorf("%+v", byHand)
	}
	d.Put(t, d.Payments, row) // by hand
	if agree, _ := d.compares(idemctl.ExitOK, "--correct", "--write"); len(agree.Accounts) != 0 {
		t.Errorf("%+v, want all to agree", agree.Accounts)
	}
	d.deliver(payout.Message(2))
	d.demands(d.inspect(string(payout)), "completed succeeded", "nothing: it has ended")
	d.holds(lambdatest.Tenant, "acct_1", 500)
}

// docs/recovery.md "Write a row by hand": where all messages of a pending record have ended, the last one says what its row must be. Nobody has
// to find that out by a rule.
func TestTheLastMessageSaysWhatARowIsThatIsWrittenByHand(t *testing.T) {
	for name, c := range map[string]struct {
		fault provider.Rule
		// last is the last message that is there.
		last int
		says string
	}{
		"screening declined":             {provider.Rule{On: provider.Screening, Fault: provider.Decline}, 1, "status is declined, with gvb 1"},
		"screening delivered":            {provider.Rule{}, 1, "status is pending"},
		"payout delivered":               {provider.Rule{}, 2, "status is succeeded"},
		"payout declined":                {provider.Rule{On: provider.Payout, Fault: provider.Decline}, 2, "status is pending"},
		"released after a decline":       {provider.Rule{On: provider.Payout, Fault: provider.Decline}, 3, "status is declined, with gvb 1"},
		"released after it was given up": {provider.Rule{On: provider.Payout, Fault: provider.Refuse}, 3, "status is failed, with gvb 1"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.Account(t, lambdatest.Tenant, "acct_1", 1000)
			payout := d.waits("out-17")
			if d.faults(); c.fault.Fault != "" {
				d.faults(c.fault)
			}
			d.due(payout.Message(1))
			d.endsWithoutRow(payments.EntryPayout, payout, c.last)
			left, _ := d.compares(idemctl.ExitRefused)
			if len(left.Accounts) != 1 || !strings.HasSuffix(left.Accounts[0].Rule, c.says) {
				t.Errorf("%+v, want %q", left.Accounts, c.says)
			}
		})
	}
	for name, c := range map[string]struct {
		last int
		says string
	}{"refund declined": {1, "status is declined"}, "refund that its worker has yet to deliver": {0, "status is pending"}} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			charge := d.pay("order-17", "card_ok")
			d.deliver(charge.Message(1))
			refund := d.post("/v1/payments/"+payments.EntryID(payments.EntryPayment, charge)+"/refunds", "back-17", `{"amount":100}`)
			if c.last == 0 {
				d.losesRow(payments.EntryRefund, refund)
			} else {
				d.faults(provider.Rule{On: provider.Refund, Fault: provider.Decline})
				d.endsWithoutRow(payments.EntryRefund, refund, c.last)
			}
			left, _ := d.compares(idemctl.ExitRefused)
			if len(left.Payments) != 1 || !strings.HasSuffix(left.Payments[0].Rule, c.says) {
				t.Errorf("%+v, want %q", left.Payments, c.says)
			}
		})
	}
}

// endsWithoutRow delivers the messages of an operation up to the last one that it keeps, beside the record as it was before. The row is gone.
func (d *desk) endsWithoutRow(kind payments.EntryKind, operation idem.OperationID, last int) {
	d.Helper()
	records := d.Items(d.T, d.Idempotency)
	for n := 1; n <= last; n++ {
		d.deliver(operation.Message(n))
	}
	d.removes(d.Outbox, "id", string(operation.Message(last+1)))
	for _, it := range records {
		d.Put(d.T, d.Idempotency, it)
	}
	d.losesRow(kind, operation)
}

// What no message calls the provider for moves nothing, and takes its money again where it is made again: the account is corrected before.
func TestAnAccountIsCorrectedByRowsThatLackWhatNothingMoves(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	d.Account(t, lambdatest.Tenant, "acct_1", 500) // which does not hold it twice
	payout := d.waits("out-17")
	d.losesRow(payments.EntryPayout, payout)
	d.removes(d.Outbox, "id", string(payout.Message(1)))
	d.compares(idemctl.ExitOK, "--correct", "--write")
	d.holds(lambdatest.Tenant, "acct_1", 500)
	d.cuts()
	if done := d.restores(idemctl.ExitOK, "--operation", string(payout), "--finish", "--write"); len(done) != 1 || done[0].Did != "restored" {
		t.Errorf("%+v", done)
	}
	d.holds(lambdatest.Tenant, "acct_1", 0)
	d.compares(idemctl.ExitOK, "--correct", "--write")
	d.holds(lambdatest.Tenant, "acct_1", 0)
}

// docs/recovery.md "End a row by hand": a payout that was not made is ended by its row alone, as failed and given back. The comparison gives
// its account the money back, once.
func TestAPayoutThatIsEndedByHandIsGivenBackOnce(t *testing.T) {
	d := newDesk(t)
	d.Account(t, lambdatest.Tenant, "acct_1", 1000)
	payout := d.waits("out-17")
	pk, _ := payments.EntryOf(payments.EntryPayout, lambdatest.Tenant, payout)
	_, err := d.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &d.Payments, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}},
		UpdateExpression: aws.String("SET st = :ended, gvb = :one"), ConditionExpression: aws.String("st = :pending"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":ended": &types.AttributeValueMemberS{Value: "failed"}, ":pending": &types.AttributeValueMemberS{Value: "pending"}, ":one": &types.AttributeValueMemberN{Value: "1"},
		},
	})
	d.ok(err)
	d.holds(lambdatest.Tenant, "acct_1", 500)
	for range 2 {
		d.compares(idemctl.ExitOK, "acct_1", "--tenant", lambdatest.Tenant, "--correct", "--write")
		d.holds(lambdatest.Tenant, "acct_1", 1000)
	}
}

// Where a payout's or a refund's answer can't be read nobody knows what it is of: nothing of its tenant is corrected, and all of another one.
func TestNoAccountIsCorrectedWhileNobodyKnowsWhoseAPayoutIs(t *testing.T) {
	d := newDesk(t, func(s *lambdatest.Stage) { s.Seal(t) })
	d.Account(t, lambdatest.Tenant, "acct_1", 1000)
	d.losesRow(payments.EntryPayout, d.payOut("out-17"))
	charge := d.pay("order-17", "card_ok")
	d.deliver(charge.Message(1))
	payment := payments.EntryID(payments.EntryPayment, charge)
	d.losesRow(payments.EntryRefund, d.post("/v1/payments/"+payment+"/refunds", "back-17", `{"amount":100}`))
	d.payment("pay_other", 7)
	for _, tenant := range []string{lambdatest.Tenant, "tenant-b"} {
		d.Account(t, tenant, "acct_3", 100)
		d.Account(t, tenant, "acct_4", 0)
		d.row(payments.Transfer{Tenant: tenant, ID: "tr_3", From: "acct_3", To: "acct_4", Amount: 30, Currency: "EUR", CreatedAt: time.Now(), Counted: true})
	}
	mend := d.withoutKeys()
	left, _ := d.compares(idemctl.ExitTrouble, "--correct", "--write")
	for _, a := range left.Accounts {
		if (a.Code == codeTrouble) != (a.Tenant == lambdatest.Tenant) {
			t.Errorf("%+v", a)
		}
	}
	if len(left.Accounts) != 5 || len(left.Payments) != 2 || left.Payments[0].Code != codeTrouble || left.Payments[1].Code != codeTrouble {
		t.Errorf("%+v", left)
	}
	d.holds(lambdatest.Tenant, "acct_1", 500)
	d.holds(lambdatest.Tenant, "acct_3", 100)
	d.holds("tenant-b", "acct_3", 70)
	mend()
	left, _ = d.compares(idemctl.ExitRefused, "--correct", "--write")
	codes := map[string]string{}
	for _, a := range left.Accounts {
		codes[a.Account] = a.Code
	}
	if !maps.Equal(codes, map[string]string{"acct_1": codePayoutLost, "acct_3": "", "acct_4": ""}) {
		t.Errorf("%+v", left)
	}
	d.holds(lambdatest.Tenant, "acct_1", 500)
	d.holds(lambdatest.Tenant, "acct_3", 70)
}

// Of several payouts of a tenant that can't be read each one is named, with the id of the row that it lacks, because that row is made by hand
// where the tenant's keys are erased. The rows alone end it: no other record is left out for that.
func TestEachPayoutThatCanNotBeReadIsNamed(t *testing.T) {
	d := newDesk(t, func(s *lambdatest.Stage) { s.Seal(t) })
	d.Account(t, lambdatest.Tenant, "acct_1", 1000)
	var all []idem.OperationID
	var rows []map[string]types.AttributeValue
	for _, key := range []string{"out-17", "out-18"} {
		all = append(all, d.waits(key))
	}
	for _, payout := range all {
		rows = append(rows, d.losesRow(payments.EntryPayout, payout))
	}
	d.withoutKeys()
	for _, more := range [][]string{{"--correct", "--write"}, nil, {"acct_1", "--tenant", lambdatest.Tenant, "--correct", "--write"}} {
		left, errs := d.compares(idemctl.ExitTrouble, more...)
		if len(left.Accounts) != 1 || left.Accounts[0].Code != codeTrouble {
			t.Errorf("%v: %+v", more, left)
		}
		for _, payout := range all {
			if id := payments.EntryID(payments.EntryPayout, payout); !strings.Contains(errs, string(payout)) || !strings.Contains(errs, id) {
				t.Errorf("%v: %s, want %s and %s to be named", more, errs, payout, id)
			}
		}
		if rule := left.Accounts[0].Rule; !slices.ContainsFunc(all, func(payout idem.OperationID) bool {
			return strings.Contains(rule, string(payout)) && strings.Contains(rule, "payout "+payments.EntryID(payments.EntryPayout, payout))
		}) {
			t.Errorf("%s, want a payout to be named with its row", rule)
		}
	}
	for i, row := range rows {
		d.Put(t, d.Payments, row)
		d.compares(map[bool]int{true: idemctl.ExitOK, false: idemctl.ExitTrouble}[i == len(rows)-1], "--correct", "--write")
	}
	d.holds(lambdatest.Tenant, "acct_1", 0)
}

// A refund that can't be read, and that has lost its amount too, is told of though every payment agrees with its refunds.
func TestARefundThatCanNotBeReadIsTroubleWherePaymentsAgree(t *testing.T) {
	d := newDesk(t, func(s *lambdatest.Stage) { s.Seal(t) })
	charge := d.pay("order-17", "card_ok")
	d.deliver(charge.Message(1))
	payment := payments.EntryID(payments.EntryPayment, charge)
	refund := d.post("/v1/payments/"+payment+"/refunds", "back-17", `{"amount":100}`)
	d.losesRow(payments.EntryRefund, refund)
	row, _ := payments.EntryKey(payments.EntryPayment, lambdatest.Tenant, payment)
	d.update(row, "REMOVE rfd")
	d.withoutKeys()
	if _, errs := d.compares(idemctl.ExitTrouble, "--correct", "--write"); !strings.Contains(errs, string(refund)) {
		t.Errorf("told %s", errs)
	}
}

// A row that shows only after the rows were added up belongs to a transaction that was being committed: it is in the account that was
// read, and nothing is torn.
func TestNoAccountIsCorrectedByARowThatShowsLate(t *testing.T) {
	d := newDesk(t)
	row := d.withoutRow()
	scans := 0
	d.before("Scan", func(body string) (refused bool) {
		if strings.Contains(body, ":payouts") {
			if scans++; scans == 2 {
				d.Put(t, d.Payments, row)
			}
		}
		return false
	})
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339) // no record is asked for its row
	moves, _ := d.compares(idemctl.ExitRefused, "--from", later, "--correct", "--write")
	if len(moves.Accounts) != 2 || moves.Accounts[0].Code != codeMoves || moves.Accounts[1].Code != codeMoves {
		t.Errorf("%+v, want both to be left", moves.Accounts)
	}
	d.holds(lambdatest.Tenant, "acct_1", 700)
	d.holds(lambdatest.Tenant, "acct_2", 300)
	if agree, _ := d.compares(idemctl.ExitOK, "--from", later, "--correct", "--write"); len(agree.Accounts) != 0 {
		t.Errorf("%+v, want all to agree", agree.Accounts)
	}
}

// A row that shows only after its record was looked at belongs to a transaction that was being committed, too: it is read once more before it
// counts as missing.
func TestARowThatShowsAfterItsRecordIsNotMissing(t *testing.T) {
	d := newDesk(t)
	row := d.withoutRow()
	asked := 0
	d.before("BatchGetItem", func(string) (refused bool) {
		if asked++; asked == 2 {
			d.Put(t, d.Payments, row)
		}
		return false
	})
	if agree, _ := d.compares(idemctl.ExitOK); len(agree.Transfers) != 0 || len(agree.Accounts) != 0 {
		t.Errorf("%+v, want nothing to be missing", agree)
	}
}

// docs/recovery.md "Compare the balances": only a row that can't be read is named. Where the rows of many records can't be asked for, the error
// is the store's, and names no record that somebody would correct by hand.
func TestWhatCanNotBeAskedForNamesNoRecord(t *testing.T) {
	d := newDesk(t)
	d.withoutRow()
	record := d.Items(t, d.Idempotency)[0]
	for n := range 100 { // the rows of so many are asked for at once
		record["pk"] = &types.AttributeValueMemberS{Value: fmt.Sprintf("innocent%034dA", n)}
		d.Put(t, d.Idempotency, record)
	}
	mend := d.before("BatchGetItem", func(string) (refused bool) { return true })
	if _, errs := d.compares(idemctl.ExitTrouble); strings.Contains(errs, "innocent") || !strings.Contains(errs, "BatchGetItem") {
		t.Errorf("told %s", errs)
	}
	mend()
	record["pk"] = &types.AttributeValueMemberS{Value: "damaged"}
	d.Put(t, d.Idempotency, record)
	if _, errs := d.compares(idemctl.ExitTrouble); !strings.Contains(errs, "of damaged") {
		t.Errorf("told %s", errs)
	}
}

// docs/recovery.md "Compare the balances": an account that changes right before its correction is left, as one that changed before that.
// Another one is corrected, so that nobody is told that nothing was changed.
func TestAccountThatMovesBeforeItsCorrectionIsLeft(t *testing.T) {
	d := newDesk(t)
	for _, account := range []string{"acct_1", "acct_2"} {
		d.Account(t, lambdatest.Tenant, account, 100)
		d.row(payments.Transfer{Tenant: lambdatest.Tenant, ID: "tr_" + account, From: account, To: "acct_3", Amount: 30, Currency: "EUR", CreatedAt: time.Now(), Counted: true})
	}
	d.Account(t, lambdatest.Tenant, "acct_3", 0)
	d.Account(t, lambdatest.Tenant, "acct_4", 0)
	moved := false
	d.before("UpdateItem", func(body string) (refused bool) {
		if strings.Contains(body, ":lacks") && strings.Contains(body, "/acct_2") && !moved {
			moved = true
			d.transfers("acct_2", "acct_4", 5)
		}
		return false
	})
	answer, errs := d.compares(idemctl.ExitRefused, "--correct", "--write")
	codes := map[string]string{}
	for _, a := range answer.Accounts {
		codes[a.Account] = a.Code
	}
	if !maps.Equal(codes, map[string]string{"acct_1": "", "acct_2": codeMoves, "acct_3": ""}) || strings.Contains(errs, "Nothing was changed") {
		t.Errorf("%v, %s, want one account to be left", codes, errs)
	}
	for account, balance := range map[string]int64{"acct_1": 70, "acct_2": 95, "acct_3": 60} {
		d.holds(lambdatest.Tenant, account, balance)
	}
}

// payment puts a payment's row there that says so much was refunded of it; nothing where it says nothing.
func (d *desk) payment(id string, refunded int64) {
	d.Helper()
	written, err := payments.Items(d.Payments, 1)(payments.InsertPayment{Payment: payments.Payment{
		Tenant: lambdatest.Tenant, ID: id, Status: payments.StatusSucceeded, Amount: 1000, Currency: "EUR", Source: "card_ok", CreatedAt: time.Now(),
	}})
	d.ok(err)
	if refunded > 0 {
		written.Put.Item["rfd"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(refunded, 10)}
	}
	d.Put(d.T, d.Payments, written.Put.Item)
}

// refund puts a refund's row there.
func (d *desk) refund(id, payment string, amount int64, status payments.Status) {
	d.Helper()
	written, err := payments.Items(d.Payments, 1)(payments.InsertRefund{Refund: payments.Refund{
		Tenant: lambdatest.Tenant, ID: id, Payment: payment, Status: status, Amount: amount, Currency: "EUR", CreatedAt: time.Now(),
	}})
	d.ok(err)
	d.Put(d.T, d.Payments, written.Put.Item)
}

// docs/recovery.md "Compare the balances": what a payment says was refunded is what its refunds add up to, whatever a restore has torn.
func TestAccountCompareOfRefunds(t *testing.T) {
	d := newDesk(t)
	table := payments.Table{Client: d.Client, Name: d.Payments}
	d.payment("pay_high", 500)
	d.payment("pay_low", 0)
	d.refund("re_low", "pay_low", 300, payments.StatusPending)
	d.payment("pay_right", 200)
	d.refund("re_1", "pay_right", 200, payments.StatusSucceeded)
	d.refund("re_2", "pay_right", 700, payments.StatusDeclined)
	d.refund("re_gone", "pay_gone", 40, payments.StatusSucceeded)
	refunded := func(want map[string]int64) {
		t.Helper()
		for id, amount := range want {
			if p, err := table.Payment(t.Context(), lambdatest.Tenant, id); err != nil || p.Refunded != amount {
				t.Errorf("%+v, %v, want %d refunded", p, err, amount)
			}
		}
	}
	for _, write := range [][]string{nil, {"--write"}, {"--correct"}} {
		found, _ := d.compares(idemctl.ExitRefused, write...)
		if len(found.Payments) != 3 {
			t.Fatalf("%+v", found)
		}
		for i, want := range []refundedPayment{{Payment: "pay_gone", Refunds: 40}, {Payment: "pay_high", Refunded: 500}, {Payment: "pay_low", Refunds: 300}} {
			got := found.Payments[i]
			code := codeDiffers
			if i == 0 {
				code = payments.CodePaymentMissing
			} else if len(write) > 0 && write[0] == "--correct" {
				code = ""
			}
			if got.Payment != want.Payment || got.Refunded != want.Refunded || got.Refunds != want.Refunds || got.Tenant != lambdatest.Tenant || got.Code != code || (got.Did == "") != (code != "") {
				t.Errorf("%+v, want %+v with the code %q", got, want, code)
			}
		}
		refunded(map[string]int64{"pay_high": 500, "pay_low": 0, "pay_right": 200})
	}
	d.compares(idemctl.ExitRefused, "--correct", "--write") // one is left
	refunded(map[string]int64{"pay_high": 0, "pay_low": 300, "pay_right": 200})
	if out, _ := d.exits(idemctl.ExitRefused, "account", "compare", "--reason", "ticket 1"); !strings.Contains(out, "payment pay_gone of "+lambdatest.Tenant+": payment_missing: ") {
		t.Error(out)
	}
	d.payment("pay_gone", 0)
	d.compares(idemctl.ExitOK, "--correct", "--write")
	refunded(map[string]int64{"pay_gone": 40})
	if again, _ := d.compares(idemctl.ExitOK, "--correct", "--write"); len(again.Payments) != 0 {
		t.Errorf("%+v", again)
	}
}

// docs/recovery.md "Compare the balances": a payment keeps the amount of a refund that is under way, or was made, and whose row is not there:
// without it the same amount could be refunded once more.
func TestAPaymentIsNotCorrectedByRefundsThatLackOne(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	for name, made := range map[string]bool{"made": true, "under way": false} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			charge := d.pay("order-17", "card_ok")
			d.deliver(charge.Message(1))
			payment := payments.EntryID(payments.EntryPayment, charge)
			refund := d.post("/v1/payments/"+payment+"/refunds", "back-17", `{"amount":100}`)
			if made {
				d.deliver(refund.Message(1))
			}
			d.losesRow(payments.EntryRefund, refund)
			refunded := func(want int64) {
				t.Helper()
				if p, err := (payments.Table{Client: d.Client, Name: d.Payments}).Payment(t.Context(), lambdatest.Tenant, payment); err != nil || p.Refunded != want {
					t.Errorf("%+v, %v, want %d refunded", p, err, want)
				}
			}
			for _, more := range [][]string{{"--correct", "--write"}, nil} {
				left, _ := d.compares(idemctl.ExitRefused, more...)
				if len(left.Payments) != 1 || left.Payments[0].Code != codeRefundLost || !strings.Contains(left.Payments[0].Rule, string(refund)) {
					t.Errorf("%v: %+v", more, left)
				}
				refunded(100)
			}
			d.cuts()
			if done := d.restores(idemctl.ExitOK, "--operation", string(refund), "--write"); len(done) != 1 || done[0].Did != rowPutBack {
				t.Errorf("%+v", done)
			}
			if agree, _ := d.compares(idemctl.ExitOK, "--correct", "--write"); len(agree.Payments) != 0 {
				t.Errorf("%+v, want all to agree", agree.Payments)
			}
			if !made {
				d.deliver(refund.Message(1))
			}
			d.demands(d.inspect(string(refund)), "completed delivered succeeded", "nothing: it has ended")
			refunded(100)
		})
	}
}

// Refunds are added up after those without a row were looked for: the amount of one whose row somebody puts back in between stays on its
// payment. Before that the sum would lack it, and nobody would say so.
func TestAPaymentKeepsTheAmountOfARefundWhoseRowIsPutBackMeanwhile(t *testing.T) {
	d := newDesk(t)
	charge := d.pay("order-17", "card_ok")
	d.deliver(charge.Message(1))
	payment := payments.EntryID(payments.EntryPayment, charge)
	refund := d.post("/v1/payments/"+payment+"/refunds", "back-17", `{"amount":100}`)
	row := d.losesRow(payments.EntryRefund, refund)
	d.before("Scan", func(body string) (refused bool) {
		if strings.Contains(body, "refunds.create") { // the records of refunds are looked at
			d.Put(t, d.Payments, row)
		}
		return false
	})
	if agree, _ := d.compares(idemctl.ExitOK, "--correct", "--write"); len(agree.Payments) != 0 {
		t.Errorf("%+v, want all to agree", agree.Payments)
	}
	if p, err := (payments.Table{Client: d.Client, Name: d.Payments}).Payment(t.Context(), lambdatest.Tenant, payment); err != nil || p.Refunded != 100 {
		t.Errorf("%+v, %v, want 100 refunded", p, err)
	}
}

// docs/recovery.md "Compare the balances": a refund that has lost its row and its amount on the payment is seen, though the payment agrees with
// its refunds. Once the row is put back the amount is on the payment, once.
func TestARefundThatLostItsRowAndItsAmountIsCountedOnce(t *testing.T) {
	t.Setenv("DRIFT_GRACE", "1ms")
	d := newDesk(t)
	charge := d.pay("order-17", "card_ok")
	d.deliver(charge.Message(1))
	payment := payments.EntryID(payments.EntryPayment, charge)
	refund := d.post("/v1/payments/"+payment+"/refunds", "back-17", `{"amount":100}`)
	d.losesRow(payments.EntryRefund, refund)
	row, _ := payments.EntryKey(payments.EntryPayment, lambdatest.Tenant, payment)
	d.update(row, "REMOVE rfd")
	refunded := func(want int64) {
		t.Helper()
		if p, err := (payments.Table{Client: d.Client, Name: d.Payments}).Payment(t.Context(), lambdatest.Tenant, payment); err != nil || p.Refunded != want {
			t.Errorf("%+v, %v, want %d refunded", p, err, want)
		}
	}
	for _, more := range [][]string{nil, {"--correct", "--write"}} {
		left, _ := d.compares(idemctl.ExitRefused, more...)
		if len(left.Payments) != 1 || left.Payments[0].Code != codeRefundLost || !strings.Contains(left.Payments[0].Rule, string(refund)) {
			t.Errorf("%v: %+v", more, left)
		}
		refunded(0)
	}
	d.cuts()
	if done := d.restores(idemctl.ExitOK, "--operation", string(refund), "--write"); len(done) != 1 || done[0].Did != rowPutBack {
		t.Errorf("%+v", done)
	}
	for range 2 {
		d.compares(idemctl.ExitOK, "--correct", "--write")
		refunded(100)
	}
	d.deliver(refund.Message(1))
	d.demands(d.inspect(string(refund)), "completed delivered succeeded", "nothing: it has ended")
	refunded(100)
}

// A payment of which a refund is asked for while it is added up is left.
func TestAPaymentThatIsRefundedMeanwhileIsLeft(t *testing.T) {
	d := newDesk(t)
	d.payment("pay_1", 500)
	asked := 0
	mend := d.before("Scan", func(body string) (refused bool) {
		if strings.Contains(body, "refund#") {
			if asked++; asked == 2 { // when it is added up again
				d.refund("re_1", "pay_1", 500, payments.StatusPending)
			}
		}
		return false
	})
	left, _ := d.compares(idemctl.ExitRefused, "--correct", "--write")
	if len(left.Payments) != 1 || left.Payments[0].Code != codeMoves {
		t.Errorf("%+v", left)
	}
	mend()
	if now, _ := d.compares(idemctl.ExitOK, "--correct", "--write"); len(now.Payments) != 0 {
		t.Errorf("%+v, want it to agree", now)
	}
}

// withoutRow moves 300 from acct_1 to acct_2, and then takes away the transfer's row, which it returns.
func (d *desk) withoutRow() (row map[string]types.AttributeValue) {
	d.Helper()
	d.Account(d.T, lambdatest.Tenant, "acct_1", 1000)
	d.Account(d.T, lambdatest.Tenant, "acct_2", 0)
	d.transfers("acct_1", "acct_2", 300)
	for _, it := range d.Items(d.T, d.Payments) {
		if strings.HasPrefix(it["pk"].(*types.AttributeValueMemberS).Value, "transfer#") {
			_, err := d.Client.DeleteItem(d.Context(), &dynamodb.DeleteItemInput{TableName: &d.Payments, Key: map[string]types.AttributeValue{"pk": it["pk"]}})
			d.ok(err)
			row = it
		}
	}
	d.holds(lambdatest.Tenant, "acct_1", 700)
	return row
}

// refusingTransfers has the command's table take no transfer, until it is mended.
func (d *desk) refusingTransfers() (mend func()) {
	d.Helper()
	return d.before("PutItem", func(body string) (refused bool) { return strings.Contains(body, "transfer#") })
}

// before is asked before each of the command's calls of one action at DynamoDB, until it is mended.
func (d *desk) before(action string, ask func(body string) (refused bool)) (mend func()) {
	d.Helper()
	const variable = "AWS_ENDPOINT_URL_DYNAMODB"
	endpoint := os.Getenv(variable)
	target, err := url.Parse(endpoint)
	d.ok(err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+action) && ask(string(body)) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"no"}`)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	d.Cleanup(front.Close)
	d.Setenv(variable, front.URL)
	return func() { d.Setenv(variable, endpoint) }
}

// entriesStayIntended has the audit log take no end of an entry, until it is mended.
func (d *desk) entriesStayIntended() (mend func()) {
	d.Helper()
	return d.before("UpdateItem", func(body string) (refused bool) { return strings.Contains(body, d.Idempotency+"-audit") })
}

// withoutKeys is a terminal without the variables of the keys, until it is mended.
func (d *desk) withoutKeys() (mend func()) {
	keys, kms := os.Getenv("KEYS_TABLE"), os.Getenv("KMS_KEY_ID")
	d.Setenv("KEYS_TABLE", "")
	d.Setenv("KMS_KEY_ID", "")
	return func() {
		d.Setenv("KEYS_TABLE", keys)
		d.Setenv("KMS_KEY_ID", kms)
	}
}

// answeredWithoutRow makes a transfer, and takes back all of it but its record.
func (d *desk) answeredWithoutRow(from, to string, amount int64) {
	d.Helper()
	before := d.Items(d.T, d.Payments)
	d.transfers(from, to, amount)
	for _, it := range d.Items(d.T, d.Payments) {
		_, err := d.Client.DeleteItem(d.Context(), &dynamodb.DeleteItemInput{TableName: &d.Payments, Key: map[string]types.AttributeValue{"pk": it["pk"]}})
		d.ok(err)
	}
	for _, it := range before {
		d.Put(d.T, d.Payments, it)
	}
}

// transfers moves money as a client asks for it.
func (d *desk) transfers(from, to string, amount int64) {
	d.Helper()
	r := httptest.NewRequestWithContext(d.Context(), http.MethodPost, "/v1/transfers", strings.NewReader(fmt.Sprintf(`{"from":%q,"to":%q,"amount":%d,"currency":"EUR"}`, from, to, amount)))
	r.Header.Set("Idempotency-Key", `"transfer"`)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	if d.api.ServeHTTP(w, r); w.Code != http.StatusCreated {
		d.Fatalf("%d %s", w.Code, w.Body)
	}
}

// update changes an item as somebody's hand does.
func (d *desk) update(pk, expression string) {
	d.Helper()
	_, err := d.Client.UpdateItem(d.Context(), &dynamodb.UpdateItemInput{
		TableName: &d.Payments, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}}, UpdateExpression: &expression,
	})
	d.ok(err)
}

// row puts a transfer's row there as its transaction does.
func (d *desk) row(transfer payments.Transfer) {
	d.Helper()
	written, err := payments.Items(d.Payments, 1)(payments.InsertTransfer{Transfer: transfer})
	d.ok(err)
	d.Put(d.T, d.Payments, written.Put.Item)
}

// A balance that was spent meanwhile can't be corrected by the command, and the account stays held.
func TestAccountCompareOfWhatIsSpent(t *testing.T) {
	d := newDesk(t)
	d.Account(t, "tenant-b", "acct_c", -400)
	d.exits(idemctl.ExitOK, "account", "collect", "acct_c", "--tenant", "tenant-b", "--partitions", "1", "--reason", "ticket 1", "--write")
	d.foldedInPart(500)
	d.exits(idemctl.ExitOK, "refuse-before", "set", time.Now().Add(time.Minute).UTC().Format(time.RFC3339), "--reason", "ticket 1", "--write")
	for range 2 {
		if spent, _ := d.compares(idemctl.ExitRefused, "acct_c", "--tenant", "tenant-b", "--correct", "--write"); spent.Accounts[0].Code != codeSpent {
			t.Errorf("%+v", spent)
		}
	}
}

// foldedInPart folds a transfer to acct_c, and then has it wait again, as a restore may bring it back.
func (d *desk) foldedInPart(amount int64) {
	d.Helper()
	table := payments.Table{Client: d.Client, Name: d.Payments}
	transfer := payments.Transfer{
		Tenant: "tenant-b", ID: "tr_1", From: "acct_1", To: "acct_c", Amount: amount, Currency: "EUR", CreatedAt: time.Now(), Partition: 1,
	}
	written, err := payments.Items(d.Payments, 1)(payments.InsertTransfer{Transfer: transfer})
	d.ok(err)
	d.Put(d.T, d.Payments, written.Put.Item)
	d.ok(table.Fold(d.Context(), payments.Account{Tenant: "tenant-b", ID: "acct_c", Currency: "EUR"}, []payments.Transfer{transfer}, time.Now()))
	d.Put(d.T, d.Payments, written.Put.Item)
}
