package auditlog_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/auditlog"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func entry(id string, at time.Time) operator.Entry {
	return operator.Entry{
		ID: id, At: at, Actor: "ada", Action: "close", Subject: "op_" + id + ".1", Tenant: "acme", Reason: "ticket 17", Seen: "dead.1.00000000",
		State: operator.EntryIntended,
	}
}

func each(t *testing.T, test func(*testing.T, *auditlog.Log)) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		wire := &wirefault.Transport{OneAPage: true} // as of a day with many entries
		client := dynamotest.Client(url, func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: wire} })
		table := "audit-" + strings.ReplaceAll(strings.ToLower(t.Name()), "/", "-")
		if err := dynamotest.CreateTable(t.Context(), client, table, schema.Audit()); err != nil {
			t.Fatal(err)
		}
		log, err := auditlog.New(client, table)
		if err != nil {
			t.Fatal(err)
		}
		test(t, log)
		if weak := wire.Weak(); len(weak) > 0 {
			t.Errorf("the index may be stale, an entry must not: %v", weak[0])
		}
	})
}

// An entry is begun once and ended once, and shown as it stands.
func TestEntryIsBegunAndEndedOnce(t *testing.T) {
	each(t, func(t *testing.T, log *auditlog.Log) {
		e := entry("a", noon)
		if err := log.Begin(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if err := log.Begin(t.Context(), e); err != nil { // a lost reply
			t.Errorf("again: %v", err)
		}
		other := e
		other.Subject = "op_other.1"
		if err := log.Begin(t.Context(), other); err == nil {
			t.Error("an entry was begun over another")
		}
		show(t, log, e)
		done := e
		done.State, done.Outcome, done.DoneAt = operator.EntryDone, "cancelled", noon.Add(time.Second)
		for range 2 {
			if err := log.End(t.Context(), done); err != nil {
				t.Fatal(err)
			}
		}
		changed := done
		changed.State = operator.EntryFailed
		if err := log.End(t.Context(), changed); err == nil {
			t.Error("an entry was ended twice")
		}
		if err := log.End(t.Context(), entry("never", noon)); err == nil {
			t.Error("an entry was ended that nobody began")
		}
		show(t, log, done)
	})
}

func show(t *testing.T, log *auditlog.Log, want operator.Entry) {
	t.Helper()
	got, err := log.Entries(t.Context(), noon, noon.Add(time.Minute), "", 10)
	if err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// Entries come newest first, across days, by subject, and no more than were asked for.
func TestEntriesOfASpan(t *testing.T) {
	each(t, func(t *testing.T, log *auditlog.Log) {
		midnight := noon.Truncate(24 * time.Hour)
		for id, at := range map[string]time.Time{
			"a": midnight.Add(-25 * time.Hour), "b": midnight.Add(-time.Millisecond), "c": midnight, "d": noon, "e": noon.Add(time.Hour),
		} {
			if err := log.Begin(t.Context(), entry(id, at)); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			from, to time.Time
			subject  string
			limit    int
			want     string
		}{
			{midnight.Add(-48 * time.Hour), noon.Add(2 * time.Hour), "", 10, "edcba"},
			{midnight, noon, "", 10, "c"},
			{midnight.Add(-time.Millisecond), noon.Add(time.Millisecond), "", 10, "dcb"},
			{midnight.Add(-48 * time.Hour), noon.Add(2 * time.Hour), "", 2, "ed"},
			{midnight.Add(-48 * time.Hour), noon.Add(2 * time.Hour), "op_b", 10, "b"},
		} {
			entries, err := log.Entries(t.Context(), c.from, c.to, c.subject, c.limit)
			got := ""
			for _, e := range entries {
				got += e.ID
			}
			if err != nil || got != c.want {
				t.Errorf("%v to %v %q: %s, %v, want %s", c.from, c.to, c.subject, got, err, c.want)
			}
		}
		for _, span := range []time.Duration{0, -time.Hour, auditlog.SpanMax + time.Hour} {
			if _, err := log.Entries(t.Context(), noon, noon.Add(span), "", 1); err == nil {
				t.Errorf("a span of %v was read", span)
			}
		}
	})
}

func TestNewNeedsItsParts(t *testing.T) {
	var config *idem.ConfigError
	if _, err := auditlog.New(nil, "audit"); !errors.As(err, &config) {
		t.Errorf("%v", err)
	}
}
