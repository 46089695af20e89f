package memstore

import (
	"errors"
	"fmt"

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

// putRecord writes a whole record where the fence admits what is stored.
type putRecord struct {
	Record idem.Record
	Fence  idem.Fence
}

func (p putRecord) id() string { return "record " + string(p.Record.Key) }

func (p putRecord) validate(s *Store) error {
	if err := hasAlternative(p.Fence); err != nil {
		return err
	}
	return s.fits(p.Record.Response)
}

func (p putRecord) judge(s *Store) error { return s.judgeRecord(p.Record.Key, p.Fence) }

// judgeRecord returns a conflict where the fence does not admit what is stored. The lock is held.
func (s *Store) judgeRecord(key idem.RecordKey, fence idem.Fence) error {
	stored, ok := s.records[key]
	if ok && fence.Admits(stored) || !ok && fence.AdmitsAbsence() {
		return nil
	}
	return &idem.RecordConflictError{Existing: s.seen(key)}
}

// hasAlternative refuses a fence that admits nothing.
func hasAlternative(f idem.Fence) error {
	if f.FreeAt.IsZero() && (f.OperationID == "" || f.Revision == "" && len(f.States) == 0) {
		return errors.New("memstore: a fence that admits nothing: it has no revision, no states and no FreeAt, or no operation id")
	}
	return nil
}

func (p putRecord) apply(s *Store) {
	r := copyRecord(p.Record)
	r.Chunks = 0 // bodies lie whole in memory; reading decides what counts as chunked
	s.records[r.Key] = r
}

// touchRecord changes a part of the record that satisfies the fence.
type touchRecord struct {
	Key    idem.RecordKey
	Fence  idem.Fence
	change func(*idem.Record)
}

func (t touchRecord) id() string { return "record " + string(t.Key) }

func (t touchRecord) validate(*Store) error {
	if t.Fence.AdmitsAbsence() {
		return errors.New("memstore: a fence that admits absence, for a change of what is there")
	}
	return hasAlternative(t.Fence)
}

func (t touchRecord) judge(s *Store) error { return s.judgeRecord(t.Key, t.Fence) }

func (t touchRecord) apply(s *Store) {
	r := s.records[t.Key]
	t.change(&r)
	s.records[t.Key] = copyRecord(r)
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
	r.Revision, r.DoneAt, r.ExpiresAt, r.FreeAt = e.End.Revision, e.End.DoneAt, e.End.ExpiresAt, e.End.FreeAt
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
	m.Revision, m.Reference, m.LastOutcome = e.End.Revision, e.End.Reference, e.End.LastOutcome
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
