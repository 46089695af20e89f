package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Seen is what a person saw of a record or a message, short enough to be typed: its state, its epoch and a hash of its
// revision. A change demands it, and is refused where anybody has written the row since.
type Seen string

func seen(state string, epoch int64, revision storage.Revision) Seen {
	sum := sha256.Sum256([]byte(revision))
	return Seen(fmt.Sprintf("%s.%d.%s", state, epoch, hex.EncodeToString(sum[:8])))
}

// SeenMessage is the message as it stands.
func SeenMessage(m storage.Message) Seen { return seen(string(m.State), m.Epoch, m.Revision) }

// SeenRecord is the record as it stands.
func SeenRecord(r storage.Record) Seen { return seen(string(r.State), r.Epoch, r.Revision) }

// StaleError is a change that was decided about something else than what is there. Nothing was changed.
type StaleError struct {
	// Subject is the operation or message.
	Subject string
	// Seen is what the person saw, Now what is there; empty where there is nothing.
	Seen, Now Seen
}

// Error implements error.
func (e *StaleError) Error() string {
	if e.Now == "" {
		return fmt.Sprintf("operator: %s is not there any more; you saw %s", e.Subject, e.Seen)
	}
	return fmt.Sprintf("operator: %s is %s now, and you saw %s: inspect it again", e.Subject, e.Now, e.Seen)
}
