package dynamo

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// schemaSealed is the schema version of the row of a sealed message, which is otherwise as any: a release that can't open
// it leaves it alone, rather than call with what it can't read.
const schemaSealed = 100 + storage.SchemaVersion

// encodeMessage makes the message's item.
func (s *Store) encodeMessage(m storage.Message) (item, error) {
	if m.ID == "" {
		return nil, errors.New("a message without id")
	}
	w := &writer{item: item{}}
	w.name(schema.MessageID, string(m.ID))
	w.number(schema.MessageIndex, int64(m.Index))
	w.origin(m)
	w.name(schema.Tenant, m.Tenant)
	w.name(schema.Topic, m.Topic)
	w.bytes(schema.Payload, m.Payload)
	w.flag(schema.Sealed, m.Sealed)
	w.name(schema.State, string(m.State))
	w.number(schema.Epoch, m.Epoch)
	w.name(schema.Owner, string(m.Owner))
	w.revision(schema.Revision, m.Revision)
	w.instant(schema.LeaseUntil, m.LeaseUntil)
	w.instant(schema.CreatedAt, m.CreatedAt)
	w.instant(schema.FirstClaimedAt, m.FirstClaimedAt)
	w.instant(schema.NextAttemptAt, m.NextAttemptAt)
	w.instant(schema.OpenSince, m.OpenSince)
	w.instant(schema.DoneAt, m.DoneAt)
	w.instant(schema.RedrivenAt, m.RedrivenAt)
	w.number(schema.Attempts, int64(m.Attempts))
	w.duration(schema.Retention, m.Retention)
	w.lifeAfter(m.Expiry)
	w.flag(schema.Detached, m.Detached)
	w.note(schema.ProviderReference, m.Reference)
	w.note(schema.LastOutcome, m.LastOutcome)
	w.note(schema.SettledBy, letterOf(m.SettledBy))
	w.kept(schema.KeptDelivered, m.KeptDelivered)
	w.kept(schema.KeptDeclined, m.KeptDeclined)
	w.number(schema.Died, int64(m.Died))
	w.flag(schema.Refused, m.Refused)
	w.flag(schema.Unfailed, m.Unfailed)
	w.flag(schema.Undoes, m.Undoes)
	w.instant(schema.ClearedAt, m.ClearedAt)
	w.trace(m.Trace)
	version := m.SchemaVersion
	if m.Sealed && version == storage.SchemaVersion {
		version = schemaSealed
	}
	w.number(schema.SchemaVersion, int64(version))
	w.carry(m.Unknown)
	s.writeQueue(w, m)
	w.expiry(schema.TTL, m.RemoveAt, m.State.Final() && !m.RemoveAt.IsZero())
	if w.err != nil {
		return nil, w.err
	}
	if size := itemBytes(w.item); size > itemBytesMax {
		return nil, fmt.Errorf("the message has %d bytes, an item has at most %d", size, itemBytesMax)
	}
	return w.item, nil
}

// origin writes which operation and record the message belongs to, as far as its id does not tell it.
func (w *writer) origin(m storage.Message) {
	operation, record := originOf(m.ID)
	if m.OperationID != operation {
		w.name(schema.OperationID, string(m.OperationID))
	}
	if m.RecordKey != record {
		w.name(schema.MessageRecord, string(m.RecordKey))
	}
}

// origin reads what the writer's origin wrote.
func (r *reader) origin(id storage.MessageID) (storage.OperationID, storage.RecordKey) {
	operation, record := originOf(id)
	if told := r.text(schema.OperationID); told != "" {
		operation = storage.OperationID(told)
	}
	if told := r.text(schema.MessageRecord); told != "" {
		record = storage.RecordKey(told)
	}
	return operation, record
}

// originOf is what a message's id tells of its operation and record: nothing where it is no such id.
func originOf(id storage.MessageID) (storage.OperationID, storage.RecordKey) {
	operation, _, err := id.Operation()
	if err != nil {
		return "", ""
	}
	record, err := operation.RecordKey()
	if err != nil {
		return "", ""
	}
	return operation, record
}

// writeQueue writes where the message stands in the sparse index. What stands in no queue keeps its time: an item is in
// the index only if it has both keys.
func (s *Store) writeQueue(w *writer, m storage.Message) {
	w.instant(schema.QueueAt, m.SweepAt)
	queue, at, ok := m.Queue()
	if !ok {
		return
	}
	w.name(schema.Queue, s.queueKey(queue, string(m.ID)))
	if at.IsZero() { // at once; without the key the message would be lost to the sweep
		w.item[schema.QueueAt] = w.decimal(0)
	}
}

// decodeMessage reads a message's item, as decodeRecord does a record's.
func (s *Store) decodeMessage(it item) (*storage.Message, error) {
	r := &reader{item: it}
	version := r.count(schema.SchemaVersion, math.MaxInt32)
	if version == schemaSealed {
		version = storage.SchemaVersion
	}
	r.lenient = version != storage.SchemaVersion && r.err == nil
	id := storage.MessageID(r.text(schema.MessageID))
	operation, record := r.origin(id)
	message := storage.Message{
		ID:             id,
		Index:          r.count(schema.MessageIndex, math.MaxInt32),
		OperationID:    operation,
		RecordKey:      record,
		Tenant:         r.text(schema.Tenant),
		Topic:          r.text(schema.Topic),
		Payload:        r.bytes(schema.Payload),
		Sealed:         r.flag(schema.Sealed),
		State:          storage.MessageState(r.text(schema.State)),
		Epoch:          r.number(schema.Epoch),
		Owner:          storage.Owner(r.text(schema.Owner)),
		Revision:       r.revision(),
		LeaseUntil:     r.instant(schema.LeaseUntil),
		CreatedAt:      r.instant(schema.CreatedAt),
		FirstClaimedAt: r.instant(schema.FirstClaimedAt),
		NextAttemptAt:  r.instant(schema.NextAttemptAt),
		SweepAt:        r.queueAt(),
		OpenSince:      r.instant(schema.OpenSince),
		DoneAt:         r.instant(schema.DoneAt),
		RedrivenAt:     r.instant(schema.RedrivenAt),
		Attempts:       r.count(schema.Attempts, math.MaxInt32),
		Retention:      r.duration(schema.Retention),
		Expiry:         r.lifeAfter(),
		Detached:       r.flag(schema.Detached),
		Reference:      r.text(schema.ProviderReference),
		LastOutcome:    r.text(schema.LastOutcome),
		SettledBy:      settlerOf(r.text(schema.SettledBy)),
		KeptDelivered:  r.kept(schema.KeptDelivered),
		KeptDeclined:   r.kept(schema.KeptDeclined),
		Died:           r.count(schema.Died, math.MaxInt32),
		Refused:        r.flag(schema.Refused),
		Unfailed:       r.flag(schema.Unfailed),
		Undoes:         r.flag(schema.Undoes),
		ClearedAt:      r.instant(schema.ClearedAt),
		RemoveAt:       r.removeAt(),
		Trace:          r.trace(),
		Unknown:        r.unknown(knownOfMessage),
		SchemaVersion:  version,
	}
	if message.ID == "" {
		r.malformed(schema.MessageID)
	}
	if r.err != nil {
		return nil, &storage.MalformedError{ID: message.ID, Cause: r.err}
	}
	return &message, nil
}

// settlerLetters are how a row names who ended its message: one letter each, because every settlement writes it.
var settlerLetters = map[storage.Settler]string{
	storage.SettledByWorker: "w", storage.SettledByInline: "i", storage.SettledBySweep: "s", storage.SettledByReconciler: "r",
	storage.SettledByWebhook: "h", storage.SettledByOperator: "o",
}

// letterOf is a settler's letter, or its name where it has none.
func letterOf(by storage.Settler) string { return cmp.Or(settlerLetters[by], string(by)) }

// settlerOf reads what letterOf made; the letter of a later release stands for itself.
func settlerOf(letter string) storage.Settler {
	for by, known := range settlerLetters {
		if letter == known {
			return by
		}
	}
	return storage.Settler(letter)
}

// queueAt reads the index's time, in which 0 stands for "at once".
func (r *reader) queueAt() time.Time {
	if ms := r.number(schema.QueueAt); ms != 0 {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

// removeAt reads native TTL's attribute, which is in seconds.
func (r *reader) removeAt() time.Time {
	if seconds := r.number(schema.TTL); seconds != 0 {
		return time.Unix(seconds, 0).UTC()
	}
	return time.Time{}
}

// kept writes evidence, which is there even where it says nothing.
func (w *writer) kept(attribute string, k *storage.Kept) {
	if k == nil {
		return
	}
	of := &writer{item: item{}}
	of.note(schema.ProviderReference, k.Reference)
	of.bytes(schema.Evidence, k.Evidence)
	w.item[attribute] = &types.AttributeValueMemberM{Value: of.item}
}

func (r *reader) kept(attribute string) *storage.Kept {
	switch v := r.item[attribute].(type) {
	case nil:
	case *types.AttributeValueMemberM:
		of := &reader{item: v.Value, lenient: r.lenient}
		k := &storage.Kept{Reference: of.text(schema.ProviderReference), Evidence: of.bytes(schema.Evidence)}
		if of.err == nil {
			return k
		}
		r.malformed(attribute)
	default:
		r.malformed(attribute)
	}
	return nil
}
