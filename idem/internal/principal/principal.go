// Package principal is how a caller's principal stands in a record: a session's id or a token is a secret, and a table, its exports and its
// backups have many readers.
package principal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// Stored is what a record has of a tenant's principal: a hash, which two tenants do not share. It is "" where there is none.
func Stored(tenant, principal string) string {
	if principal == "" {
		return ""
	}
	text := binary.BigEndian.AppendUint64([]byte("idem principal "), uint64(len(tenant)))
	sum := sha256.Sum256(append(append(text, tenant...), principal...))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
