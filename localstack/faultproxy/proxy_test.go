package faultproxy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/localstack/faultproxy"
)

func TestNewChecksItsConfig(t *testing.T) {
	for _, c := range []faultproxy.Config{
		{}, {Target: "127.0.0.1:8000"}, {Target: "ftp://127.0.0.1"}, {Target: "http://127.0.0.1:8000/path"}, {Target: "http://%"},
		{Target: "http://127.0.0.1:8000", LogMax: -1},
	} {
		if _, err := faultproxy.New(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

// raw speaks HTTP/1.1 by hand, so that no client adds or hides anything.
func raw(t *testing.T, address, request string) string {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestRequestsAndAnswersPassUnchanged(t *testing.T) {
	b := start(t)
	b.upstream.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		w.Header().Set("X-Amzn-Requestid", "R1")
		w.Header()["X-Two"] = []string{"a", "b"}
		w.Header().Set("Date", "Sat, 21 Nov 2026 10:00:00 GMT")
		w.Header().Set("Content-Encoding", "gzip") // the body isn't: nobody may look
		w.WriteHeader(299)
		_, _ = w.Write([]byte("\x00\xff<html>"))
	})
	body := "{\"TableName\" : \"a\\u0062c\",\r\n \"n\":1.0}\xff"
	answer := raw(t, b.URL, "POST /%2Fa?x=1&y=%20 HTTP/1.1\r\nHost: dynamodb.us-east-1.amazonaws.com\r\n"+
		"X-Amz-Target: DynamoDB_20120810.PutItem\r\nAuthorization: AWS4-HMAC-SHA256 x\r\nX-Two: a\r\nX-Two: b\r\n"+
		"Connection: close, X-Hop\r\nX-Hop: 1\r\nExpect: 100-continue\r\nContent-Length: 38\r\n\r\n"+body)
	got := b.upstream.arrivals()[0]
	if got.method != "POST" || got.uri != "/%2Fa?x=1&y=%20" || got.host != "dynamodb.us-east-1.amazonaws.com" || string(got.body) != body {
		t.Errorf("arrived %s %s at %s with %q", got.method, got.uri, got.host, got.body)
	}
	want := http.Header{
		"X-Amz-Target": {"DynamoDB_20120810.PutItem"}, "Authorization": {"AWS4-HMAC-SHA256 x"}, "X-Two": {"a", "b"}, "Content-Length": {"38"},
	}
	for name := range want {
		if !slices.Equal(got.header[name], want[name]) {
			t.Errorf("%s is %q, want %q", name, got.header[name], want[name])
		}
	}
	if len(got.header) != len(want) {
		t.Errorf("headers %v, want exactly %v", got.header, want)
	}
	answer = strings.TrimPrefix(answer, "HTTP/1.1 100 Continue\r\n\r\n")
	res := "HTTP/1.1 299 status code 299\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\nDate: Sat, 21 Nov 2026 10:00:00 GMT\r\n" +
		"X-Amzn-Requestid: R1\r\nX-Two: a\r\nX-Two: b\r\nConnection: close\r\n\r\n\x00\xff<html>"
	if answer != res {
		t.Errorf("answer\n%q, want\n%q", answer, res)
	}
}

func TestWhatIsNotDynamoDBPassesToo(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Refuse})
	res, err := http.Get(b.URL + "/shell/?a=b")
	b.must(err)
	_ = res.Body.Close()
	if got := b.upstream.arrivals(); len(got) != 1 || got[0].uri != "/shell/?a=b" || got[0].method != "GET" {
		t.Errorf("arrived %+v", got)
	}
	b.lost("GetItem", put)
}

func TestRefuse(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Operation: "PutItem", Fault: faultproxy.Refuse, Times: 1})
	b.lost("PutItem", put)
	if e := b.last(); e.Fault != faultproxy.Refuse || e.Status != 0 || e.Operation != "PutItem" {
		t.Errorf("log %+v", e)
	}
	b.want(200, "PutItem", put)
	if n := len(b.upstream.arrivals()); n != 1 {
		t.Errorf("%d arrived", n)
	}
}

func TestRefuse503(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Refuse503, Times: 1})
	if r := b.want(503, "PutItem", put); !strings.Contains(r.body, "#ServiceUnavailableException") {
		t.Errorf("body %s", r.body)
	}
	if e := b.last(); e.Status != 503 || e.ErrorType != "ServiceUnavailableException" {
		t.Errorf("log %+v", e)
	}
	if n := len(b.upstream.arrivals()); n != 0 {
		t.Errorf("%d arrived", n)
	}
}

func TestDropReply(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.DropReply, Times: 1})
	b.lost("TransactWriteItems", `{"ClientRequestToken":"t1","TransactItems":[{"Put":{"TableName":"idempotency"}},{"Put":{"TableName":"outbox"}}]}`)
	if n := len(b.upstream.arrivals()); n != 1 {
		t.Errorf("%d arrived", n)
	}
	e := b.last()
	if e.Fault != faultproxy.DropReply || e.Status != 200 || e.Token != "t1" || !slices.Equal(e.Tables, []string{"idempotency", "outbox"}) {
		t.Errorf("log %+v", e)
	}
}

func TestLate(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Late, Times: 1}, faultproxy.Rule{Fault: faultproxy.Late, Times: 1, DelayMillis: 50})
	b.lost("PutItem", put)
	b.until(faultproxy.Waiting{Late: 1})
	if len(b.upstream.arrivals()) != 0 {
		t.Error("it is not late")
	}
	b.must(b.Release(t.Context()))
	<-b.upstream.arrived
	if e := b.last(); e.Status != 200 || e.Fault != faultproxy.Late {
		t.Errorf("log %+v", e)
	}
	began := time.Now()
	b.lost("PutItem", put)
	<-b.upstream.arrived // by itself, after its delay
	if waited := time.Since(began); waited < 50*time.Millisecond {
		t.Errorf("delivered after %v", waited)
	}
	b.until(faultproxy.Waiting{})
	if got := b.upstream.arrivals(); len(got) != 2 || string(got[1].body) != put {
		t.Errorf("arrived %+v", got)
	}
}

func TestDelay(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.DelayRequest, Times: 1, DelayMillis: 50})
	began := time.Now()
	b.want(200, "PutItem", put)
	if waited := time.Since(began); waited < 50*time.Millisecond {
		t.Errorf("answered after %v", waited)
	}
	if e := b.last(); e.Fault != faultproxy.DelayRequest || e.Status != 200 {
		t.Errorf("log %+v", e)
	}
}

func TestDelayReply(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.DelayReply, Times: 1, DelayMillis: 50})
	began := time.Now()
	b.want(200, "PutItem", put)
	answered := time.Now()
	if waited := answered.Sub(began); waited < 50*time.Millisecond {
		t.Errorf("answered after %v", waited)
	}
	if e := b.last(); e.Fault != faultproxy.DelayReply || e.Status != 200 || answered.Sub(*e.EndedAt) < 50*time.Millisecond {
		t.Errorf("log %+v, want DynamoDB's answer 50 ms before the client's", e)
	}
}

// The client's own patience ends first: the request has happened all the same.
func TestADelayedReplyIsThrownAwayWithTheRest(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.DelayReply, DelayMillis: time.Hour.Milliseconds()})
	ended := make(chan error, 1)
	go func() {
		_, err := b.send(t.Context(), "PutItem", put)
		ended <- err
	}()
	<-b.upstream.arrived
	b.until(faultproxy.Waiting{Delayed: 1})
	b.must(b.Reset(t.Context()))
	if err := <-ended; err == nil {
		t.Error("it was answered")
	}
}

func TestCutReply(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.CutReply, Times: 1})
	b.upstream.answers(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"Attributes":{}}`) })
	r, err := b.send(t.Context(), "PutItem", put)
	if !errors.Is(err, io.ErrUnexpectedEOF) || r.status != 200 || r.body != `{"Attrib` {
		t.Errorf("%d %q, %v, want half of a 200", r.status, r.body, err)
	}
	if e := b.last(); e.Fault != faultproxy.CutReply || e.Status != 200 {
		t.Errorf("log %+v", e)
	}
	b.want(200, "PutItem", put)
}

func TestFailuresBeforeAndAfterTheEffect(t *testing.T) {
	for _, row := range []struct {
		fault   faultproxy.Fault
		status  int
		code    string
		arrived int
	}{
		{faultproxy.Refuse500, 500, "#InternalServerError", 0},
		{faultproxy.Fail500, 500, "#InternalServerError", 1},
		{faultproxy.Fail503, 503, "#ServiceUnavailableException", 1},
	} {
		t.Run(string(row.fault), func(t *testing.T) {
			b := start(t)
			b.faults(faultproxy.Rule{Fault: row.fault, Times: 1})
			if r := b.want(row.status, "PutItem", put); !strings.Contains(r.body, row.code) {
				t.Errorf("body %s, want %s", r.body, row.code)
			}
			if n := len(b.upstream.arrivals()); n != row.arrived {
				t.Errorf("%d arrived, want %d", n, row.arrived)
			}
			if e := b.last(); row.arrived > 0 && e.Status != 200 { // what DynamoDB said
				t.Errorf("log %+v", e)
			}
		})
	}
}

func TestPauseHoldsUntilReleased(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Operation: "PutItem", Fault: faultproxy.Pause, Times: 2})
	answers := make(chan response, 2)
	for range 2 {
		go func() {
			r, _ := b.send(t.Context(), "PutItem", put)
			answers <- r
		}()
	}
	b.until(faultproxy.Waiting{Paused: 2})
	b.want(200, "GetItem", put)
	if got := b.upstream.arrivals(); len(got) != 1 {
		t.Errorf("%d arrived", len(got))
	}
	if e := b.log()[0]; e.EndedAt != nil || e.Status != 0 || e.Fault != faultproxy.Pause {
		t.Errorf("log %+v", e)
	}
	b.must(b.Release(t.Context()))
	for range 2 {
		if r := <-answers; r.status != 200 {
			t.Errorf("answer %+v", r)
		}
	}
	b.until(faultproxy.Waiting{})
	b.want(200, "PutItem", put)
}

// The request of a client that died is on the wire all the same.
func TestAPausedRequestOutlivesItsClient(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Pause, Times: 1})
	ctx, die := context.WithCancel(t.Context())
	died := make(chan error, 1)
	go func() {
		_, err := b.send(ctx, "PutItem", put)
		died <- err
	}()
	b.until(faultproxy.Waiting{Paused: 1})
	die()
	if err := <-died; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	b.must(b.Release(t.Context()))
	<-b.upstream.arrived
	if e := b.last(); e.Status != 200 {
		t.Errorf("log %+v", e)
	}
}

func TestDownAndUp(t *testing.T) {
	b := start(t)
	b.must(b.Down(t.Context()))
	for range 3 {
		b.lost("GetItem", put)
	}
	if e := b.last(); e.Fault != "down" {
		t.Errorf("log %+v", e)
	}
	b.must(b.Up(t.Context()))
	b.want(200, "GetItem", put)
	if got := b.upstream.arrivals(); len(got) != 1 {
		t.Errorf("%d arrived", len(got))
	}
	b.must(b.Down(t.Context()))
	b.must(b.Reset(t.Context()))
	b.want(200, "GetItem", put)
}

func TestResetThrowsAwayWhatWaits(t *testing.T) {
	b := start(t)
	b.faults(
		faultproxy.Rule{Operation: "PutItem", Fault: faultproxy.Late},
		faultproxy.Rule{Operation: "GetItem", Fault: faultproxy.Pause},
		faultproxy.Rule{Operation: "Query", Fault: faultproxy.DelayRequest, DelayMillis: time.Hour.Milliseconds()},
		faultproxy.Rule{Operation: "UpdateItem", Fault: faultproxy.Late, DelayMillis: time.Hour.Milliseconds()},
	)
	b.lost("PutItem", put)
	b.lost("UpdateItem", put)
	ended := make(chan error, 2)
	for _, operation := range []string{"GetItem", "Query"} {
		go func() {
			_, err := b.send(t.Context(), operation, put)
			ended <- err
		}()
	}
	b.until(faultproxy.Waiting{Paused: 1, Delayed: 1, Late: 2})
	b.must(b.Reset(t.Context()))
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("it was answered")
		}
	}
	if log := b.log(); len(log) != 0 {
		t.Errorf("log %+v", log)
	}
	if rules, err := b.Rules(t.Context()); err != nil || len(rules) != 0 {
		t.Errorf("rules %+v, %v", rules, err)
	}
	b.want(200, "GetItem", put)
	if got := b.upstream.arrivals(); len(got) != 1 {
		t.Errorf("arrived %+v", got)
	}
	if e := b.last(); e.Seq != 1 {
		t.Errorf("log %+v", e)
	}
}

func TestCloseThrowsAwayWhatWaitsAndComes(t *testing.T) {
	b := start(t)
	b.faults(faultproxy.Rule{Fault: faultproxy.Late})
	b.lost("PutItem", put)
	b.proxy.Close()
	b.lost("PutItem", put)
	for _, e := range b.log() {
		if e.Error == "" || e.EndedAt == nil {
			t.Errorf("log %+v", e)
		}
	}
	if got := b.upstream.arrivals(); len(got) != 0 {
		t.Errorf("arrived %+v", got)
	}
}

func TestAnUpstreamThatFailsIsAConnectionThatDrops(t *testing.T) {
	b := start(t)
	b.upstream.answers(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	b.lost("PutItem", put)
	if e := b.last(); e.Error == "" || e.Status != 0 {
		t.Errorf("log %+v", e)
	}
	if got := b.upstream.arrivals(); len(got) != 1 {
		t.Errorf("%d arrived: the proxy sends once", len(got))
	}
	b.upstream.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = w.Write([]byte("half"))
	})
	b.lost("PutItem", put)
	if e := b.last(); !strings.Contains(e.Error, "EOF") {
		t.Errorf("log %+v", e)
	}
}

func TestTooLarge(t *testing.T) {
	b := start(t)
	b.want(413, "PutItem", strings.Repeat(" ", 32<<20+1))
	b.want(200, "BatchWriteItem", strings.Repeat(" ", 1<<20))
	if got := b.upstream.arrivals(); len(got) != 1 || len(got[0].body) != 1<<20 {
		t.Errorf("%d arrived", len(got))
	}
}

func TestAHalfRequestIsNotForwarded(t *testing.T) {
	b := start(t)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.URL, "http://"))
	b.must(err)
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\nContent-Length: 100\r\n\r\nhalf")
	b.must(err)
	b.must(conn.(*net.TCPConn).CloseWrite())
	rest, err := io.ReadAll(conn)
	b.must(err)
	b.must(conn.Close())
	if len(bytes.TrimSpace(rest)) != 0 || len(b.upstream.arrivals()) != 0 || len(b.log()) != 0 {
		t.Errorf("answered %q, %d arrived", rest, len(b.upstream.arrivals()))
	}
}
