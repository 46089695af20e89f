package dynamo

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// encodeRecord makes the record's item and the chunks of its response. It returns [storage.ErrResponseTooLarge] for a
// response that does not fit.
func (s *Store) encodeRecord(r storage.Record) (it item, chunks []item, err error) {
	if r.Key == "" || r.OperationID == "" {
		return nil, nil, errors.New("a record without key or operation id")
	}
	w := newRecordWriter()
	w.name(schema.RecordKey, string(r.Key))
	w.name(schema.State, string(r.State))
	w.operation(schema.OperationID, r.Key, r.OperationID)
	w.number(schema.Epoch, r.Epoch)
	w.name(schema.Owner, string(r.Owner))
	w.revision(schema.Revision, r.Revision)
	w.instant(schema.LeaseUntil, r.LeaseUntil)
	w.name(schema.Tenant, r.Tenant)
	w.name(schema.OperationName, r.Operation)
	w.name(schema.Kind, string(r.Kind))
	w.name(schema.Principal, r.Principal)
	w.flag(schema.SafeToRunAgain, r.SafeToRunAgain)
	w.flag(schema.Observed, r.Observed)
	if r.Fingerprint != (canonical.Fingerprint{}) {
		w.number(schema.FingerprintVersion, int64(r.Fingerprint.Version))
		w.name(schema.FingerprintKeyID, r.Fingerprint.KeyID)
		w.name(schema.Selection, r.Fingerprint.Selection)
		sum, parts := r.Fingerprint.Sum, r.Fingerprint.Parts // copies, so that the whole record need not live as long
		w.bytes(schema.Fingerprint, sum[:])
		if parts != (canonical.Parts{}) {
			w.bytes(schema.FingerprintParts, parts[:])
		}
	}
	w.instant(schema.CreatedAt, r.CreatedAt)
	w.instant(schema.DoneAt, r.DoneAt)
	w.life(r)
	w.duration(schema.Retention, r.Retention)
	w.lifeAfter(r.Expiry)
	w.flag(schema.RecordOnly, r.RecordOnly)
	w.number(schema.Attempts, int64(r.Attempts))
	w.note(schema.LastError, r.LastError)
	w.trace(r.Trace)
	w.number(schema.SchemaVersion, int64(r.SchemaVersion))
	w.carry(r.Unknown)
	w.lookAt(r)
	if queue, at, ok := r.Queue(); ok {
		w.name(schema.Queue, s.queueKey(queue, string(r.Key)))
		w.item[schema.QueueAt] = w.decimal(max(0, at.UnixMilli()))
	}
	removeAfter, may := r.RemoveAfter()
	w.expiry(schema.TTL, removeAfter, may)
	body, err := s.writeResponse(w, r)
	if err == nil {
		err = w.err
	}
	if err != nil {
		return nil, nil, err
	}
	if size := itemBytes(w.item); size > itemBytesMax {
		if size-r.Response.Bytes() <= itemBytesMax {
			return nil, nil, fmt.Errorf("%w: the record would have %d bytes, an item has at most %d", storage.ErrResponseTooLarge, size, itemBytesMax)
		}
		return nil, nil, fmt.Errorf("the record has %d bytes, an item has at most %d", size, itemBytesMax)
	}
	return w.item, s.chunkItems(r, body), nil
}

// decodeRecord reads a record's item; the body of a chunked response stays empty. A record of a schema, state or kind
// that this release doesn't know is returned, and says itself that it isn't readable; an attribute of the
// wrong type in a known schema is a [*storage.MalformedRecordError].
func (s *Store) decodeRecord(it item) (*storage.Record, error) {
	r := &reader{item: it}
	version := r.count(schema.SchemaVersion, math.MaxInt32)
	r.lenient = version != storage.SchemaVersion && r.err == nil
	key := storage.RecordKey(r.text(schema.RecordKey))
	record := storage.Record{
		Key:            key,
		State:          storage.State(r.text(schema.State)),
		OperationID:    r.operation(key),
		Epoch:          r.number(schema.Epoch),
		Owner:          storage.Owner(r.text(schema.Owner)),
		Revision:       r.revision(),
		LeaseUntil:     r.instant(schema.LeaseUntil),
		LookAt:         r.queueAt(),
		Tenant:         r.text(schema.Tenant),
		Operation:      r.text(schema.OperationName),
		Kind:           storage.Kind(r.text(schema.Kind)),
		Principal:      r.text(schema.Principal),
		SafeToRunAgain: r.flag(schema.SafeToRunAgain),
		Observed:       r.flag(schema.Observed),
		Fingerprint:    r.fingerprint(),
		CreatedAt:      r.instant(schema.CreatedAt),
		DoneAt:         r.instant(schema.DoneAt),
		FreeAt:         r.instant(schema.FreeAt),
		Retention:      r.duration(schema.Retention),
		Expiry:         r.lifeAfter(),
		RecordOnly:     r.flag(schema.RecordOnly),
		Sealed:         r.sealed(),
		Attempts:       r.count(schema.Attempts, math.MaxInt32),
		LastError:      r.text(schema.LastError),
		Trace:          r.trace(),
		Unknown:        r.unknown(knownOfRecord),
		SchemaVersion:  version,
	}
	if record.LookAt.Equal(record.LeaseUntil) {
		record.LookAt = time.Time{}
	}
	record.ExpiresAt = r.expiresAt(record)
	record.Response, record.Chunks, record.ChunksDigest = s.readResponse(r)
	for _, required := range []struct{ attribute, value string }{
		{schema.RecordKey, string(record.Key)}, {schema.OperationID, string(record.OperationID)},
	} {
		if required.value == "" {
			r.malformed(required.attribute)
		}
	}
	if r.err != nil {
		return nil, &storage.MalformedRecordError{Key: key, Cause: r.err}
	}
	return &record, nil
}

// lookAt writes where the record stands in its queue. Where it stands in none the time alone puts it into no index.
func (w *writer) lookAt(r storage.Record) {
	if !r.LookAt.IsZero() {
		w.item[schema.QueueAt] = w.decimal(max(0, r.LookAt.UnixMilli()))
	}
}

// life writes when the record's key is free, which conditions judge, and until when it answers, where that is another time
// than a reader takes it for.
func (w *writer) life(r storage.Record) {
	w.instant(schema.FreeAt, r.FreeAt)
	switch taken := answersUntil(r); {
	case r.ExpiresAt.IsZero() && taken.IsZero():
	case r.ExpiresAt.IsZero():
		w.item[schema.AnswersUntil] = w.decimal(0)
	case taken.IsZero() || r.ExpiresAt.UnixMilli() != taken.UnixMilli():
		w.instant(schema.AnswersUntil, r.ExpiresAt)
	}
}

// expiresAt reads until when the record answers; the rest of it is read already.
func (r *reader) expiresAt(record storage.Record) time.Time {
	if _, ok := r.item[schema.AnswersUntil]; !ok {
		return answersUntil(record)
	}
	if ms := r.number(schema.AnswersUntil); ms != 0 {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

// answersUntil is when a record expires that does not say so: a final one a retention after it was done, if its key is held
// until then, else when its key is free.
func answersUntil(r storage.Record) time.Time {
	if !r.State.Final() || r.FreeAt.IsZero() {
		return time.Time{}
	}
	end := r.DoneAt.Truncate(time.Millisecond).Add(r.Retention.Truncate(time.Millisecond))
	if r.DoneAt.IsZero() || r.Retention == 0 || end.After(r.FreeAt) {
		return r.FreeAt
	}
	return end
}

func (w *writer) lifeAfter(e storage.Expiry) {
	w.duration(schema.KeepFor, e.KeepFor)
	w.flag(schema.Gone, e.Gone)
	w.flag(schema.ResourceBacked, e.ResourceBacked)
}

func (r *reader) lifeAfter() storage.Expiry {
	return storage.Expiry{
		KeepFor: r.duration(schema.KeepFor), Gone: r.flag(schema.Gone), ResourceBacked: r.flag(schema.ResourceBacked),
	}
}

func (r *reader) fingerprint() canonical.Fingerprint {
	fingerprint := canonical.Fingerprint{
		Version:   r.count(schema.FingerprintVersion, math.MaxInt32),
		KeyID:     r.text(schema.FingerprintKeyID),
		Selection: r.text(schema.Selection),
	}
	copy(fingerprint.Parts[:], r.bytes(schema.FingerprintParts)) // which decide nothing
	switch sum := r.bytes(schema.Fingerprint); len(sum) {
	case 0:
	case sha256.Size:
		fingerprint.Sum = [sha256.Size]byte(sum)
	default:
		r.malformed(schema.Fingerprint)
	}
	return fingerprint
}
