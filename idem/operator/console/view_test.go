package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/console"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// The overview counts what stands in each queue, and shows the first of it.
func TestOverview(t *testing.T) {
	w := newWorld(t)
	b := w.served()
	b.shows(b.get(http.StatusOK, "/"), "nothing", "None.")
	for range 7 {
		w.operation(deferred, unknown)
	}
	w.operation(wrapped)
	w.operation(deferred, dead)
	w.advance(90 * time.Second)
	_, err := w.store.SetRefuseBefore(t.Context(), noon)
	w.ok(err)
	page := b.get(http.StatusOK, "/")
	b.shows(page, `<span class="number">8</span> unknown`, `<span class="number">1</span> dead`, `<span class="number">0</span> stuck`, "1 min 30 s", "After a loss of data")
	if n := strings.Count(page, `class="state bad">unknown`); n != 5 {
		t.Errorf("%d rows of unknown:\n%s", n, page)
	}
}

// The outcome of an execution is open from the end of its lease: until then its handler may have run.
func TestAnOutcomeIsOpenFromTheEndOfItsLease(t *testing.T) {
	w := newWorld(t)
	w.operation(func(r *storage.Record) { wrapped(r); r.LeaseUntil = noon.Add(time.Hour) })
	b := w.served()
	for after, open := range map[time.Duration]string{59 * time.Minute: "none", time.Hour + 42*time.Second: "42 s"} {
		w.now.Store(noon.Add(after).UnixMilli())
		b.shows(b.get(http.StatusOK, "/queue/unknown"), `Outcome open for</span> `+open+"<")
	}
}

// docs/recovery.md "What keeps money from moving twice": after a loss that nobody has dated the console says so, and changes nothing.
func TestOverviewOfALossThatNobodyHasDated(t *testing.T) {
	w := newWorld(t)
	w.store.Each(func(call faulty.Call) faulty.Fault {
		if call == faulty.RefuseBefore {
			return faulty.Refuse(storage.ErrLossNotDated)
		}
		return func(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
	})
	b := w.served()
	b.shows(b.get(http.StatusOK, "/"), "Data was lost, and nobody has said up to when", "refuse-before set")
}

// What only the instances' configuration says counts, too.
func TestOverviewOfALossThatTheConfigurationSays(t *testing.T) {
	w := newWorld(t, func(c *idem.Config) { c.RefuseBefore = noon })
	b := w.served()
	const says = "not proven younger than 2026-11-21 12:00:00.000 UTC"
	b.shows(b.get(http.StatusOK, "/"), says+", by the instances' configuration.")
	_, err := w.store.SetRefuseBefore(t.Context(), noon)
	w.ok(err)
	b.shows(b.get(http.StatusOK, "/"), says+".")
}

// A queue is paged: every entry is on one page, none is on two.
func TestQueuesArePaged(t *testing.T) {
	w := newWorld(t)
	want := map[string]bool{}
	for range 60 {
		want[string(w.operation(deferred, unknown).Message(1))] = true
	}
	b := w.served()
	seen, path := map[string]bool{}, "/queue/unknown"
	for n := 0; ; n++ {
		page := b.get(http.StatusOK, path)
		b.shows(page, "<strong>60</strong>")
		for id := range want {
			if strings.Contains(page, ">"+id+"<") {
				if seen[id] {
					t.Errorf("%s is shown twice", id)
				}
				seen[id] = true
			}
		}
		if n == 2 {
			if strings.Contains(page, ">More<") {
				t.Error("there are more than three pages")
			}
			break
		}
		path = "/queue/unknown?" + b.link(page, "/queue/unknown?after=").Encode()
	}
	if len(seen) != len(want) {
		t.Errorf("%d of %d are shown", len(seen), len(want))
	}
	b.shows(b.get(http.StatusOK, "/queue/unknown?tenant=bolt"), "Nothing stands here", "<strong>0</strong>")
	b.shows(b.get(http.StatusOK, "/queue/dead"), "Nothing stands here", `<a href="/queue/dead" aria-current="page">`)
	b.get(http.StatusNotFound, "/queue/other")
	b.get(http.StatusBadRequest, "/queue/unknown?after=nonsense")
}

// A row that can't be read is shown beside the others, with the reason, and has no age.
func TestQueueShowsARowThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	ids := []string{string(w.operation(deferred, dead).Message(1)), string(w.operation(deferred, dead).Message(1))}
	w.advance(90 * time.Second)
	b := w.served()
	for _, path := range []string{"/queue/dead", "/"} {
		w.store.Clear()
		w.store.On(faulty.Message, 1, faulty.Refuse(&storage.MalformedError{Cause: errors.New("attribute st is missing")}))
		b.shows(b.get(http.StatusOK, path), ">"+ids[0]+"<", ">"+ids[1]+"<", "attribute st is missing", "not known", "1 min 30 s")
	}
}

// An operation's page has its picture, what is not recorded, its record, messages, the provider's objects, and what was done.
func TestOperationPage(t *testing.T) {
	w := newWorld(t)
	id := w.operation(deferred, delivered, unknown)
	w.known = told{
		Name: "payment pay_1", Fields: []console.Field{{Name: "Amount", Value: "1999 EUR"}},
		Objects: []console.Object{
			{Message: id.Message(1), Reference: "ch_1", Outcome: "delivered", At: noon.Add(1500 * time.Millisecond), Evidence: []byte(secret), Fields: []console.Field{{Name: "Status", Value: "succeeded"}}},
			{Message: id.Message(2), Reference: "ch_2", Outcome: "delivered", Evidence: []byte(secret)},
		},
		Unasked: map[idem.MessageID]string{id.Message(2): "no route"},
	}
	w.advance(time.Hour)
	b := w.served()
	page := b.get(http.StatusOK, "/operation/"+string(id))
	b.shows(page, "<svg", string(id), "Message 2 of 2 (payments.charges) has been unknown for 59 min 59 s", "59 min 59 s", "pay_1", "1999 EUR", "ch_1", "ch_2", "could not be asked, and may have something: no route",
		"Call sent whose outcome is not known", "Provider made ch_1", "The provider does not say when it made ch_2", "not recorded", "Message delivered", "12:00:01.500 UTC",
		"Message 1: who settled it", "resolve",
		"from 2026-11-21 12:02:12 UTC (57 min 48 s ago) on")
	// What the provider shows settles the message that is open, with its reference, and not the one that has ended.
	form := b.link(page, "/change?action=resolve&amp;object=")
	if form.Get("subject") != string(id.Message(2)) || strings.Count(page, "Resolve with this as evidence") != 1 {
		t.Errorf("%v", form)
	}
	b.shows(b.get(http.StatusOK, "/change?"+form.Encode()), "ch_2", "delivered", "the object as it was shown, 9 bytes")
	if by := b.get(http.StatusOK, "/operation/"+string(id.Message(2))); !strings.Contains(by, string(id)) {
		t.Error("not found by its message")
	}
	b.shows(b.get(http.StatusOK, "/operation/"+string(w.operation(wrapped))), "the handler may have done its work")
	w.known = nil
	b.shows(b.get(http.StatusOK, "/operation/"+string(w.operation(completed, delivered))), "It is completed", "The application tells the console nothing", "Final answer stored", "Record expires", "still to come")
	traced := w.operation(func(r *storage.Record) {
		r.Trace = trace.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "")
	}, func(m *storage.Message) {
		m.Attempts, m.LastOutcome, m.FirstClaimedAt, m.NextAttemptAt, m.SweepAt = 2, "retryable", noon.Add(time.Second), w.clock().Add(time.Minute), w.clock().Add(75*time.Second)
	})
	b.shows(b.get(http.StatusOK, "/operation/"+string(traced)), "1.0 s after the commit", "2 calls without a definite answer, of at most 10; the last outcome: retryable", "2 of at most 10",
		"Due for the sweep", "4bf92f3577b34da6a3ce929d0e0e4736", "outbox.retried", "filter trace_id = &#34;4bf92f3577b34da6a3ce929d0e0e4736&#34; or operation_id = &#34;"+string(traced))
	b.get(http.StatusBadRequest, "/operation/nonsense")
	b.get(http.StatusNotFound, "/operation/"+string(id[:len(id)-4])+"AAAA")
}

// Two objects may have one reference, such as a charge and its refund: a card settles the message whose key it was made under, by what it
// proves, and no other one. Without the object's bytes, or where it is doubted, a card settles nothing.
func TestACardSettlesItsOwnMessage(t *testing.T) {
	w := newWorld(t)
	detached := func(m *storage.Message) { dead(m); m.Detached = true }
	id := w.operation(completed, delivered, detached, detached)
	evidence := []byte(secret)
	objects := []struct {
		console.Object
		settles bool
	}{
		{console.Object{Message: id.Message(1), Reference: "42", Outcome: "declined", Evidence: evidence}, false},
		{console.Object{Message: id.Message(2), Reference: "42", Outcome: "delivered", Evidence: evidence}, true},
		{console.Object{Message: id.Message(3), Reference: "42", Evidence: evidence}, false},
		{console.Object{Message: id.Message(3), Reference: "42", Outcome: "declined", Evidence: evidence}, true},
		{console.Object{Message: id.Message(3), Outcome: "declined", Evidence: evidence}, true},
		{console.Object{Message: id.Message(3), Reference: "42", Outcome: "delivered"}, false},
		{console.Object{Message: id.Message(3), Outcome: "delivered", Evidence: evidence}, false},
		{console.Object{Message: id.Message(3), Reference: "42", Outcome: "delivered", Evidence: evidence, Doubt: "it is another's"}, false},
		{console.Object{Message: id.Message(3), Reference: "42", Outcome: "delivered", Evidence: make([]byte, outbox.EvidenceBytesMax+1)}, false},
		{console.Object{Message: id.Message(3), Reference: "42", Outcome: "succeeded", Evidence: evidence}, false},
	}
	known := told{}
	for _, o := range objects {
		known.Objects = append(known.Objects, o.Object)
	}
	w.known = known
	b := w.served()
	cards := strings.Split(b.get(http.StatusOK, "/operation/"+string(id)), `<div class="card">`)[1 : len(objects)+1]
	for i, o := range objects {
		if button := strings.Contains(cards[i], "Resolve with this as evidence"); button != o.settles {
			t.Errorf("card %d settles %t, want %t: %s", i, button, o.settles, cards[i])
		} else if button {
			form := b.link(cards[i], "/change?action=resolve")
			page := b.get(http.StatusOK, "/change?"+form.Encode())
			if form.Get("subject") != string(o.Message) || !strings.HasPrefix(form.Get("seen"), "dead.") || !strings.Contains(page, "<dd>"+o.Outcome+"</dd>") || strings.Contains(page, `mono">42</dd>`) != (o.Reference != "") {
				t.Errorf("card %d leads to %v: %s", i, form, page)
			}
		}
	}
	b.shows(cards[7], "It settles nothing: it is another&#39;s.", "Listed under the key of")
}

// A dead message has its page after native TTL has removed the record and the messages before it, and keeps its number there.
func TestOperationPageOfWhatIsLeft(t *testing.T) {
	w := newWorld(t)
	removed := func(m *storage.Message) { delivered(m); m.Detached, m.RemoveAt = true, noon.Add(48*time.Hour) }
	id := w.operation(func(r *storage.Record) { completed(r); r.Kind, r.FreeAt = idem.KindAtomic, r.ExpiresAt }, removed, func(m *storage.Message) { dead(m); m.Detached = true })
	w.advance(49 * time.Hour)
	if records, messages := w.memory.Expire(w.clock()); records != 1 || messages != 1 {
		t.Fatalf("%d records and %d messages expire", records, messages)
	}
	b := w.served()
	page := b.get(http.StatusOK, "/operation/"+string(id))
	b.shows(page, "Message 2 of 2 (payments.charges) is dead", "Message 2: ")
	if form := b.link(page, "/change?action=redrive"); form.Get("subject") != string(id.Message(2)) {
		t.Errorf("%v", form)
	}
}

// What stands in a queue, or in the audit log, leads to its own message: also behind a gap that a loss of data has made in its chain.
func TestARowLeadsToItsMessageBehindAGap(t *testing.T) {
	w := newWorld(t)
	lost := func(m *storage.Message) { delivered(m); m.RemoveAt = noon.Add(48 * time.Hour) }
	for _, before := range [][]func(*storage.Message){{lost}, {pending, lost}} {
		id := w.operation(deferred, append(before, dead)...)
		w.advance(49 * time.Hour)
		if records, messages := w.memory.Expire(w.clock()); records != 0 || messages != 1 {
			t.Fatalf("%d records and %d messages expire", records, messages)
		}
		message := string(id.Message(len(before) + 1))
		w.ok(w.log.Begin(t.Context(), operator.Entry{ID: message, At: w.clock().Add(-time.Minute), Actor: "bob", Action: "redrive", Subject: message, Reason: "why", State: operator.EntryIntended}))
		b := w.served()
		for _, page := range []string{"/queue/dead", "/audit", "/"} {
			b.shows(b.get(http.StatusOK, page), `href="/operation/`+message+`"`)
		}
		form := b.link(b.get(http.StatusOK, "/operation/"+message), "/change?action=redrive")
		if form.Get("subject") != message {
			t.Errorf("its page offers %v", form)
		}
		form.Set("reason", "ticket 17")
		link := `href="/operation/` + message + `"`
		b.shows(b.get(http.StatusOK, "/change?"+form.Encode()), link)
		b.shows(b.get(http.StatusOK, b.post(http.StatusSeeOther, "/change", form)), link)
		form.Set("seen", "dead.7.0000000000000000")
		b.shows(b.post(http.StatusConflict, "/change", form), link)
	}
}

// After a loss of data a record that is not there has not expired for certain: the page says so, and offers no close.
func TestOperationPageOfARecordThatMayBeLost(t *testing.T) {
	w := newWorld(t)
	id := w.operation(func(r *storage.Record) { completed(r); r.FreeAt = r.ExpiresAt }, dead)
	ended := w.operation(func(r *storage.Record) { completed(r); r.FreeAt = r.ExpiresAt }, delivered)
	w.advance(25 * time.Hour)
	if records, messages := w.memory.Expire(w.clock()); records != 2 || messages != 0 {
		t.Fatalf("%d records and %d messages expire", records, messages)
	}
	b := w.served()
	b.shows(b.get(http.StatusOK, "/operation/"+string(id)), "It was removed after it expired.", "/change?action=close", "The record was removed when it had expired")
	b.shows(b.get(http.StatusOK, "/operation/"+string(ended)), "It has ended, and its record was removed")
	_, err := w.store.SetRefuseBefore(t.Context(), noon.Add(time.Minute))
	w.ok(err)
	page := b.get(http.StatusOK, "/operation/"+string(id))
	b.shows(page, "It is not there: it has expired, or was lost.", "Do not close it", "The record has expired, or was lost")
	if strings.Contains(page, "/change?action=close") {
		t.Errorf("it offers a close:\n%s", page)
	}
	b.shows(b.get(http.StatusOK, "/operation/"+string(ended)), "Its record is not there: it has expired, or was lost.")
}

// A provider that could not be asked may have the charge: the page does not say that it shows nothing. Of the messages that it was
// asked about it does.
func TestOperationPageOfAProviderThatCouldNotBeAsked(t *testing.T) {
	const nothing = "the provider shows nothing"
	w := newWorld(t)
	id := w.operation(deferred, delivered, unknown)
	b := w.served()
	for n, want := range []string{
		"The provider shows nothing under the keys of this operation&#39;s messages.", "The provider shows nothing under the keys of the other messages.", "",
	} {
		unasked := map[idem.MessageID]string{}
		for message := range n {
			unasked[id.Message(message+1)] = "down"
		}
		w.known = told{Name: "payment pay_1", Unasked: unasked}
		page := b.get(http.StatusOK, "/operation/"+string(id))
		page = strings.ReplaceAll(page, "'", "&#39;")
		if want != "" && !strings.Contains(page, want) || want == "" && strings.Contains(strings.ToLower(page), nothing) || strings.Count(page, "could not be asked") != n {
			t.Errorf("%d of 2 could not be asked about: want %q", n, want)
		}
	}
}

// What the application can't read is said to be, with what it can: the rest of the page is as it was.
func TestOperationPageOfAnApplicationThatCannotReadItsRow(t *testing.T) {
	w := newWorld(t)
	id := w.operation(deferred, unknown)
	path := "/operation/" + string(id)
	w.unread = errors.New("payments: malformed attribute amt")
	b := w.served()
	const says = "Not all that the application knows could be read: payments: malformed attribute amt"
	page := b.get(http.StatusOK, path)
	b.shows(page, says, "What the provider has is not known here", "has been unknown for", "/change?action=resolve")
	if strings.Contains(page, "tells the console nothing") || strings.Contains(page, "shows nothing") {
		t.Errorf("the page says that there is nothing:\n%s", page)
	}
	w.known = told{Objects: []console.Object{{Message: id.Message(1), Reference: "ch_1"}}}
	page = b.get(http.StatusOK, path)
	b.shows(page, says, "ch_1")
	if strings.Contains(page, "is not known here") {
		t.Errorf("what is known is not:\n%s", page)
	}
	w.known = told{} // what Go returns beside an error
	page = b.get(http.StatusOK, path)
	b.shows(page, says, "It may have something")
	if strings.Contains(page, "shows nothing") {
		t.Errorf("the page says that there is nothing:\n%s", page)
	}
}

// An operation is found by its id, a message's, the begin of an id that stands in a queue or the log, the application's own id,
// and the client's key; the key is nowhere afterwards.
func TestFind(t *testing.T) {
	w := newWorld(t)
	id := w.operation(deferred, unknown)
	key := idem.Scope{Tenant: tenant, Operation: "payments.create", Key: secret}
	byKey := w.operation(func(r *storage.Record) { completed(r); r.Key = key.RecordKey() }, delivered)
	w.cfg.Find = func(_ context.Context, of, name string) (idem.OperationID, error) {
		switch {
		case name == "pay_down":
			return "", errors.New("down")
		case name == "pay_al":
			return "", &operator.AmbiguousError{What: "payments", Begins: name, IDs: []string{"pay_al1", "pay_al2"}}
		case of == tenant && name == "pay_1":
			return byKey, nil
		}
		return "", nil
	}
	b := w.served()
	page := func(id idem.OperationID) string { return "/operation/" + string(id) }
	for query, want := range map[string]string{
		string(id): page(id), string(id.Message(1)): page(id) + ".1", "  " + string(id) + " ": page(id), string(id)[:20]: page(id),
		string(byKey): page(byKey),
	} {
		res := b.do(b.request(http.MethodGet, "/find?"+url.Values{"id": {query}}.Encode(), nil))
		if res.Code != http.StatusSeeOther || res.Header().Get("Location") != want {
			t.Errorf("%q: %d %s, want %s", query, res.Code, res.Header().Get("Location"), want)
		}
	}
	if res := b.do(b.request(http.MethodGet, "/find?id=pay_1&tenant=acme", nil)); res.Header().Get("Location") != page(byKey)+"?tenant=acme" {
		t.Errorf("%d %s", res.Code, res.Body)
	}
	b.shows(b.get(http.StatusNotFound, "/find?id=pay_1&tenant=bolt"), "Nothing is known under pay_1 of bolt")
	b.get(http.StatusNotFound, "/find?id="+string(byKey)[:20]) // it stands in no queue, and nobody has changed it
	b.get(http.StatusNotFound, "/find?id=op_")
	b.get(http.StatusBadGateway, "/find?id=pay_down&tenant=acme")
	b.shows(b.get(http.StatusConflict, "/find?id=pay_al&tenant=acme"), "Several payments begin with pay_al", "pay_al1", "pay_al2")
	b.shows(b.get(http.StatusOK, "/find"), "By the client")

	form := url.Values{"tenant": {tenant}, "operation": {"payments.create"}, "key": {secret}}
	if to := b.post(http.StatusSeeOther, "/key", form); to != page(byKey) {
		t.Errorf("leads to %s", to)
	}
	form.Set("key", secret+"?")
	b.post(http.StatusNotFound, "/key", form)
	form.Del("tenant")
	b.post(http.StatusBadRequest, "/key", form)
	b.get(http.StatusNotFound, "/key?key=order-17") // a key in an address would be in the browser's history
}

// What the application has made is found by its own id after record and messages have expired.
func TestAnApplicationsOwnIDLeadsToWhatItStillHas(t *testing.T) {
	w := newWorld(t)
	id := w.operation(func(r *storage.Record) { completed(r); r.FreeAt = r.ExpiresAt }, func(m *storage.Message) { delivered(m); m.RemoveAt = noon.Add(48 * time.Hour) })
	w.advance(49 * time.Hour)
	if records, messages := w.memory.Expire(w.clock()); records != 1 || messages != 1 {
		t.Fatalf("%d records and %d messages expire", records, messages)
	}
	w.known = told{Name: "payment pay_1"}
	w.cfg.Find = func(context.Context, string, string) (idem.OperationID, error) { return id, nil }
	b := w.served()
	b.get(http.StatusNotFound, "/operation/"+string(id))
	found := b.do(b.request(http.MethodGet, "/find?id=pay_1&tenant=acme", nil))
	b.shows(b.get(http.StatusOK, found.Header().Get("Location")), "payment pay_1", "It has ended, and its record was removed")
}

func TestAuditLog(t *testing.T) {
	w := newWorld(t)
	b := w.served()
	b.shows(b.get(http.StatusOK, "/audit"), "Nothing was changed")
	for i := range 120 {
		w.ok(w.log.Begin(t.Context(), operator.Entry{ID: fmt.Sprint("au_", i), At: noon, Actor: "bob", Action: "close", Subject: fmt.Sprint("subject-", i), Reason: "why", State: operator.EntryIntended}))
	}
	page := b.get(http.StatusOK, "/audit")
	b.shows(page, "bob", "intended", "The newest 100 are shown")
	if n := strings.Count(page, "subject-"); n != 100 {
		t.Errorf("%d entries", n)
	}
	if page = b.get(http.StatusOK, "/audit?subject=subject-7&since=24h0m0s"); strings.Count(page, "close subject-7") != 11 {
		t.Error(page)
	}
	b.get(http.StatusBadRequest, "/audit?since=long")
	b.get(http.StatusBadRequest, "/audit?since=99999h")
}

// A comparison is made on request, once at a time, and its last result stays.
func TestDrift(t *testing.T) {
	w := newWorld(t)
	asked, answer := make(chan string), make(chan error)
	w.cfg.Drift = func(ctx context.Context, tenant string) (console.Drift, error) {
		asked <- tenant
		d := console.Drift{Fields: []console.Field{{Name: "Compared", Value: "3 rows"}}}
		for i := range 250 {
			d.Findings = append(d.Findings, console.Finding{Kind: "missing_here", Tenant: "acme", Entry: fmt.Sprint("pay_", i), Sides: []string{"payment absent", "provider charge ch_1"}})
		}
		return d, <-answer
	}
	b := w.served()
	b.shows(b.get(http.StatusOK, "/drift"), "None was asked for yet")
	b.post(http.StatusSeeOther, "/drift", url.Values{"tenant": {"acme"}})
	if got := <-asked; got != "acme" {
		t.Errorf("asked about %q", got)
	}
	b.post(http.StatusSeeOther, "/drift", url.Values{}) // under way: nothing is begun
	b.shows(b.get(http.StatusOK, "/drift"), "Comparing since")
	answer <- nil
	page := b.until("/drift", "Of acme, begun")
	b.shows(page, "There is drift", "missing_here", "3 rows", "50 more are not shown", "/find?id=pay_1&amp;tenant=acme")
	b.post(http.StatusSeeOther, "/drift", url.Values{})
	<-asked
	answer <- errors.New("the provider is down")
	b.shows(b.until("/drift", "The comparison failed"), "the provider is down")

	w.cfg.Drift = nil
	b = w.served()
	b.get(http.StatusNotFound, "/drift")
}

// until reads a page until it has the text: what it waits for goes on without a request.
func (b *browser) until(path, text string) string {
	b.w.Helper()
	for begun := time.Now(); time.Since(begun) < time.Minute; {
		if page := b.get(http.StatusOK, path); strings.Contains(page, text) {
			return page
		}
	}
	b.w.Fatalf("%s never shows %q", path, text)
	return ""
}

// Whatever text stands in a field, it is text on the page.
func TestHostileValuesAreText(t *testing.T) {
	const evil = `"'><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}`
	w := newWorld(t)
	w.cfg.About, w.cfg.Actor = evil, "ada"+evil
	id := w.operation(func(r *storage.Record) {
		wrapped(r)
		r.State, r.Kind, r.Tenant, r.Operation, r.LastError = storage.StatePending, idem.KindDeferred, evil, evil, evil
	}, func(m *storage.Message) {
		unknown(m)
		m.Tenant, m.Topic, m.Reference, m.LastOutcome = evil, evil, evil, evil
	})
	record := w.operation(func(r *storage.Record) { abandoned(r); r.Tenant, r.Operation, r.LastError = evil, evil, evil })
	w.known = told{
		Name: evil, Fields: []console.Field{{Name: evil, Value: evil}}, Unasked: map[idem.MessageID]string{idem.MessageID(evil): evil},
		Objects: []console.Object{{Message: id.Message(1), Reference: evil, Outcome: evil, Fields: []console.Field{{Name: evil, Value: evil}}}},
	}
	w.cfg.Find = func(context.Context, string, string) (idem.OperationID, error) { return "", errors.New(evil) }
	w.cfg.Drift = func(context.Context, string) (console.Drift, error) {
		return console.Drift{Fields: []console.Field{{Name: evil, Value: evil}}, Findings: []console.Finding{{Kind: evil, Tenant: evil, Entry: evil, Sides: []string{evil}}}}, errors.New(evil)
	}
	w.ok(w.log.Begin(t.Context(), operator.Entry{ID: evil, At: noon, Actor: evil, Action: evil, Subject: string(id) + evil, Tenant: evil, Reason: evil, Seen: evil, State: operator.EntryState(evil), Outcome: evil}))
	b := w.served()
	b.post(http.StatusSeeOther, "/drift", url.Values{"tenant": {evil}})
	form := b.offered(record, "release")
	form.Set("reason", evil)
	plan := b.post(http.StatusSeeOther, "/change", form)
	q := url.QueryEscape(evil)
	pages := map[string]string{
		"/": "", "/queue/unknown": "", "/operation/" + string(id): "", "/operation/" + string(record): "", "/audit": "", "/audit?subject=" + q: "",
		"/queue/unknown?tenant=" + q: "", "/find?id=" + q: "", "/find?id=" + q + "&tenant=" + q: "", plan: "", "/queue/" + url.PathEscape(evil): "",
		"/operation/" + url.PathEscape(evil): "", "/change?" + form.Encode() + "&reference=" + q + "&outcome=" + q: "", "/audit?since=" + q: "",
	}
	for path := range pages {
		pages[path] = b.do(b.request(http.MethodGet, path, nil)).Body.String()
	}
	pages["/drift"] = b.until("/drift", "The comparison failed")
	form.Set("seen", evil)
	pages["stale"] = b.post(http.StatusConflict, "/change", form)
	b.post(http.StatusSeeOther, plan, url.Values{})
	pages["made"] = b.do(b.request(http.MethodGet, plan, nil)).Body.String()
	for path, page := range pages {
		if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img src=x") || strings.Contains(page, `"'>`) {
			t.Errorf("%s has the text as markup:\n%s", path, page)
		}
	}
	for _, path := range []string{"/", "/operation/" + string(id), "/operation/" + string(record), "/drift", "/audit", "stale", plan} {
		if !strings.Contains(pages[path], "&lt;script&gt;alert(1)") {
			t.Errorf("%s does not show the text:\n%s", path, pages[path])
		}
	}
}

// A store that is down, or does not answer in time, is said to be; nothing is shown as if it were empty.
func TestWhatCannotBeReadIsNotShownAsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.operation(deferred, unknown)
		b := w.served()
		w.store.All(faulty.Refuse(errors.New("the table is gone")))
		for _, path := range []string{"/", "/queue/unknown", "/operation/" + string(id), "/find?id=" + string(id)[:20]} {
			b.shows(b.get(http.StatusBadGateway, path), "the table is gone", "It could not be read")
		}
		w.store.Clear()
		w.store.All(func(ctx context.Context, _ func(context.Context) error) error {
			<-ctx.Done()
			return ctx.Err()
		})
		b.shows(b.get(http.StatusGatewayTimeout, "/operation/"+string(id)), "It took too long")
		// As many as may ask at once are waiting: the next one is told so, and does not join them.
		held, release := make(chan struct{}, 8), make(chan struct{})
		w.store.Clear()
		w.store.All(func(context.Context, func(context.Context) error) error {
			held <- struct{}{}
			<-release
			return errors.New("late")
		})
		done := make(chan struct{})
		for range 8 {
			go func() {
				b.do(b.request(http.MethodGet, "/operation/"+string(id), nil))
				done <- struct{}{}
			}()
		}
		for range 8 {
			<-held
		}
		b.shows(b.get(http.StatusServiceUnavailable, "/operation/"+string(id)), "Too many pages")
		close(release)
		for range 8 {
			<-done
		}
	})
}
