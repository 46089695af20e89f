package idemctl_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/idem/storage"
)

// What list prints is short, and can be pasted: into inspect, and into a change.
func TestShortIDs(t *testing.T) {
	w := newWorld(t)
	id := string(w.operation("acme", deferred, legacyUnknown))
	w.now = noon.Add(2 * time.Hour)
	out, _ := w.types(0, "list", "unknown")
	short := id[:12] + ".1"
	if !strings.Contains(out, " "+short+" ") || strings.Contains(out, id) {
		t.Fatalf("list shows\n%s", out)
	}
	if out, _ := w.types(0, "list", "unknown", "--wide"); !strings.Contains(out, id+".1") {
		t.Errorf("--wide shows\n%s", out)
	}
	if out, _ := w.types(0, "list", "unknown", "--output", "json"); !strings.Contains(out, id+".1") {
		t.Errorf("JSON has\n%s", out)
	}
	for _, begins := range []string{short, id[:12], id[:6], id} {
		if out, _ := w.types(0, "inspect", begins); !strings.HasPrefix(out, "operation "+id+"\n") {
			t.Errorf("inspect %s says\n%s", begins, out)
		}
	}
	seen := "--seen=" + seenIn(w, id+".1")
	for _, write := range []string{"--write=false", "--write"} { // the whole id is told before anything is done
		out, errs := w.types(0, "close", short, seen, ticket, write)
		if !strings.Contains(out, "close "+id+".1: ") || errs != "idemctl: "+short+" is "+id+".1\n" {
			t.Errorf("%s%s", out, errs)
		}
	}
	if m := w.inner.Messages()[0]; m.State != storage.MessageCancelled {
		t.Errorf("the message is %s", m.State)
	}
	// It stands in no queue any more; the audit log still knows it.
	w.types(0, "inspect", short)
	w.now = w.now.Add(operator.BeginningSince + time.Hour)
	if _, errs := w.types(idemctl.ExitRefused, "inspect", short); !strings.Contains(errs, "Give the whole id") {
		t.Errorf("%s", errs)
	}
}

// Several that begin alike are listed, and nothing is changed; nor is it by a beginning that is too short, or of no message.
func TestBeginningsThatNameNothing(t *testing.T) {
	w := newWorld(t)
	var alike []string
	for _, name := range []string{"au_1", "au_2"} { // ids of one record key begin alike
		id, err := w.mint.OperationID(idem.Scope{Tenant: "acme", Operation: "payments.create", Key: "order-17"}.RecordKey())
		w.ok(err)
		alike = append(alike, string(id))
		w.ok(w.audit.Begin(w.Context(), operator.Entry{ID: name, At: noon, Subject: string(id), State: operator.EntryIntended}))
	}
	begins := alike[0][:20]
	_, errs := w.types(idemctl.ExitRefused, "release", begins, "--seen=unknown.1.0", ticket, "--write")
	for _, want := range []string{"Several operations begin with " + begins, alike[0], alike[1], "next: Give more characters"} {
		if !strings.Contains(errs, want) {
			t.Errorf("it does not say %q:\n%s", want, errs)
		}
	}
	w.types(idemctl.ExitUsage, "inspect", "op_AA")
	w.types(idemctl.ExitUsage, "close", begins, "--seen=unknown.1.0", ticket)
	w.types(idemctl.ExitUsage, "release", begins+".1", "--seen=unknown.1.0", ticket)
	w.types(idemctl.ExitUsage, "reconcile", alike[0][:60]+".x", ticket)
	if entries, err := w.audit.Entries(w.Context(), noon.Add(-time.Hour), noon.Add(time.Hour), "", 10); err != nil || len(entries) != 2 {
		t.Errorf("the log has %v, %v", entries, err)
	}
}

// What can't begin an id is not searched for, and no terminal gets it back.
func TestHostileBeginnings(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"op_\x1b[2Jabc", "op_abcdef\n", "op_abc/../x", "op_*******", "op_ａｂｃ", "op_abcdef#", "op_abcdef.\x1b[2J", strings.Repeat("op_", 1000)} {
		for _, command := range [][]string{{"inspect"}, {"reconcile", ticket, "--write"}, {"close", "--seen=unknown.1.0", ticket, "--write"}, {"release", "--seen=unknown.1.0", ticket, "--write"}} {
			out, errs := w.types(idemctl.ExitUsage, append(command, id)...)
			if out != "" || strings.Contains(errs, id) || !strings.Contains(errs, "\nnext: ") {
				t.Errorf("%s %.40q: %s%q", command[0], id, out, errs)
			}
		}
	}
	if entries, err := w.audit.Entries(w.Context(), noon.Add(-time.Hour), noon.Add(time.Hour), "", 10); err != nil || len(entries) != 0 {
		t.Errorf("the log has %v, %v", entries, err)
	}
}

// A change is made by a beginning only where everything was searched: another operation may begin so, too.
func TestChangeNeedsAWholeSearch(t *testing.T) {
	w := newWorld(t)
	id := string(w.operation("acme", deferred, legacyUnknown))
	for i := range operator.ListMax {
		w.ok(w.audit.Begin(w.Context(), operator.Entry{ID: fmt.Sprint("au_", i), At: noon, Subject: id, State: operator.EntryIntended}))
	}
	seen := "--seen=" + seenIn(w, id+".1")
	w.types(0, "inspect", id[:12])
	if _, errs := w.types(idemctl.ExitRefused, "resolve", id[:12]+".1", seen, "--delivered=ch_1", ticket, "--write"); !strings.Contains(errs, "Give the whole id") {
		t.Errorf("%s", errs)
	}
	w.types(0, "resolve", id+".1", seen, "--delivered=ch_1", ticket, "--write")
}
