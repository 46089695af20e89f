package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/idem-go/idem-aws/idem/storage"
)

// item is one conditional write of a row. It does not change when it is sent, so it may be sent again, and twice at once.
type item interface {
	// name names the row. Rows are locked in the order of their names, so two transactions of the store wait for each other
	// in one direction only.
	name() string
	// content is what is written, and under which condition.
	content() any
	// read locks the row. conflict is why the condition fails, nil where it holds; write makes the write.
	read(ctx context.Context, tx pgx.Tx) (conflict error, write func(context.Context) error, err error)
}

// errRaced says that another transaction inserted the row after this one had found none. Nothing happened.
var errRaced = errors.New("pgstore: a row was inserted meanwhile")

// forUpdate locks what is read until the transaction ends.
const forUpdate = " for update"

// putRecord writes a whole record where the fence admits what is stored.
type putRecord struct {
	record storage.Record
	fence  storage.Fence
	values []any
}

// newPutRecord refuses what can't be stored whatever is there.
func (s *Store) newPutRecord(r storage.Record, fence storage.Fence) (*putRecord, error) {
	if err := hasAlternative(fence); err != nil {
		return nil, err
	}
	if err := s.fits(r.Response); err != nil {
		return nil, err
	}
	values, err := recordValues(r)
	return &putRecord{r, fence, values}, err
}

func (p *putRecord) name() string { return "record " + string(p.record.Key) }

func (p *putRecord) content() any { return []any{p.values, p.fence} }

func (p *putRecord) read(ctx context.Context, tx pgx.Tx) (error, func(context.Context) error, error) {
	stored, err := readRecord(ctx, tx, p.record.Key, forUpdate)
	if err != nil {
		return nil, nil, err
	}
	write := func(ctx context.Context) error {
		switch {
		case stored == nil:
			return inserted(tx.Exec(ctx, insertRecord, p.values...))
		case stored.OperationID == p.record.OperationID:
			return done(tx.Exec(ctx, updateRecord, p.values...))
		}
		// Another incarnation: nothing of the earlier one stays, not even what a later release keeps in columns of its own.
		if _, err := tx.Exec(ctx, "delete from idem_records where key = $1", string(p.record.Key)); err != nil {
			return err
		}
		return inserted(tx.Exec(ctx, insertRecord, p.values...))
	}
	return recordConflict(stored, p.fence), write, nil
}

func recordConflict(stored *storage.Record, fence storage.Fence) error {
	if stored != nil && fence.Admits(*stored) || stored == nil && fence.AdmitsAbsence() {
		return nil
	}
	return &storage.RecordConflictError{Existing: stored}
}

// hasAlternative refuses a fence that admits nothing.
func hasAlternative(f storage.Fence) error {
	if f.FreeAt.IsZero() && (f.OperationID == "" || f.Revision == "" && len(f.States) == 0) {
		return errors.New("pgstore: the fence matches nothing: it has no revision, no states and no FreeAt, or no operation id")
	}
	return nil
}

// changeRecord changes a part of the record that is stored.
type changeRecord struct {
	key     storage.RecordKey
	judge   func(stored *storage.Record) error
	change  func(*storage.Record)
	changes any
}

// newTouch changes a part of the record that satisfies the fence.
func newTouch(key storage.RecordKey, fence storage.Fence, change func(*storage.Record)) (*changeRecord, error) {
	if fence.AdmitsAbsence() {
		return nil, errors.New("pgstore: the fence allows a missing row, but the change needs an existing one")
	}
	judge := func(stored *storage.Record) error { return recordConflict(stored, fence) }
	return &changeRecord{key: key, judge: judge, change: change}, hasAlternative(fence)
}

// newEndRecord makes a pending record of the same incarnation final.
func (s *Store) newEndRecord(end storage.RecordEnd) (*changeRecord, error) {
	end.Response = copyResponse(end.Response)
	pending := storage.RecordCheck{Key: end.Key, OperationID: end.OperationID}
	return &changeRecord{
		key: end.Key, judge: func(stored *storage.Record) error { return checked(stored, pending) }, changes: end,
		change: func(r *storage.Record) {
			r.State, r.Response, r.Sealed, r.LastError = end.State, end.Response, end.Sealed, end.LastError
			r.Revision, r.DoneAt, r.ExpiresAt, r.FreeAt = end.Revision, end.DoneAt, end.ExpiresAt, end.FreeAt
		},
	}, s.fits(end.Response)
}

func checked(stored *storage.Record, check storage.RecordCheck) error {
	if check.Admits(stored) {
		return nil
	}
	return &storage.RecordConflictError{Existing: stored}
}

func (c *changeRecord) name() string { return "record " + string(c.key) }

func (c *changeRecord) content() any { return c.changes }

func (c *changeRecord) read(ctx context.Context, tx pgx.Tx) (error, func(context.Context) error, error) {
	stored, err := readRecord(ctx, tx, c.key, forUpdate)
	if err != nil {
		return nil, nil, err
	}
	return c.judge(stored), func(ctx context.Context) error {
		next := *stored
		c.change(&next)
		values, err := recordValues(next)
		if err != nil {
			return err
		}
		return done(tx.Exec(ctx, updateRecord, values...))
	}, nil
}

// checkRecord demands something of a record that stays as it is.
type checkRecord struct{ check storage.RecordCheck }

func (c checkRecord) name() string { return "record " + string(c.check.Key) }

func (c checkRecord) content() any { return c.check }

func (c checkRecord) read(ctx context.Context, tx pgx.Tx) (error, func(context.Context) error, error) {
	stored, err := readRecord(ctx, tx, c.check.Key, forUpdate)
	if err != nil {
		return nil, nil, err
	}
	return checked(stored, c.check), nothing, nil
}

func nothing(context.Context) error { return nil }

// putMessage inserts a message where there is none; with a fence it replaces the one that satisfies it.
type putMessage struct {
	message storage.Message
	fence   *storage.MessageFence
	values  []any
}

// newPutMessage refuses what can't be stored whatever is there.
func newPutMessage(m storage.Message, fence *storage.MessageFence) (*putMessage, error) {
	if fence != nil {
		if err := admitsSome(*fence); err != nil {
			return nil, err
		}
	}
	values, err := messageValues(m)
	return &putMessage{m, fence, values}, err
}

func (p *putMessage) name() string { return "message " + string(p.message.ID) }

func (p *putMessage) content() any { return []any{p.values, p.fence} }

func (p *putMessage) read(ctx context.Context, tx pgx.Tx) (error, func(context.Context) error, error) {
	stored, err := readMessage(ctx, tx, p.message.ID, forUpdate)
	if err != nil {
		return nil, nil, err
	}
	if p.fence != nil {
		return messageConflict(stored, *p.fence), func(ctx context.Context) error {
			return done(tx.Exec(ctx, updateMessage, p.values...))
		}, nil
	}
	write := func(ctx context.Context) error { return inserted(tx.Exec(ctx, insertMessage, p.values...)) }
	if stored != nil {
		return &storage.MessageConflictError{Existing: stored}, write, nil
	}
	return nil, write, nil
}

func messageConflict(stored *storage.Message, fence storage.MessageFence) error {
	if stored != nil && fence.Admits(*stored) {
		return nil
	}
	return &storage.MessageConflictError{Existing: stored}
}

// admitsSome refuses a fence that admits nothing.
func admitsSome(f storage.MessageFence) error {
	if f.Empty() {
		return errors.New("pgstore: the message's fence matches nothing: it has no revision and no states, and is not open")
	}
	return nil
}

// changeMessage changes a part of the message that satisfies the fence.
type changeMessage struct {
	id      storage.MessageID
	fence   storage.MessageFence
	change  func(*storage.Message)
	changes any
	// optional says that no message is none to change, and no conflict.
	optional bool
}

// newEndMessage makes of the message what the end says, and leaves the rest.
func newEndMessage(end storage.MessageEnd, fence storage.MessageFence) (*changeMessage, error) {
	end.KeptDelivered, end.KeptDeclined = copyKept(end.KeptDelivered), copyKept(end.KeptDeclined)
	return &changeMessage{id: end.ID, fence: fence, changes: end, change: func(m *storage.Message) {
		m.State, m.Revision, m.DoneAt, m.SweepAt = end.State, end.Revision, end.DoneAt, end.SweepAt
		m.Reference, m.LastOutcome, m.SettledBy = end.Reference, end.LastOutcome, end.SettledBy
		if end.KeptDelivered != nil {
			m.KeptDelivered = end.KeptDelivered
		}
		if end.KeptDeclined != nil {
			m.KeptDeclined = end.KeptDeclined
		}
		m.Unfailed = m.Unfailed || end.Unfailed
		if !end.RemoveAt.IsZero() {
			m.RemoveAt = end.RemoveAt
		}
	}}, admitsSome(fence)
}

func (c *changeMessage) name() string { return "message " + string(c.id) }

func (c *changeMessage) content() any { return []any{c.changes, c.fence} }

func (c *changeMessage) read(ctx context.Context, tx pgx.Tx) (error, func(context.Context) error, error) {
	stored, err := readMessage(ctx, tx, c.id, forUpdate)
	if err != nil {
		return nil, nil, err
	}
	if c.optional {
		if stored == nil {
			return nil, nothing, nil
		}
	} else if conflict := messageConflict(stored, c.fence); conflict != nil {
		return conflict, nothing, nil
	}
	return nil, func(ctx context.Context) error {
		next := *stored
		c.change(&next)
		values, err := messageValues(next)
		if err != nil {
			return err
		}
		return done(tx.Exec(ctx, updateMessage, values...))
	}, nil
}

// fits refuses a response that is larger than any the store takes.
func (s *Store) fits(r storage.Response) error {
	if n := r.Bytes(); n > s.cfg.ResponseBytesMax {
		return fmt.Errorf("%w: %d bytes, at most %d fit", storage.ErrResponseTooLarge, n, s.cfg.ResponseBytesMax)
	}
	return nil
}
