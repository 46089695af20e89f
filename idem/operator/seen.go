package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// Seen is what a person saw of a record or a message, short enough to be typed: its state, its epoch, a hash of its revision and, after a
// loss of data, until when data may have been lost. A change demands it, and is refused where anybody has written the row since, and where
// data was lost since: the row may be as it was seen, and what has happened in the meantime is lost.
type Seen string

func seen(state string, epoch int64, revision storage.Revision, lost time.Time) Seen {
	sum := sha256.Sum256([]byte(revision))
	s := fmt.Sprintf("%s.%d.%s", state, epoch, hex.EncodeToString(sum[:8]))
	if !lost.IsZero() {
		s += "." + strconv.FormatInt(lost.UnixMilli(), 36)
	}
	return Seen(s)
}

// parts are what was seen of the row, and until when data may have been lost, in milliseconds: 0 where nobody spoke of a loss.
func (s Seen) parts() (row string, lost int64) {
	fields := strings.SplitN(string(s), ".", 4)
	if len(fields) < 4 {
		return string(s), 0
	}
	lost, _ = strconv.ParseInt(fields[3], 36, 64) // what was mistyped is of no loss
	return strings.Join(fields[:3], "."), lost
}

// SeenMessage is the message as it stands. Data from before lost may have been lost; the zero time is that none was: see
// [outbox.Topics.Lost].
func SeenMessage(m storage.Message, lost time.Time) Seen {
	return seen(string(m.State), m.Epoch, m.Revision, lost)
}

// SeenRecord is the record as it stands, after the same loss.
func SeenRecord(r storage.Record, lost time.Time) Seen {
	return seen(string(r.State), r.Epoch, r.Revision, lost)
}

// StaleError is a change that was decided about something else than what is there. Nothing was changed.
type StaleError struct {
	// Subject is the operation or message.
	Subject string
	// Seen is what the person saw, Now what is there; empty where there is nothing.
	Seen, Now Seen
}

// Lost says that the row is as it was seen, and that data may have been lost since: the provider may have been called in between.
func (e *StaleError) Lost() bool {
	saw, before := e.Seen.parts()
	is, after := e.Now.parts()
	return is == saw && after > before // where an earlier instant stands, or none any more, no loss has come since
}

// Error implements error.
func (e *StaleError) Error() string {
	switch {
	case e.Now == "":
		return fmt.Sprintf("operator: %s is not there any more; you saw %s", e.Subject, e.Seen)
	case e.Lost():
		return fmt.Sprintf("operator: %s is %s now, and you saw %s: data may have been lost since, so look at the provider, and inspect it again", e.Subject, e.Now, e.Seen)
	}
	return fmt.Sprintf("operator: %s is %s now, and you saw %s: inspect it again", e.Subject, e.Now, e.Seen)
}
