package audit

import (
	"fmt"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/idem/header"
)

// Exchange is a request and its answer, as the client heard it.
type Exchange struct {
	Tenant string
	// Operation is the name of what a POST asks for, and Key is the request's idempotency key, without quotes. Either is empty
	// where the request has none.
	Operation, Key string
	Method, Path   string
	// Sent is the request's body.
	Sent []byte

	Status int
	Header http.Header
	Body   []byte
	// Began is when the request was sent, Ended when its answer was there.
	Began, Ended time.Time
}

// String is for messages.
func (e Exchange) String() string {
	return fmt.Sprintf("%s %s by %s, key %s: %d %s %.400s", e.Method, e.Path, e.Tenant, e.Key, e.Status, e.said(), e.Body)
}

func (e Exchange) said() string { return e.Header.Get(header.NameStatus) }
