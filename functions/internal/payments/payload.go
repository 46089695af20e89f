package payments

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// A message's payload is a contract between releases (events/README.md). Each has a version.
type payload interface {
	// versions are the one that it was written in and the one that this release knows.
	versions() (written, known int)
}

// decodePayload reads a payload strictly. A worker leaves one of a version that it does not know to a newer release.
func decodePayload[P payload](raw []byte) (P, error) {
	var p P
	if err := json.Unmarshal(raw, &p, json.RejectUnknownMembers(true)); err != nil {
		return p, fmt.Errorf("payments: malformed payload: %w", err)
	}
	if written, known := p.versions(); written != known {
		return p, fmt.Errorf("payments: %T has version %d, this release knows %d", p, written, known)
	}
	return p, nil
}

// order is what the provider is asked for.
type order struct {
	// path is the endpoint that it is posted to.
	path string
	body any
}
