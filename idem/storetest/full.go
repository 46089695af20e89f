package storetest

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// full is a completed wrapped record that uses every field, each with a value that is easily damaged.
func (e *env) full() storage.Record {
	e.Helper()
	key := e.key()
	return storage.Record{
		Key: key, State: storage.StateCompleted, OperationID: e.operationID(key), Epoch: 1<<53 + 1, Owner: e.owner(),
		Revision: e.revision(), LeaseUntil: base.Add(7 * time.Millisecond), LookAt: base.Add(6 * time.Millisecond),
		Tenant: "ténant \U0001F511", Operation: "orders.create", Kind: storage.KindWrapped, Principal: "session/ß",
		SafeToRunAgain: true, Observed: true,
		Fingerprint: canonical.Fingerprint{Version: 3, KeyID: "key-2101", Selection: "ignore_query=s%C3%BC%C3%9F", Sum: sha256.Sum256([]byte{0}), Parts: canonical.Parts{0, 1, 0xff}},
		Response: storage.Response{
			Status: 299,
			Header: []storage.Field{ // order and repetition are kept
				{Name: "X-B", Value: "2"}, {Name: "Content-Type", Value: "text/plain; charset=utf-8"},
				{Name: "X-B", Value: "1"}, {Name: "X-A", Value: ""}, {Name: "X-C", Value: "snow \u2603"},
			},
			Body: []byte("\x00\xff\xfe not UTF-8"),
		},
		CreatedAt: base.Add(-time.Millisecond), DoneAt: base.Add(time.Millisecond), ExpiresAt: base.Add(1001 * time.Millisecond),
		FreeAt:    base.Add(1003 * time.Millisecond),
		Retention: 90*24*time.Hour + time.Millisecond, Expiry: fullExpiry(), RecordOnly: true, Attempts: 3, LastError: "the lease ran out \u2014 twice",
		Trace:         trace.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", ""),
		SchemaVersion: storage.SchemaVersion,
	}
}

func fullExpiry() storage.Expiry {
	return storage.Expiry{KeepFor: 365*24*time.Hour + time.Millisecond, Gone: true, ResourceBacked: true}
}

// fullMessage is a parked message that uses every field.
func (e *env) fullMessage(r storage.Record) storage.Message {
	e.Helper()
	return storage.Message{
		ID: r.OperationID.Message(1), Index: 1, OperationID: r.OperationID, RecordKey: r.Key, Tenant: "ténant \U0001F511",
		Topic: "orders.charge", Payload: []byte("\x00\xff not UTF-8"),
		State: storage.MessageUnknown, Epoch: 1<<53 + 1, Owner: e.owner(), Revision: e.revision(), LeaseUntil: base.Add(time.Millisecond),
		CreatedAt: base.Add(-time.Millisecond), FirstClaimedAt: base.Add(2 * time.Millisecond),
		NextAttemptAt: base.Add(3 * time.Millisecond), SweepAt: base.Add(4 * time.Millisecond),
		OpenSince: base.Add(5 * time.Millisecond), DoneAt: base.Add(6 * time.Millisecond),
		RedrivenAt: base.Add(7 * time.Millisecond), ClearedAt: base.Add(8 * time.Millisecond),
		Died: 2, Refused: true, Unfailed: true, Undoes: true,
		Attempts: 9, Retention: time.Hour + time.Millisecond, Expiry: fullExpiry(), Detached: true,
		KeptDelivered: &storage.Kept{Reference: "ch_2", Evidence: []byte("\x01\xfe")}, KeptDeclined: &storage.Kept{Evidence: []byte("no")},
		Reference: "ch_1", LastOutcome: "ambiguous \u2014 504", SettledBy: storage.SettledByOperator, Trace: trace.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "congo=t61rcWkgMzE"), SchemaVersion: storage.SchemaVersion,
	}
}

// scribble changes a response in place, as a careless caller does.
func scribble(r storage.Response) {
	for i := range r.Body {
		r.Body[i] = '!'
	}
	for i := range r.Header {
		r.Header[i] = storage.Field{Name: "X-Scribbled", Value: "yes"}
	}
}

func canceled(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx, cancel
}
