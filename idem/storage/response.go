package storage

import (
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
	// Name is the header's name, and Value what stands after the colon.
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
