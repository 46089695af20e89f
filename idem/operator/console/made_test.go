package console_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// planned is the page of a plan, for the change that the operation's page offers.
func (b *browser) planned(id idem.OperationID, action string) string {
	b.w.Helper()
	return b.get(http.StatusOK, b.post(http.StatusSeeOther, "/change", b.offered(id, action)))
}

// The words are true of every message that may be closed or reconciled, not of the first of an operation alone.
func TestTheWordsOfAChangeCoverEachCase(t *testing.T) {
	w := newWorld(t)
	w.advance(time.Hour) // what is closed is proven absent
	first := w.operation(deferred, unknown)
	chain := w.operation(deferred, delivered, unknown)
	record := w.operation(wrapped)
	cached := w.operation(func(r *storage.Record) { completed(r); r.Kind, r.RecordOnly = idem.KindAtomic, true })
	b := w.served()
	for _, id := range []idem.OperationID{first, chain} {
		b.shows(b.planned(id, "close"), "If it is the first of its operation", "a worker then calls the provider, retries get the 202", "that step stands", "that answer stays, and nothing is booked")
		b.shows(b.planned(id, "reconcile"), "it is proven that nothing happened, the message is offered again, and a worker executes it")
	}
	b.shows(b.planned(record, "reconcile"), "the key is free: the next request with it executes")
	b.shows(b.planned(cached, "cache-bust"), "If anybody writes it before you confirm, nothing is changed")
}

// A browser sends the end of a line as CR LF. What was typed is stored with LF, and its length and hash are shown before.
func TestWhatWasTypedHasItsLinesAsTyped(t *testing.T) {
	w := newWorld(t)
	id := w.operation(wrapped)
	b := w.served()
	form := b.offered(id, "resolve")
	form.Set("status", "201")
	form.Set("type", "text/plain")
	form.Set("body", "one\r\ntwo\r\n")
	plan := b.post(http.StatusSeeOther, "/change", form)
	b.shows(b.get(http.StatusOK, plan), "a body of 8 bytes", fmt.Sprintf("%x", sha256.Sum256([]byte("one\ntwo\n"))))
	b.post(http.StatusSeeOther, plan, url.Values{})
	key, err := id.RecordKey()
	w.ok(err)
	if r, err := w.store.Get(t.Context(), key); err != nil || string(r.Response.Body) != "one\ntwo\n" {
		t.Errorf("%+v, %v", r, err)
	}
	b, _, form = resolvable(w)
	form.Set("evidence", "a\r\nb")
	b.shows(b.get(http.StatusOK, b.post(http.StatusSeeOther, "/change", form)), "3 bytes, SHA-256", fmt.Sprintf("%x", sha256.Sum256([]byte("a\nb"))))
}

// A desk that panics in a change has not done it, as far as anybody knows.
func TestAChangeThatPanicsIsNotDone(t *testing.T) {
	w := newWorld(t)
	b, _, form := resolvable(w)
	plan := b.post(http.StatusSeeOther, "/change", form)
	w.store.On(faulty.Message, 1, func(context.Context, func(context.Context) error) error { panic("boom") })
	func() {
		defer func() { _ = recover() }() // as net/http does
		b.post(http.StatusSeeOther, plan, url.Values{})
	}()
	page := b.get(http.StatusBadGateway, plan)
	if b.shows(page, "the change may have been made"); strings.Contains(page, "Done:") {
		t.Errorf("it says done:\n%s", page)
	}
}

// The page of a change that is being made says so at once, and holds up no other page.
func TestThePageOfAChangeUnderWayDoesNotWait(t *testing.T) {
	w := newWorld(t)
	b, _, form := resolvable(w)
	plan := b.post(http.StatusSeeOther, "/change", form)
	under, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	w.store.On(faulty.Message, 1, faulty.Before(func() { close(under); <-goOn }))
	go func() {
		defer close(ended)
		b.do(b.request(http.MethodPost, plan, url.Values{"csrf": {b.csrf}}))
	}()
	<-under
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shown := make(chan string, 1)
	go func() { shown <- b.do(b.request(http.MethodGet, plan, nil)).Body.String() }()
	select {
	case page := <-shown:
		b.shows(page, "This change is being made")
	case <-ctx.Done():
		t.Error("the page waits for the change")
	}
	close(goOn)
	<-ended
	b.shows(b.get(http.StatusOK, plan), "Done: delivered")
}

// memory is a listener whose connections are in memory, from this machine.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
}

type local struct{ net.Conn }

func (local) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50000} }

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return local{c}, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}
func (m *memory) Close() error   { close(m.closed); return nil }
func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

// A console that ends waits for a change for as long as that may take.
func TestTheEndWaitsForAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b, _, form := resolvable(w)
		plan := b.post(http.StatusSeeOther, "/change", form)
		w.store.On(faulty.Message, 1, faulty.Before(func() { time.Sleep(25 * time.Second) })) // a slow table, in the bubble's time
		ctx, stop := context.WithCancel(t.Context())
		l := &memory{make(chan net.Conn), make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- b.console.Serve(ctx, l) }()
		near, far := net.Pipe()
		l.conns <- far
		r := b.request(http.MethodPost, plan, url.Values{"csrf": {b.csrf}})
		go func() { _ = r.Write(near); buffer := make([]byte, 4096); _, _ = near.Read(buffer) }() // the end of the console ends it
		synctest.Wait()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("it did not wait: %v", err)
		}
		w.logged(operator.EntryDone)
		_ = near.Close() // a pipe
	})
}
