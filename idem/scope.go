package idem

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/idem-go/idem-aws/idem/storage"
)

const scopePartBytesMax = 1024

// Scope is what one idempotency key is unique within: the tenant, the operation, the principal where the policy says so,
// and the key.
type Scope struct {
	// Tenant comes from the authorizer's context only.
	Tenant string
	// Operation is the stable registered name, or empty where the policy scopes a key by tenant alone.
	Operation string
	// Principal is set where the policy binds a key to a session or token.
	Principal string
	// Key is the client's key, as the header syntax yields it.
	Key string
}

// RecordKey hashes the scope as an engine without Config.ScopeSecret does; for any engine, see [Engine.RecordKey]. A
// principal is part of the hash only where there is one, so that the older keys are found again after the option is
// switched off.
func (s Scope) RecordKey() storage.RecordKey { return s.recordKey(nil) }

func (s Scope) recordKey(secret []byte) storage.RecordKey {
	h := sha256.New()
	if len(secret) > 0 {
		h = hmac.New(sha256.New, secret)
	}
	parts := []string{s.Tenant, s.Operation, s.Key}
	if s.Principal != "" {
		parts = append(parts, s.Principal)
	}
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		io.WriteString(h, part)
	}
	return storage.RecordKey(base64.RawURLEncoding.EncodeToString(h.Sum(nil)))
}

func (s Scope) validate() error {
	if s.Tenant == "" {
		return errors.New("idem: no tenant: it must come from the authorizer's context")
	}
	if s.Key == "" {
		return errors.New("idem: empty key: a null or empty key would be shared by all callers")
	}
	for _, part := range []string{s.Tenant, s.Operation, s.Principal, s.Key} {
		if len(part) > scopePartBytesMax {
			return fmt.Errorf("idem: a part of the scope has %d bytes, at most %d are allowed", len(part), scopePartBytesMax)
		}
	}
	return nil
}
