package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/idem-go/idem-aws/idem/canonical"
)

// Scopes is what the records' names are keyed with. Every function that executes for a key has the same.
type Scopes struct {
	// ScopeSecret is the secret, at least 32 random bytes as base64, made once for the tables, before the first request: it is
	// never changed, and cannot be added later. Default: none, and names are plain hashes. For local stacks: anybody who may read a function's configuration reads it.
	ScopeSecret Base64 `env:"SCOPE_SECRET"`
	// ScopeSecretID is the name or ARN of a secret of AWS Secrets Manager that holds it in the same notation, read when the
	// function starts.
	ScopeSecretID string `env:"SCOPE_SECRET_ID"`
}

func (s Scopes) check() error {
	if len(s.ScopeSecret) > 0 && s.ScopeSecretID != "" {
		return fmt.Errorf("configuration: SCOPE_SECRET (%d bytes), SCOPE_SECRET_ID = %q: at most one of them may be set", len(s.ScopeSecret), s.ScopeSecretID)
	}
	return nil
}

// Base64 is bytes in the standard encoding, with padding. Empty text is none.
type Base64 []byte

// UnmarshalText implements encoding.TextUnmarshaler. Its error does not show what it was given.
func (b *Base64) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return errors.New("must be base64")
	}
	*b = raw
	return nil
}

// Secrets are written as id:base64, separated by commas.
type Secrets []canonical.Secret

// UnmarshalText implements encoding.TextUnmarshaler. Its errors don't show what it was given.
func (s *Secrets) UnmarshalText(text []byte) error {
	*s = nil
	for n, each := range strings.Split(string(text), ",") {
		id, encoded, found := strings.Cut(each, ":")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !found || id == "" || err != nil {
			return fmt.Errorf("secret %d of the list must be id:base64", n+1)
		}
		*s = append(*s, canonical.Secret{ID: id, Key: key})
	}
	return nil
}
