package sdkhttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

// answers is a server that answers GetItem at once, its headers first and the body later.
func answers(t *testing.T, later time.Duration) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		const body = `{"Item":{"id":{"S":"1"}}}`
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n", len(body))
		time.Sleep(later)
		io.WriteString(conn, body)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return "http://" + listener.Addr().String()
}

// stopped is a connection whose writer is stopped for a moment after each write, as the CPU's share ends.
type stopped struct {
	net.Conn
	moment time.Duration
	writes *atomic.Int64
}

func (s stopped) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	s.writes.Add(1)
	time.Sleep(s.moment)
	return n, err
}

// transport counts the writes of its connections, which stop for a moment after each.
func transport(t *testing.T, moment time.Duration) (client *http.Client, writes *atomic.Int64) {
	t.Helper()
	writes = &atomic.Int64{}
	tr := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return stopped{conn, moment, writes}, err
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}, writes
}

func get(t *testing.T, url string, client sdkhttp.Doer) error {
	t.Helper()
	table := dynamodb.New(dynamodb.Options{
		BaseEndpoint: &url, Region: "us-east-1", Retryer: aws.NopRetryer{}, HTTPClient: client, DisableValidateResponseChecksum: true,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	out, err := table.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("t"), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "1"}},
	})
	if err == nil && len(out.Item) != 1 {
		return fmt.Errorf("got %v", out.Item)
	}
	return err
}

// The SDK alone loses the reply of a server that is faster than its own goroutine: without that the package has no reason.
func TestAReplyBeforeTheWriteReturnsIsNotLost(t *testing.T) {
	url := answers(t, 200*time.Millisecond)
	client, writes := transport(t, 100*time.Millisecond)
	if err := get(t, url, client); err == nil || !strings.Contains(err.Error(), "use of closed network connection") {
		t.Errorf("the SDK alone: %v; want the reply lost", err)
	}
	if n := writes.Swap(0); n != 2 {
		t.Errorf("the SDK alone: %d writes, want 2", n)
	}
	if err := get(t, url, sdkhttp.InOnePiece(client)); err != nil {
		t.Error(err)
	}
	if n := writes.Load(); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
}

// LoadDefaultConfig may leave the client to the service's own default.
func TestWithoutAClientItIsTheSDKs(t *testing.T) {
	if err := get(t, answers(t, 0), sdkhttp.InOnePiece(nil)); err != nil {
		t.Error(err)
	}
}

func TestARequestWithoutABodyIsPassedOn(t *testing.T) {
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		var passed *http.Request
		r := &http.Request{Body: body}
		if _, err := sdkhttp.InOnePiece(doer(func(r *http.Request) (*http.Response, error) { passed = r; return nil, nil })).Do(r); err != nil || passed != r {
			t.Errorf("%v: passed %v, %v", body, passed, err)
		}
	}
}

func TestABodyThatCannotBeReadIsNotSent(t *testing.T) {
	broken := errors.New("broken")
	r := &http.Request{Body: io.NopCloser(io.MultiReader(strings.NewReader("half"), unreadable{broken}))}
	_, err := sdkhttp.InOnePiece(doer(func(*http.Request) (*http.Response, error) { t.Error("sent"); return nil, nil })).Do(r)
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

type unreadable struct{ err error }

func (u unreadable) Read([]byte) (int, error) { return 0, u.err }
