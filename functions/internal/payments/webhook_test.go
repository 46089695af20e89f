package payments_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// Nobody has claimed the message yet. The event settles it, and the worker finds nothing left to do.
func TestWebhookBeforeTheWorker(t *testing.T) {
	onBoth(t, func(w *world) {
		l, a := w.listen(), w.pay("k", "card_ok")
		w.called(a.Operation)
		l.tell(about("evt_1", w.charges()[0]))
		w.status(a, "succeeded", "completed")
		final := w.again("k", "card_ok").want(201, "Idempotent-Replayed: true")
		w.deliver(a.Operation)
		w.swept()
		w.again("k", "card_ok").same(final)
		w.charged(1)
		if charge := w.charges()[0]; charge.Attempts != 1 || *w.payment(a.Payment.ID).ProviderReference != charge.ID {
			w.Errorf("charge %+v", charge)
		}
	})
}

func TestWebhookAfterTheWorker(t *testing.T) {
	onBoth(t, func(w *world) {
		l, a := w.listen(), w.pay("k", "card_ok")
		w.deliver(a.Operation)
		final := w.again("k", "card_ok").want(201)
		l.tell(about("evt_1", w.charges()[0]))
		w.again("k", "card_ok").same(final)
		w.charged(1)
		if n := l.logged("alarm=true"); n != 0 {
			w.Errorf("%d alarms for what is no news", n)
		}
	})
}

// The worker waits for the provider's answer while the event settles; what it learns then, or that it learns nothing, changes
// nothing.
func TestWebhookWhileTheWorkerWaits(t *testing.T) {
	for name, c := range map[string]struct {
		hang    int64
		givesUp bool
	}{
		"and is answered later": {hang: 500},
		"and gives up":          {hang: 30_000, givesUp: true},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				w.faults(provider.Rule{On: provider.Charge, Fault: provider.HangAfter, DelayMillis: c.hang, Times: 1})
				l, a := w.listen(), w.pay("k", "card_ok")
				worked := make(chan error, 1)
				go func() { worked <- w.worker.Deliver(w.Context(), a.Operation.Message(1)) }()
				for len(w.charges()) == 0 {
				}
				l.tell(about("evt_1", w.charges()[0]))
				final := w.again("k", "card_ok").want(201)
				w.ok(<-worked)
				w.drain(time.Hour)
				w.again("k", "card_ok").same(final)
				w.status(a, "succeeded", "completed")
				w.charged(1)
			}, options{hangs: c.givesUp})
		})
	}
}

// What is charged without a key is charged once, and its lost answer comes by the event, however late.
func TestWebhookSettlesWhatIsUnknown(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(provider.Rule{On: provider.LegacyCharge, Fault: provider.DropAfter})
		l, a := w.listen(), w.pay("k", "legacy_card")
		w.deliver(a.Operation)
		w.status(a, "unknown", "unknown")
		w.clock.Advance(3 * time.Hour)
		l.tell(about("evt_1", w.charges()[0]))
		w.status(a, "succeeded", "completed")
		w.again("k", "legacy_card").want(201)
		w.deliver(a.Operation)
		w.reconciled()
		w.charged(1)
	})
}

// What was given up while a call was open stands before an operator; the event takes it from there.
func TestWebhookSettlesWhatIsDead(t *testing.T) {
	onBoth(t, func(w *world) {
		w.faults(provider.Rule{On: provider.LegacyCharge, Fault: provider.DropAfter}, provider.Rule{On: provider.List, Fault: provider.ErrorBefore})
		l, a := w.listen(), w.pay("k", "legacy_card")
		w.deliver(a.Operation)
		for range 100 {
			if w.message(a.Operation).State == storage.MessageDead {
				break
			}
			w.clock.Advance(2 * time.Hour)
			w.reconciled()
		}
		if m := w.message(a.Operation); m.State != storage.MessageDead {
			w.Fatalf("message is %s", m.State)
		}
		l.tell(about("evt_1", w.charges()[0]))
		w.status(a, "succeeded", "completed")
		w.charged(1)
	})
}

// After the operation was closed its stored answer stays, and the evidence is kept for a person.
func TestWebhookAfterTheOperationWasClosed(t *testing.T) {
	onBoth(t, func(w *world) {
		l, a := w.listen(), w.pay("k", "card_ok")
		m := w.message(a.Operation)
		w.ok(w.operator.Close(w.Context(), m.ID, w.seen(m)))
		final := w.again("k", "card_ok").problem(502, "operation_closed")
		topics(w.T, w.provider.URL)[m.Topic].Call(w.Context(), m)
		l.tell(about("evt_1", w.charges()[0]))
		w.again("k", "card_ok").same(final)
		if m := w.message(a.Operation); m.State != storage.MessageCancelled || m.KeptDelivered == nil || !bytes.Contains(m.KeptDelivered.Evidence, []byte(w.charges()[0].ID)) {
			w.Errorf("message is %s with the evidence %v", m.State, m.KeptDelivered)
		}
	})
}

// The same event, and another one about the same object, any number of times and at once.
func TestWebhookTwiceAndAtOnce(t *testing.T) {
	onBoth(t, func(w *world) {
		l, a := w.listen(), w.pay("k", "card_ok")
		w.called(a.Operation)
		charge := w.charges()[0]
		var group sync.WaitGroup
		for n := range 12 {
			group.Go(func() { l.tell(about(fmt.Sprintf("evt_%d", n%3), charge)) })
		}
		group.Go(func() { w.ok(w.worker.Deliver(w.Context(), a.Operation.Message(1))) })
		group.Wait()
		final := w.again("k", "card_ok").want(201)
		settled := w.store.Count(faulty.Settle)
		for n := range 3 {
			l.tell(about(fmt.Sprintf("evt_%d", n), charge))
		}
		if more := w.store.Count(faulty.Settle) - settled; more != 0 {
			w.Errorf("%d settlements for events that were done with", more)
		}
		w.again("k", "card_ok").same(final)
		w.charged(1)
	})
}

// No provider that keeps its word tells both of one key. If one does, what comes first counts, whatever the times in it say:
// the other one settles nothing.
func TestWebhookOrderOfItsTimesDoesNotMatter(t *testing.T) {
	for _, first := range []provider.Status{provider.Succeeded, provider.Declined} {
		t.Run(string(first), func(t *testing.T) {
			onBoth(t, func(w *world) {
				l, a := w.listen(), w.pay("k", "card_ok")
				w.called(a.Operation)
				early, late := w.charges()[0], w.charges()[0]
				early.Status = first
				late.ID, late.Status = "ch_other", provider.Declined
				if first == provider.Declined {
					late.Status = provider.Succeeded
				}
				late.CreatedAt.Time = early.CreatedAt.Add(-time.Hour)
				l.tell(about("evt_1", early))
				w.status(a, string(first), "completed")
				final := w.again("k", "card_ok")
				l.tell(about("evt_2", late))
				w.status(a, string(first), "completed")
				w.again("k", "card_ok").same(final)
			})
		})
	}
}

// Every kind of effect, both ends: each event does what the worker would have done.
func TestWebhookSettlesEveryKindOfEffect(t *testing.T) {
	for _, fault := range []provider.Fault{"", provider.Decline} {
		t.Run("fault "+string(fault), func(t *testing.T) {
			onBoth(t, func(w *world) {
				l := w.listen()
				paid := w.paid("paid", "card_ok").ID
				for _, kind := range []provider.Kind{provider.Charge, provider.LegacyCharge, provider.Refund, provider.Payout, provider.LegacyPayout} {
					if fault != "" {
						w.faults(provider.Rule{On: kind, Fault: fault})
					}
					path, body, final := "/v1/payments", order("card_ok"), 201
					made := w.charges
					switch kind {
					case provider.LegacyCharge:
						body = order("legacy_card")
					case provider.Refund:
						path, body, made = "/v1/payments/"+paid+"/refunds", `{"amount":500}`, w.refunds
					case provider.Payout:
						path, body, made = "/v1/payouts", send("iban_ok", 500), w.payouts
					case provider.LegacyPayout:
						path, body, made = "/v1/payouts", send("legacy_iban", 500), w.payouts
					}
					if fault != "" {
						final = 402
					}
					var a accepted
					w.post(tenantA, path, string(kind), body).want(202).decode(&a)
					if path == "/v1/payouts" {
						w.called(a.Operation)
						l.tell(about("evt_screening_"+string(kind), w.screenings()[0]))
					}
					w.called(a.Operation)
					l.tell(about("evt_"+string(kind), made()[0]))
					if path == "/v1/payouts" && fault != "" {
						w.called(a.Operation)
						l.tell(about("evt_release_"+string(kind), w.releases()[0]))
					}
					w.post(tenantA, path, string(kind), body).want(final, "Idempotent-Replayed: true")
				}
				left, refunded := int64(1000), int64(500)
				if fault != "" {
					left, refunded = 0, 0
				}
				w.made(2, 2, left)
				w.held(int(left) / 500)
				w.refunded(paid, refunded)
			}, options{workerOnly: true})
		})
	}
}

// The simulator signs and posts by itself, twice, as payments-api.md "Webhooks" has it.
func TestSimulatorsWebhooksSettle(t *testing.T) {
	onBoth(t, func(w *world) {
		l, a := w.listen(), w.pay("k", "card_ok")
		simulator := provider.New(provider.Config{WebhookSecret: formerSecret, WebhookURL: l.url + "/v1/webhooks/provider", Now: w.clock.Now})
		server := httptest.NewServer(simulator)
		w.Cleanup(func() { simulator.Close(); server.Close() })
		control, mode := provider.Control{URL: server.URL, Client: client}, provider.Twice
		w.ok(control.Settings(w.Context(), provider.SettingsPatch{Webhooks: &provider.WebhooksPatch{Mode: &mode}}))
		m := w.message(a.Operation)
		topics(w.T, server.URL)[m.Topic].Call(w.Context(), m)
		var deliveries []provider.Delivery
		for len(deliveries) < 2 {
			var err error
			deliveries, err = control.Deliveries(w.Context())
			w.ok(err)
		}
		for _, d := range deliveries {
			if d.Status != http.StatusNoContent || d.Type != "charge.succeeded" {
				w.Errorf("delivery %+v", d)
			}
		}
		w.status(a, "succeeded", "completed")
	})
}

// Whatever is wrong with a signature gets the same answer, and nothing is read or written for it.
func TestWebhookWithoutTheProvidersSignature(t *testing.T) {
	onBoth(t, func(w *world) {
		l, a := w.listen(), w.pay("k", "card_ok")
		w.called(a.Operation)
		raw, err := json.Marshal(about("evt_1", w.charges()[0]))
		w.ok(err)
		body, now := string(raw), w.clock.Now()
		w.store.All(faulty.Refuse(errors.New("the store was asked")))
		var first answer
		for name, signature := range map[string]string{
			"missing":         "",
			"malformed":       "t=now,v1=none",
			"forged":          provider.Sign("whsec_of_somebody_else", now, raw),
			"of another body": provider.Sign(secret, now, raw[1:]),
			"stale":           provider.Sign(secret, now.Add(-301*time.Second), raw),
			"ahead":           provider.Sign(secret, now.Add(301*time.Second), raw),
		} {
			got := l.post(body, signature).problem(401, "webhook_signature_invalid").want(401, "WWW-Authenticate: Provider-Signature", "-Retry-After")
			if first.t == nil {
				first = got
			}
			got.same(first)
			if n := l.logged("msg=webhook.refused"); n != 1 {
				w.Errorf("%s: %d lines", name, n)
			}
		}
		w.store.Clear()
		w.status(a, "pending", "pending")
		l.post(body, provider.Sign(formerSecret, now.Add(-300*time.Second), raw)).want(204)
		w.status(a, "succeeded", "completed")
	})
}

// payments-api.md "Webhooks": an event that is not for this application is answered 204, and nothing is done.
func TestWebhookThatIsNotForUs(t *testing.T) {
	onBoth(t, func(w *world) {
		l, a := w.listen(), w.pay("k", "card_ok")
		w.called(a.Operation)
		charge := w.charges()[0]
		for name, change := range map[string]func(*provider.Event){
			"no message's key":  func(e *provider.Event) { e.Key = "order-17" },
			"no key":            func(e *provider.Event) { e.Key = "" },
			"unknown type":      func(e *provider.Event) { e.Type = "dispute.succeeded" },
			"unknown end":       func(e *provider.Event) { e.Type = "charge.pending" },
			"no type":           func(e *provider.Event) { e.Type = "" },
			"another's payout":  func(e *provider.Event) { e.Type = "payout.succeeded" },
			"another's refund":  func(e *provider.Event) { e.Type = "refund.succeeded" },
			"another screening": func(e *provider.Event) { e.Type = "screening.succeeded" },
		} {
			e := about("evt "+name, charge)
			change(&e)
			e.Data.Key = e.Key
			l.tell(e)
			if n := l.logged("msg=webhook.ignored"); n != 1 {
				w.Errorf("%s: %d lines", name, n)
			}
		}
		w.status(a, "pending", "pending")
		l.tell(about("evt_1", charge))
		w.status(a, "succeeded", "completed")
	})
}

// A webhook about a message that is not there may be the only trace of an effect, after a loss of data: it is not remembered
// as done, and the provider sends it again until there is a message that it settles, or a person has looked.
func TestWebhookForAMessageThatIsNotThereIsNotAcknowledged(t *testing.T) {
	onBoth(t, func(w *world) {
		l, a := w.listen(), w.pay("k", "card_ok")
		w.called(a.Operation)
		for _, key := range []string{unusedOperation + ".1", string(a.Operation.Message(2))} {
			e := about("evt "+key, w.charges()[0])
			e.Key, e.Data.Key = key, key
			raw, err := json.Marshal(e)
			w.ok(err)
			for range 2 {
				l.signed(string(raw)).problem(404, "message_unknown")
			}
		}
		w.status(a, "pending", "pending")
	})
}

// What contradicts what was asked for settles nothing and calls a person, however well it is signed. What is not told
// contradicts nothing.
func TestWebhookThatContradicts(t *testing.T) {
	onBoth(t, func(w *world) {
		l, a := w.listen(), w.pay("k", "card_ok")
		w.called(a.Operation)
		charge := w.charges()[0]
		for name, data := range map[string]string{
			"amount":          `{"id":"ch_1","status":"succeeded","amount":19990,"currency":"EUR"}`,
			"currency":        `{"id":"ch_1","status":"succeeded","amount":1999,"currency":"USD"}`,
			"status":          `{"id":"ch_1","status":"declined","amount":1999,"currency":"EUR"}`,
			"another's key":   `{"id":"ch_1","status":"succeeded","key":"another"}`,
			"no reference":    `{"status":"succeeded","amount":1999,"currency":"EUR"}`,
			"no object":       `[]`,
			"amount in words": `{"id":"ch_1","status":"succeeded","amount":"1999"}`,
			"no money at all": `{"id":"ch_1","status":"succeeded","amount":0,"currency":"EUR"}`,
			"no currency":     `{"id":"ch_1","status":"succeeded","amount":1999,"currency":""}`,
			"an empty status": `{"id":"ch_1","status":"","amount":1999,"currency":"EUR"}`,
			"an empty key":    `{"id":"ch_1","status":"succeeded","key":""}`,
			"other letters":   `{"ID":"ch_1","status":"succeeded"}`,
			"amount fraction": `{"id":"ch_1","status":"succeeded","amount":1999.5}`,
		} {
			l.signed(fmt.Sprintf(`{"id":%q,"type":"charge.succeeded","key":%q,"data":%s}`, name, charge.Key, data)).want(204)
			if n := l.logged("msg=webhook.contradicts", "alarm=true", "message="+charge.Key); n != 1 {
				w.Errorf("%s: %d alarms", name, n)
			}
		}
		l.signed(fmt.Sprintf(`{"id":"no data","type":"charge.succeeded","key":%q}`, charge.Key)).want(204)
		w.status(a, "pending", "pending")
		l.signed(fmt.Sprintf(`{"id":"evt_1","type":"charge.succeeded","key":%q,"data":{"id":%q},"more":1}`, charge.Key, charge.ID)).want(204)
		w.status(a, "succeeded", "completed")
	})
}

// An id that comes with another body is the provider's mistake. Evidence is evidence.
func TestWebhookWhoseIDWasAnotherEvents(t *testing.T) {
	onBoth(t, func(w *world) {
		l, a := w.listen(), w.pay("k", "card_ok")
		w.called(a.Operation)
		e := about("evt_1", w.charges()[0])
		e.Key, e.Data.Key = "order-17", "order-17"
		l.tell(e)
		l.tell(about("evt_1", w.charges()[0]))
		if n := l.logged("msg=webhook.contradicts", "alarm=true"); n != 1 {
			w.Errorf("%d alarms", n)
		}
		w.status(a, "succeeded", "completed")
	})
}

// Nothing is acknowledged before it is stored: the provider sends again, and then it is done.
func TestWebhookWhileTheStoreHasTrouble(t *testing.T) {
	trouble := errors.New("a fault")
	for name, c := range map[string]struct {
		call  faulty.Call
		n     int
		fault faulty.Fault
	}{
		"look-up":              {faulty.Get, 1, faulty.Refuse(trouble)},
		"reading the message":  {faulty.Message, 1, faulty.Refuse(trouble)},
		"reading it again":     {faulty.Message, 2, faulty.Refuse(trouble)},
		"settling":             {faulty.Settle, 1, faulty.Refuse(trouble)},
		"remembering":          {faulty.Commit, 1, faulty.Refuse(trouble)},
		"remembering, unheard": {faulty.Commit, 1, faulty.Refuse(storage.ErrThrottled)},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *world) {
				l, a := w.listen(), w.pay("k", "card_ok")
				w.called(a.Operation)
				raw, err := json.Marshal(about("evt_1", w.charges()[0]))
				w.ok(err)
				w.store.On(c.call, c.n, c.fault)
				if c.call == faulty.Settle { // for as long as it is tried; nor can it be kept
					for n := range 1000 {
						w.store.On(faulty.Settle, n+1, c.fault)
						w.store.On(faulty.PatchMessage, n+1, c.fault)
					}
				}
				got := l.signed(string(raw))
				if got.status != 204 || c.call != faulty.Commit {
					got.problem(503, "idempotency_store_unavailable").want(503, "Retry-After")
				}
				if failed := l.logged("msg=webhook.failed"); failed != map[bool]int{true: 1}[got.status == 503] {
					w.Errorf("answered %d, and counted as failed: %d", got.status, failed)
				}
				w.store.Clear()
				l.signed(string(raw)).want(204)
				w.status(a, "succeeded", "completed")
				w.charged(1)
			})
		})
	}
}

// beNotified: every answer of the endpoint.
func (w *world) beNotified() {
	l := w.listen()
	body := `{"id":"evt_1","type":"charge.succeeded","key":"` + unusedOperation + `.1","data":{"id":"ch_1"}}`
	l.post(body, "").problem(401, "webhook_signature_invalid")
	w.store.On(faulty.Get, 1, faulty.Refuse(errors.New("a fault")))
	l.signed(body).problem(503, "idempotency_store_unavailable").want(503, "Retry-After")
	if n := l.logged("msg=webhook.failed"); n != 1 {
		w.Errorf("%d webhooks failed, want 1", n)
	}
	l.signed(body).problem(404, "message_unknown")
	l.signed(`{"id":"evt_2","type":"unknown"}`).want(204)
	l.signed(strings.Repeat(" ", 256<<10+1)).problem(413, "request_too_large")
	if n := l.logged("msg=webhook.failed"); n != 0 {
		w.Errorf("%d webhooks count as failed, which a release can do nothing about", n)
	}
	noEvents := []string{
		``, `{`, `[]`, `{}`, `{"id":null}`, `{"id":17}`, `{"id":""}`, `{"id":"` + strings.Repeat("x", 256) + `"}`, `{"id":"a","id":"b"}`,
		`{"id":"a","data":1e400}`, `{"id":"a","data":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, "{\"id\":\"\xff\"}",
	}
	for _, body := range noEvents {
		l.signed(body).problem(400, "request_invalid")
	}
	if n := l.logged("msg=webhook.failed"); n != len(noEvents) {
		w.Errorf("%d of %d signed bodies that this release can't read count as failed", n, len(noEvents))
	}
	l.send(http.MethodGet, "/v1/webhooks/provider", "").problem(405, "method_not_allowed").want(405, "Allow: POST")
	l.send(http.MethodPost, "/v1/webhooks", "").problem(404, "not_found")
}

func TestWebhookAnswers(t *testing.T) {
	onBoth(t, (*world).beNotified)
}

func TestNewWebhookRefusesItsConfiguration(t *testing.T) {
	if _, err := payments.NewWebhook(payments.WebhookConfig{}); !errors.As(err, new(*idem.ConfigError)) {
		t.Errorf("%v", err)
	}
}

// After a loss of records the provider's events are evidence of what was lost: they are taken, although nothing proves that
// they are younger, while payments are refused.
func TestWebhooksAreTakenAfterALossOfRecords(t *testing.T) {
	onBoth(t, func(w *world) {
		l, a := w.listen(), w.pay("k", "card_ok")
		w.called(a.Operation)
		_, err := w.store.SetRefuseBefore(w.Context(), w.clock.Now())
		w.ok(err)
		w.clock.Advance(2 * time.Minute)
		w.again("k2", "card_ok").problem(503, "idempotency_refused_before").want(503, "Retry-After")
		l.tell(about("evt_1", w.charges()[0]))
		w.status(a, "succeeded", "completed")
		w.again("k", "card_ok").want(201, "Idempotent-Replayed: true")
		w.charged(1)
	})
}
