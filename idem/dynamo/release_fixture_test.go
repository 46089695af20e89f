package dynamo_test

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/storage"
)

// releaseConfig makes chunks of bodies that a person can still look at.
var releaseConfig = dynamo.Config{ChunkBytes: 4 << 10, ResponseBytesMax: 64 << 10}

// released is when release 1 wrote testdata/release-1.
var released = time.Date(2101, 2, 3, 4, 5, 6, int(789*time.Millisecond), time.UTC)

// noise is a body that can't be compressed, always the same.
func noise(size int) []byte {
	var body []byte
	for sum := sha256.Sum256([]byte("release 1")); len(body) < size; sum = sha256.Sum256(sum[:]) {
		body = append(body, sum[:]...)
	}
	return body[:size]
}

// doubled says everything twice, so that compression makes half of it.
func doubled(body []byte) []byte {
	var twice []byte
	for piece := range slices.Chunk(body, 256) {
		twice = append(append(twice, piece...), piece...)
	}
	return twice
}

// releaseRevision is a revision that its name makes.
func releaseRevision(t *testing.T, name string) storage.Revision {
	t.Helper()
	digest := sha256.Sum256([]byte("revision of " + name))
	revision, err := storage.IDGenerator{Random: bytes.NewReader(digest[:])}.Revision()
	must(t, err)
	return revision
}

// releaseRecord is a record as it is reserved, under a key that its name makes.
func releaseRecord(t *testing.T, name string, kind storage.Kind) storage.Record {
	t.Helper()
	key := idem.Scope{Tenant: "tenant-a", Operation: "orders.create", Key: name}.RecordKey()
	digest := sha256.Sum256([]byte(name))
	id, err := storage.IDGenerator{Random: bytes.NewReader(digest[:])}.OperationID(key)
	must(t, err)
	return storage.Record{
		Key: key, State: storage.StateInProgress, OperationID: id, Epoch: 1, Owner: storage.Owner("owner-" + name),
		Revision: releaseRevision(t, name), LeaseUntil: released.Add(time.Minute),
		Tenant: "tenant-a", Operation: "orders.create", Kind: kind, Fingerprint: canonical.Fingerprint{Version: 1, Sum: digest},
		CreatedAt: released, Retention: 24 * time.Hour, Attempts: 1, SchemaVersion: 1,
	}
}

// releaseRecords are the records of testdata/release-1/records, by the name of their file: every state, and every way that
// a response is stored.
func releaseRecords(t *testing.T) map[string]storage.Record {
	t.Helper()
	records := map[string]storage.Record{}
	add := func(name string, kind storage.Kind, change func(*storage.Record)) {
		r := releaseRecord(t, name, kind)
		change(&r)
		records[name] = r
	}
	final := func(status int, body []byte) func(*storage.Record) {
		return func(r *storage.Record) {
			r.State, r.LeaseUntil, r.DoneAt, r.ExpiresAt = storage.StateCompleted, time.Time{}, released.Add(time.Second), released.Add(24*time.Hour+time.Second)
			r.FreeAt = r.ExpiresAt
			r.Response = storage.Response{Status: status, Header: []storage.Field{{Name: "Content-Type", Value: "application/json"}}, Body: body}
		}
	}
	add("in-progress-atomic", storage.KindAtomic, func(*storage.Record) {})
	add("in-progress-opaque", storage.KindWrapped, func(*storage.Record) {})
	add("in-progress-safe", storage.KindWrapped, func(r *storage.Record) {
		r.SafeToRunAgain, r.Principal, r.Epoch, r.Attempts = true, "session-7", 3, 3
		r.Fingerprint.KeyID = "2026-11"
	})
	add("pending", storage.KindDeferred, func(r *storage.Record) {
		r.State, r.LeaseUntil = storage.StatePending, time.Time{}
		r.Response = storage.Response{Status: 202, Header: []storage.Field{{Name: "Location", Value: "/v1/operations/" + string(r.OperationID)}}, Body: []byte(`{"state":"pending"}`)}
	})
	add("completed", storage.KindOptimistic, final(201, []byte(`{"id":"ord_1"}`)))
	add("completed-empty", storage.KindAtomic, final(204, nil))
	add("completed-compressed", storage.KindAtomic, final(200, bytes.Repeat([]byte(`{"id":"ord_1"},`), 200)))
	add("completed-chunked", storage.KindAtomic, final(200, noise(9<<10)))
	add("completed-chunked-compressed", storage.KindAtomic, final(200, doubled(noise(9<<10))))
	add("completed-bytes", storage.KindWrapped, func(r *storage.Record) {
		final(200, noise(100))(r)
		r.Response.Header = []storage.Field{{Name: "X-Latin", Value: "caf\xe9"}, {Name: "Link", Value: "a"}, {Name: "Link", Value: "b"}}
	})
	add("failed", storage.KindDeferred, func(r *storage.Record) {
		final(502, []byte(`{"code":"provider_unavailable"}`))(r)
		r.State, r.LastError = storage.StateFailed, "attempts over"
	})
	add("completed-gone", storage.KindAtomic, func(r *storage.Record) {
		final(201, []byte(`{"id":"ord_1"}`))(r)
		r.RecordOnly, r.Expiry = true, storage.Expiry{KeepFor: time.Hour, Gone: true}
		r.FreeAt = r.ExpiresAt.Add(time.Hour + 2*time.Second)
	})
	add("completed-extended", storage.KindAtomic, func(r *storage.Record) {
		final(201, []byte(`{"id":"ord_1"}`))(r)
		r.ExpiresAt, r.FreeAt = r.DoneAt.Add(48*time.Hour), r.DoneAt.Add(48*time.Hour+2*time.Second)
	})
	add("completed-resource", storage.KindAtomic, func(r *storage.Record) {
		final(201, []byte(`{"id":"ord_1"}`))(r)
		r.Expiry, r.ExpiresAt, r.FreeAt = storage.Expiry{ResourceBacked: true}, time.Time{}, time.Time{}
	})
	add("failed-retryable", storage.KindAtomic, func(r *storage.Record) {
		r.State, r.LastError, r.Epoch = storage.StateFailedRetryable, "the commit had no reply and was fenced off", 2
	})
	add("failed-retryable-freed", storage.KindWrapped, func(r *storage.Record) {
		r.State, r.LastError, r.Epoch, r.FreeAt = storage.StateFailedRetryable, "proven absent", 2, released.Add(24*time.Hour)
	})
	add("in-progress-renewed", storage.KindWrapped, func(r *storage.Record) { r.LookAt = released.Add(30 * time.Second) })
	add("unknown", storage.KindWrapped, func(r *storage.Record) { r.State, r.LastError = storage.StateUnknown, "the lease ran out" })
	return records
}

// releaseMessages are the messages of testdata/release-1/messages: every state.
func releaseMessages(t *testing.T) map[string]storage.Message {
	t.Helper()
	messages := map[string]storage.Message{}
	add := func(name string, state storage.MessageState, change func(*storage.Message)) {
		r := releaseRecord(t, "message-"+name, storage.KindDeferred)
		m := storage.Message{
			ID: r.OperationID.Message(1), Index: 1, OperationID: r.OperationID, RecordKey: r.Key, Tenant: r.Tenant, Topic: "orders.charge",
			Payload: []byte(`{"amount":1}`), State: state, Revision: releaseRevision(t, name), CreatedAt: released, NextAttemptAt: released, SweepAt: released.Add(15 * time.Second),
			Retention: r.Retention, SchemaVersion: 1,
		}
		change(&m)
		messages[name] = m
	}
	claimed := func(m *storage.Message) {
		m.Epoch, m.Owner, m.LeaseUntil, m.FirstClaimedAt, m.OpenSince = 1, "worker-1", released.Add(10*time.Second), released, released
	}
	done := func(outcome string) func(*storage.Message) {
		return func(m *storage.Message) {
			claimed(m)
			m.OpenSince, m.DoneAt, m.Reference, m.LastOutcome, m.SweepAt = time.Time{}, released.Add(time.Second), "ch_1", outcome, time.Time{}
			m.RemoveAt = m.RemovedAfter(m.DoneAt.Add(m.Retention))
		}
	}
	add("pending", storage.MessagePending, func(*storage.Message) {})
	add("pending-again", storage.MessagePending, func(m *storage.Message) {
		claimed(m)
		m.Attempts, m.LastOutcome, m.NextAttemptAt = 1, "ambiguous", released.Add(2*time.Second)
	})
	add("claimed", storage.MessageClaimed, claimed)
	add("evidenced", storage.MessageEvidenced, func(m *storage.Message) {
		claimed(m)
		m.KeptDeclined, m.LastOutcome, m.Died = &storage.Kept{Evidence: []byte(`{"id":"ch_1"}`)}, "declined", 1
	})
	add("undoing", storage.MessageDead, func(m *storage.Message) {
		claimed(m)
		m.Index, m.ID, m.Undoes, m.Refused, m.Unfailed, m.RedrivenAt, m.ClearedAt = 3, m.OperationID.Message(3), true, true, true, released, released
	})
	add("unknown", storage.MessageUnknown, func(m *storage.Message) { claimed(m); m.Attempts, m.LastOutcome = 1, "ambiguous" })
	add("dead", storage.MessageDead, func(m *storage.Message) {
		claimed(m)
		m.Index, m.ID, m.Attempts, m.LastOutcome = 2, m.OperationID.Message(2), 10, "delivered"
		m.KeptDelivered, m.KeptDeclined = &storage.Kept{Reference: "ch_1", Evidence: []byte(`{"id":"ch_1"}`)}, &storage.Kept{}
	})
	add("delivered", storage.MessageDelivered, done("delivered"))
	add("declined", storage.MessageDeclined, done("declined"))
	add("cancelled", storage.MessageCancelled, func(m *storage.Message) {
		m.DoneAt, m.Detached, m.SweepAt = released.Add(time.Second), true, time.Time{}
		m.RemoveAt = m.RemovedAfter(m.DoneAt.Add(m.Retention))
	})
	return messages
}
