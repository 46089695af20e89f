package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/console"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// What settles is the object that the page showed, with its bytes, which no page has: not what the provider shows by the time of the
// confirmation, and not what a form says.
func TestACardSettlesByTheBytesThatWereShown(t *testing.T) {
	w := newWorld(t)
	id := w.operation(deferred, unknown)
	object := console.Object{Message: id.Message(1), Reference: "ch_9", Outcome: "delivered", Evidence: []byte(`{"id":"ch_9","source":"` + secret + `"}`)}
	w.known = told{Objects: []console.Object{object}}
	b := w.served()
	form := b.link(b.get(http.StatusOK, "/operation/"+string(id)), "/change?action=resolve&amp;object=")
	later := object
	later.Reference, later.Evidence = "ch_10", []byte(`{"id":"ch_10"}`)
	w.known = told{Objects: []console.Object{later}}
	b.get(http.StatusOK, "/operation/"+string(id))
	for field, value := range map[string]string{"outcome": "declined", "reference": "ch_11", "evidence": "mine", "reason": "ticket 17"} {
		form.Set(field, value)
	}
	plan := b.post(http.StatusSeeOther, "/change", form)
	b.shows(b.get(http.StatusOK, plan), "settled as delivered, with the provider&#39;s reference ch_9", fmt.Sprintf("what the provider showed when you looked: %d bytes", len(object.Evidence)),
		"is not asked again: what it showed when you looked is the evidence")
	b.post(http.StatusSeeOther, plan, url.Values{})
	b.shows(b.get(http.StatusOK, plan), "Done: delivered")
	if by, is := w.by.Load().(outbox.Delivered); !is || by.Reference != "ch_9" || string(by.Evidence) != string(object.Evidence) {
		t.Errorf("settled by %+v", w.by.Load())
	}
	w.logged(operator.EntryDone)
}

// An object that can't be settled is not promised to be: the page says so before anybody confirms it, and the message keeps it.
func TestTheConfirmationSaysThatNothingWouldBeSettled(t *testing.T) {
	w := newWorld(t)
	id := w.operation(deferred, unknown)
	w.known = told{Objects: []console.Object{{Message: id.Message(1), Reference: "ch_9", Outcome: "delivered", Evidence: []byte(contradiction)}}}
	b := w.served()
	form := b.link(b.get(http.StatusOK, "/operation/"+string(id)), "/change?action=resolve&amp;object=")
	form.Set("reason", "ticket 17")
	plan := b.post(http.StatusSeeOther, "/change", form)
	page := b.get(http.StatusOK, plan)
	if b.shows(page, "Nothing is settled: it was tried, without writing"); strings.Contains(page, "is settled as delivered") {
		t.Errorf("it promises a settlement:\n%s", page)
	}
	b.post(http.StatusSeeOther, plan, url.Values{})
	b.shows(b.get(http.StatusBadGateway, plan), "could not be settled")
	if got := w.messageState(id.Message(1)); got != storage.MessageDead {
		t.Errorf("the message is %s", got)
	}
	w.logged(operator.EntryFailed)
}

// An object settles only the message that it was shown for, for as long as the console keeps it: the latest 200 are.
func TestAnObjectIsOfItsMessageAndIsKeptForAWhile(t *testing.T) {
	w := newWorld(t)
	id, other := w.operation(deferred, unknown), w.operation(deferred, unknown)
	object := func(n int) console.Object {
		return console.Object{Message: id.Message(1), Reference: fmt.Sprint("ch_", n), Outcome: "delivered", Evidence: []byte(secret)}
	}
	show := func(b *browser, objects ...console.Object) string {
		w.known = told{Objects: objects}
		return b.get(http.StatusOK, "/operation/"+string(id))
	}
	b := w.served()
	form := b.link(show(b, object(0)), "/change?action=resolve&amp;object=")
	form.Set("reason", "ticket 17")
	changed := func(field, value string) url.Values {
		one := url.Values{}
		for name, of := range form {
			one[name] = of
		}
		one.Set(field, value)
		return one
	}
	for _, one := range []url.Values{changed("subject", string(other.Message(1))), changed("action", "close")} {
		b.shows(b.post(http.StatusBadRequest, "/change", one), "object must be of the message")
	}
	b.shows(b.post(http.StatusConflict, "/change", changed("object", strings.Repeat("0", 64))), "not known here any more", "Nothing was changed")
	b.get(http.StatusConflict, "/change?"+changed("object", "1").Encode())
	for n := range 199 {
		show(b, object(n+1))
	}
	show(b, object(0)) // shown again, it is the latest
	show(b, object(200), object(201))
	b.get(http.StatusOK, "/change?"+form.Encode())
	for n := range 199 {
		show(b, object(n+300))
	}
	b.shows(b.get(http.StatusConflict, "/change?"+form.Encode()), "look at the operation again")
	b.shows(b.post(http.StatusConflict, "/change", form), "look at the operation again")
	if got := w.messageState(id.Message(1)); got != storage.MessageUnknown {
		t.Errorf("the message is %s", got)
	}
	w.logged()
}
