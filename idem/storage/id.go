package storage

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
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

// RecordKey is the partition key of a scope's record: base64url(SHA-256 over the length-prefixed parts). It spreads
// evenly, leaves no delimiter to inject and holds no personal data. It is also what logs show in place of the key.
type RecordKey string

// OperationID names one incarnation of a scope: "op_" + base64url(record key ‖ 128 random bits). It is minted when the
// scope is reserved from absent or expired and kept across re-reserves. Because the record's key is inside, one GetItem
// finds the record of an id that a client holds.
type OperationID string

// ErrOperationID is returned for a string that can't be an operation id.
var ErrOperationID = errors.New("idem: not an operation id")

// RecordKey returns the key of the record that the id belongs to, or [ErrOperationID].
func (id OperationID) RecordKey() (RecordKey, error) {
	encoded, ok := strings.CutPrefix(string(id), operationPrefix)
	if !ok {
		return "", ErrOperationID
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || len(raw) != operationIDBytes {
		return "", ErrOperationID
	}
	return RecordKey(base64.RawURLEncoding.EncodeToString(raw[:recordKeyBytes])), nil
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


// NameOf is the text of an owner's or a revision's bits: "" where there are none.
func NameOf[T ~string](id protocol.ID) T {
	if id.None() {
		return ""
	}
	raw := bytesOf(id)
	var text [(randomBytes*4 + 2) / 3]byte
	base64.RawURLEncoding.Encode(text[:], raw[:])
	return T(text[:])
}

// Bits reads an owner or a revision, and says whether it is one; "" is none.
func Bits[T ~string](name T) (protocol.ID, bool) {
	if name == "" {
		return protocol.ID{}, true
	}
	var raw [randomBytes + 2]byte
	if base64.RawURLEncoding.DecodedLen(len(name)) != randomBytes {
		return protocol.ID{}, false
	}
	_, err := base64.RawURLEncoding.Decode(raw[:], []byte(name))
	return idFrom(raw[:]), err == nil
}

// OperationIDOf is the id of an incarnation of the scope whose record has this key; "" where either is none.
func OperationIDOf(key RecordKey, incarnation protocol.ID) OperationID {
	if incarnation.None() {
		return ""
	}
	return operationID(key, incarnation)
}

// operationID is "" where the key is none.
func operationID(key RecordKey, incarnation protocol.ID) OperationID {
	var raw [operationIDBytes + 2]byte
	if n, err := base64.RawURLEncoding.Decode(raw[:], []byte(key)); err != nil || n != recordKeyBytes {
		return ""
	}
	random := bytesOf(incarnation)
	copy(raw[recordKeyBytes:], random[:])
	var text [len(operationPrefix) + operationIDBytes*4/3]byte
	copy(text[:], operationPrefix)
	base64.RawURLEncoding.Encode(text[len(operationPrefix):], raw[:operationIDBytes])
	return OperationID(text[:])
}

// Incarnation is the random part of the id, and whether it is an operation id.
func (id OperationID) Incarnation() (protocol.ID, bool) {
	const text = len(operationPrefix) + (operationIDBytes*4+2)/3
	if len(id) != text {
		return protocol.ID{}, false
	}
	var raw [operationIDBytes]byte
	if _, err := base64.RawURLEncoding.Decode(raw[:], []byte(id[len(operationPrefix):])); err != nil {
		return protocol.ID{}, false
	}
	return idFrom(raw[recordKeyBytes:]), true
}

func bytesOf(id protocol.ID) (raw [randomBytes]byte) {
	binary.BigEndian.PutUint64(raw[:8], id[0])
	binary.BigEndian.PutUint64(raw[8:], id[1])
	return raw
}

func idFrom(raw []byte) protocol.ID {
	return protocol.ID{binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:randomBytes])}
}
