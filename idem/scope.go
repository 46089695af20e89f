package idem

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Bounds of what a scope is made of. A principal may be a token that carries claims; no more than a hash of it is stored.
const (
	scopePartBytesMax = 1024
	principalBytesMax = 16 << 10
)

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
	var room [256]byte
	text := appendPart(appendPart(appendPart(room[:0], s.Tenant), s.Operation), s.Key)
	if s.Principal != "" {
		text = appendPart(text, s.Principal)
	}
	sum := sha256.Sum256(text)
	if len(secret) > 0 {
		sum = keyedSum(secret, text)
	}
	var encoded [(sha256.Size*8 + 5) / 6]byte
	base64.RawURLEncoding.Encode(encoded[:], sum[:])
	return storage.RecordKey(encoded[:])
}

func appendPart(text []byte, part string) []byte {
	return append(binary.BigEndian.AppendUint64(text, uint64(len(part))), part...)
}

func keyedSum(secret, text []byte) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, secret)
	h.Write(text)
	h.Sum(sum[:0])
	return sum
}

func (s Scope) validate() error {
	if s.Tenant == "" {
		return errors.New("idem: no tenant: it must come from the authorizer's context")
	}
	if s.Key == "" {
		return errors.New("idem: empty key: a null or empty key would be shared by all callers")
	}
	if len(s.Principal) > principalBytesMax {
		return fmt.Errorf("idem: the principal has %d bytes, at most %d are allowed", len(s.Principal), principalBytesMax)
	}
	for _, part := range []string{s.Tenant, s.Operation, s.Key} {
		if len(part) > scopePartBytesMax {
			return fmt.Errorf("idem: a part of the scope has %d bytes, at most %d are allowed", len(part), scopePartBytesMax)
		}
	}
	return nil
}
