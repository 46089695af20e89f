package chain

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// providers answer each step with what a test says.
type providers struct{ flight, release outbox.Outcome }

func (p *providers) topics() []outbox.Topic {
	says := func(o outbox.Outcome) Call {
		return func(context.Context, storage.Message) outbox.Outcome { return o }
	}
	return Topics(says(outbox.Delivered{Reference: "room-1"}), says(p.flight), says(p.release))
}

const trip = `{"to":"Lisbon"}`

func TestThePageShowsAChainThatCompensates(t *testing.T) {
	page := check.NewPage(t, "chains.md")
	for _, c := range []struct {
		name   string
		flight outbox.Outcome
		status int
	}{
		{"booked", outbox.Delivered{Reference: "flight-1"}, 201},
		{"undone", outbox.Refused{}, 409},
	} {
		w, service := book(t, c.flight, outbox.Delivered{})
		page.Text(c.name+", messages", messages(w))
		page.Send(c.name+", answer", service, "POST", "/trips", "trip-17", trip).Want(t, c.status, "replayed")
	}

	w, service := book(t, outbox.Refused{}, outbox.Refused{})
	page.Text("stuck, messages", messages(w))
	check.Send(t, service, "POST", "/trips", "trip-17", trip).Want(t, 202, "replayed")
}

// book sends a trip whose flight and whose release of the room end as the test says.
func book(t *testing.T, flight, release outbox.Outcome) (*check.World, http.Handler) {
	t.Helper()
	p := &providers{flight: flight, release: release}
	w := check.NewWorld(t, p.topics()...)
	service := check.Get(NewService(w.Engine, w.Store))(t)
	check.Send(t, service, "POST", "/trips", "trip-17", trip).Want(t, 202, "executed")
	w.Pass(5)
	return w, service
}

// Whether the flight was declined or given up: while the room may be held the client gets the 202, and an operator decides.
func TestARoomThatIsNotGivenBackIsNeverSaidToBeFree(t *testing.T) {
	for _, flight := range []outbox.Outcome{outbox.Declined{Reference: "full"}, outbox.Refused{}} {
		for _, release := range []outbox.Outcome{outbox.Declined{Reference: "no"}, outbox.Refused{}} {
			w, service := book(t, flight, release)
			got := check.Send(t, service, "POST", "/trips", "trip-17", trip)
			if got.Status != 202 {
				t.Errorf("flight %s, release %s: %d %s\n%s", flight.Name(), release.Name(), got.Status, got.Body, messages(w))
			}
		}
		_, service := book(t, flight, outbox.Delivered{})
		check.Send(t, service, "POST", "/trips", "trip-17", trip).Want(t, 409, "replayed")
	}
}

func messages(w *check.World) string {
	all := w.Store.Messages()
	slices.SortFunc(all, func(a, b storage.Message) int { return a.Index - b.Index })
	var shown strings.Builder
	for _, m := range all {
		fmt.Fprintf(&shown, "%d %s: %s\n", m.Index, m.Topic, m.State)
	}
	return shown.String()
}
