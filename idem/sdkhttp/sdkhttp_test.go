package sdkhttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

// answers is a server that answers GetItem: its headers at once, its body once that may be seen.
func answers(t *testing.T, seen <-chan struct{}) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const body = `{"Item":{"id":{"S":"1"}}}`
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.(http.Flusher).Flush()
		select {
		case <-seen:
			io.WriteString(w, body)
		case <-r.Context().Done(): // the client has closed the connection
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// slow is a client whose goroutine is stopped in its last write of a request, until the SDK reads the reply. It counts the
// writes.
type slow struct {
	client  *http.Client
	writes  atomic.Int64
	reading chan struct{}
}

func newSlow(t *testing.T) *slow {
	t.Helper()
	s := &slow{reading: make(chan struct{})}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return slowConn{conn, t.Context(), s}, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	s.client = &http.Client{Transport: transport}
	return s
}

// Do implements [sdkhttp.Doer].
func (s *slow) Do(r *http.Request) (*http.Response, error) {
	res, err := s.client.Do(r)
	if err == nil {
		res.Body = &reply{ReadCloser: res.Body, reading: s.reading}
	}
	return res, err
}

// reply tells of its first read: by then the SDK has closed the request's body.
type reply struct {
	io.ReadCloser
	once    sync.Once
	reading chan struct{}
}

func (r *reply) Read(p []byte) (int, error) {
	r.once.Do(func() { close(r.reading) })
	return r.ReadCloser.Read(p)
}

type slowConn struct {
	net.Conn
	ctx context.Context
	*slow
}

func (c slowConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.writes.Add(1)
	if bytes.HasSuffix(p, []byte("}")) { // the body's end
		select {
		case <-c.reading:
		case <-c.ctx.Done():
		}
	}
	return n, err
}

func get(t *testing.T, url string, client sdkhttp.Doer) error {
	t.Helper()
	table := dynamodb.New(dynamodb.Options{
		BaseEndpoint: &url, Region: "us-east-1", Retryer: aws.NopRetryer{}, HTTPClient: client, DisableValidateResponseChecksum: true,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a reply that is not lost, and held back, ends here
	defer cancel()
	out, err := table.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String("t"), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "1"}},
	})
	if err == nil && len(out.Item) != 1 {
		return fmt.Errorf("got %v", out.Item)
	}
	return err
}

// The SDK alone loses a reply that comes before its own goroutine has returned from the write: without that the package has
// no reason.
func TestAReplyBeforeTheWriteReturnsIsNotLost(t *testing.T) {
	alone, seen := newSlow(t), make(chan struct{})
	if err := get(t, answers(t, seen), alone); err == nil || !strings.Contains(err.Error(), "use of closed network connection") {
		t.Errorf("the SDK alone: %v; want the reply lost", err)
	}
	if n := alone.writes.Load(); n != 2 {
		t.Errorf("the SDK alone: %d writes, want 2", n)
	}
	close(seen)
	whole := newSlow(t)
	if err := get(t, answers(t, seen), sdkhttp.BufferedBody(whole)); err != nil {
		t.Error(err)
	}
	if n := whole.writes.Load(); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
}

// LoadDefaultConfig may leave the client to the service's own default.
func TestWithoutAClientItIsTheSDKs(t *testing.T) {
	seen := make(chan struct{})
	close(seen)
	if err := get(t, answers(t, seen), sdkhttp.BufferedBody(nil)); err != nil {
		t.Error(err)
	}
}

func TestARequestWithoutABodyIsPassedOn(t *testing.T) {
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		var passed *http.Request
		r := &http.Request{Body: body}
		if _, err := sdkhttp.BufferedBody(doer(func(r *http.Request) (*http.Response, error) { passed = r; return nil, nil })).Do(r); err != nil || passed != r {
			t.Errorf("%v: passed %v, %v", body, passed, err)
		}
	}
}

// inMemory is a body that the client is not to read in advance.
type inMemory struct{ io.ReadCloser }

func (inMemory) InMemory() {}

func TestABodyThatIsInMemoryIsPassedOnUnread(t *testing.T) {
	body := inMemory{io.NopCloser(unreadable{errors.New("read")})}
	var passed *http.Request
	r := &http.Request{Body: body}
	if _, err := sdkhttp.BufferedBody(doer(func(r *http.Request) (*http.Response, error) { passed = r; return nil, nil })).Do(r); err != nil || passed != r {
		t.Errorf("passed %v, %v", passed, err)
	}
}

func TestABodyThatCannotBeReadIsNotSent(t *testing.T) {
	broken := errors.New("broken")
	r := &http.Request{Body: io.NopCloser(io.MultiReader(strings.NewReader("half"), unreadable{broken}))}
	_, err := sdkhttp.BufferedBody(doer(func(*http.Request) (*http.Response, error) { t.Error("sent"); return nil, nil })).Do(r)
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

type unreadable struct{ err error }

func (u unreadable) Read([]byte) (int, error) { return 0, u.err }
