package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/idem-go/idem-aws/idem/codec"
	"github.com/idem-go/idem-aws/idem/storage"
)

// What is sealed lies in an envelope: a header of 10 bytes (mark, version, encoding, key id), a nonce of 12, and the
// ciphertext with its tag of 16. The first byte of the mark begins no UTF-8 text.
const (
	mark        = "\x8fidm"
	version     = 1
	headerBytes = len(mark) + 2 + 4
	nonceBytes  = 12
	tagBytes    = 16
)

// How the text in an envelope is encoded.
const (
	encodedRaw  = 'r'
	encodedZstd = 'z'
	// erased stands for what could not be sealed, because its tenant's key was erased before: nothing follows the header.
	erased = 'e'
)

// plainBytesMax bounds what is sealed, before compression: the largest response that a store takes, with its headers.
const plainBytesMax = 3584<<10 + 64<<10

// OverheadBytes is more than a response of up to 500 headers grows by when it is sealed and can't be compressed.
const OverheadBytes = 4 << 10

// What a place holds.
type what string

const (
	aResponse what = "response"
	aPayload  what = "payload"

	// Evidence of either kind opens only as what it is.
	aDelivery what = "evidence"
	aDecline  what = "evidence of a decline"
)

// place is what a sealed text is bound to; it opens nowhere else.
type place struct {
	what   what
	tenant string
	record storage.RecordKey
	// id is of the operation, or of the message.
	id string
	// beside is what else of the row decides how the text is used: it can't be changed under the text.
	beside string
}

// responsePlace is where a record's response lies: beside the state that says whether it is the last answer, and beside
// its HTTP status, which is replayed with it.
func responsePlace(tenant string, record storage.RecordKey, id storage.OperationID, state storage.State, status int) place {
	return place{aResponse, tenant, record, string(id), fmt.Sprintf("%s %d", state, status)}
}

// payloadPlace is where a message's payload lies: beside the topic that it is sent to, and beside the flag that says
// whether its end is the record's.
func payloadPlace(m storage.Message) place {
	return place{aPayload, m.Tenant, m.RecordKey, string(m.ID), fmt.Sprintf("%t %s", m.Detached, m.Topic)}
}

// evidencePlace is where evidence about a message lies: beside the topic, whose Settle reads it.
func evidencePlace(kind what, tenant string, record storage.RecordKey, id storage.MessageID, topic string) place {
	return place{kind, tenant, record, string(id), topic}
}

// bytes are the parts with their lengths, so that no two places have the same.
func (p place) bytes() []byte {
	var b []byte
	for _, part := range []string{"idem/seal", string(p.what), p.tenant, string(p.record), p.id, p.beside} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	return b
}

// envelope seals and opens.
type envelope struct{ codec *codec.Codec }

// sealed says whether the bytes lie in an envelope, of whatever version.
func sealed(b []byte) bool { return len(b) >= headerBytes && bytes.HasPrefix(b, []byte(mark)) }

func header(encoding byte, keyID uint32) []byte {
	return binary.BigEndian.AppendUint32(append([]byte(mark), version, encoding), keyID)
}

// seal compresses and encrypts. The same text at the same place under the same key yields the same bytes: the nonce is
// derived from all that is encrypted and authenticated, as the synthetic one of RFC 5297 is. Two texts could share a nonce
// only where its 96 bits collide within one place, whose key no other place has.
func (e envelope) seal(key Key, p place, plain []byte) ([]byte, error) {
	if len(plain) > plainBytesMax {
		return nil, fmt.Errorf("%w: %d bytes of %s, at most %d can be sealed", storage.ErrResponseTooLarge, len(plain), p.what, plainBytesMax)
	}
	text, encoded := plain, byte(encodedRaw)
	if compressed, encoding := e.codec.Compress(plain); encoding == codec.Zstd {
		text, encoded = compressed, encodedZstd
	}
	out := header(encoded, key.ID)
	bound := append(bytes.Clone(out), p.bytes()...)
	aead, nonces, err := keysOf(key, p)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, nonces)
	mac.Write(bound)
	mac.Write(text)
	nonce := mac.Sum(nil)[:nonceBytes]
	out = append(out, nonce...)
	return aead.Seal(out, nonce, text, bound), nil
}

// markedErased says that the bytes stand for what could not be sealed.
func markedErased(b []byte) bool { return sealed(b) && b[len(mark)+1] == erased }

// keyOf returns the id of the key that an envelope was sealed under. It returns [storage.ErrErased] for an empty one, and
// [ErrNotAuthentic] for what is none, and [ErrVersion] for a later release's.
func keyOf(b []byte) (id uint32, err error) {
	switch {
	case !sealed(b):
		return 0, ErrNotAuthentic
	case b[len(mark)] != version:
		return 0, fmt.Errorf("%w: %d", ErrVersion, b[len(mark)])
	case b[len(mark)+1] == erased:
		return 0, fmt.Errorf("%w before this was stored", storage.ErrErased)
	}
	return binary.BigEndian.Uint32(b[len(mark)+2:]), nil
}

// open undoes seal, or returns [ErrNotAuthentic].
func (e envelope) open(key Key, p place, b []byte) ([]byte, error) {
	if len(b) < headerBytes+nonceBytes+tagBytes {
		return nil, ErrNotAuthentic
	}
	head, nonce, text := b[:headerBytes], b[headerBytes:headerBytes+nonceBytes], b[headerBytes+nonceBytes:]
	aead, _, err := keysOf(key, p)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nonce, text, append(bytes.Clone(head), p.bytes()...))
	if err != nil {
		return nil, ErrNotAuthentic
	}
	encoding := codec.Raw
	if head[len(mark)+1] == encodedZstd {
		encoding = codec.Zstd
	}
	return e.codec.Decompress(plain, encoding)
}

// keysOf derives a place's two keys from its tenant's: one encrypts, the other makes nonces.
func keysOf(key Key, p place) (cipher.AEAD, []byte, error) {
	derived, err := hkdf.Expand(sha256.New, key.Secret[:], string(p.bytes()), 2*KeyBytes)
	if err != nil {
		return nil, nil, fmt.Errorf("seal: derive keys: %w", err)
	}
	block, err := aes.NewCipher(derived[:KeyBytes])
	if err != nil {
		return nil, nil, fmt.Errorf("seal: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, nil, fmt.Errorf("seal: %w", err)
	}
	return aead, derived[KeyBytes:], nil
}
