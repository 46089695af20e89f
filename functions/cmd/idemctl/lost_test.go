package main

import (
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/idem/storage"
)

// docs/recovery.md "What keeps money from moving twice": after lost=records and before the cut-over is set, an operator's command ends no
// operation that was restored. Its message may have been called before the loss, and its client would be told that nothing was executed.
func TestNothingIsSweptBeforeTheCutOverIsSet(t *testing.T) {
	d := newDesk(t)
	a := d.Accept(t, 25*time.Hour) // its worker called the provider after the instant that was restored
	a.Charge(t)
	t.Setenv("LOST_RECORDS", "true")
	change := []string{"--reason", "ticket 17", "--write"}
	inspected := d.inspect(string(a.Message.ID))
	for _, line := range [][]string{
		{"sweep"}, {"close", string(a.Message.ID), "--seen", string(inspected.Messages[0].Seen)}, {"reconcile", string(a.Message.ID)},
	} {
		if _, errs := d.exits(idemctl.ExitRefused, append(line, change...)...); !strings.Contains(errs, "idemctl refuse-before set") {
			t.Errorf("%v: %s", line, errs)
		}
		a.Want(t, storage.MessagePending, storage.StatePending, payments.StatusPending, 1)
	}
	if out, _ := d.exits(idemctl.ExitOK, "refuse-before"); !strings.Contains(out, "not set, though data was lost") {
		t.Error(out)
	}
	d.exits(idemctl.ExitOK, "list", "stuck")
	d.exits(idemctl.ExitOK, "account", "compare", "--reason", "ticket 17")
	hour := []string{"--from", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), "--to", time.Now().UTC().Format(time.RFC3339)}
	if _, errs := d.exits(idemctl.ExitRefused, append(append([]string{"missing", "restore"}, hour...), change...)...); !strings.Contains(errs, "refuse-before set first") {
		t.Error(errs)
	}

	d.exits(idemctl.ExitOK, append([]string{"refuse-before", "set", time.Now().UTC().Format(time.RFC3339Nano)}, change...)...)
	d.exits(idemctl.ExitOK, append([]string{"sweep"}, change...)...)
	a.Want(t, storage.MessageUnknown, storage.StatePending, payments.StatusPending, 1) // it counts as called: the provider is asked
}
