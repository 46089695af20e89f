package pgtest

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Proxy stands between a client and a server. It passes everything on, except what a test has it lose.
type Proxy struct {
	// Address is where clients connect.
	Address string

	upstream string
	listener net.Listener

	mu          sync.Mutex
	loss        *Loss
	connections map[net.Conn]bool
}

// Loss is what becomes of the next message of a client that it is about.
type Loss struct {
	// At says whether it is about this query; where it is nil, about the start of a connection.
	At func(query string) bool
	// Forward has the server get the message. The proxy then waits for the server's answer, and does not pass it on.
	Forward bool
	// Refuse answers with an error of this code; "" cuts the connection. Only for what is not forwarded.
	Refuse string
	// Before and After, where set, are called when the message has come, and when the server has answered one that was forwarded.
	Before, After func()
}

// AtCommit is about the end of a transaction that is to happen.
func AtCommit(query string) bool { return query == "commit" }

// AtBegin is about the begin of a transaction.
func AtBegin(query string) bool { return strings.HasPrefix(query, "begin") }

// NewProxy starts a proxy in front of the server. It ends with the test.
func NewProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Address: listener.Addr().String(), upstream: upstream, listener: listener, connections: map[net.Conn]bool{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed
			}
			serving.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		p.mu.Lock()
		for connection := range p.connections {
			connection.Close()
		}
		p.mu.Unlock()
		serving.Wait()
	})
	return p
}

// Lose has the next message that the loss is about meet it. Nil takes back a loss that nothing met, and says whether there was
// one.
func (p *Proxy) Lose(loss *Loss) (unmet bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	unmet = p.loss != nil
	p.loss = loss
	return unmet
}

// meets returns the loss that a message meets.
func (p *Proxy) meets(query string, start bool) *Loss {
	p.mu.Lock()
	defer p.mu.Unlock()
	loss := p.loss
	if loss == nil || (loss.At == nil) != start || !start && !loss.At(query) {
		return nil
	}
	p.loss = nil
	return loss
}

// keep has the connection closed when the proxy ends, or closes it.
func (p *Proxy) keep(connection net.Conn, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !open {
		connection.Close()
		delete(p.connections, connection)
		return
	}
	p.connections[connection] = true
}

// serve passes on what client and server say, until one of them is gone or a loss cuts the connection.
func (p *Proxy) serve(client net.Conn) {
	p.keep(client, true)
	defer p.keep(client, false)
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	p.keep(server, true)
	defer p.keep(server, false)
	relay := &relay{client: client, server: server}
	var answers sync.WaitGroup
	answers.Go(func() {
		defer client.Close() // the server is gone: so is the client
		relay.answers()
	})
	p.requests(relay)
	server.Close()
	answers.Wait()
}

// requests passes on what the client says.
func (p *Proxy) requests(r *relay) {
	for start := true; ; start = false {
		message, query, err := readMessage(r.client, start)
		if err != nil {
			return
		}
		loss := p.meets(query, start)
		if loss == nil {
			if _, err := r.server.Write(message); err != nil {
				return
			}
			continue
		}
		if loss.Before != nil {
			loss.Before()
		}
		if loss.Forward {
			answered := r.hide()
			if _, err := r.server.Write(message); err != nil {
				return
			}
			<-answered
		}
		if loss.After != nil {
			loss.After()
		}
		if loss.Refuse == "" || r.refuse(loss.Refuse, start) != nil {
			return
		}
	}
}

// relay is one client's connection, and its to the server.
type relay struct {
	client, server net.Conn

	mu     sync.Mutex
	hidden chan struct{} // closed when the server was ready again
}

// hide has the next answer of the server not be passed on, nor anything after it. The channel is closed when the answer is
// complete, or the server is gone.
func (r *relay) hide() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hidden = make(chan struct{})
	return r.hidden
}

func (r *relay) hiding() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hidden
}

// answers passes on what the server says, message by message.
func (r *relay) answers() {
	for {
		message, _, err := readMessage(r.server, false)
		hidden := r.hiding()
		if hidden != nil && (err != nil || message[0] == 'Z') { // ReadyForQuery
			close(hidden)
			return
		}
		if err != nil {
			return
		}
		if hidden != nil {
			continue
		}
		if _, err := r.client.Write(message); err != nil {
			return
		}
	}
}

// refuse answers the client in the server's place.
func (r *relay) refuse(code string, start bool) error {
	severity := "ERROR"
	if start {
		severity = "FATAL"
	}
	// A server whose lc_messages is another language says both.
	answer, err := (&pgproto3.ErrorResponse{Severity: "in another language: " + severity, SeverityUnlocalized: severity, Code: code, Message: "lost by a test"}).Encode(nil)
	if err != nil {
		return err
	}
	if !start {
		if answer, err = (&pgproto3.ReadyForQuery{TxStatus: 'I'}).Encode(answer); err != nil {
			return err
		}
	}
	if _, err = r.client.Write(answer); err == nil && start {
		err = io.EOF // a server ends a connection that it refuses
	}
	return err
}

// readMessage reads one message, and the query where it is one of the simple protocol. The first of a connection has no type.
func readMessage(from io.Reader, start bool) (message []byte, query string, err error) {
	head := make([]byte, 5)
	if start {
		head = head[:4]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, "", err
	}
	size := int(binary.BigEndian.Uint32(head[len(head)-4:])) - 4
	if size < 0 || size > 1<<30 {
		return nil, "", io.ErrUnexpectedEOF
	}
	message = append(head, make([]byte, size)...)
	if _, err := io.ReadFull(from, message[len(head):]); err != nil {
		return nil, "", err
	}
	if head[0] == 'Q' && !start {
		query = strings.TrimRight(string(message[5:]), "\x00")
	}
	return message, query, nil
}
