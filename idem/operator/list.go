package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Queue is what a list is of.
type Queue string

// The queues.
const (
	// QueueStuck: messages that are due, and opaque leases that are over, as the sweep finds them.
	QueueStuck Queue = "stuck"
	// QueueUnknown: what may have happened.
	QueueUnknown Queue = "unknown"
	// QueueDead: what was given up, or could not be settled.
	QueueDead Queue = "dead"
)

// Queues lists them.
func Queues() []Queue { return []Queue{QueueStuck, QueueUnknown, QueueDead} }

// Listed is one row of a list: a message, or the record of an opaque operation.
type Listed struct {
	// At is when somebody looks, or looked, at it.
	At      time.Time    `json:"at"`
	Tenant  string       `json:"tenant"`
	Message *MessageView `json:"message,omitempty"`
	Record  *RecordView  `json:"record,omitempty"`
	// Operation is the record's id.
	Operation idem.OperationID `json:"operation,omitempty"`
}

// List is what stands in a queue.
type List struct {
	Rows []Listed `json:"rows"`
	// More says that the limit ended the list.
	More bool `json:"more"`
}

// ListMax is the most rows of a list.
const ListMax = 1000

// always is later than any place in a queue.
var always = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// List shows what stands in a queue, oldest first within each shard, of one tenant or, where that is empty, of all. It costs
// what stands there, not what the tables hold: a listing of the sparse indexes, and a strong read of each row shown.
func (c *Console) List(ctx context.Context, queue Queue, tenant string, limit int) (List, error) {
	if limit < 1 || limit > ListMax {
		return List{}, &InvalidError{"limit", fmt.Sprintf("must be 1..%d", ListMax)}
	}
	places := map[Queue]struct {
		messages, records string
		until             time.Time
	}{
		QueueStuck:   {idem.QueueOffer, idem.QueueLease, c.now()},
		QueueUnknown: {idem.QueueUnknown, idem.QueueUnknown, always},
		QueueDead:    {idem.QueueDead, "", always},
	}
	place, ok := places[queue]
	if !ok {
		return List{}, &InvalidError{"queue", fmt.Sprintf("must be one of %v", Queues())}
	}
	l := listing{console: c, tenant: tenant, limit: limit, list: List{Rows: []Listed{}}}
	err := l.messages(ctx, place.messages, place.until)
	if err == nil && place.records != "" {
		err = l.records(ctx, place.records, place.until)
	}
	return l.list, err
}

type listing struct {
	console *Console
	tenant  string
	limit   int
	list    List
}

const listPage = 100

// wants says whether a row of the tenant is shown; where there is no room for it, there is more.
func (l *listing) wants(tenant string) bool {
	if l.tenant != "" && tenant != l.tenant {
		return false
	}
	if len(l.list.Rows) >= l.limit {
		l.list.More = true
		return false
	}
	return true
}

func (l *listing) messages(ctx context.Context, queue string, until time.Time) error {
	store := l.console.cfg.Store
	list := func(shard int, cursor string) ([]idem.MessageRef, string, error) {
		return store.QueuedMessages(ctx, queue, shard, until, listPage, cursor)
	}
	return pages(store.Shards(), list, func(ref idem.MessageRef) (bool, error) {
		if !l.wants(ref.Tenant) {
			return !l.list.More, nil
		}
		m, err := store.Message(ctx, ref.ID)
		if err != nil || m == nil {
			return true, err
		}
		if stands, _, ok := m.Queue(); ok && stands == queue {
			view := viewMessage(*m)
			l.list.Rows = append(l.list.Rows, Listed{At: ref.At, Tenant: m.Tenant, Message: &view})
		}
		return true, nil
	})
}

func (l *listing) records(ctx context.Context, queue string, until time.Time) error {
	store := l.console.cfg.Store
	list := func(shard int, cursor string) ([]idem.RecordRef, string, error) {
		return store.QueuedRecords(ctx, queue, shard, until, listPage, cursor)
	}
	return pages(store.Shards(), list, func(ref idem.RecordRef) (bool, error) {
		if !l.wants(ref.Tenant) {
			return !l.list.More, nil
		}
		r, err := store.Get(ctx, ref.Key)
		if err != nil || r == nil {
			return true, err
		}
		if stands, _, ok := r.Queue(); ok && stands == queue {
			l.list.Rows = append(l.list.Rows, Listed{At: ref.At, Tenant: r.Tenant, Record: viewRecord(*r), Operation: r.OperationID})
		}
		return true, nil
	})
}

// pages goes through the shards of a queue until show wants no more.
func pages[Ref any](shards int, list func(shard int, cursor string) ([]Ref, string, error), show func(Ref) (more bool, err error)) error {
	for shard := range shards {
		for cursor := ""; ; {
			refs, next, err := list(shard, cursor)
			if err != nil {
				return fmt.Errorf("operator: list shard %d: %w", shard, err)
			}
			for _, ref := range refs {
				more, err := show(ref)
				if err != nil {
					return fmt.Errorf("operator: read what is listed: %w", err)
				}
				if !more {
					return nil
				}
			}
			if cursor = next; cursor == "" {
				break
			}
		}
	}
	return nil
}

// SinceMax is how far back the audit log is read at most.
const SinceMax = 365 * 24 * time.Hour

// Entries returns what the audit log has of the time since, newest first; only what is about subjects that begin so.
func (c *Console) Entries(ctx context.Context, since time.Duration, subject string, limit int) ([]Entry, error) {
	switch {
	case limit < 1 || limit > ListMax:
		return nil, &InvalidError{"limit", fmt.Sprintf("must be 1..%d", ListMax)}
	case since <= 0 || since > SinceMax:
		return nil, &InvalidError{"since", fmt.Sprintf("must be above 0 and at most %v", SinceMax)}
	}
	to := c.now().Add(time.Minute) // another operator's clock may be ahead
	entries, err := c.cfg.Audit.Entries(ctx, to.Add(-since-time.Minute), to, subject, limit)
	if err != nil {
		return nil, fmt.Errorf("operator: read the audit log: %w", err)
	}
	return append([]Entry{}, entries...), nil
}
