package auditlog_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
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

// together is a wire on which no query is answered before so many wait, or all that are left of a number.
type together struct {
	inner         http.RoundTripper
	most          int
	mu            sync.Mutex
	left, waiting int
	open          chan struct{}
	// queries counts all of them.
	queries int
}

func (w *together) expect(queries int) {
	w.left, w.waiting, w.queries, w.open = queries, 0, 0, make(chan struct{})
}

func (w *together) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".Query") {
		return w.inner.RoundTrip(r)
	}
	w.mu.Lock()
	w.queries++
	open := w.open
	if w.waiting++; w.waiting == min(w.most, w.left) {
		w.left -= w.waiting
		w.waiting, w.open = 0, make(chan struct{})
		close(open)
	}
	w.mu.Unlock()
	select {
	case <-open:
		return w.inner.RoundTrip(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// A year is a query for each day, twenty at once: at 30 ms each that is half a second, and one after the other eleven. Entries come in
// their order nevertheless, and no day is asked for that is behind the limit, but for those at once.
func TestEntriesOfAYearAreReadAtOnce(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		wire := &together{inner: http.DefaultTransport, most: 20}
		client := dynamotest.Client(url, func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: wire} })
		if err := dynamotest.CreateTable(ctx, client, "audit-year", schema.Audit()); err != nil {
			t.Fatal(err)
		}
		log, err := auditlog.New(client, "audit-year")
		if err != nil {
			t.Fatal(err)
		}
		for i, days := range []int{0, 1, 1, 19, 20, 20, 45, 364} {
			if err := log.Begin(ctx, entry(string(rune('a'+i)), noon.AddDate(0, 0, -days).Add(-time.Duration(i)*time.Second))); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			subject        string
			limit, queries int
			want           string
		}{
			{"", 1000, 365, "abcdefgh"}, {"", 3, 20, "abc"}, {"", 5, 40, "abcde"}, {"op_h", 1, 365, "h"}, {"op_none", 1, 365, ""},
		} {
			wire.expect(365)
			entries, err := log.Entries(ctx, noon.AddDate(0, 0, -365).Add(12*time.Hour), noon.Add(time.Minute), c.subject, c.limit)
			got := ""
			for _, e := range entries {
				got += e.ID
			}
			if err != nil || got != c.want || wire.queries != c.queries {
				t.Errorf("%q, at most %d: %q by %d queries, %v, want %+v", c.subject, c.limit, got, wire.queries, err, c)
			}
		}
		wire.expect(365)
		ended, end := context.WithCancel(ctx)
		end()
		if entries, err := log.Entries(ended, noon.AddDate(0, 0, -364), noon, "", 1); err == nil || entries != nil {
			t.Errorf("of a log that can't be read: %+v", entries)
		}
	})
}

func TestNewNeedsItsParts(t *testing.T) {
	var config *idem.ConfigError
	if _, err := auditlog.New(nil, "audit"); !errors.As(err, &config) {
		t.Errorf("%v", err)
	}
}
