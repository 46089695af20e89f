package operator

import (
	"strings"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// What another release wrote has a schema version, a state or a kind that this one does not know. A store returns it without an error. The
// desk shows what it can read of it, and judges nothing.

// ofMessage says why this release can't judge a message; nil where it can.
func ofMessage(m storage.Message) error {
	if m.Readable() {
		return nil
	}
	return &outbox.UnreadableError{SchemaVersion: m.SchemaVersion, State: m.State}
}

// ofRecord says why this release can't judge a record; nil where it can.
func ofRecord(r storage.Record) error {
	if r.Readable() {
		return nil
	}
	return &idem.UnreadableError{SchemaVersion: r.SchemaVersion, State: r.State, Kind: r.Kind}
}

// inShort is such an error without the package that it comes from; "" where there is none.
func inShort(err error) string {
	if err == nil {
		return ""
	}
	_, text, _ := strings.Cut(err.Error(), ": ")
	return text
}

// anotherReleases is what a person does about such a row.
func anotherReleases(why error) Step {
	return step("look", "another release wrote it (%s): use the idemctl, or the console, of that release. Nothing of it is changed here", inShort(why))
}
