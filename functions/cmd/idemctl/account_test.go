package main

import (
	"testing"

	"github.com/idem-go/idem-aws/functions/internal/payments"
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
