// Package token has the form of the payments application's API keys: the application, the operator's command and the local
// stack share it.
//
// A key is a prefix that secret scanners know it by, 32 random bytes, and a checksum by which they tell a key from a text
// that looks like one: idem_(live|test)_[0-9A-Za-z]{49}.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"math/big"
	"regexp"
	"strings"
)

// The prefixes. By them people and secret scanners tell keys apart. A test key differs in nothing else: where the application takes
// test keys it moves money as a live one does, and with TEST_KEYS=refuse it takes none.
const (
	Live = "idem_live_"
	Test = "idem_test_"
)

const (
	secretBytes    = 32
	secretLength   = 43 // of 32 bytes in base 62
	checksumLength = 6  // of 32 bits in base 62
	base           = 62
)

// idPrefix begins the id of a key, so that nobody takes it for one.
const idPrefix = "key_"

var (
	form   = regexp.MustCompile(`^idem_(live|test)_[0-9A-Za-z]{49}$`)
	idForm = regexp.MustCompile(`^key_[0-9a-f]{64}$`)
)

// New returns a new key.
func New(prefix string) string {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails
	body := prefix + padded(new(big.Int).SetBytes(secret), secretLength)
	return body + checksum(body)
}

// WellFormed says whether the text can be a key: everything else is nobody's, and need not be looked up.
func WellFormed(text string) bool {
	if !form.MatchString(text) {
		return false
	}
	body := text[:len(text)-checksumLength]
	return text == body+checksum(body)
}

// ID is the id of a key, by which it is stored, listed and revoked: its SHA-256. A key is long and random, so the hash needs
// no salt, and the id tells nothing of the key.
func ID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return idPrefix + hex.EncodeToString(sum[:])
}

// IsID says whether the text is in the form of an id.
func IsID(text string) bool { return idForm.MatchString(text) }

func checksum(body string) string {
	return padded(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(body)))), checksumLength)
}

func padded(n *big.Int, length int) string {
	digits := n.Text(base)
	return strings.Repeat("0", length-len(digits)) + digits
}
