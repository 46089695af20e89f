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

// Beginning searches for operations by the beginning of their id, at least [BeginningMin] characters of it. An id is the key of its
// row, and no index has ids in their order. So only those are found that stand in a queue ([Queues]), or that operators have changed
// within [BeginningSince]. It reads the entries of the sparse indexes, at most [ListMax] of each queue, and none of the rows.
func (d *Desk) Beginning(ctx context.Context, text string) (Beginnings, error) {
	if len(text) < BeginningMin {
		return Beginnings{}, &InvalidError{"id", fmt.Sprintf("must be whole, or have at least the first %d characters", BeginningMin)}
	}
	found := &beginning{text: text, seen: map[idem.OperationID]bool{}}
	for _, queue := range Queues() {
		all, err := d.walk(ctx, queue, "", listing{desk: d, limit: ListMax, count: true})
		if err != nil {
			return Beginnings{}, err
		}
		for _, row := range all.Rows {
			found.add(row.Operation)
		}
		found.More = found.More || all.Next != ""
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

type beginning struct {
	Beginnings
	text string
	seen map[idem.OperationID]bool
}

func (b *beginning) add(id idem.OperationID) {
	if !strings.HasPrefix(string(id), b.text) || b.seen[id] {
		return
	}
	b.seen[id] = true
	if len(b.Operations) >= beginningMax {
		b.More = true
		return
	}
	b.Operations = append(b.Operations, id)
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
