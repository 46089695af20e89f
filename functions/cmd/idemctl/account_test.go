package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
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
	d.exits(idemctl.ExitOK, command("acct_c", "8")...)
	has(0) // a dry run
	d.exits(idemctl.ExitOK, command("acct_c", "8", "--write")...)
	has(8)
	d.exits(idemctl.ExitRefused, command("acct_none", "4", "--write")...)
	for _, malformed := range []string{"4", "0", "65", "x"} { // fewer than it has
		d.exits(idemctl.ExitUsage, command("acct_c", malformed, "--write")...)
	}
	has(8)
	d.exits(idemctl.ExitOK, command("acct_c", "9", "--write")...)
	has(9)
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

// docs/recovery.md "Collecting accounts": the comparison says what a torn fold has left, corrects it where it is told to, and only
// then is the account folded again. Who repeats it changes nothing.
func TestAccountCompare(t *testing.T) {
	d := newDesk(t)
	d.Account(t, "tenant-b", "acct_c", 7)
	d.exits(idemctl.ExitOK, "account", "collect", "acct_c", "--tenant", "tenant-b", "--partitions", "1", "--reason", "ticket 1", "--write")
	d.foldedInPart(500)
	compare := func(want int, more ...string) (stdout, stderr string) {
		t.Helper()
		return d.exits(want, append([]string{"account", "compare", "acct_c", "--tenant", "tenant-b", "--reason", "ticket 1"}, more...)...)
	}
	has := func(balance int64) {
		t.Helper()
		if a, err := (payments.Table{Client: d.Client, Name: d.Payments}).Account(t.Context(), "tenant-b", "acct_c"); err != nil || a.Balance != balance {
			t.Errorf("%+v, %v, want a balance of %d", a, err, balance)
		}
	}
	if _, errs := compare(idemctl.ExitRefused, "--write"); !strings.Contains(errs, "no loss of data was declared") {
		t.Errorf("%s without a loss of data", errs)
	}
	d.exits(idemctl.ExitOK, "refuse-before", "set", time.Now().Add(time.Minute).UTC().Format(time.RFC3339), "--reason", "ticket 1", "--write")
	if _, errs := compare(idemctl.ExitRefused, "--write"); !strings.Contains(errs, "--correct") || !strings.Contains(errs, "-500") {
		t.Errorf("%s, want to be told of --correct and the difference", errs)
	}
	if out, _ := compare(idemctl.ExitOK, "--correct"); !strings.Contains(out, "-500") {
		t.Error(out)
	}
	has(507) // a dry run
	out, _ := compare(idemctl.ExitOK, "--correct", "--write", "--output", "json")
	var answer comparison
	if err := json.Unmarshal([]byte(out), &answer); err != nil || !answer.Held || answer.Folded != (payments.Total{Transfers: 1, Amount: 500}) || answer.Transfers != (payments.Total{}) {
		t.Errorf("%s, %v", out, err)
	}
	has(7)
	if out, _ := compare(idemctl.ExitOK, "--correct", "--write"); !strings.Contains(out, "not held") {
		t.Errorf("%s, want to be told that it was compared", out)
	}
	has(7)
	d.exits(idemctl.ExitRefused, "account", "compare", "acct_none", "--tenant", "tenant-b", "--reason", "ticket 1", "--write")
	d.exits(idemctl.ExitUsage, "account", "compare", "acct_c", "--tenant", "a/b", "--reason", "ticket 1", "--write")
}

// A balance that was spent meanwhile can't be corrected by the command, and the account stays held.
func TestAccountCompareOfWhatIsSpent(t *testing.T) {
	d := newDesk(t)
	d.Account(t, "tenant-b", "acct_c", -400)
	d.exits(idemctl.ExitOK, "account", "collect", "acct_c", "--tenant", "tenant-b", "--partitions", "1", "--reason", "ticket 1", "--write")
	d.foldedInPart(500)
	d.exits(idemctl.ExitOK, "refuse-before", "set", time.Now().Add(time.Minute).UTC().Format(time.RFC3339), "--reason", "ticket 1", "--write")
	for range 2 {
		if _, errs := d.exits(idemctl.ExitRefused, "account", "compare", "acct_c", "--tenant", "tenant-b", "--reason", "ticket 1", "--correct", "--write"); !strings.Contains(errs, "spent") {
			t.Error(errs)
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
