package operator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// The bounds of a search by the beginning of an id.
const (
	// BeginningMin is how many characters an id must begin with at least.
	BeginningMin = 6
	// BeginningSince is how far back the audit log is searched.
	BeginningSince = 30 * 24 * time.Hour
	beginningMax   = 20
)

// Beginnings are the operations whose id begins so.
type Beginnings struct {
	// Operations are at most 20 of them.
	Operations []idem.OperationID
	// More says that others may begin so, too: a queue or the log has more entries than were looked at.
	More bool
}

// AmbiguousError: several ids begin with what was given. Nothing was done.
type AmbiguousError struct {
	// What they are ids of, in the plural: "operations".
	What string
	// Begins is the text that was given.
	Begins string
	// IDs are those that begin with it, in order.
	IDs []string
	// More says that others may begin so, too.
	More bool
}

// Error implements error. It has a line for each id.
func (e *AmbiguousError) Error() string {
	lines := []string{fmt.Sprintf("Several %s begin with %s:", e.What, e.Begins)}
	for _, id := range e.IDs {
		lines = append(lines, "  "+id)
	}
	if e.More {
		lines = append(lines, "  and maybe others")
	}
	return strings.Join(lines, "\n")
}

// CheckBeginning returns an [InvalidError] for a text that is too short to search by.
func CheckBeginning(text string) error {
	if len(text) < BeginningMin {
		return &InvalidError{"id", fmt.Sprintf("must be whole, or have at least the first %d characters", BeginningMin)}
	}
	return nil
}

// Beginning searches for operations by the beginning of their id, at least [BeginningMin] characters of it. An id is the key of its
// row, and no index has ids in their order. So only those are found that stand in a queue ([Desk.Queued]), or that operators have
// changed within [BeginningSince].
func (d *Desk) Beginning(ctx context.Context, text string) (Beginnings, error) {
	if err := CheckBeginning(text); err != nil {
		return Beginnings{}, err
	}
	found := newSearch(func(id idem.OperationID) bool { return strings.HasPrefix(string(id), text) })
	if err := found.queues(ctx, d); err != nil {
		return Beginnings{}, err
	}
	entries, err := d.Entries(ctx, BeginningSince, text, ListMax)
	if err != nil {
		return Beginnings{}, err
	}
	for _, e := range entries {
		found.add(operationIn(e.Subject))
	}
	found.More = found.More || len(entries) == ListMax
	return found.Beginnings, nil
}

// Queued searches for operations that stand in a queue ([Queues]), by their id. It reads the entries of the sparse indexes, at most
// [ListMax] of each queue, and none of the rows. An application finds by it what operations have made, where the id of that is made
// from the operation's.
func (d *Desk) Queued(ctx context.Context, match func(idem.OperationID) bool) (Beginnings, error) {
	found := newSearch(match)
	err := found.queues(ctx, d)
	return found.Beginnings, err
}

// search collects the operations that match, each once.
type search struct {
	Beginnings
	match func(idem.OperationID) bool
	seen  map[idem.OperationID]bool
}

func newSearch(match func(idem.OperationID) bool) *search {
	return &search{match: match, seen: map[idem.OperationID]bool{}}
}

func (s *search) queues(ctx context.Context, d *Desk) error {
	for _, queue := range Queues() {
		all, err := d.walk(ctx, queue, "", listing{desk: d, limit: ListMax, count: true})
		if err != nil {
			return err
		}
		for _, row := range all.Rows {
			s.add(row.Operation)
		}
		s.More = s.More || all.Next != ""
	}
	return nil
}

func (s *search) add(id idem.OperationID) {
	if id == "" || s.seen[id] || !s.match(id) {
		return
	}
	s.seen[id] = true
	if len(s.Operations) >= beginningMax {
		s.More = true
		return
	}
	s.Operations = append(s.Operations, id)
}

// operationIn is the operation of a subject, which is one, or one of its messages; "" where it is neither.
func operationIn(subject string) idem.OperationID {
	if of, _, err := idem.MessageID(subject).Operation(); err == nil {
		return of
	}
	if _, err := idem.OperationID(subject).RecordKey(); err == nil {
		return idem.OperationID(subject)
	}
	return ""
}
