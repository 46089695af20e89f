package idem

import (
	"encoding/json"
	"fmt"
	"net/textproto"
)

// Response is a stored answer: status, allow-listed headers and the exact bytes of the body.
type Response struct {
	// Status is the HTTP status code; 0 means that there is no response.
	Status int
	// Header holds name and value pairs in order, names in canonical form.
	Header []Field
	// Body is replayed byte for byte; an empty body is an answer like any other.
	Body []byte
}

// Field is one header line.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Get returns the first value of the header, or "".
func (r Response) Get(name string) string {
	name = textproto.CanonicalMIMEHeaderKey(name)
	for _, field := range r.Header {
		if field.Name == name {
			return field.Value
		}
	}
	return ""
}

// With returns the response with one more header line.
func (r Response) With(name, value string) Response {
	fields := make([]Field, 0, len(r.Header)+1)
	r.Header = append(append(fields, r.Header...), Field{textproto.CanonicalMIMEHeaderKey(name), value})
	return r
}

// Bytes is the size that counts against the limit of a stored response.
func (r Response) Bytes() int {
	size := len(r.Body)
	for _, field := range r.Header {
		size += len(field.Name) + len(field.Value)
	}
	return size
}

// JSON makes a response with the value's JSON encoding as its body. It returns the encoder's error.
func JSON(status int, value any) (Response, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return Response{}, fmt.Errorf("idem: encode response: %w", err)
	}
	return Response{Status: status, Header: []Field{{"Content-Type", "application/json"}}, Body: body}, nil
}

// Problem is an RFC 9457 problem document with a stable code.
type Problem struct {
	Type   string         `json:"type"`
	Title  string         `json:"title"`
	Status int            `json:"status"`
	Detail string         `json:"detail"`
	Code   string         `json:"code"`
	Errors []ProblemError `json:"errors,omitempty"`
}

// ProblemError is one of the errors that a validation problem lists.
type ProblemError struct {
	// Pointer is a JSON pointer (RFC 6901) into the request body.
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// ProblemTypePrefix is what a problem's type URI begins with; its code follows.
const ProblemTypePrefix = "urn:idem:problem:"

// NewProblem makes a problem document whose type is derived from its code.
func NewProblem(status int, code, title, detail string) Problem {
	return Problem{Type: ProblemTypePrefix + code, Title: title, Status: status, Detail: detail, Code: code}
}

// Response renders the problem as application/problem+json.
func (p Problem) Response() Response {
	body, err := json.Marshal(p)
	if err != nil { // strings and ints always encode
		panic(err)
	}
	return Response{Status: p.Status, Header: []Field{{"Content-Type", "application/problem+json"}}, Body: body}
}
