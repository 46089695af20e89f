package migrate

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem/function"
)

func TestThePageShowsTheSameEventTwice(t *testing.T) {
	page := check.NewPage(t, "powertools.md")
	w := check.NewWorld(t)
	handler := check.Get(New(w.Engine))(t)
	event := Event{User: "u1", Product: "p1", Amount: 500}

	first := check.Get(handler(t.Context(), event))(t)
	again := check.Get(handler(t.Context(), event))(t)
	event.Amount = 900
	_, err := handler(t.Context(), event)
	if !errors.Is(err, function.ErrMismatch) {
		t.Errorf("another amount: %v", err)
	}
	page.Text("calls", fmt.Sprintf("same payment: %t\nanother amount: %v\npayments: %d\n", first == again, err, len(w.Store.Rows())))

	w.Clock.Advance(time.Hour + 3*time.Second)
	if later := check.Get(handler(t.Context(), event))(t); later == first || len(w.Store.Rows()) != 2 {
		t.Error("the key was not new after its retention")
	}
}
