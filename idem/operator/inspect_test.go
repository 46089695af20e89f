package operator_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
)

// An application that can't read its row hides nothing of what the library has: only where nothing else is known, it is an error.
func TestAStoryIsToldWithoutWhatTheApplicationCannotRead(t *testing.T) {
	w := newWorld(t)
	m := w.message("acme", unknown)
	asked := string(m.ID)
	whole, err := w.desk.Inspect(t.Context(), asked)
	w.ok(err)
	broken := errors.New("payments: malformed attribute amt")
	cfg := w.cfg
	cfg.Application = func(context.Context, string, idem.OperationID, []operator.MessageView) (any, error) {
		return "a part", broken
	}
	desk, err := operator.New(cfg)
	w.ok(err)
	story, err := desk.Inspect(t.Context(), asked)
	if err != nil || story.Application != "a part" || story.ApplicationError != broken.Error() || whole.ApplicationError != "" {
		t.Errorf("%+v, %v", story, err)
	}
	story.Application, story.ApplicationError, whole.Application = nil, "", nil
	if !reflect.DeepEqual(story, whole) {
		t.Errorf("told\n%+v, want\n%+v", story, whole)
	}
	none := strings.Replace(string(m.OperationID), "op_", "op_A", 1)[:len(m.OperationID)]
	if _, err := desk.InspectOf(t.Context(), "acme", none); !errors.Is(err, broken) {
		t.Errorf("of nothing that is stored: %v", err)
	}
}
