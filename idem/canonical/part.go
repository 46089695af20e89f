package canonical

import (
	"crypto/sha256"
	"hash"
)

// Part is a part of a request.
type Part int

// The parts of a request.
const (
	PartPath Part = iota
	PartQuery
	PartMediaType
	PartBody
	PartMethod
	partCount
)

var partNames = [partCount]string{"path", "query", "media type", "body", "method"}

// String names the part.
func (p Part) String() string {
	if p < 0 || p >= partCount {
		return "unknown part"
	}
	return partNames[p]
}

// PartBytes is how much of each part's hash is kept: enough to say what differs, and too little to tell what it was.
const PartBytes = 2

// Parts holds the beginning of a hash of each part of a request, under the secret of the fingerprint. The zero value knows
// of none.
type Parts [partCount * PartBytes]byte

// parts hashes the parts, each with its number before it.
func (e encoding) parts(h hash.Hash) (all Parts) {
	var sum [sha256.Size]byte
	number := make([]byte, 1)
	begin := e.begin
	for part, end := range e.ends {
		number[0] = byte(part)
		h.Reset()
		h.Write(number)
		h.Write(e.bytes[begin:end])
		copy(all[part*PartBytes:], h.Sum(sum[:0])[:PartBytes])
		begin = end
	}
	return all
}

// Differing lists the parts in which the requests of two fingerprints differ, as far as that can be told: for the log,
// never for a decision. It is nil where one was stored without its parts, or where they were not made alike.
func (f Fingerprint) Differing(other Fingerprint) (parts []Part) {
	if !f.Alike(other) || f.Parts == (Parts{}) || other.Parts == (Parts{}) {
		return nil
	}
	for part := range partCount {
		if at := int(part) * PartBytes; [PartBytes]byte(f.Parts[at:]) != [PartBytes]byte(other.Parts[at:]) {
			parts = append(parts, part)
		}
	}
	return parts
}
