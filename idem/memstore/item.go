package memstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
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
	Record storage.Record
	Fence  storage.Fence
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
func (s *Store) judgeRecord(key storage.RecordKey, fence storage.Fence) error {
	stored, ok := s.records[key]
	if ok && fence.Admits(stored) || !ok && fence.AdmitsAbsence() {
		return nil
	}
	return &storage.RecordConflictError{Existing: s.seen(key)}
}

// hasAlternative refuses a fence that admits nothing.
func hasAlternative(f storage.Fence) error {
	if f.FreeAt.IsZero() && (f.OperationID == "" || f.Revision == "" && len(f.States) == 0) {
		return errors.New("memstore: the fence matches nothing: it has no revision, no states and no FreeAt, or no operation id")
	}
	return nil
}

func (p putRecord) apply(s *Store) {
	r := copyRecord(p.Record)
	r.Chunks, r.ChunksDigest = 0, "" // bodies lie whole in memory; reading decides what counts as chunked
	s.records[r.Key] = r
}

// touchRecord changes a part of the record that satisfies the fence.
type touchRecord struct {
	Key    storage.RecordKey
	Fence  storage.Fence
	change func(*storage.Record)
}

func (t touchRecord) id() string { return "record " + string(t.Key) }

func (t touchRecord) validate(*Store) error {
	if t.Fence.AdmitsAbsence() {
		return errors.New("memstore: the fence allows a missing row, but the change needs an existing one")
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
type endRecord struct{ End storage.RecordEnd }

func (e endRecord) id() string { return "record " + string(e.End.Key) }

func (e endRecord) validate(s *Store) error { return s.fits(e.End.Response) }

func (e endRecord) judge(s *Store) error {
	stored, ok := s.records[e.End.Key]
	if ok && stored.State == storage.StatePending && stored.OperationID == e.End.OperationID {
		return nil
	}
	return &storage.RecordConflictError{Existing: s.seen(e.End.Key)}
}

func (e endRecord) apply(s *Store) {
	r := s.records[e.End.Key]
	r.State, r.Response, r.Sealed, r.LastError = e.End.State, e.End.Response, e.End.Sealed, e.End.LastError
	r.Revision, r.DoneAt, r.ExpiresAt, r.FreeAt = e.End.Revision, e.End.DoneAt, e.End.ExpiresAt, e.End.FreeAt
	s.records[r.Key] = copyRecord(r)
}

// checkRecord demands something of a record that stays as it is.
type checkRecord struct{ Check storage.RecordCheck }

func (c checkRecord) id() string { return "record " + string(c.Check.Key) }

func (c checkRecord) validate(*Store) error { return nil }

func (c checkRecord) judge(s *Store) error {
	var existing *storage.Record
	if stored, ok := s.records[c.Check.Key]; ok {
		existing = &stored
	}
	if c.Check.Admits(existing) {
		return nil
	}
	return &storage.RecordConflictError{Existing: s.seen(c.Check.Key)}
}

func (c checkRecord) apply(*Store) {}

// putMessage inserts a message where there is none; with a fence it replaces the one that satisfies it.
type putMessage struct {
	Message storage.Message
	Fence   *storage.MessageFence
}

func (p putMessage) id() string { return "message " + string(p.Message.ID) }

func (p putMessage) validate(*Store) error {
	if p.Fence != nil {
		return admitsSome(*p.Fence)
	}
	return nil
}

func (p putMessage) judge(s *Store) error {
	if p.Fence != nil {
		return s.judgeMessage(p.Message.ID, *p.Fence)
	}
	if existing := s.message(p.Message.ID); existing != nil {
		return &storage.MessageConflictError{Existing: existing}
	}
	return nil
}

// judgeMessage returns a conflict where the fence does not admit what is stored. The lock is held.
func (s *Store) judgeMessage(id storage.MessageID, fence storage.MessageFence) error {
	if stored, ok := s.messages[id]; ok && fence.Admits(stored) {
		return nil
	}
	return &storage.MessageConflictError{Existing: s.message(id)}
}

// admitsSome refuses a fence that admits nothing.
func admitsSome(f storage.MessageFence) error {
	if f.Empty() {
		return errors.New("memstore: the message's fence matches nothing: it has no revision and no states, and is not open")
	}
	return nil
}

func (p putMessage) apply(s *Store) { s.messages[p.Message.ID] = copyMessage(p.Message) }

// endMessage changes a part of the message that satisfies the fence.
type endMessage struct {
	End   storage.MessageEnd
	Fence storage.MessageFence
}

func (e endMessage) id() string { return "message " + string(e.End.ID) }

func (e endMessage) validate(*Store) error { return admitsSome(e.Fence) }

func (e endMessage) judge(s *Store) error { return s.judgeMessage(e.End.ID, e.Fence) }

func (e endMessage) apply(s *Store) {
	m := s.messages[e.End.ID]
	m.State, m.Revision, m.DoneAt, m.SweepAt = e.End.State, e.End.Revision, e.End.DoneAt, e.End.SweepAt
	m.Reference, m.LastOutcome, m.SettledBy = e.End.Reference, e.End.LastOutcome, e.End.SettledBy
	if e.End.KeptDelivered != nil {
		m.KeptDelivered = e.End.KeptDelivered
	}
	if e.End.KeptDeclined != nil {
		m.KeptDeclined = e.End.KeptDeclined
	}
	m.Unfailed = m.Unfailed || e.End.Unfailed
	if !e.End.RemoveAt.IsZero() {
		m.RemoveAt = e.End.RemoveAt
	}
	s.messages[m.ID] = copyMessage(m)
}

// postponeMessage moves a message within its queue.
type postponeMessage struct {
	ID    storage.MessageID
	At    time.Time
	Fence storage.MessageFence
}

func (p postponeMessage) id() string { return "message " + string(p.ID) }

func (p postponeMessage) validate(*Store) error { return admitsSome(p.Fence) }

func (p postponeMessage) judge(s *Store) error { return s.judgeMessage(p.ID, p.Fence) }

func (p postponeMessage) apply(s *Store) {
	m := s.messages[p.ID]
	m.SweepAt = p.At
	s.messages[m.ID] = copyMessage(m)
}

// removeMessage lets native TTL remove an earlier message of a chain that ends.
type removeMessage struct {
	ID storage.MessageID
	At time.Time
}

func (r removeMessage) id() string { return "message " + string(r.ID) }

func (r removeMessage) validate(*Store) error { return nil }

func (r removeMessage) judge(*Store) error { return nil }

func (r removeMessage) apply(s *Store) {
	if m, ok := s.messages[r.ID]; ok {
		m.RemoveAt = r.At
		s.messages[r.ID] = copyMessage(m)
	}
}

// fits refuses a response that is larger than any the store takes.
func (s *Store) fits(r storage.Response) error {
	if n := r.Bytes(); n > s.cfg.ResponseBytesMax {
		return fmt.Errorf("%w: %d bytes, at most %d fit", storage.ErrResponseTooLarge, n, s.cfg.ResponseBytesMax)
	}
	return nil
}
