package storage

import (
	"fmt"
	"io"

	"github.com/idem-go/idem-aws/idem/protocol"
)

// IDGenerator makes owners, operation ids and revisions from a source of randomness, which must be cryptographic in
// production.
type IDGenerator struct {
	// Random is read for 16 bytes at a time.
	Random io.Reader
}

// ID returns 128 random bits, or what the source of randomness failed with.
func (g IDGenerator) ID() (protocol.ID, error) {
	raw := make([]byte, randomBytes)
	if _, err := io.ReadFull(g.Random, raw); err != nil {
		return protocol.ID{}, fmt.Errorf("idem: read randomness: %w", err)
	}
	return idFrom(raw), nil
}

// Owner makes the name of a new execution.
func (g IDGenerator) Owner() (Owner, error) {
	id, err := g.ID()
	return NameOf[Owner](id), err
}

// Revision makes the name of a new write.
func (g IDGenerator) Revision() (Revision, error) {
	id, err := g.ID()
	return NameOf[Revision](id), err
}

// OperationID makes the id of a new incarnation of the scope whose record has this key. It returns an error for a string
// that is not a record's key.
func (g IDGenerator) OperationID(key RecordKey) (OperationID, error) {
	id, err := g.ID()
	if err != nil {
		return "", err
	}
	return key.Operation(id)
}
