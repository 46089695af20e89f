package memlog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/memlog"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func entry(id string, at time.Time) operator.Entry {
	return operator.Entry{ID: id, At: at, Subject: "op_" + id + ".1", State: operator.EntryIntended}
}

func begun(t *testing.T, entries ...operator.Entry) *memlog.Log {
	t.Helper()
	log := memlog.New()
	for _, e := range entries {
		if err := log.Begin(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// An entry is begun once and ended once; the same again is a lost reply's, and nothing.
func TestEntryIsBegunAndEndedOnce(t *testing.T) {
	e := entry("a", noon)
	log := begun(t, e, e)
	other := e
	other.Subject = "op_other.1"
	if err := log.Begin(t.Context(), other); !errors.Is(err, memlog.ErrBegun) {
		t.Errorf("begun over another: %v", err)
	}
	done := e
	done.State, done.Outcome, done.DoneAt = operator.EntryDone, "cancelled", noon.Add(time.Second)
	for range 2 {
		if err := log.End(t.Context(), done); err != nil {
			t.Fatal(err)
		}
	}
	changed := done
	changed.State = operator.EntryFailed
	for _, wrong := range []operator.Entry{changed, entry("never", noon)} {
		if err := log.End(t.Context(), wrong); !errors.Is(err, memlog.ErrNotOpen) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	if got, err := log.Entries(t.Context(), noon, noon.Add(time.Minute), "", 10); err != nil || len(got) != 1 || got[0] != done {
		t.Errorf("%+v, %v, want %+v", got, err, done)
	}
}

func TestEntriesOfASpan(t *testing.T) {
	log := begun(t, entry("b", noon), entry("a", noon.Add(-time.Hour)), entry("d", noon.Add(time.Hour)), entry("c", noon))
	for _, c := range []struct {
		from, to time.Time
		subject  string
		limit    int
		want     string
	}{
		{noon.Add(-time.Hour), noon.Add(2 * time.Hour), "", 10, "dcba"},
		{noon, noon.Add(time.Hour), "", 10, "cb"},
		{noon.Add(-time.Hour), noon.Add(2 * time.Hour), "", 2, "dc"},
		{noon.Add(-time.Hour), noon.Add(2 * time.Hour), "op_a", 10, "a"},
	} {
		got := ""
		entries, err := log.Entries(t.Context(), c.from, c.to, c.subject, c.limit)
		for _, e := range entries {
			got += e.ID
		}
		if err != nil || got != c.want {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
}

func TestWhoIsGoneWritesNothing(t *testing.T) {
	log := begun(t, entry("a", noon))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := entry("a", noon)
	done.State = operator.EntryDone
	_, reading := log.Entries(ctx, noon, noon.Add(time.Hour), "", 1)
	for _, err := range []error{log.Begin(ctx, entry("b", noon)), log.End(ctx, done), reading} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	if got, err := log.Entries(t.Context(), noon, noon.Add(time.Hour), "", 10); err != nil || len(got) != 1 || got[0].State != operator.EntryIntended {
		t.Errorf("%+v, %v", got, err)
	}
}
