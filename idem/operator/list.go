package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Queue is what a list is of.
type Queue string

// The queues.
const (
	// QueueStuck: messages that are due, and wrapped leases that are over, as the sweep finds them.
	QueueStuck Queue = "stuck"
	// QueueUnknown: what may have happened.
	QueueUnknown Queue = "unknown"
	// QueueDead: what was given up, or could not be settled.
	QueueDead Queue = "dead"
)

// Queues lists them.
func Queues() []Queue { return []Queue{QueueStuck, QueueUnknown, QueueDead} }

// Listed is one row of a list: a message, or the record of a wrapped operation, or one of them that can't be read.
type Listed struct {
	// At is when somebody looks, or looked, at it.
	At time.Time `json:"at"`
	// Tenant is whose operation it is.
	Tenant string `json:"tenant"`
	// Message is the message; nil where the row is a record. Record is the record; nil where the row is a message. Both are nil where the
	// row can't be read.
	Message *MessageView `json:"message,omitempty"`
	Record  *RecordView  `json:"record,omitempty"`
	// Operation is the record's id.
	Operation idem.OperationID `json:"operation,omitempty"`
	// MessageID is the id of a message that can't be read; else it is empty.
	MessageID idem.MessageID `json:"message_id,omitempty"`
	// Unreadable is why the row can't be read, where it can't: it is damaged or another release's, or its tenant's key can't be fetched.
	Unreadable string `json:"unreadable,omitempty"`
}

// ID is the id of the message, or of the record's operation.
func (l Listed) ID() string {
	switch {
	case l.Message != nil:
		return string(l.Message.ID)
	case l.MessageID != "":
		return string(l.MessageID)
	}
	return string(l.Operation)
}

// List is what stands in a queue.
type List struct {
	// Rows are what stands there, oldest first within each shard of the store.
	Rows []Listed `json:"rows"`
	// Next is where the list goes on where the limit ended it, for the next call: opaque. Else it is empty.
	Next string `json:"next,omitempty"`
}

// ListMax is the most rows of a list.
const ListMax = 1000

// always is later than any place in a queue.
var always = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// List shows what stands in a queue, oldest first within each shard, of one tenant or, where that is empty, of all; after is
// empty, or another list's Next. What stayed where it was is shown once; what came or moved meanwhile may be missing, or be
// shown again. A row that can't be read is shown as far as the index has it, and hides no other. Where a tenant's key can't be fetched within a
// second, the list shows the tenant's other rows so too, and does not wait again; after 30 s of such waits, or half of the context's time, it
// shows so all further rows. One row takes a quarter of the time that is left at the most. A list costs what stands there, not what the tables
// hold: a listing of the sparse indexes, and a strong read of each row shown.
func (d *Desk) List(ctx context.Context, queue Queue, tenant string, limit int, after string) (List, error) {
	if limit < 1 || limit > ListMax {
		return List{}, &InvalidError{"limit", fmt.Sprintf("must be 1..%d", ListMax)}
	}
	known, err := d.known(ctx)
	if err != nil { // what nobody knows the losses of can be looked at; what is seen of it is stale
		known = d.now()
	}
	return d.walk(ctx, queue, after, listing{desk: d, known: known, tenant: tenant, limit: limit, list: List{Rows: []Listed{}}})
}

// Count is how many stand in a queue.
type Count struct {
	// Queue is the queue that was counted.
	Queue Queue `json:"queue"`
	// N is how many were counted.
	N int `json:"n"`
	// More says that there are more than were counted.
	More bool `json:"more,omitempty"`
}

// Count counts what stands in a queue, of one tenant or, where that is empty, of all; at most [ListMax]. It reads the sparse
// indexes alone, which may be behind the rows by a second.
func (d *Desk) Count(ctx context.Context, queue Queue, tenant string) (Count, error) {
	l, err := d.walk(ctx, queue, "", listing{desk: d, tenant: tenant, limit: ListMax, count: true})
	return Count{Queue: queue, N: len(l.Rows), More: l.Next != ""}, err
}

// walk goes through a queue, from after on.
func (d *Desk) walk(ctx context.Context, queue Queue, after string, l listing) (List, error) {
	places := map[Queue]struct {
		messages, records string
		until             time.Time
	}{
		QueueStuck:   {storage.QueueOffer, storage.QueueLease, d.now()},
		QueueUnknown: {storage.QueueUnknown, storage.QueueUnknown, always},
		QueueDead:    {storage.QueueDead, "", always},
	}
	place, ok := places[queue]
	if !ok {
		return List{}, &InvalidError{"queue", fmt.Sprintf("must be one of %v", Queues())}
	}
	begin, err := positionIn(after, queue, d.cfg.Store.Shards())
	if err != nil {
		return List{}, err
	}
	if err := d.listable(ctx); err != nil {
		return List{}, err
	}
	l.here, l.patience = begin, patience(ctx)
	if !l.here.Records {
		err = l.messages(ctx, place.messages, place.until)
	}
	if err == nil && place.records != "" && l.list.Next == "" {
		if !l.here.Records {
			l.here = position{Queue: queue, Records: true}
		}
		err = l.records(ctx, place.records, place.until)
	}
	return l.list, err
}

type listing struct {
	desk *Desk
	// known is until when data may have been lost, as it was read before the rows.
	known  time.Time
	tenant string
	limit  int
	// count says that nothing is read but the index: of each row its time and its operation.
	count bool
	here  position
	list  List
	keys  keyless
	// patience is for how long keys are waited for in all.
	patience time.Duration
}

// keyless is how long a list has waited for keys that could not be fetched.
type keyless struct {
	tenants map[string]tenantKeyless
	total   time.Duration
}

type tenantKeyless struct {
	waited time.Duration
	err    error
}

const (
	// tenantKeyWait is for how long a list waits at least for one tenant's key before it stops asking. A key that is refused at once is asked
	// for again: the tenant's other rows may have another one.
	tenantKeyWait = time.Second
	// keyWait is the same for all tenants: three of them, where a key is waited for as long as idemctl does.
	keyWait = 30 * time.Second
)

// patience is for how long a list waits for keys in all: half of its caller's time at the most, because what it has read is to be shown.
func patience(ctx context.Context) time.Duration {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return keyWait
	}
	return min(keyWait, max(time.Until(deadline)/2, time.Millisecond))
}

// forOneRow bounds the reading of one row to a quarter of what is left of the caller's time: a key that hangs may use up all of it else.
func forOneRow(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/4)
}

// read reads a row of the tenant, unless it would wait for a key as other rows did: else the caller's time is over before the list is shown.
func (l *listing) read(ctx context.Context, tenant string, row func(context.Context) error) error {
	failed := l.keys.tenants[tenant]
	switch {
	case failed.waited >= tenantKeyWait:
		return failed.err
	case l.keys.total >= l.patience:
		return fmt.Errorf("%w: it was not asked for, because the keys of other tenants could not be fetched in time: list this tenant alone", storage.ErrKeyUnavailable)
	}
	ctx, cancel := forOneRow(ctx)
	defer cancel()
	began := l.desk.cfg.Now()
	err := row(ctx)
	if errors.Is(err, storage.ErrKeyUnavailable) {
		waited := l.desk.cfg.Now().Sub(began)
		if l.keys.tenants == nil {
			l.keys.tenants = map[string]tenantKeyless{}
		}
		l.keys.total += waited
		if waited += failed.waited; ctx.Err() != nil { // it would have been waited for on and on
			waited = max(waited, tenantKeyWait)
		}
		l.keys.tenants[tenant] = tenantKeyless{waited, err}
	}
	return err
}

const listPage = 100

func (l *listing) messages(ctx context.Context, queue string, until time.Time) error {
	store := l.desk.cfg.Store
	list := func(shard int, cursor string) ([]storage.MessageRef, string, error) {
		return store.QueuedMessages(ctx, queue, shard, until, listPage, cursor)
	}
	of := func(ref storage.MessageRef) entrant { return entrant{ref.At, string(ref.ID), ref.Tenant} }
	return pages(l, list, of, func(ref storage.MessageRef) error {
		if l.count {
			l.list.Rows = append(l.list.Rows, Listed{At: ref.At, Operation: operationIn(string(ref.ID))})
			return nil
		}
		var m *storage.Message
		err := l.read(ctx, ref.Tenant, func(ctx context.Context) (err error) {
			m, err = store.Message(ctx, ref.ID)
			if err == nil && m != nil {
				err = ofMessage(*m)
			}
			return err
		})
		if unreadable(err) {
			l.list.Rows = append(l.list.Rows, Listed{At: ref.At, Tenant: ref.Tenant, MessageID: ref.ID, Unreadable: err.Error()})
			return nil
		}
		if err != nil || m == nil {
			return err
		}
		if stands, _, ok := m.Queue(); ok && stands == queue {
			view := l.desk.viewMessage(*m, l.known)
			l.list.Rows = append(l.list.Rows, Listed{At: ref.At, Tenant: m.Tenant, Message: &view})
		}
		return nil
	})
}

func (l *listing) records(ctx context.Context, queue string, until time.Time) error {
	store := l.desk.cfg.Store
	list := func(shard int, cursor string) ([]storage.RecordRef, string, error) {
		return store.QueuedRecords(ctx, queue, shard, until, listPage, cursor)
	}
	of := func(ref storage.RecordRef) entrant { return entrant{ref.At, string(ref.OperationID), ref.Tenant} }
	return pages(l, list, of, func(ref storage.RecordRef) error {
		if l.count {
			l.list.Rows = append(l.list.Rows, Listed{At: ref.At, Operation: ref.OperationID})
			return nil
		}
		var r *storage.Record
		err := l.read(ctx, ref.Tenant, func(ctx context.Context) (err error) {
			r, err = store.Get(ctx, ref.Key)
			if err == nil && r != nil {
				err = ofRecord(*r)
			}
			return err
		})
		if unreadable(err) {
			l.list.Rows = append(l.list.Rows, Listed{At: ref.At, Tenant: ref.Tenant, Operation: ref.OperationID, Unreadable: err.Error()})
			return nil
		}
		if err != nil || r == nil {
			return err
		}
		if stands, _, ok := r.Queue(); ok && stands == queue {
			l.list.Rows = append(l.list.Rows, Listed{At: ref.At, Tenant: r.Tenant, Record: l.desk.viewRecord(*r, l.known), Operation: r.OperationID})
		}
		return nil
	})
}

// unreadable says that an error is about one row, and not about the store: others can be read.
func unreadable(err error) bool {
	return errors.As(err, new(*storage.MalformedError)) || errors.As(err, new(*storage.MalformedRecordError)) || anotherRelease(err) || errors.Is(err, storage.ErrKeyUnavailable)
}

// anotherRelease says that a row has a schema version, a state or a kind that this release does not know.
func anotherRelease(err error) bool {
	return errors.As(err, new(*outbox.UnreadableError)) || errors.As(err, new(*idem.UnreadableError))
}

// entrant is what of a listed row decides whether it is shown.
type entrant struct {
	at         time.Time
	id, tenant string
}

// pages goes through the shards of a queue from where the list is, and shows what is the tenant's, until there is no room.
func pages[Ref any](l *listing, list func(shard int, cursor string) ([]Ref, string, error), of func(Ref) entrant, show func(Ref) error) error {
	for shards := l.desk.cfg.Store.Shards(); l.here.Shard < shards; {
		refs, next, err := list(l.here.Shard, l.here.Page)
		if err != nil {
			return fmt.Errorf("operator: list shard %d: %w", l.here.Shard, err)
		}
		for _, ref := range refs {
			e := of(ref)
			if l.here.passed(e) {
				continue
			}
			if l.tenant == "" || e.tenant == l.tenant {
				if len(l.list.Rows) >= l.limit {
					l.list.Next = l.here.String()
					return nil
				}
				if err := show(ref); err != nil {
					return fmt.Errorf("operator: read what is listed: %w", err)
				}
			}
			l.here.pass(e)
		}
		l.here.turn(next)
	}
	return nil
}

// SinceMax is how far back the audit log is read at most.
const SinceMax = 365 * 24 * time.Hour

// Entries returns what the audit log has of the time since, newest first; only what is about subjects that begin so.
func (d *Desk) Entries(ctx context.Context, since time.Duration, subject string, limit int) ([]Entry, error) {
	switch {
	case limit < 1 || limit > ListMax:
		return nil, &InvalidError{"limit", fmt.Sprintf("must be 1..%d", ListMax)}
	case since <= 0 || since > SinceMax:
		return nil, &InvalidError{"since", fmt.Sprintf("must be above 0 and at most %v", SinceMax)}
	}
	to := d.now().Add(time.Minute) // another operator's clock may be ahead
	entries, err := d.cfg.Audit.Entries(ctx, to.Add(-since-time.Minute), to, subject, limit)
	if err != nil {
		return nil, fmt.Errorf("operator: read the audit log: %w", err)
	}
	return append([]Entry{}, entries...), nil
}
