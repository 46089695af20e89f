package webhooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
	"github.com/idem-go/idem-aws/docs/examples/internal/protection"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/webhook"
)

const secret = "whsec_0123456789abcdef"

// charges is a topic without keys and without a look-up, whose calls get no answer: only a webhook can tell what happened.
var charges = outbox.Topic{
	Name: "payments.charge",
	Call: func(context.Context, storage.Message) outbox.Outcome {
		return outbox.Ambiguous{Cause: errors.New("time-out")}
	},
	Settle: func(_ storage.Message, o outbox.Outcome) (outbox.Settlement, error) {
		status := http.StatusCreated
		if _, ok := o.(outbox.Delivered); !ok {
			status = http.StatusPaymentRequired
		}
		response, err := idem.JSON(status, map[string]string{"payment": o.Name()})
		return outbox.Settlement{Response: response}, err
	},
}

func TestThePageShowsALateAnswer(t *testing.T) {
	page := check.NewPage(t, "webhooks.md")
	w := check.NewWorld(t, charges)
	mw := check.Get(middleware.New(w.Engine, middleware.Config{Identify: protection.Identify}))(t)
	payments := check.Get(mw.Handle(idem.Operation{Name: "payments.create", Kind: idem.KindDeferred, Policy: idem.IETF()}, middleware.Route{},
		func(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
			tx.Send("payments.charge", r.Body)
			return idem.JSON(http.StatusAccepted, map[string]string{"payment": "pending"})
		}))(t)
	var log bytes.Buffer
	verifier, err := webhook.New(webhook.Config{Secrets: []string{secret}, Header: "Provider-Signature", Now: w.Clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	hooks := check.Get(New(verifier, w.Engine, w.Store, w.Worker, slog.New(slog.NewTextHandler(&log, nil))))(t)

	check.Send(t, payments, "POST", "/payments", "order-17", `{"amount":500}`).Want(t, 202, "executed")
	w.Stream()
	m := w.Store.Messages()[0]
	page.Text("unknown", fmt.Sprintf("message %s: %s\n", m.Topic, m.State))

	told := fmt.Sprintf(`{"id":"evt_1","type":"charge.succeeded","key":%q,"charge":"ch_1","amount":500}`, m.ID)
	send := func(body, signedBy string, at time.Time) int {
		t.Helper()
		return check.Send(t, hooks, "POST", "/webhooks/provider", "", body, "Provider-Signature", webhook.Sign(signedBy, at, []byte(body))).Status
	}
	now := w.Clock.Now()
	other := fmt.Sprintf(`{"id":"evt_4","type":"charge.succeeded","key":%q,"charge":"ch_1","amount":1}`, m.ID)
	page.Text("answers", fmt.Sprintf(`forged                     %d
signed 6 minutes ago       %d
about an unknown message   %d
with another amount        %d, %s
the charge                 %d
the charge, sent again     %d
`,
		send(told, "whsec_somebody_else_s", now),
		send(told, secret, now.Add(-6*time.Minute)),
		send(`{"id":"evt_2","type":"charge.succeeded","key":"op_none.1","charge":"ch_2","amount":500}`, secret, now),
		send(other, secret, now), stateOf(w, m.ID),
		send(told, secret, now),
		send(told, secret, now)))
	if !strings.Contains(log.String(), "msg=webhook.contradicts event=evt_4") { // the alarm looks at it
		t.Errorf("the log has no line of the contradiction:\n%s", &log)
	}
	page.Send("final", payments, "POST", "/payments", "order-17", `{"amount":500}`).Want(t, 201, "replayed")

	// What a provider adds to an event that it sends again, such as a count, does not make it another event.
	if got := send(fmt.Sprintf(`{"id":"evt_1","type":"charge.succeeded","key":%q,"charge":"ch_1","amount":500,"pending_webhooks":2}`, m.ID), secret, now); got != 204 {
		t.Errorf("the charge, sent again with another count, was answered with %d", got)
	}

	// A webhook that contradicts the end changes nothing, and is acknowledged: an alarm is in the log.
	if got := send(fmt.Sprintf(`{"id":"evt_3","type":"charge.declined","key":%q,"charge":"ch_1","amount":500}`, m.ID), secret, now); got != 204 {
		t.Errorf("the contradiction was answered with %d", got)
	}
	check.Send(t, payments, "POST", "/payments", "order-17", `{"amount":500}`).Want(t, 201, "replayed")
}

// oneKey is the data key of every tenant, but for one whose keys were erased.
type oneKey struct{ erased string }

func (k *oneKey) Current(_ context.Context, tenant string) (seal.Key, error) {
	if tenant == k.erased {
		return seal.Key{}, storage.ErrErased
	}
	return seal.Key{ID: 1, Secret: [seal.KeyBytes]byte([]byte("0123456789abcdef0123456789abcdef")), Current: true}, nil
}

func (k *oneKey) Open(ctx context.Context, tenant string, _ uint32) (seal.Key, error) {
	return k.Current(ctx, tenant)
}

// What a webhook tells of a message that nobody can open is evidence all the same: its amount can't be compared, and an event that was
// acknowledged never comes again. What can't be decoded contradicts nothing, and is asked for again.
func TestEvidenceAboutAPayloadThatCannotBeReadIsNotLost(t *testing.T) {
	w := check.NewWorld(t, charges)
	keys := &oneKey{}
	// process is the service in one process. Each holds keys for a while.
	process := func() (payments, hooks http.Handler, worker *outbox.Worker) {
		store := check.Get(seal.New(w.Store, seal.Config{Keys: keys, Now: w.Clock.Now}))(t)
		engine := check.Get(idem.New(store, idem.Config{Now: w.Clock.Now, Pause: w.Clock.Pause}))(t)
		topics := check.Get(outbox.NewTopics(outbox.Config{Now: w.Clock.Now, Pause: w.Clock.Pause}, charges))(t)
		worker = check.Get(outbox.NewWorker(store, topics, w.Queue, w.Queue))(t)
		mw := check.Get(middleware.New(engine, middleware.Config{Identify: protection.Identify}))(t)
		payments = check.Get(mw.Handle(idem.Operation{Name: "payments.create", Kind: idem.KindDeferred, Policy: idem.IETF()}, middleware.Route{},
			func(_ context.Context, tx *idem.Tx, r *middleware.Request) (idem.Response, error) {
				tx.Send("payments.charge", r.Body)
				return idem.JSON(http.StatusAccepted, map[string]string{"payment": "pending"})
			}))(t)
		verifier := check.Get(webhook.New(webhook.Config{Secrets: []string{secret}, Header: "Provider-Signature", Now: w.Clock.Now}))(t)
		return payments, check.Get(New(verifier, engine, store, worker, slog.New(slog.DiscardHandler)))(t), worker
	}
	payments, hooks, worker := process()
	known := map[idem.MessageID]bool{}
	pay := func(key, body string) (id idem.MessageID) {
		t.Helper()
		check.Send(t, payments, "POST", "/payments", key, body).Want(t, 202, "executed")
		for _, m := range w.Store.Messages() {
			if !known[m.ID] {
				id = m.ID
			}
		}
		known[id] = true
		if err := worker.Deliver(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	told := func(event string, id idem.MessageID) int {
		t.Helper()
		body := fmt.Sprintf(`{"id":%q,"type":"charge.succeeded","key":%q,"charge":"ch_1","amount":500}`, event, id)
		return check.Send(t, hooks, "POST", "/webhooks/provider", "", body, "Provider-Signature", webhook.Sign(secret, w.Clock.Now(), []byte(body))).Status
	}
	other := pay("order-17", `{"amount":"500"}`)
	for range 2 {
		if got := told("evt_1", other); got != http.StatusServiceUnavailable || stateOf(w, other) != "message unknown" {
			t.Errorf("about a payload that can't be decoded: %d, %s", got, stateOf(w, other))
		}
	}
	erased := pay("order-18", `{"amount":500}`)
	keys.erased = "customer-1"
	_, hooks, _ = process()
	if got := told("evt_2", erased); got != http.StatusNoContent || stateOf(w, erased) != "message delivered" {
		t.Errorf("about a payload that nobody can open: %d, %s", got, stateOf(w, erased))
	}
}

// stateOf is the message's state, where the page shows it.
func stateOf(w *check.World, id idem.MessageID) string {
	for _, m := range w.Store.Messages() {
		if m.ID == id {
			return "message " + string(m.State)
		}
	}
	return "no message"
}
