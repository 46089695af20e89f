package operator_test

import (
	"context"
	"errors"
	"testing"

	"github.com/idem-go/idem-aws/idem/operator"
)

// A change of the application's own has what the library's have: a dry run, a refusal, and an entry that is begun before it.
func TestTaskIsCarriedOutAsEveryChange(t *testing.T) {
	w := newWorld(t)
	ran := 0
	task := operator.Task{
		Name: "limit set", Subject: "tenant-b", Tenant: "tenant-b", Would: "set it to 5",
		Act: func(context.Context) (string, error) {
			if len(w.audit.entries) == 0 || w.audit.entries[len(w.audit.entries)-1].State != operator.EntryIntended {
				t.Errorf("it runs before its intent is written: %+v", w.audit.entries)
			}
			ran++
			return "5", nil
		},
	}
	ch := operator.Change{Actor: "ada", Reason: "ticket 1", DryRun: true}
	if r, err := w.desk.Do(t.Context(), task, ch); err != nil || r.Outcome != task.Would || !r.DryRun || ran != 0 || len(w.audit.entries) != 0 {
		t.Errorf("dry run: %+v, %v, ran %d times", r, err, ran)
	}
	ch.DryRun = false
	if r, err := w.desk.Do(t.Context(), task, ch); err != nil || r.Outcome != "5" || r.State != operator.EntryDone || ran != 1 {
		t.Errorf("%+v, %v, ran %d times", r, err, ran)
	}
	if e := w.audit.entries[0]; e.Action != task.Name || e.Subject != task.Subject || e.Tenant != task.Tenant || e.Reason != ch.Reason || e.State != operator.EntryDone {
		t.Errorf("%+v", e)
	}

	task.Judge = func(context.Context) error { return operator.ErrNotFound }
	if r, err := w.desk.Do(t.Context(), task, ch); !operator.Refused(err) || r.State != operator.EntryRefused || ran != 1 {
		t.Errorf("judged: %+v, %v, ran %d times", r, err, ran)
	}
	w.audit.failBegin = errors.New("the log is down")
	task.Judge = nil
	if _, err := w.desk.Do(t.Context(), task, ch); err == nil || ran != 1 {
		t.Errorf("without a log: %v, ran %d times", err, ran)
	}
}

func TestTaskNeedsWhatItsEntrySays(t *testing.T) {
	w := newWorld(t)
	act := func(context.Context) (string, error) { return "", errors.New("it must not run") }
	for name, task := range map[string]operator.Task{
		"no name": {Subject: "s", Act: act}, "no subject": {Name: "n", Act: act}, "no act": {Name: "n", Subject: "s"},
	} {
		var invalid *operator.InvalidError
		if _, err := w.desk.Do(t.Context(), task, operator.Change{Actor: "ada", Reason: "r"}); !errors.As(err, &invalid) || len(w.audit.entries) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
