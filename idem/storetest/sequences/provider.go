package sequences

import (
	"context"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// provider charges with each call that reaches it.
type provider struct {
	// calls are the messages as they were when it was called.
	calls []storage.Message
	// next are the outcomes of the next calls. After them each call delivers.
	next []outbox.Outcome
}

// call calls the provider, which must happen under the claim that the store has: otherwise a worker takes the stored claim for
// dead while the call runs, and calls too.
func (w *world) call(_ context.Context, m storage.Message) outbox.Outcome {
	stored := w.message(m.ID)
	if stored.State != storage.MessageClaimed || stored.Owner != m.Owner || stored.Epoch != m.Epoch || stored.Revision != m.Revision ||
		!stored.LeaseUntil.Equal(m.LeaseUntil) {
		w.Errorf("called under %s of %s (%s), and the store has %s of %s (%s)", m.State, m.Owner, m.Revision, stored.State, stored.Owner, stored.Revision)
	}
	w.provider.calls = append(w.provider.calls, m)
	if len(w.provider.next) > 0 {
		outcome := w.provider.next[0]
		w.provider.next = w.provider.next[1:]
		return outcome
	}
	return charged
}

var charged = outbox.Delivered{Reference: "ch_1", Evidence: []byte(`{"id":"ch_1"}`)}

// called demands how often the provider was called.
func (w *world) called(times int) {
	w.Helper()
	if n := len(w.provider.calls); n != times {
		w.Errorf("the provider was called %d times, want %d", n, times)
	}
}

// settledRow counts the settlements of a message.
func settledRow(id idem.MessageID) string { return fmt.Sprintf("settled %s", id) }

// settle is the application's: it counts the settlement, and answers.
func (w *world) settle(m storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
	said := outbox.Settlement{Writes: []idem.Write{w.AddRow(settledRow(m.ID))}}
	switch o := o.(type) {
	case outbox.Delivered:
		said.Response = idem.Response{Status: 201, Body: o.Evidence}
	case outbox.Declined:
		said.Response = idem.Response{Status: 402, Body: o.Evidence}
	}
	return said, nil
}
