package cutover_test

import (
	"context"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/cutover"
)

// A process that is frozen while it reads knows nothing of what was set meanwhile: what it read says nothing any more.
func TestAReadingThatArrivesTooLateIsNotGoneBy(t *testing.T) {
	now, frozen := time.Now(), true
	r := &cutover.Reader{
		Now: func() time.Time { return now }, Timeout: time.Minute, Moved: func(context.Context, time.Time) {},
		Read: func(context.Context) (time.Time, error) {
			if frozen {
				now = now.Add(cutover.AgeMax)
			}
			return time.Time{}, nil
		},
	}
	if at, err := r.At(t.Context()); err == nil {
		t.Errorf("an old reading was gone by: %v", at)
	}
	frozen = false
	if _, err := r.At(t.Context()); err != nil {
		t.Error(err)
	}
}

// Of callers that come at once, one reads: also where one of them saw the old reading just before it was replaced.
func TestAReadingThatCameMeanwhileIsShared(t *testing.T) {
	now, reads := time.Now(), 0
	var meanwhile func()
	r := &cutover.Reader{
		Timeout: time.Minute, Moved: func(context.Context, time.Time) {},
		Now: func() time.Time {
			if do := meanwhile; do != nil {
				meanwhile = nil
				do()
			}
			return now
		},
		Read: func(context.Context) (time.Time, error) { reads++; return now, nil },
	}
	ask := func() {
		if _, err := r.At(t.Context()); err != nil {
			t.Error(err)
		}
	}
	ask()
	now = now.Add(cutover.AgeMax)
	meanwhile = ask
	if ask(); reads != 2 {
		t.Errorf("%d readings, want the first one and one that both share", reads)
	}
}
