package awslambda

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/idem-go/idem-aws/idem/internal/front"
)

// responseBytesMax is the most that Lambda returns from a synchronous invocation, the JSON around the response included, and
// balancedBytesMax what a load balancer takes of it; it answers 502 to more.
const (
	responseBytesMax = 6 << 20
	balancedBytesMax = 1_000_000
)

// aroundBytes are kept for the JSON around a body: what is added to the header of what the handler answered, and its quotes and names.
const aroundBytes = 64 << 10

// payloadBytesMax is the most that the event's gateway gets to its caller.
func (e *httpEvent) payloadBytesMax() int {
	if e.shape() == shapeALB {
		return balancedBytesMax
	}
	return responseBytesMax
}

// balancedHeaderBytesMax are the bytes of header that the engine may store behind a load balancer, names and values together. It passes 16 K of
// one header, and 32 K of all ("Quotas for your Application Load Balancers"): what is added to the stored ones has room beside them.
const balancedHeaderBytesMax = 15 << 10

// returnable is the response that the gateway returns whatever its bytes are: a body in base64.
func (e *httpEvent) returnable() front.Bound {
	most := front.Boundless()
	most.Bytes = (e.payloadBytesMax() - aroundBytes) / 4 * 3
	if e.shape() == shapeALB {
		most.HeaderBytes = balancedHeaderBytesMax
	}
	return most
}

// responseWriter collects a response.
type responseWriter struct {
	header http.Header
	// sent is the header as it was when the status was written.
	sent   http.Header
	status int
	body   bytes.Buffer
}

func newResponseWriter() *responseWriter { return &responseWriter{header: http.Header{}} }

// Header implements http.ResponseWriter.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. There are no informational responses here.
func (w *responseWriter) WriteHeader(status int) {
	if w.status != 0 || status >= 100 && status < 200 {
		return
	}
	w.status, w.sent = status, w.header.Clone()
}

// Write implements http.ResponseWriter.
func (w *responseWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.status == http.StatusNoContent || w.status == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	if w.body.Len() > responseBytesMax {
		return len(p), nil // it is too large already, and the handler shall still end in order
	}
	return w.body.Write(p)
}

// problem is a response of the adapter's own.
func (c Config) problem(status int, code, title, detail string) *responseWriter {
	body, err := json.Marshal(map[string]any{
		"type": "urn:idem:problem:" + code, "title": title, "status": status, "detail": detail, "code": code,
	})
	if err != nil { // strings and a number always encode
		panic(err)
	}
	w := newResponseWriter()
	w.header.Set("Content-Type", "application/problem+json")
	w.header.Set("Cache-Control", "no-store")
	w.header.Set("X-Content-Type-Options", "nosniff")
	if c.DocsURL != "" {
		w.header.Set("Link", "<"+c.DocsURL+`>; rel="describedby"`)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // into memory
	return w
}

// response is the union of what the gateways read.
type response struct {
	StatusCode        int                 `json:"statusCode"`
	StatusDescription string              `json:"statusDescription,omitempty"`
	Headers           map[string]string   `json:"headers,omitempty"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders,omitempty"`
	Cookies           []string            `json:"cookies,omitempty"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

// encode makes the event's response.
func (e *httpEvent) encode(w *responseWriter) ([]byte, error) {
	payload, err := e.encodeOnce(w)
	if err == nil && len(payload) > e.payloadBytesMax() {
		return e.encodeOnce(Config{}.problem(http.StatusInternalServerError, "response_too_large", "Response too large", "The response is larger than the gateway can return."))
	}
	return payload, err
}

func (e *httpEvent) encodeOnce(w *responseWriter) ([]byte, error) {
	body := w.body.Bytes()
	if _, set := w.sent["Content-Type"]; !set && len(body) > 0 && w.sent.Get("Content-Encoding") == "" {
		w.sent.Set("Content-Type", http.DetectContentType(body)) // as net/http does
	}
	out := response{StatusCode: w.status, Body: string(body)}
	e.putHeader(&out, w.sent)
	if !isText(w.sent, body) {
		return marshal(out.inBase64(body))
	}
	payload, err := marshal(out)
	if err == nil && len(payload) > e.payloadBytesMax() {
		return marshal(out.inBase64(body)) // escapes can cost more than base64 does
	}
	return payload, err
}

func (r response) inBase64(body []byte) response {
	r.Body, r.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	return r
}

func marshal(out response) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil {
		return nil, fmt.Errorf("awslambda: encode response: %w", err)
	}
	return buffer.Bytes(), nil
}

// putHeader gives the header the form of the event's gateway. One that takes a single value per name gets the lines
// joined, which means the same for every field but Set-Cookie (RFC 9110 section 5.3).
func (e *httpEvent) putHeader(out *response, h http.Header) {
	for _, name := range []string{"Connection", "Content-Length", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade"} {
		h.Del(name) // the gateway's own connection has its own
	}
	for _, values := range h {
		for i, value := range values {
			values[i] = oneLine.Replace(value)
		}
	}
	shape := e.shape()
	if shape == shapeALB {
		out.StatusDescription = strconv.Itoa(out.StatusCode) + " " + http.StatusText(out.StatusCode)
	}
	// A load balancer reads the one form or the other, by the setting that shaped the request too.
	if shape == shapeV1 || shape == shapeALB && len(e.MultiValueHeaders) > 0 {
		out.MultiValueHeaders = h
		return
	}
	if cookies := h.Values("Set-Cookie"); shape == shapeV2 {
		out.Cookies = cookies
		h.Del("Set-Cookie")
	} else if len(cookies) > 1 {
		h["Set-Cookie"] = cookies[len(cookies)-1:] // without its multi-value setting a load balancer can return only one
	}
	out.Headers = make(map[string]string, len(h))
	for name, values := range h {
		out.Headers[name] = strings.Join(values, ", ")
	}
}

// oneLine keeps a value on its line, as net/http does.
var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

// isText says whether the body can travel as a JSON string without a byte changing.
func isText(h http.Header, body []byte) bool {
	if !utf8.Valid(body) || h.Get("Content-Encoding") != "" {
		return false
	}
	if len(body) == 0 {
		return true
	}
	mediaType, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return false
	}
	return strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "json") || strings.HasSuffix(mediaType, "xml") ||
		mediaType == "application/javascript" || mediaType == "application/x-www-form-urlencoded"
}
