package storage

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/idem-go/idem-aws/idem/protocol"
)

const (
	operationPrefix  = "op_"
	recordKeyBytes   = sha256.Size
	randomBytes      = 16 // 128 bits, for owners and incarnations
	operationIDBytes = recordKeyBytes + randomBytes
	chainLengthMax   = 99 // messages of one operation
)

// RecordKey is the partition key of a scope's record: base64url of an HMAC-SHA-256 under idem.Config.ScopeSecret, or of a
// SHA-256 where there is none, over the length-prefixed parts. It spreads evenly, has no delimiter to inject and holds no
// personal data. Logs show it in place of the key, and it is a part of every operation id: without a secret, anybody who
// has an id can test guesses of the key.
type RecordKey string

// Operation returns the id of one incarnation of the scope whose record has this key. It returns an error for a string
// that is not a record's key.
func (k RecordKey) Operation(incarnation protocol.ID) (OperationID, error) {
	var raw [operationIDBytes]byte
	if !decode(raw[:recordKeyBytes], string(k)) {
		return "", fmt.Errorf("idem: %q is not a record key", k)
	}
	random := Raw(incarnation)
	copy(raw[recordKeyBytes:], random[:])
	var text [len(operationPrefix) + operationIDBytes*4/3]byte
	copy(text[:], operationPrefix)
	base64.RawURLEncoding.Encode(text[len(operationPrefix):], raw[:])
	return OperationID(text[:]), nil
}

// Incarnation returns the random part of the id of one of the scope's incarnations, and says whether it is one.
func (k RecordKey) Incarnation(id OperationID) (protocol.ID, bool) {
	var own [recordKeyBytes]byte
	raw, err := id.raw()
	if err != nil || !decode(own[:], string(k)) || own != [recordKeyBytes]byte(raw[:]) {
		return protocol.ID{}, false
	}
	return idFrom(raw[recordKeyBytes:]), true
}

// OperationID names one incarnation of a scope: "op_" + base64url(record key ‖ 128 random bits). It is made when the
// scope is reserved from absent or expired, and kept when it is reserved again. Because it contains the record's key, one
// GetItem finds the record of an id.
type OperationID string

// ErrOperationID is returned for a string that can't be an operation id.
var ErrOperationID = errors.New("idem: not an operation id")

// RecordKey returns the key of the record that the id belongs to, or [ErrOperationID].
func (id OperationID) RecordKey() (RecordKey, error) {
	raw, err := id.raw()
	if err != nil {
		return "", err
	}
	return RecordKey(base64.RawURLEncoding.EncodeToString(raw[:recordKeyBytes])), nil
}

// Incarnation returns the random part of the id, or [ErrOperationID]. [RecordKey.Operation] joins the two.
func (id OperationID) Incarnation() (protocol.ID, error) {
	raw, err := id.raw()
	if err != nil {
		return protocol.ID{}, err
	}
	return idFrom(raw[recordKeyBytes:]), nil
}

func (id OperationID) raw() (raw [operationIDBytes]byte, err error) {
	encoded, ok := strings.CutPrefix(string(id), operationPrefix)
	if !ok {
		return raw, ErrOperationID
	}
	if !decode(raw[:], encoded) {
		return raw, ErrOperationID
	}
	return raw, nil
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

// Owner is the random name of one execution: 128 bits, base64url. Fences compare it.
type Owner string

// Revision names the write that made a row: 128 bits, base64url, new for each prepared write. A write without a reply was
// applied if the row has its revision.
type Revision string

// NameOf is the text of an owner's or a revision's bits: "" where there are none.
func NameOf[T ~string](id protocol.ID) T {
	if id.None() {
		return ""
	}
	raw := Raw(id)
	var text [(randomBytes*4 + 2) / 3]byte
	base64.RawURLEncoding.Encode(text[:], raw[:])
	return T(text[:])
}

// Bits reads an owner or a revision, and says whether it is one; "" is none.
func Bits[T ~string](name T) (protocol.ID, bool) {
	if name == "" {
		return protocol.ID{}, true
	}
	var raw [randomBytes]byte
	if !decode(raw[:], string(name)) {
		return protocol.ID{}, false
	}
	return idFrom(raw[:]), true
}

// decode reads as many bytes as raw has, and says whether the text is the one spelling of them: base64 without padding has others,
// with line breaks or with bits that nobody reads.
func decode(raw []byte, text string) bool {
	if len(text) != base64.RawURLEncoding.EncodedLen(len(raw)) {
		return false
	}
	var encoded [operationIDBytes * 4 / 3]byte // the longest that there is
	n, err := strict.Decode(raw, encoded[:copy(encoded[:], text)])
	return err == nil && n == len(raw)
}

var strict = base64.RawURLEncoding.Strict()

// Raw is the bits as a store keeps them; [FromRaw] reads them.
func Raw(id protocol.ID) (raw [randomBytes]byte) {
	binary.BigEndian.PutUint64(raw[:8], id[0])
	binary.BigEndian.PutUint64(raw[8:], id[1])
	return raw
}

// FromRaw reads bits that [Raw] wrote, and says whether they are as many.
func FromRaw(raw []byte) (protocol.ID, bool) {
	if len(raw) != randomBytes {
		return protocol.ID{}, false
	}
	return idFrom(raw), true
}

func idFrom(raw []byte) protocol.ID {
	return protocol.ID{binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:randomBytes])}
}
