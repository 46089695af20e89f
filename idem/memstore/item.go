package memstore

import (
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// item is one conditional write. Its exported fields are its content, which a client request token stands for.
type item interface {
	// id names what is written: no two items of a transaction may have the same.
	id() string
	// validate refuses what can't be stored whatever is there.
	validate(s *Store) error
	// judge says why the condition fails. The lock is held.
	judge(s *Store) error
	// apply writes. The lock is held.
	apply(s *Store)
}

// putRecord inserts a record where there is none or an expired one; with a fence it replaces the one that satisfies it.
type putRecord struct {
	Record idem.Record
	Fence  *idem.Fence
	Now    time.Time
}

func (p putRecord) id() string { return "record " + string(p.Record.Key) }

func (p putRecord) validate(s *Store) error { return s.fits(p.Record.Response) }

func (p putRecord) judge(s *Store) error {
	stored, ok := s.records[p.Record.Key]
	won := !ok || stored.KeyFree(p.Now)
	if p.Fence != nil {
		won = ok && p.Fence.Admits(stored)
	}
	if won {
		return nil
	}
	return &idem.RecordConflictError{Existing: s.seen(p.Record.Key)}
}

func (p putRecord) apply(s *Store) {
	r := copyRecord(p.Record)
	r.Chunks = 0 // bodies lie whole in memory; reading decides what counts as chunked
	s.records[r.Key] = r
}

// endRecord makes a pending record of the same incarnation final.
type endRecord struct{ End idem.RecordEnd }

func (e endRecord) id() string { return "record " + string(e.End.Key) }

func (e endRecord) validate(s *Store) error { return s.fits(e.End.Response) }

func (e endRecord) judge(s *Store) error {
	stored, ok := s.records[e.End.Key]
	if ok && stored.State == idem.StatePending && stored.OperationID == e.End.OperationID {
		return nil
	}
	return &idem.RecordConflictError{Existing: s.seen(e.End.Key)}
}

func (e endRecord) apply(s *Store) {
	r := s.records[e.End.Key]
	r.State, r.Response, r.Sealed, r.LastError = e.End.State, e.End.Response, e.End.Sealed, e.End.LastError
	r.DoneAt, r.ExpiresAt = e.End.DoneAt, e.End.ExpiresAt
	s.records[r.Key] = copyRecord(r)
}

// putMessage inserts a message where there is none; with a fence it replaces the one that satisfies it.
type putMessage struct {
	Message idem.Message
	Fence   *idem.MessageFence
}

func (p putMessage) id() string { return "message " + string(p.Message.ID) }

func (p putMessage) validate(*Store) error { return nil }

func (p putMessage) judge(s *Store) error {
	stored, ok := s.messages[p.Message.ID]
	won := !ok
	if p.Fence != nil {
		won = ok && p.Fence.Admits(stored)
	}
	if won {
		return nil
	}
	return &idem.MessageConflictError{Existing: s.message(p.Message.ID)}
}

func (p putMessage) apply(s *Store) { s.messages[p.Message.ID] = copyMessage(p.Message) }

// endMessage is a settlement's part on a message that is not final.
type endMessage struct {
	End   idem.MessageEnd
	Fence *idem.MessageFence
}

func (e endMessage) id() string { return "message " + string(e.End.ID) }

func (e endMessage) validate(*Store) error { return nil }

func (e endMessage) judge(s *Store) error {
	stored, ok := s.messages[e.End.ID]
	if ok && !stored.State.Final() && (e.Fence == nil || e.Fence.Admits(stored)) {
		return nil
	}
	return &idem.MessageConflictError{Existing: s.message(e.End.ID)}
}

func (e endMessage) apply(s *Store) {
	m := s.messages[e.End.ID]
	m.State, m.DoneAt, m.Retention, m.SweepAt = e.End.State, e.End.DoneAt, e.End.Retention, e.End.SweepAt
	m.Reference, m.LastOutcome = e.End.Reference, e.End.LastOutcome
	if len(e.End.Evidence) > 0 {
		m.Evidence = e.End.Evidence
	}
	s.messages[m.ID] = copyMessage(m)
}

// fits refuses a response that is larger than any the store takes.
func (s *Store) fits(r idem.Response) error {
	if n := r.Bytes(); n > s.cfg.ResponseBytesMax {
		return fmt.Errorf("%w: %d bytes, at most %d fit", idem.ErrResponseTooLarge, n, s.cfg.ResponseBytesMax)
	}
	return nil
}
