package effects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/idem/outbox"
)

// provider honours keys. It drops the connections of its first so many requests, after it has charged.
type provider struct {
	drops    int
	declines bool
	requests int
	charges  map[string]bool
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests++
	if p.declines {
		w.WriteHeader(http.StatusPaymentRequired)
		return
	}
	p.charges[r.Header.Get("Idempotency-Key")] = true
	if p.requests <= p.drops {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, `{"id":"ch_1"}`)
}

func newProvider(t *testing.T, drops int) (*provider, outbox.Topic) {
	t.Helper()
	p := &provider{drops: drops, charges: map[string]bool{}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return p, ChargeTopic(check.Get(NewProvider())(t), server.URL)
}

// bank knows no keys: who sends twice pays twice.
type bank struct {
	loses, dies bool
	sent        []string
}

func (b *bank) Send(_ context.Context, reference string, _ []byte) error {
	if b.dies {
		return errors.New("connection reset before the request was read")
	}
	b.sent = append(b.sent, reference)
	if b.loses {
		return errors.New("connection reset")
	}
	return nil
}

func (b *bank) Find(_ context.Context, reference string) (bool, error) {
	for _, sent := range b.sent {
		if sent == reference {
			return true, nil
		}
	}
	return false, nil
}

func states(w *check.World) string {
	var shown strings.Builder
	for _, m := range w.Store.Messages() {
		fmt.Fprintf(&shown, "message %s: %s\n", m.Topic, m.State)
	}
	return shown.String()
}

const body = `{"amount":500}`

func TestThePageShowsEffectsOfBothKinds(t *testing.T) {
	page := check.NewPage(t, "effects.md")

	charges, charge := newProvider(t, 1)
	w := check.NewWorld(t, charge)
	service := check.Get(NewService(w.Engine, w.Store, nil))(t)
	check.Send(t, service, "POST", "/payments", "order-17", body).Want(t, 202, "executed")
	w.Stream()
	page.Text("charge, lost reply", states(w))
	w.Pass(1)
	page.Text("charge, again", states(w)+fmt.Sprintf("requests %d, charges %d\n", charges.requests, len(charges.charges)))
	check.Send(t, service, "POST", "/payments", "order-17", body).Want(t, 201, "replayed")

	lossy := &bank{loses: true}
	w = check.NewWorld(t, PayoutTopic(lossy))
	service = check.Get(NewService(w.Engine, w.Store, nil))(t)
	check.Send(t, service, "POST", "/payouts", "payout-17", body).Want(t, 202, "executed")
	w.Stream()
	page.Text("payout, lost reply", states(w))
	w.Pass(5)
	page.Text("payout, found", states(w)+fmt.Sprintf("payouts %d\n", len(lossy.sent)))
	check.Send(t, service, "POST", "/payouts", "payout-17", body).Want(t, 201, "replayed")

	// The request never arrived. It is sent again only after its absence is proven: FreezeAllowance, LongestRequest and ListingDelay have passed.
	absent := &bank{dies: true}
	w = check.NewWorld(t, PayoutTopic(absent))
	service = check.Get(NewService(w.Engine, w.Store, nil))(t)
	check.Send(t, service, "POST", "/payouts", "payout-18", body).Want(t, 202, "executed")
	w.Stream()
	absent.dies = false
	w.Pass(2)
	if len(absent.sent) != 0 {
		t.Error("the payout was sent again before its absence was proven")
	}
	w.Pass(5)
	page.Text("payout, absent", states(w)+fmt.Sprintf("payouts %d\n", len(absent.sent)))
	check.Send(t, service, "POST", "/payouts", "payout-18", body).Want(t, 201, "replayed")
}

func TestADeclineIsAFinalAnswer(t *testing.T) {
	p, charge := newProvider(t, 0)
	p.declines = true
	w := check.NewWorld(t, charge)
	service := check.Get(NewService(w.Engine, w.Store, nil))(t)
	check.Send(t, service, "POST", "/payments", "order-17", body).Want(t, 202, "executed")
	w.Stream()
	check.Send(t, service, "POST", "/payments", "order-17", body).Want(t, 402, "replayed")
	if len(p.charges) != 0 {
		t.Error("it was charged")
	}
}

func TestThePageShows202AndStatus(t *testing.T) {
	page := check.NewPage(t, "accepted.md")
	_, charge := newProvider(t, 0)
	w := check.NewWorld(t, charge)
	service := check.Get(NewService(w.Engine, w.Store, nil))(t)

	first := page.Send("accepted", service, "POST", "/payments", "order-17", body).Want(t, 202, "executed")
	page.Send("status, pending", service, "GET", first.Header.Get("Location"), "", "").Want(t, 200, "")
	check.Send(t, service, "POST", "/payments", "order-17", body).Want(t, 202, "replayed")
	w.Stream()
	page.Send("status, completed", service, "GET", first.Header.Get("Location"), "", "").Want(t, 200, "")
	page.Send("final", service, "POST", "/payments", "order-17", body).Want(t, 201, "replayed")

	// Inline first: the request calls the provider, and answers with the end.
	_, charge = newProvider(t, 0)
	w = check.NewWorld(t, charge)
	inline, err := outbox.NewInline(w.Worker)
	if err != nil {
		t.Fatal(err)
	}
	service, err = NewService(w.Engine, w.Store, inline)
	if err != nil {
		t.Fatal(err)
	}
	page.Send("inline", service, "POST", "/payments", "order-18", body).Want(t, 201, "executed")

	// Inline first with a lost reply: 202, and the worker goes on.
	_, charge = newProvider(t, 1)
	w = check.NewWorld(t, charge)
	service = check.Get(NewService(w.Engine, w.Store, check.Get(outbox.NewInline(w.Worker))(t)))(t)
	check.Send(t, service, "POST", "/payments", "order-19", body).Want(t, 202, "executed")
	w.Pass(1)
	check.Send(t, service, "POST", "/payments", "order-19", body).Want(t, 201, "replayed")
}
