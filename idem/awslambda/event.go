package awslambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/idem-go/idem-aws/idem/internal/front"
)

// httpEvent is what the HTTP events have, in one form.
type httpEvent struct {
	// Version is "2.0" for HTTP APIs and function URLs; REST APIs and load balancers have none.
	Version string `json:"version"`

	// RouteKey and Resource name the gateway's route in the two forms; PathParameters is what its variables stand for.
	RouteKey       string            `json:"routeKey"`
	Resource       string            `json:"resource"`
	PathParameters map[string]string `json:"pathParameters"`

	HTTPMethod        string              `json:"httpMethod"`
	Path              string              `json:"path"`
	Query             map[string]string   `json:"queryStringParameters"`
	MultiValueQuery   map[string][]string `json:"multiValueQueryStringParameters"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`

	RawPath        string   `json:"rawPath"`
	RawQueryString string   `json:"rawQueryString"`
	Cookies        []string `json:"cookies"`

	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`

	RequestContext *requestContext `json:"requestContext"`
}

type requestContext struct {
	RequestID  string           `json:"requestId"`
	Stage      string           `json:"stage"`
	DomainName string           `json:"domainName"`
	Protocol   string           `json:"protocol"`
	Authorizer *json.RawMessage `json:"authorizer"`
	HTTP       *struct {
		Method   string `json:"method"`
		Protocol string `json:"protocol"`
		SourceIP string `json:"sourceIp"`
	} `json:"http"`
	Identity *struct {
		SourceIP  string `json:"sourceIp"`
		UserARN   string `json:"userArn"`
		Caller    string `json:"caller"`
		User      string `json:"user"`
		AccountID string `json:"accountId"`
		AccessKey string `json:"accessKey"`
	} `json:"identity"`
	ELB *struct{} `json:"elb"`
}

// shape is the form of an event, and so of its response.
type shape int

const (
	shapeV2  shape = iota + 1 // HTTP API with payload 2.0, function URL
	shapeV1                   // REST API, HTTP API with payload 1.0
	shapeALB                  // application load balancer
)

func (e *httpEvent) shape() shape {
	switch c := e.RequestContext; {
	case c == nil:
		return 0
	case e.Version == "2.0" && c.HTTP != nil:
		return shapeV2
	case c.ELB != nil:
		return shapeALB
	case e.HTTPMethod != "" && (e.Version == "" || e.Version == "1.0"):
		return shapeV1
	}
	return 0
}

func parseHTTP(event []byte) (*httpEvent, error) {
	var e httpEvent
	if err := json.Unmarshal(event, &e); err != nil {
		return nil, fmt.Errorf("%w: not an HTTP event", ErrEvent) // the decoder's own words may quote the event
	}
	if e.shape() == 0 {
		return nil, fmt.Errorf("%w: not an HTTP event", ErrEvent)
	}
	return &e, nil
}

// damaged says whether bytes of the body may have been lost on the way: what is not UTF-8 becomes U+FFFD in a JSON string.
func (e *httpEvent) damaged() bool {
	return !e.IsBase64Encoded && strings.ContainsRune(e.Body, utf8.RuneError)
}

// request rebuilds the request as a server would have read it.
func (e *httpEvent) request(ctx context.Context) (*http.Request, error) {
	body := []byte(e.Body)
	if e.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(e.Body); err != nil {
			return nil, fmt.Errorf("%w: the body is not base64", ErrEvent)
		}
	}
	if auth := e.authorizer(); auth != nil {
		ctx = context.WithValue(ctx, authorizerKey{}, auth)
	}
	ctx = front.WithBound(ctx, e.returnable())
	method := e.HTTPMethod
	if e.shape() == shapeV2 {
		method = e.RequestContext.HTTP.Method
	}
	if method == "" {
		return nil, fmt.Errorf("%w: no method", ErrEvent)
	}
	r, err := http.NewRequestWithContext(ctx, method, "/", nil)
	if err != nil {
		return nil, fmt.Errorf("%w: the method is not an HTTP method", ErrEvent)
	}
	r.URL = e.url()
	r.RequestURI = r.URL.RequestURI()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if len(body) == 0 {
		r.Body = http.NoBody
	}
	r.Header = e.header()
	r.Host = r.Header.Get("Host")
	r.Header.Del("Host")
	if r.Host == "" {
		r.Host = e.RequestContext.DomainName
	}
	r.RemoteAddr = net.JoinHostPort(e.sourceIP(), "0")
	if major, minor, ok := http.ParseHTTPVersion(e.protocol()); ok {
		r.Proto, r.ProtoMajor, r.ProtoMinor = e.protocol(), major, minor
	}
	return r, nil
}

func (e *httpEvent) protocol() string {
	if e.shape() == shapeV2 {
		return e.RequestContext.HTTP.Protocol
	}
	return e.RequestContext.Protocol
}

func (e *httpEvent) sourceIP() string {
	switch c := e.RequestContext; {
	case c.HTTP != nil:
		return c.HTTP.SourceIP
	case c.Identity != nil:
		return c.Identity.SourceIP
	}
	// The load balancer appends who connected to it; what stands before, the client may have made up.
	forwarded := e.header().Get("X-Forwarded-For")
	return strings.TrimSpace(forwarded[strings.LastIndexByte(forwarded, ',')+1:])
}

// url is the request's URL in the form that a server gets it: path and query only.
func (e *httpEvent) url() *url.URL {
	path, query := e.RawPath, e.RawQueryString
	if e.shape() != shapeV2 {
		path, query = e.Path, e.query()
	}
	if e.Version != "" { // HTTP APIs only; a REST API's path is free of its stage
		path = e.stageless(path)
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	// Some gateways hand the path over as it was sent, some decoded but for "%25": unescaping is right for both.
	u := &url.URL{Path: path, RawQuery: query}
	if unescaped, err := url.PathUnescape(path); err == nil {
		u.Path, u.RawPath = unescaped, path
	}
	return u
}

// stageless removes the stage that HTTP APIs put in front of the path at their own domain, and only there: at a custom
// domain the path may begin with the same word.
func (e *httpEvent) stageless(path string) string {
	stage := e.RequestContext.Stage
	own := strings.Contains(e.RequestContext.DomainName, ".execute-api.") && strings.Contains(e.RequestContext.DomainName, ".amazonaws.com")
	if stage == "" || stage == "$default" || !own {
		return path
	}
	if rest, ok := strings.CutPrefix(path, "/"+stage); ok && (rest == "" || rest[0] == '/') {
		return rest
	}
	return path
}

// query joins the parameters again, in the order of their names; of one name they keep the order sent. A load balancer
// leaves them escaped as they were sent, API Gateway unescapes them.
func (e *httpEvent) query() string {
	parameters := e.MultiValueQuery
	if len(parameters) == 0 {
		parameters = make(map[string][]string, len(e.Query))
		for name, value := range e.Query {
			parameters[name] = []string{value}
		}
	}
	if e.shape() == shapeV1 {
		return url.Values(parameters).Encode()
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		for _, value := range parameters[name] {
			pairs = append(pairs, name+"="+value)
		}
	}
	return strings.Join(pairs, "&")
}

// header keeps every line that the event has. HTTP APIs join the lines of one name with a comma before; REST APIs keep
// the client's spelling of names, so that two spellings are two entries of one name.
func (e *httpEvent) header() http.Header {
	h := make(http.Header, len(e.Headers)+1)
	if len(e.MultiValueHeaders) > 0 {
		for _, name := range slices.Sorted(maps.Keys(e.MultiValueHeaders)) {
			for _, value := range e.MultiValueHeaders[name] {
				h.Add(name, value)
			}
		}
	} else {
		for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
			h.Add(name, e.Headers[name])
		}
	}
	if len(e.Cookies) > 0 {
		h.Set("Cookie", strings.Join(e.Cookies, "; "))
	}
	h.Del("Transfer-Encoding") // the body has arrived whole
	return h
}
