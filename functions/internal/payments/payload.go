package payments

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
)

// A message's payload is a contract between releases (events/README.md). Each has a version.
type payload interface {
	// versions are the one that it was written in and the one that this release knows.
	versions() (written, known int)
}

// errPayload: another release wrote it, for all that is known here.
var errPayload = errors.New("payments: this release can't read the payload")

// known says what a topic needs to leave a payload that its order can't be read from to another release. A payload that can be read,
// and still is no order, is this release's own.
func known(order func([]byte) (order, error)) func([]byte) error {
	return func(payload []byte) error {
		if _, err := order(payload); errors.Is(err, errPayload) {
			return err
		}
		return nil
	}
}

// decodePayload reads a payload strictly. Its errors are errPayload.
func decodePayload[P payload](raw []byte) (P, error) {
	var p P
	if err := json.Unmarshal(raw, &p, json.RejectUnknownMembers(true)); err != nil {
		return p, fmt.Errorf("%w: %w", errPayload, err)
	}
	if written, known := p.versions(); written != known {
		return p, fmt.Errorf("%w: %T has version %d, this release knows %d", errPayload, p, written, known)
	}
	return p, nil
}

// order is what the provider is asked for.
type order struct {
	// path is the endpoint that it is posted to.
	path string
	body any
}
