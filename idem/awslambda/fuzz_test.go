package awslambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// FuzzHTTP: an event is refused or a request, whose handler's bytes come back as they are; and nobody is authenticated but
// by what the gateway says itself, whatever stands in the parts that a client writes.
func FuzzHTTP(f *testing.F) {
	for _, name := range []string{"api-http-payment", "api-rest-payment", "api-url-payment", "api-alb-payment", "api-http-jwt", "sweep-schedule"} {
		f.Add(sample(f, name))
	}
	f.Add([]byte(`{"requestContext":{"http":{"method":"GET"}},"version":"2.0","rawPath":"%zz"}`))
	f.Add([]byte(`{"requestContext":{"identity":{"userArn":"u"}},"httpMethod":"A","headers":{"a":"b"},"body":"/w==","isBase64Encoded":true}`))
	f.Add([]byte(`{"requestContext":{"http":{"method":"PUT"}},"version":"2.0","rawPath":"/","body":"\ufffd"}`))
	f.Fuzz(func(t *testing.T, event []byte) {
		var wrote []byte
		handler := HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil || int64(len(body)) != r.ContentLength || r.Method == "" || !strings.HasPrefix(r.URL.Path, "/") {
				t.Errorf("%s %q with %d bytes of %d, %v", r.Method, r.URL, len(body), r.ContentLength, err)
			}
			wrote = append(body, r.URL.String()+r.Host+r.RemoteAddr...)
			_, _ = w.Write(wrote)
		}), Config{})
		payload, err := handler.Invoke(context.Background(), event)
		if err != nil {
			if !errors.Is(err, ErrEvent) {
				t.Fatal(err)
			}
			return
		}
		if in, err := parseHTTP(event); err == nil && in.damaged() {
			if status, _ := opened(t, payload); status != 400 || wrote != nil {
				t.Fatalf("%d, and the handler wrote %q of a damaged body", status, wrote)
			}
			return
		}
		if status, body := opened(t, payload); status != 200 || !bytes.Equal(body, wrote) {
			t.Fatalf("%d with %q, want %q", status, body, wrote)
		}
		stranger := HTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if a, ok := AuthorizerFrom(r.Context()); ok {
				t.Errorf("authorized as %+v", a)
			}
		}), Config{})
		_, _ = stranger.Invoke(context.Background(), unauthorized(t, event)) // which may be none any more
	})
}

// unauthorized removes what the gateway says of the caller.
func unauthorized(t *testing.T, event []byte) []byte {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(event, &members); err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		var inner map[string]json.RawMessage
		if strings.EqualFold(name, "requestContext") && json.Unmarshal(value, &inner) == nil {
			for name := range inner {
				if strings.EqualFold(name, "authorizer") || strings.EqualFold(name, "identity") {
					delete(inner, name)
				}
			}
			members[name], _ = json.Marshal(inner)
		}
	}
	left, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// opened reads a response as a gateway does.
func opened(t *testing.T, payload []byte) (status int, body []byte) {
	t.Helper()
	var out response
	if err := json.Unmarshal(payload, &out); err != nil {
		t.Fatalf("%s: %v", payload, err)
	}
	body = []byte(out.Body)
	if out.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(out.Body); err != nil {
			t.Fatal(err)
		}
	}
	return out.StatusCode, body
}

// FuzzResponse: through every gateway a client gets the handler's status, its bytes, and the lines of its header, each on
// a line of its own.
func FuzzResponse(f *testing.F) {
	f.Add(201, "Location", "/v1/payments/pay_1", "application/json", "a=1", []byte(`{"id":"pay_1"}`))
	f.Add(200, "X-Odd", "a\r\nSet-Cookie: b=1", "text/plain; charset=latin1", "c=2", []byte("caf\xe9"))
	f.Add(402, "content-encoding", "gzip", "", "", []byte{0x1f, 0x8b})
	f.Add(599, "Connection", "close", "image/png", "d", []byte("\x00<&>\u2028"))
	gateways := [][]byte{sample(f, "api-http-payment"), sample(f, "api-rest-payment"), sample(f, "api-url-payment"), sample(f, "api-alb-payment")}
	f.Fuzz(func(t *testing.T, status int, name, value, contentType, cookie string, body []byte) {
		canonical := http.CanonicalHeaderKey(name)
		if status < 200 || status > 599 || status == 204 || status == 304 || !utf8.ValidString(value) || !isToken(name) || canonical == "Set-Cookie" || canonical == "Content-Type" {
			return
		}
		handler := HTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add(name, value)
			w.Header().Add(name, "second")
			if utf8.ValidString(contentType) && contentType != "" {
				w.Header().Set("Content-Type", contentType)
			}
			if utf8.ValidString(cookie) && cookie != "" {
				w.Header().Add("Set-Cookie", cookie)
			}
			w.WriteHeader(status)
			_, _ = w.Write(body)
		}), Config{})
		for _, event := range gateways {
			payload, err := handler.Invoke(context.Background(), event)
			if err != nil {
				t.Fatal(err)
			}
			if gotStatus, got := opened(t, payload); gotStatus != status || !bytes.Equal(got, body) {
				t.Fatalf("%d with %q, want %d with %q", gotStatus, got, status, body)
			}
			wantLines(t, payload, canonical, oneLine.Replace(value))
		}
	})
}

func isToken(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-')
	}) < 0
}

// wantLines wants the two lines of a header that a handler wrote, or none where it is about the connection.
func wantLines(t *testing.T, payload []byte, name, first string) {
	t.Helper()
	var out response
	if err := json.Unmarshal(payload, &out); err != nil {
		t.Fatal(err)
	}
	lines := slices.Clone(out.MultiValueHeaders[name])
	if joined, ok := out.Headers[name]; ok {
		lines = append(lines, joined)
	}
	for _, line := range slices.Concat(lines, out.Cookies) {
		if strings.ContainsAny(line, "\r\n") {
			t.Fatalf("a line within %q", line)
		}
	}
	want := first + ", second"
	switch name {
	case "Connection", "Content-Length", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade":
		want = ""
	}
	if got := strings.Join(lines, ", "); got != want {
		t.Fatalf("%s: %q, want %q", name, got, want)
	}
}

var errChosen = errors.New("chosen to fail")

// chosen fails about a quarter of all records, some of them by a panic.
func chosen(id string) error {
	h := fnv.New32()
	h.Write([]byte(id))
	switch h.Sum32() % 8 {
	case 0:
		return errChosen
	case 1:
		panic(errChosen)
	}
	return nil
}

// FuzzBatches: no record is lost. Each was handled without an error or comes again, because it is reported, or because it
// is behind the one that a stream goes on from.
func FuzzBatches(f *testing.F) {
	for _, name := range []string{"worker-queue", "worker-stream-insert", "worker-stream-modify", "worker-stream-ttl", "sweep-schedule"} {
		f.Add(sample(f, name), uint8(1))
	}
	f.Add([]byte(`{"Records":[{"eventSource":"aws:dynamodb","dynamodb":{"SequenceNumber":"1","NewImage":{"a":{"BS":[5]}}}}]}`), uint8(3))
	f.Add(queueEvent(f, 9, ""), uint8(4))
	f.Add(queueEvent(f, 9, "arn:aws:sqs:us-east-1:1:q.fifo"), uint8(4))
	f.Add(streamEvent(f, 9), uint8(0))
	f.Fuzz(func(t *testing.T, event []byte, concurrency uint8) {
		cfg := Config{Concurrency: int(concurrency % 5)}
		handled := make(chan string, 1<<16)
		handler := Sources(map[string]Handler{
			SourceSQS: SQS(func(_ context.Context, m events.SQSMessage) error {
				err := chosen(m.MessageId)
				if err == nil {
					handled <- m.MessageId
				}
				return err
			}, cfg),
			SourceDynamoDB: Stream(func(_ context.Context, record events.DynamoDBEventRecord) error {
				sameImage(t, record)
				err := chosen(record.Change.SequenceNumber)
				if err == nil {
					handled <- record.Change.SequenceNumber
				}
				return err
			}, cfg),
		})
		payload, err := handler.Invoke(context.Background(), event)
		if err != nil {
			if !errors.Is(err, ErrEvent) {
				t.Fatal(err)
			}
			return
		}
		close(handled)
		nothingIsLost(t, event, payload, handled)
	})
}

func nothingIsLost(t *testing.T, event, payload []byte, handled <-chan string) {
	t.Helper()
	var in struct {
		Records []struct {
			EventSource string                          `json:"eventSource"`
			MessageID   string                          `json:"messageId"`
			DynamoDB    struct{ SequenceNumber string } `json:"dynamodb"`
		}
	}
	var report events.SQSEventResponse
	if err := errors.Join(json.Unmarshal(event, &in), json.Unmarshal(payload, &report)); err != nil {
		t.Fatal(err)
	}
	done := map[string]int{}
	for id := range handled {
		done[id]++
	}
	queue := in.Records[0].EventSource == SourceSQS
	for _, failure := range report.BatchItemFailures {
		if queue {
			done[failure.ItemIdentifier]++
		}
	}
	for _, record := range in.Records {
		id := record.DynamoDB.SequenceNumber
		if queue {
			id = record.MessageID
		} else if len(report.BatchItemFailures) == 1 && id == report.BatchItemFailures[0].ItemIdentifier {
			return
		}
		if done[id]--; done[id] < 0 {
			t.Fatalf("%q was neither handled nor reported in %s", id, payload)
		}
	}
	if !queue && len(report.BatchItemFailures) > 0 {
		t.Fatalf("%s reports no record of the batch", payload)
	}
}

// sameImage wants an image's item to say what the event says.
func sameImage(t *testing.T, record events.DynamoDBEventRecord) {
	t.Helper()
	item, err := Image(record)
	if err != nil {
		if item != nil || !errors.Is(err, ErrImage) {
			t.Errorf("%v, %v", item, err)
		}
		return
	}
	image := record.Change.NewImage
	if record.EventName == string(events.DynamoDBOperationTypeRemove) {
		image = record.Change.OldImage
	}
	raw, err := json.Marshal(image)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if got := wire(&types.AttributeValueMemberM{Value: item}); !reflect.DeepEqual(got, map[string]any{"M": want}) {
		t.Errorf("%s became %v", raw, got)
	}
}

// wire is an attribute in DynamoDB's JSON.
func wire(value types.AttributeValue) map[string]any {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": base64.StdEncoding.EncodeToString(v.Value)}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": v.Value}
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": each(v.Value, func(s string) any { return s })}
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": each(v.Value, func(s string) any { return s })}
	case *types.AttributeValueMemberBS:
		return map[string]any{"BS": each(v.Value, func(b []byte) any { return base64.StdEncoding.EncodeToString(b) })}
	case *types.AttributeValueMemberL:
		return map[string]any{"L": each(v.Value, func(v types.AttributeValue) any { return wire(v) })}
	case *types.AttributeValueMemberM:
		members := map[string]any{}
		for name, member := range v.Value {
			members[name] = wire(member)
		}
		return map[string]any{"M": members}
	}
	return nil
}

func each[V any](values []V, wire func(V) any) []any {
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = wire(value)
	}
	return list
}
