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
