package seal

import (
	"context"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/codec"
)

// Static wraps data keys under a secret of its own. It is for local use and tests: anybody who can read the secret can read
// everything, and nobody is told that he did.
type Static struct {
	envelope envelope
	key      Key
}

// NewStatic returns a wrapper under the secret of [KeyBytes] random bytes, or an [*idem.ConfigError] that does not tell it.
func NewStatic(secret []byte) (*Static, error) {
	if len(secret) != KeyBytes {
		return nil, &idem.ConfigError{Field: "secret", Value: fmt.Sprintf("%d bytes", len(secret)), Rule: fmt.Sprintf("must have %d bytes", KeyBytes)}
	}
	compressor, err := codec.New(plainBytesMax)
	if err != nil {
		return nil, err
	}
	return &Static{envelope: envelope{compressor}, key: Key{ID: 1, Secret: [KeyBytes]byte(secret)}}, nil
}

func keyPlace(tenant string) place { return place{what: "data key", tenant: tenant} }

// Wrap implements [Wrapper].
func (s *Static) Wrap(_ context.Context, tenant string, secret []byte) ([]byte, error) {
	return s.envelope.seal(s.key, keyPlace(tenant), secret)
}

// Unwrap implements [Wrapper]. It returns [ErrNotAuthentic].
func (s *Static) Unwrap(_ context.Context, tenant string, wrapped []byte) ([]byte, error) {
	return s.envelope.open(s.key, keyPlace(tenant), wrapped)
}
