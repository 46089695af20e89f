// Package lastlook looks once more, right before an HTTP request leaves, whether it still may. A process that was frozen while
// it waited for a connection would otherwise send what it decided on long before: its timers and contexts stood still, too.
package lastlook

import (
	"context"
	"io"
	"net"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// Looks are those at one request. They hear from its transport by net/http/httptrace. Over HTTP/2 the head of a request may leave
// after the last look at it. Of the body there is a look at each piece that is read. A piece is 32 KiB over HTTP/1.1, which writes it at
// once; over HTTP/2 it is a frame, of the size that the server allows, and may wait for its turn.
type Looks struct {
	// Asked says that the transport looked for a connection, so that it calls the hooks; Connected that it got one; Left that a part of
	// the request may have left, in this attempt of the transport's or in one before. It may from when there is a connection, unless that
	// came too late or was closed before anything was written to it.
	Asked, Connected, Left atomic.Bool
	// late returns why the request must not leave any more, nil while it may.
	late func() error
	stop context.CancelCauseFunc
	// stopped is what late returned first. It stays: the end of the request is under way.
	stopped atomic.Pointer[error]
	// asked has the addresses that the transport looked for a connection to.
	asked sync.Map
	// alone is the attempt whose connection carries no other request meanwhile; nil where there is none.
	alone atomic.Pointer[attempt]
}

// attempt is one to send the request, and whether a part of it may have left before.
type attempt struct {
	conn net.Conn
	left bool
}

// New returns the looks at a request and the context to send it with. What late returns is that context's cause once it was too
// late. The caller ends the context by stop when it needs the response no longer.
func New(ctx context.Context, late func() error) (l *Looks, looked context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	l = &Looks{late: late, stop: cancel}
	return l, httptrace.WithClientTrace(ctx, l.trace()), func() { cancel(nil) }
}

// AskedFor says that the transport looked for a connection to the URL's own host. It may look for one to a proxy instead; or for a request of
// its own, which has the hooks too where it was made with this one's context. A host in other letters than ASCII is not recognised.
func (l *Looks) AskedFor(to *url.URL) bool {
	port := to.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[to.Scheme]
	}
	_, asked := l.asked.Load(net.JoinHostPort(to.Hostname(), port))
	return asked
}

// over returns why it is too late, and ends the request then.
func (l *Looks) over() error {
	err := l.look()
	if err != nil {
		l.stop(err)
	}
	return err
}

// look returns why it is too late.
func (l *Looks) look() error {
	if stopped := l.stopped.Load(); stopped != nil {
		return *stopped
	}
	err := l.late()
	if err != nil {
		l.stopped.Store(&err)
	}
	return err
}

func (l *Looks) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(address string) {
			l.Asked.Store(true)
			l.asked.Store(address, true)
		},
		GotConn: func(got httptrace.GotConnInfo) {
			l.Connected.Store(true)
			l.alone.Store(&attempt{got.Conn, l.Left.Load()})
			if l.over() == nil { // otherwise the context has ended, and HTTP/2 looks at that right before it sends the head
				l.Left.Store(true) // HTTP/2 looks once, and tells nobody until it writes the head: that may leave after its caller has given up
			}
		},
		WroteHeaderField: func(name string, _ []string) {
			if strings.HasPrefix(name, ":") { // HTTP/2: other requests use the connection at the same time
				l.alone.Store(nil)
			}
		},
		// Over HTTP/1.1 the head is in a buffer then, and net/http sends it before anybody reads the body. A closed connection stops it.
		WroteHeaders: func() {
			alone := l.alone.Load()
			if alone == nil || l.look() == nil {
				return
			}
			l.Left.Store(alone.left) // before the context ends: then its caller reads it
			_ = l.over()
			_ = alone.conn.Close() // what it says changes nothing
		},
	}
}

// Body returns the request's body, or one that is opened to send it again: once a request is too late nothing more of it is handed on.
// The head, and what was handed on before, may have left.
func (l *Looks) Body(body io.ReadCloser) *Body { return &Body{ReadCloser: body, looks: l} }

// Body is a body of which it is known whether anybody began to read it.
type Body struct {
	io.ReadCloser
	looks *Looks
	read  atomic.Bool
}

// Begun says that somebody began to read it.
func (b *Body) Begun() bool { return b.read.Load() }

// Read implements io.Reader. It looks each time, because a process may be frozen between two pieces of a long body, and after it has read,
// because what makes the body may take its time. It looks at the body's end too: that may be all that the request lacks.
func (b *Body) Read(p []byte) (int, error) {
	b.read.Store(true) // also where it is too late: a transport without hooks may have sent the head
	n, err := b.ReadCloser.Read(p)
	if late := b.looks.over(); late != nil {
		return 0, late
	}
	b.looks.Left.Store(true)
	return n, err
}
