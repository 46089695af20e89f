package operator_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/storage"
)

// An operation that stands in a queue, or that was changed lately, is found by the beginning of its id; another one is not.
func TestBeginning(t *testing.T) {
	w := newWorld(t)
	stuck := w.messages("acme", dead, unknown)[0].OperationID // once, although two of its messages stand in queues
	wrapped := w.record(idem.KindWrapped, storage.StateUnknown)
	ended := w.record(idem.KindAtomic, storage.StateCompleted)
	w.now = noon.Add(time.Minute)
	begins := func(text string, want ...idem.OperationID) {
		t.Helper()
		found, err := w.desk.Beginning(w.Context(), text)
		if err != nil || !slices.Equal(found.Operations, want) || found.More {
			t.Errorf("%s: %+v, %v, want %v", text, found, err, want)
		}
	}
	begins(string(stuck)[:12], stuck)
	begins(string(stuck), stuck)
	begins(string(wrapped.OperationID)[:12], wrapped.OperationID)
	begins(string(ended.OperationID)[:12])
	if _, err := w.desk.CacheBust(w.Context(), ended.OperationID, because("seen.by.nobody")); err == nil {
		t.Error("a change of something else than was seen was made")
	}
	begins(string(ended.OperationID)[:12], ended.OperationID) // the log has the refusal
	w.now = w.now.Add(operator.BeginningSince + time.Hour)
	begins(string(ended.OperationID)[:12])
	var invalid *operator.InvalidError
	if _, err := w.desk.Beginning(w.Context(), "op_12"); !errors.As(err, &invalid) {
		t.Errorf("five characters: %v", err)
	}
}

// An application's own search sees what stands in a queue, once, and nothing that only the log knows.
func TestQueued(t *testing.T) {
	w := newWorld(t)
	stuck := w.messages("acme", dead, unknown)[0].OperationID
	wrapped := w.record(idem.KindWrapped, storage.StateUnknown).OperationID
	ended := w.record(idem.KindAtomic, storage.StateCompleted).OperationID
	w.ok(w.audit.Begin(w.Context(), operator.Entry{ID: "au_1", At: w.now, Subject: string(ended), State: operator.EntryIntended}))
	w.now = noon.Add(time.Minute)
	found, err := w.desk.Queued(w.Context(), func(idem.OperationID) bool { return true })
	slices.Sort(found.Operations)
	want := []idem.OperationID{stuck, wrapped}
	slices.Sort(want)
	if err != nil || !slices.Equal(found.Operations, want) || found.More {
		t.Errorf("%+v, %v, want %v", found, err, want)
	}
	found, err = w.desk.Queued(w.Context(), func(id idem.OperationID) bool { return id == wrapped })
	if err != nil || !slices.Equal(found.Operations, []idem.OperationID{wrapped}) {
		t.Errorf("%+v, %v, want %v", found, err, wrapped)
	}
}

// Where there is more than is looked at, the search says so: what was found may not be all.
func TestBeginningSaysWhatItLeavesOut(t *testing.T) {
	w := newWorld(t)
	for i := range operator.ListMax {
		w.ok(w.audit.Begin(w.Context(), operator.Entry{ID: fmt.Sprint("au_", i), At: w.now, Subject: fmt.Sprint("op_zzzzzz", i), State: operator.EntryIntended}))
	}
	if found, err := w.desk.Beginning(w.Context(), "op_zzz"); err != nil || !found.More || len(found.Operations) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}
