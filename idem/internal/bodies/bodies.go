// Package bodies reads bodies of HTTP requests into memory, and tells which are there already.
package bodies

import (
	"bytes"
	"net/http"
)

// InMemory is a body that is in memory already, and can be read after it was closed: nobody needs to read it in advance.
type InMemory interface{ InMemory() }

// Read reads the request's whole body.
func Read(r *http.Request) ([]byte, error) {
	body := bytes.NewBuffer(make([]byte, 0, max(0, r.ContentLength)+bytes.MinRead)) // which reads once more, for the end
	_, err := body.ReadFrom(r.Body)
	return body.Bytes(), err
}
