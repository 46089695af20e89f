package idem

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/idem-go/idem-aws/idem/protocol"
)

const (
	operationPrefix   = "op_"
	recordKeyBytes    = sha256.Size
	randomBytes       = 16 // 128 bits, for owners and incarnations
	operationIDBytes  = recordKeyBytes + randomBytes
	chainLengthMax    = 99 // messages of one operation
	scopePartBytesMax = 1024
)

// Scope is what one idempotency key means: who calls, what is asked for, under which key.
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

// RecordKey is the partition key of a scope's record: base64url of an HMAC-SHA-256 under Config.ScopeSecret, or of a SHA-256
// where there is none, over the length-prefixed parts. It spreads evenly, leaves no delimiter to inject and holds no
// personal data. It is also what logs show in place of the key, and a part of every operation id: without a secret,
// whoever has one can test guesses of the key against it.
type RecordKey string

// RecordKey hashes the scope as an engine without Config.ScopeSecret does; for any engine, see [Engine.RecordKey]. A
// principal is hashed in only where there is one, so that switching the option off again finds the older keys.
func (s Scope) RecordKey() RecordKey { return s.recordKey(nil) }

func (s Scope) recordKey(secret []byte) RecordKey {
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
	return RecordKey(base64.RawURLEncoding.EncodeToString(h.Sum(nil)))
}

// Operation returns the id of one incarnation of the scope whose record has this key. It returns an error for what is not
// a record's key.
func (k RecordKey) Operation(n Incarnation) (OperationID, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(k))
	if err != nil || len(raw) != recordKeyBytes {
		return "", fmt.Errorf("idem: %q is not a record key", k)
	}
	return OperationID(operationPrefix + base64.RawURLEncoding.EncodeToString(append(raw, n[:]...))), nil
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

// OperationID names one incarnation of a scope: "op_" + base64url(record key ‖ 128 random bits). It is minted when the
// scope is reserved from absent or expired and kept across re-reserves. Because the record's key is inside, one GetItem
// finds the record of an id that a client holds.
type OperationID string

// ErrOperationID is returned for a string that can't be an operation id.
var ErrOperationID = errors.New("idem: not an operation id")

// Incarnation is the random part of an operation id: 128 bits. With the record's key it is the whole id.
type Incarnation [randomBytes]byte

// RecordKey returns the key of the record that the id belongs to, or [ErrOperationID].
func (id OperationID) RecordKey() (RecordKey, error) {
	key, _, err := id.Split()
	return key, err
}

// Split returns the two parts of the id, or [ErrOperationID]. [RecordKey.Operation] joins them.
func (id OperationID) Split() (RecordKey, Incarnation, error) {
	encoded, ok := strings.CutPrefix(string(id), operationPrefix)
	if !ok {
		return "", Incarnation{}, ErrOperationID
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || len(raw) != operationIDBytes {
		return "", Incarnation{}, ErrOperationID
	}
	return RecordKey(base64.RawURLEncoding.EncodeToString(raw[:recordKeyBytes])), Incarnation(raw[recordKeyBytes:]), nil
}

// MessageID names one message of an operation's chain: "<operation id>.<n>", n from 1. It is the downstream key: the
// provider sees it as its idempotency key.
type MessageID string

// Message returns the id of the n-th message of the operation's chain, n from 1.
func (id OperationID) Message(n int) MessageID {
	return MessageID(string(id) + "." + strconv.Itoa(n))
}

// Operation returns the operation that the message belongs to and its position in the chain, or [ErrOperationID].
func (id MessageID) Operation() (OperationID, int, error) {
	operation, position, ok := strings.Cut(string(id), ".")
	if !ok {
		return "", 0, ErrOperationID
	}
	n, err := strconv.Atoi(position)
	if err != nil || n < 1 || n > chainLengthMax || strconv.Itoa(n) != position {
		return "", 0, ErrOperationID
	}
	if _, err := OperationID(operation).RecordKey(); err != nil {
		return "", 0, err
	}
	return OperationID(operation), n, nil
}

// Owner is the random name of one execution, and so the fence: 128 bits, base64url.
type Owner string

// Revision names the write that made a row: 128 random bits, base64url, made anew for each prepared write. A write that
// had no reply has landed if the row has its revision.
type Revision string

// Mint makes owners, operation ids and revisions from a source of randomness, which must be cryptographic in production.
type Mint struct {
	// Random is read for 16 bytes at a time.
	Random io.Reader
}

func (m Mint) random() ([]byte, error) {
	raw := make([]byte, randomBytes)
	if _, err := io.ReadFull(m.Random, raw); err != nil {
		return nil, fmt.Errorf("idem: read randomness: %w", err)
	}
	return raw, nil
}

// id is 128 random bits.
func (m Mint) id() (protocol.ID, error) {
	raw, err := m.random()
	if err != nil {
		return protocol.ID{}, err
	}
	return idFrom(raw), nil
}

// Owner mints the name of a new execution.
func (m Mint) Owner() (Owner, error) {
	raw, err := m.random()
	return Owner(base64.RawURLEncoding.EncodeToString(raw)), err
}

// Revision mints the name of a new write.
func (m Mint) Revision() (Revision, error) {
	raw, err := m.random()
	return Revision(base64.RawURLEncoding.EncodeToString(raw)), err
}

// OperationID mints the id of a new incarnation of the scope whose record has this key.
func (m Mint) OperationID(key RecordKey) (OperationID, error) {
	raw, err := m.random()
	if err != nil {
		return "", err
	}
	return key.Operation(Incarnation(raw))
}
