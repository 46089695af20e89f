package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/awsctl"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// bare makes tables as a restore leaves them, named as the stage's with a suffix.
func (d *desk) bare(suffix string) {
	d.Helper()
	for name, shape := range map[string]schema.Table{
		d.Idempotency: {Key: schema.RecordKey, Index: schema.Idempotency().Index}, d.Outbox: {Key: schema.MessageID, Index: schema.Outbox().Index},
		d.Payments: table.Payments(),
	} {
		d.ok(dynamotest.CreateTable(d.Context(), d.Client, name+suffix, shape))
	}
}

// recoverable stands before the endpoint and answers what the emulator does not know: that point-in-time recovery is switched on.
// It returns how often it was.
func recoverable(t *testing.T) func() int64 {
	t.Helper()
	target, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"))
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	behind := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateContinuousBackups") {
			behind.ServeHTTP(w, r)
			return
		}
		n.Add(1)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(front.Close)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", front.URL)
	return n.Load
}

// What a restore leaves out is named, switched on by one command, and then the tables are what a stack imports.
func TestRestoredTablesArePreparedAndChecked(t *testing.T) {
	d := newDesk(t)
	d.bare("-r1")
	switchedOn := recoverable(t)
	out, _ := d.exits(idemctl.ExitRefused, "tables", "check", "--suffix=-r1")
	for _, want := range []string{d.Outbox + "-r1  its time to live is off, must be on ttl; its stream is off, must be NEW_IMAGE", d.Payments + "-r1  as it must be"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	prepare := []string{"tables", "prepare", "--suffix=-r1", "--reason", "ticket 17"}
	if out, _ := d.exits(idemctl.ExitOK, prepare...); !strings.Contains(out, "dry run: would switch on") {
		t.Error(out)
	}
	d.exits(idemctl.ExitRefused, "tables", "check", "--suffix=-r1")
	for range 2 { // a second time changes nothing
		if done := answered[operator.Result](d, append(prepare, "--write")...); done.State != operator.EntryDone {
			t.Errorf("%+v", done)
		}
	}
	if n := switchedOn(); n != 6 {
		t.Errorf("point-in-time recovery was switched on %d times, want for three tables, twice", n)
	}
	got := answered[awsctl.TablesAnswer](d, "tables", "check", "--suffix=-r1").Import
	if got["idempotency"] != d.Idempotency+"-r1" || got["payments"] != d.Payments+"-r1" || !strings.Contains(got["outboxStream"], d.Outbox+"-r1/stream/") ||
		got["apiKeys"] != d.APIKeys || got["audit"] != d.Idempotency+"-audit" {
		t.Errorf("import %v", got)
	}
	entries := answered[[]operator.Entry](d, "audit")
	if !slices.ContainsFunc(entries, func(e operator.Entry) bool { return e.Action == "tables prepare" && e.Reason == "ticket 17" }) {
		t.Errorf("the audit log: %+v", entries)
	}
}

// A restore of backups is one of each table: where one is missing, or a name is there twice, nothing can be said to be whole.
func TestRestoreNeedsItsSource(t *testing.T) {
	d := newDesk(t)
	for _, args := range [][]string{
		{"--suffix=-r1"}, {"--to", "2026-11-21T11:30:00Z", "--backup", "b", "--suffix=-r1"}, {"--backup", "b", "--suffix", "a/b"}, {"--backup", "b"},
	} {
		d.exits(idemctl.ExitUsage, append([]string{"tables", "restore", "--reason", "ticket 17"}, args...)...)
	}
	if out, _ := d.exits(idemctl.ExitOK, "tables", "restore", "--to", "2026-11-21T12:30:00+01:00", "--suffix=-r1", "--reason", "ticket 17"); !strings.Contains(out, "2026-11-21T11:30:00Z") {
		t.Error(out)
	}
	_, errs := d.exits(idemctl.ExitTrouble, "tables", "restore", "--backup", "nightly", "--suffix=-r1", "--reason", "ticket 17", "--write")
	if !strings.Contains(errs, d.Idempotency) {
		t.Error(errs)
	}
	name := d.Idempotency + "-r1"
	if _, err := d.Client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name}); err == nil {
		t.Error("a table was made")
	}
}
