package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/idem-go/idem-aws/idem/storage"
)

// messageColumns are those of a message as the contract has it.
var messageColumns = []column[storage.Message]{
	{"id", func(m *storage.Message) any { return wordOf(&m.ID) }},
	{"index", func(m *storage.Message) any { return &m.Index }},
	{"operation_id", func(m *storage.Message) any { return wordOf(&m.OperationID) }},
	{"record_key", func(m *storage.Message) any { return wordOf(&m.RecordKey) }},
	{"tenant", func(m *storage.Message) any { return &m.Tenant }},
	{"topic", func(m *storage.Message) any { return &m.Topic }},
	{"payload", func(m *storage.Message) any { return blob{&m.Payload} }},
	{"sealed", func(m *storage.Message) any { return &m.Sealed }},
	{"state", func(m *storage.Message) any { return wordOf(&m.State) }},
	{"epoch", func(m *storage.Message) any { return &m.Epoch }},
	{"owner", func(m *storage.Message) any { return wordOf(&m.Owner) }},
	{"revision", func(m *storage.Message) any { return wordOf(&m.Revision) }},
	{"lease_until", func(m *storage.Message) any { return instant{&m.LeaseUntil} }},
	{"created_at", func(m *storage.Message) any { return instant{&m.CreatedAt} }},
	{"first_claimed_at", func(m *storage.Message) any { return instant{&m.FirstClaimedAt} }},
	{"next_attempt_at", func(m *storage.Message) any { return instant{&m.NextAttemptAt} }},
	{"sweep_at", func(m *storage.Message) any { return instant{&m.SweepAt} }},
	{"open_since", func(m *storage.Message) any { return instant{&m.OpenSince} }},
	{"done_at", func(m *storage.Message) any { return instant{&m.DoneAt} }},
	{"redriven_at", func(m *storage.Message) any { return instant{&m.RedrivenAt} }},
	{"cleared_at", func(m *storage.Message) any { return instant{&m.ClearedAt} }},
	{"remove_at", func(m *storage.Message) any { return instant{&m.RemoveAt} }},
	{"attempts", func(m *storage.Message) any { return &m.Attempts }},
	{"died", func(m *storage.Message) any { return &m.Died }},
	{"refused", func(m *storage.Message) any { return &m.Refused }},
	{"unfailed", func(m *storage.Message) any { return &m.Unfailed }},
	{"undoes", func(m *storage.Message) any { return &m.Undoes }},
	{"retention_ms", func(m *storage.Message) any { return span{&m.Retention} }},
	{"keep_for_ms", func(m *storage.Message) any { return span{&m.Expiry.KeepFor} }},
	{"gone", func(m *storage.Message) any { return &m.Expiry.Gone }},
	{"resource_backed", func(m *storage.Message) any { return &m.Expiry.ResourceBacked }},
	{"detached", func(m *storage.Message) any { return &m.Detached }},
	{"reference", func(m *storage.Message) any { return note{&m.Reference} }},
	{"last_outcome", func(m *storage.Message) any { return note{&m.LastOutcome} }},
	{"settled_by", func(m *storage.Message) any { return wordOf(&m.SettledBy) }},
	{"kept_delivered", func(m *storage.Message) any { return evidence{&m.KeptDelivered} }},
	{"kept_delivered_reference", func(m *storage.Message) any { return reference{&m.KeptDelivered} }},
	{"kept_declined", func(m *storage.Message) any { return evidence{&m.KeptDeclined} }},
	{"kept_declined_reference", func(m *storage.Message) any { return reference{&m.KeptDeclined} }},
	{"trace", func(m *storage.Message) any { return position{&m.Trace} }},
	{"schema_version", func(m *storage.Message) any { return &m.SchemaVersion }},
}

var (
	selectMessage = "select " + names(messageColumns) + " from idem_messages where id = $1"
	insertMessage = insertion("idem_messages", names(messageColumns), "id")
	updateMessage = replacement("idem_messages", names(messageColumns), "id")
)

// messageValues are what the columns of a message hold.
func messageValues(m storage.Message) ([]any, error) {
	if m.ID == "" {
		return nil, errors.New("pgstore: a message without id")
	}
	m.RemoveAt = wholeSeconds(m.RemoveAt)
	row, err := values(messageColumns, &m)
	if err != nil {
		return nil, fmt.Errorf("pgstore: message %s: %w", m.ID, err)
	}
	queue, at, queued := m.Queue()
	return slices.Concat(row, derived(queue, at, queued, m.RemoveAt, m.State.Final() && !m.RemoveAt.IsZero())), nil
}

// wholeSeconds is the contract's resolution of RemoveAt, rounded up.
func wholeSeconds(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Add(time.Second - 1).Truncate(time.Second)
}

// readMessage reads the message, nil where there is none. The lock is "" or " for update".
func readMessage(ctx context.Context, on querier, id storage.MessageID, lock string) (*storage.Message, error) {
	var m storage.Message
	err := on.QueryRow(ctx, selectMessage+lock, string(id)).Scan(targets(messageColumns, &m)...)
	var malformed pgx.ScanArgError
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case errors.As(err, &malformed):
		return nil, &storage.MalformedError{ID: id, Cause: err}
	case err != nil:
		return nil, err
	}
	return &m, nil
}

// Message implements outbox.Store.
func (s *Store) Message(ctx context.Context, id storage.MessageID) (*storage.Message, error) {
	m, err := readMessage(ctx, s.pool, id, "")
	return m, wrapped("read message "+string(id), err)
}

// UpdateMessage implements outbox.Store.
func (s *Store) UpdateMessage(ctx context.Context, m storage.Message, fence storage.MessageFence) error {
	put, err := newPutMessage(m, &fence)
	return s.write(ctx, "write message "+string(m.ID), put, err)
}

// PatchMessage implements outbox.Store.
func (s *Store) PatchMessage(ctx context.Context, end storage.MessageEnd, fence storage.MessageFence) error {
	patch, err := newEndMessage(end, fence)
	return s.write(ctx, "patch message "+string(end.ID), patch, err)
}

// PostponeMessage implements outbox.Store.
func (s *Store) PostponeMessage(ctx context.Context, id storage.MessageID, at time.Time, fence storage.MessageFence) error {
	change := &changeMessage{id: id, fence: fence, change: func(m *storage.Message) { m.SweepAt = at }}
	err := admitsSome(fence)
	if at.IsZero() {
		err = errors.New("pgstore: postpone a message: the time must not be zero")
	}
	return s.write(ctx, "postpone message "+string(id), change, err)
}
