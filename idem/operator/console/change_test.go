package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// resolvable is an unknown operation, and the form that settles it.
func resolvable(w *world) (b *browser, id idem.OperationID, form url.Values) {
	w.Helper()
	id = w.operation(deferred, unknown)
	b = w.served()
	form = b.offered(id, "resolve")
	form.Set("outcome", "delivered")
	form.Set("reference", "ch_9")
	return b, id, form
}

// logged demands the states of the audit log, newest first.
func (w *world) logged(states ...operator.EntryState) {
	w.Helper()
	all := w.entries()
	if len(all) != len(states) {
		w.Fatalf("%d entries, want %v: %+v", len(all), states, all)
	}
	for i, e := range all {
		if e.State != states[i] || e.Actor != "ada" || e.Reason != "ticket 17" {
			w.Errorf("entry %+v, want %s", e, states[i])
		}
	}
}

// Nothing is changed before the page that says what will be done; the change is made by the desk, and is in the audit log.
func TestAChangeIsShownAndThenMade(t *testing.T) {
	w := newWorld(t)
	b, id, form := resolvable(w)
	b.shows(b.get(http.StatusOK, "/change?"+form.Encode()), "Show what would be done", "ch_9", "checked")
	plan := b.post(http.StatusSeeOther, "/change", form)
	page := b.get(http.StatusOK, plan)
	b.shows(page, "Nothing is changed yet", "This will happen", "This will not", "settled as delivered, with the provider&#39;s reference ch_9", "The provider is not called", "ticket 17")
	if got := w.messageState(id.Message(1)); got != storage.MessageUnknown || len(w.entries()) != 0 {
		t.Errorf("the dry run has made it %s: %+v", got, w.entries())
	}
	if to := b.post(http.StatusSeeOther, plan, url.Values{}); to != plan {
		t.Errorf("leads to %s", to)
	}
	b.shows(b.get(http.StatusOK, plan), "Done: delivered", "au_")
	if got := w.messageState(id.Message(1)); got != storage.MessageDelivered {
		t.Errorf("the message is %s", got)
	}
	w.logged(operator.EntryDone)
	b.shows(b.get(http.StatusOK, "/operation/"+string(id)), "It is completed", "resolve by ada: done")
}

// A form that comes twice, one after the other or at once, or again from a page that was kept, does nothing twice.
func TestAFormThatComesTwiceDoesNothingTwice(t *testing.T) {
	w := newWorld(t)
	b, id, form := resolvable(w)
	plan := b.post(http.StatusSeeOther, "/change", form)
	w.settled.Store(0) // the plan has asked the topic, too
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { b.do(b.request(http.MethodPost, plan, url.Values{"csrf": {b.csrf}})) })
	}
	group.Wait()
	if to := b.post(http.StatusSeeOther, plan, url.Values{}); to != plan+"?again=1" {
		t.Errorf("leads to %s", to)
	}
	b.shows(b.get(http.StatusOK, plan+"?again=1"), "Nothing was done a second time", "Done: delivered")
	if n := w.settled.Load(); n != 1 || w.messageState(id.Message(1)) != storage.MessageDelivered {
		t.Errorf("settled %d times", n)
	}
	w.logged(operator.EntryDone)
	// The same decision, planned anew from a page that is out of date by now.
	b.shows(b.post(http.StatusConflict, "/change", form), "out of date", "unknown.1.", "delivered.1.")
	w.logged(operator.EntryDone)
}

// What was planned about something else than what is there by now is refused, says so, and is in the audit log.
func TestAChangeOfAPageThatIsOutOfDateIsRefused(t *testing.T) {
	w := newWorld(t)
	b, id, form := resolvable(w)
	plan := b.post(http.StatusSeeOther, "/change", form)
	story, err := w.desk.Inspect(t.Context(), string(id))
	w.ok(err)
	_, err = w.desk.ReconcileMessage(t.Context(), id.Message(1), operator.Change{Actor: "ada", Reason: "ticket 17", Seen: story.Messages[0].Seen})
	w.ok(err)
	b.post(http.StatusSeeOther, plan, url.Values{})
	b.shows(b.get(http.StatusConflict, plan), "Refused: the page was out of date. Nothing was changed.", "unknown.1.", "delivered.1.")
	w.logged(operator.EntryRefused, operator.EntryDone)
	if m, err := w.store.Message(t.Context(), id.Message(1)); err != nil || m.Reference != "ch_found" {
		t.Errorf("%+v, %v", m, err)
	}
}

// Without an actor there is no way to change anything, whatever is sent.
func TestReadOnlyUnlessAskedFor(t *testing.T) {
	w := newWorld(t)
	b, id, form := resolvable(w)
	plan := b.post(http.StatusSeeOther, "/change", form)
	w.cfg.Actor = ""
	b = w.served()
	page := b.get(http.StatusOK, "/operation/"+string(id))
	b.shows(page, "read-only", "resolve")
	if strings.Contains(page, "/change") {
		t.Errorf("a read-only page offers changes:\n%s", page)
	}
	b.get(http.StatusNotFound, "/change?"+form.Encode())
	b.post(http.StatusNotFound, "/change", form)
	b.post(http.StatusNotFound, plan, url.Values{})
	w.logged()
}

// Each change that the pages offer is one that the desk makes, in words.
func TestEveryOfferIsMadeByTheDesk(t *testing.T) {
	both := func(m *storage.Message) { dead(m); m.KeptDelivered = &storage.Kept{Reference: "ch_1"} }
	for name, c := range map[string]struct {
		action string
		leave  func(*world) idem.OperationID
		form   url.Values
		says   string
		entry  operator.EntryState
	}{
		"decline": {"resolve", func(w *world) idem.OperationID { return w.operation(deferred, unknown) }, url.Values{"outcome": {"declined"}}, "settled as declined", operator.EntryDone},
		"decline what nobody can open": {"resolve", func(w *world) idem.OperationID {
			return w.operation(deferred, func(m *storage.Message) { dead(m); m.Sealed = true })
		}, url.Values{"outcome": {"declined"}}, "Nobody can open it any more, so the application writes nothing, and the operation fails unless it has its answer. Correct its rows by hand.", operator.EntryDone},
		"reconcile":          {"reconcile", func(w *world) idem.OperationID { return w.operation(deferred, unknown) }, url.Values{}, "asked now what became", operator.EntryDone},
		"redrive":            {"redrive", func(w *world) idem.OperationID { return w.operation(deferred, both) }, url.Values{}, "If the message keeps evidence, that is settled", operator.EntryDone},
		"close":              {"close", func(w *world) idem.OperationID { return w.operation(deferred, pending) }, url.Values{}, "fails with operation_closed", operator.EntryDone},
		"resolve a record":   {"resolve", func(w *world) idem.OperationID { return w.operation(wrapped) }, url.Values{"status": {"201"}, "body": {secret}, "type": {"text/plain"}}, "a body of 9 bytes, text/plain", operator.EntryDone},
		"release":            {"release", func(w *world) idem.OperationID { return w.operation(abandoned) }, url.Values{}, "does it a second time", operator.EntryDone},
		"reconcile a record": {"reconcile", func(w *world) idem.OperationID { return w.operation(wrapped) }, url.Values{}, "Probe is asked", operator.EntryDone},
		"cache-bust": {"cache-bust", func(w *world) idem.OperationID {
			return w.operation(func(r *storage.Record) { completed(r); r.Kind, r.RecordOnly = idem.KindAtomic, true })
		}, url.Values{}, "about a minute", operator.EntryDone},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := c.leave(w)
			w.advance(time.Minute)
			b := w.served()
			form := b.offered(id, c.action)
			b.shows(b.get(http.StatusOK, "/change?"+form.Encode()), "Show what would be done")
			for field, value := range c.form {
				form[field] = value
			}
			plan := b.post(http.StatusSeeOther, "/change", form)
			b.shows(b.get(http.StatusOK, plan), c.says)
			b.post(http.StatusSeeOther, plan, url.Values{})
			status := map[operator.EntryState]int{operator.EntryDone: http.StatusOK, operator.EntryRefused: http.StatusConflict}[c.entry]
			b.get(status, plan)
			w.logged(c.entry)
		})
	}
}

// A page says what the change does to the row as it is: that evidence can't be settled, and why, instead of that it is.
func TestAPlanSaysWhatTheDeskSays(t *testing.T) {
	keeps := func(m *storage.Message) { dead(m); m.KeptDelivered = &storage.Kept{Reference: "ch_1"} }
	for name, c := range map[string]struct {
		leave    func(*storage.Message)
		action   string
		says     string
		settled  bool
		becoming storage.MessageState
	}{
		"it is settled": {unknown, "resolve", "is settled as declined", true, storage.MessageDeclined},
		"what it keeps": {keeps, "redrive", "this would settle what it keeps: it is delivered then, and nobody is called.", true, storage.MessageDelivered},
		"it can't be":   {func(m *storage.Message) { unknown(m); m.Undoes = true }, "resolve", "settle nothing: it becomes dead, and an alarm rings. The cause: the message undoes an earlier step", false, storage.MessageDead},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.operation(deferred, c.leave)
			w.advance(time.Minute)
			b := w.served()
			form := b.offered(id, c.action)
			form.Set("outcome", "declined")
			plan := b.post(http.StatusSeeOther, "/change", form)
			page := b.get(http.StatusOK, plan)
			if b.shows(page, c.says); !c.settled && strings.Contains(page, "is settled as") {
				t.Errorf("it promises a settlement:\n%s", page)
			}
			b.post(http.StatusSeeOther, plan, url.Values{})
			if got := w.messageState(id.Message(1)); got != c.becoming {
				t.Errorf("it is %s, want %s", got, c.becoming)
			}
		})
	}
}

// A sweep that fails is not done on its page either, which says how much of it failed.
func TestASweepThatFailsSaysSoOnItsPage(t *testing.T) {
	w := newWorld(t)
	w.operation(deferred, pending)
	w.advance(time.Minute)
	b := w.served()
	form := b.link(b.get(http.StatusOK, "/queue/stuck"), "/change?action=sweep")
	form.Set("reason", "ticket 17")
	plan := b.post(http.StatusSeeOther, "/change", form)
	w.store.On(faulty.Message, 1, faulty.Refuse(errors.New("down")))
	b.post(http.StatusSeeOther, plan, url.Values{})
	page := b.get(http.StatusBadGateway, plan)
	if b.shows(page, "It failed: Sweep now", "1 of what the sweep came to", "messages errors: 1"); strings.Contains(page, "Done:") {
		t.Errorf("it says done:\n%s", page)
	}
	w.logged(operator.EntryFailed)
}

// What the desk refuses is not planned: the page says why, and nothing is logged, because nothing was tried.
func TestWhatIsRefusedIsNotPlanned(t *testing.T) {
	w := newWorld(t)
	id := w.operation(deferred, unknown)
	w.advance(time.Minute)
	b := w.served()
	form := b.offered(id, "close")
	b.shows(b.post(http.StatusConflict, "/change", form), "Refused", "a request may be under way until")
	w.logged()
}

func TestSweepFromThePage(t *testing.T) {
	w := newWorld(t)
	w.operation(deferred, pending)
	w.advance(time.Minute)
	b := w.served()
	form := b.link(b.get(http.StatusOK, "/queue/stuck"), "/change?action=sweep")
	b.get(http.StatusOK, "/change?"+form.Encode())
	form.Set("reason", "ticket 17")
	plan := b.post(http.StatusSeeOther, "/change", form)
	b.shows(b.get(http.StatusOK, plan), "What is due is looked at now")
	b.post(http.StatusSeeOther, plan, url.Values{})
	b.shows(b.get(http.StatusOK, plan), "Done: messages offered: 1.", "Back to the overview")
	w.logged(operator.EntryDone)
	b.shows(b.get(http.StatusOK, "/audit"), "messages offered: 1")
}

// What can't be tried is not planned, and says why.
func TestFormsThatCantBeUsed(t *testing.T) {
	w := newWorld(t)
	b, id, good := resolvable(w)
	record := w.operation(wrapped)
	answer := b.offered(record, "resolve")
	for name, c := range map[string]struct {
		form        url.Values
		field, says string
	}{
		"no reason":          {good, "reason=", "reason must have"},
		"no outcome":         {good, "outcome=", "outcome must be"},
		"another outcome":    {good, "outcome=maybe", "outcome must be"},
		"no reference":       {good, "reference=", "reference must be"},
		"another change":     {good, "action=explode", "change is not one"},
		"of nothing":         {good, "subject=nothing", "change is not one"},
		"a long reference":   {good, "reference=" + strings.Repeat("x", 1001), "at most 1000"},
		"no status":          {answer, "status=", "status must be"},
		"a strange status":   {answer, "status=99", "status must be"},
		"a status in words":  {answer, "status=ok", "status must be"},
		"a body of no type":  {answer, "status=201&body=x&type=", "type must be"},
		"of another's state": {good, "seen=unknown.7.0000000000000000", "out of date"},
	} {
		t.Run(name, func(t *testing.T) {
			form := url.Values{}
			for k, v := range c.form {
				form[k] = v
			}
			change, err := url.ParseQuery(c.field)
			w.ok(err)
			for k, v := range change {
				form[k] = v
			}
			form.Set("csrf", b.csrf)
			res := b.do(b.request(http.MethodPost, "/change", form))
			if res.Code < 400 || res.Code >= 500 || !strings.Contains(res.Body.String(), c.says) {
				t.Errorf("%d, want %q\n%s", res.Code, c.says, res.Body)
			}
		})
	}
	if w.messageState(id.Message(1)) != storage.MessageUnknown {
		t.Error("something was changed")
	}
	w.logged()
}

// A plan is one browser's, and ends.
func TestPlansAreOneBrowsersAndEnd(t *testing.T) {
	w := newWorld(t)
	b, id, form := resolvable(w)
	plan := b.post(http.StatusSeeOther, "/change", form)
	other := *b
	other.enter()
	other.get(http.StatusNotFound, plan)
	other.post(http.StatusNotFound, plan, url.Values{})
	w.advance(16 * time.Minute)
	b.shows(b.post(http.StatusConflict, plan, url.Values{}), "too long ago")
	kept := b.post(http.StatusSeeOther, "/change", form)
	for range 200 {
		b.post(http.StatusSeeOther, "/change", form)
	}
	b.post(http.StatusNotFound, kept, url.Values{})
	if w.messageState(id.Message(1)) != storage.MessageUnknown {
		t.Error("something was changed")
	}
	w.logged()
}

// A change of which no reply comes may have been made: the page says so, and sends nobody to try it again. One that was not
// begun says that.
func TestAChangeThatFailsMayHaveBeenMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b, id, form := resolvable(w)
		plan := b.post(http.StatusSeeOther, "/change", form)
		w.store.On(faulty.Message, 1, faulty.Refuse(errors.New("the table is gone")))
		b.post(http.StatusSeeOther, plan, url.Values{})
		b.shows(b.get(http.StatusBadGateway, plan), "It failed before it was begun. Nothing was changed", "the table is gone")
		w.logged()

		plan = b.post(http.StatusSeeOther, "/change", form)
		silent := func(ctx context.Context, run func(context.Context) error) error {
			_ = run(ctx)
			<-ctx.Done()
			return ctx.Err()
		}
		w.store.On(faulty.Settle, 1, func(ctx context.Context, run func(context.Context) error) error { // from here on the store answers nothing
			w.store.All(silent)
			return silent(ctx, run)
		})
		b.post(http.StatusSeeOther, plan, url.Values{})
		w.store.Clear()
		b.shows(b.get(http.StatusGatewayTimeout, plan), "the change may have been made", "Look at the operation")
		if to := b.post(http.StatusSeeOther, plan, url.Values{}); to != plan+"?again=1" {
			t.Errorf("leads to %s", to)
		}
		w.logged(operator.EntryFailed)
		if got := w.messageState(id.Message(1)); got != storage.MessageDelivered {
			t.Errorf("the message is %s", got)
		}
	})
}

// A release that is refused is not offered for confirmation: the page says until when, and the audit log has nothing of it.
func TestAnEarlyReleaseIsRefusedWhenItIsPlanned(t *testing.T) {
	w := newWorld(t)
	id := w.operation(wrapped)
	b := w.served()
	b.shows(b.post(http.StatusConflict, "/change", b.offered(id, "release")), "a request of its handler may be under way until")
	w.logged()
}

// A browser that goes away in the middle of a change does not end it.
func TestAChangeDoesNotEndWithItsBrowser(t *testing.T) {
	w := newWorld(t)
	id := w.operation(abandoned)
	b := w.served()
	plan := b.post(http.StatusSeeOther, "/change", b.offered(id, "release"))
	ctx, leave := context.WithCancel(t.Context())
	w.store.On(faulty.Update, 1, func(ctx context.Context, run func(context.Context) error) error {
		leave()
		if err := ctx.Err(); err != nil {
			return err // as a store over the wire does
		}
		return run(ctx)
	})
	b.do(b.request(http.MethodPost, plan, url.Values{"csrf": {b.csrf}}).WithContext(ctx))
	b.shows(b.get(http.StatusOK, plan), "Done: failed_retryable")
	if ctx.Err() == nil {
		t.Error("the browser has not gone")
	}
	w.logged(operator.EntryDone)
}
