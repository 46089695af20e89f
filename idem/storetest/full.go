package storetest

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
)

// full is a completed wrapped record that uses every field, each with a value that is easily damaged.
func (e *env) full() idem.Record {
	e.Helper()
	key := e.key()
	return idem.Record{
		Key: key, State: idem.StateCompleted, OperationID: e.operationID(key), Epoch: 1<<53 + 1, Owner: e.owner(),
		Revision: e.revision(), LeaseUntil: base.Add(7 * time.Millisecond), LookAt: base.Add(6 * time.Millisecond),
		Tenant: "ténant \U0001F511", Operation: "orders.create", Kind: idem.KindWrapped, Principal: "session/ß",
		SafeToRunAgain: true,
		Fingerprint:    canonical.Fingerprint{Version: 3, KeyID: "key-2101", Selection: "ignore_query=s%C3%BC%C3%9F", Sum: sha256.Sum256([]byte{0}), Parts: canonical.Parts{0, 1, 0xff}},
		Response: idem.Response{
			Status: 299,
			Header: []idem.Field{ // order and repetition are kept
				{Name: "X-B", Value: "2"}, {Name: "Content-Type", Value: "text/plain; charset=utf-8"},
				{Name: "X-B", Value: "1"}, {Name: "X-A", Value: ""}, {Name: "X-C", Value: "snow \u2603"},
			},
			Body: []byte("\x00\xff\xfe not UTF-8"),
		},
		CreatedAt: base.Add(-time.Millisecond), DoneAt: base.Add(time.Millisecond), ExpiresAt: base.Add(1001 * time.Millisecond),
		FreeAt:    base.Add(1003 * time.Millisecond),
		Retention: 90*24*time.Hour + time.Millisecond, Expiry: fullExpiry(), Alone: true, Attempts: 3, LastError: "the lease ran out \u2014 twice",
		SchemaVersion: idem.SchemaVersion,
	}
}

func fullExpiry() idem.Expiry {
	return idem.Expiry{KeepFor: 365*24*time.Hour + time.Millisecond, Gone: true, ResourceBacked: true}
}

// fullMessage is a parked message that uses every field.
func (e *env) fullMessage(r idem.Record) idem.Message {
	e.Helper()
	return idem.Message{
		ID: r.OperationID.Message(1), Index: 1, OperationID: r.OperationID, RecordKey: r.Key, Tenant: "ténant \U0001F511",
		Topic: "orders.charge", Payload: []byte("\x00\xff not UTF-8"),
		State: idem.MessageUnknown, Epoch: 1<<53 + 1, Owner: e.owner(), Revision: e.revision(), LeaseUntil: base.Add(time.Millisecond),
		CreatedAt: base.Add(-time.Millisecond), FirstClaimedAt: base.Add(2 * time.Millisecond),
		NextAttemptAt: base.Add(3 * time.Millisecond), SweepAt: base.Add(4 * time.Millisecond),
		OpenSince: base.Add(5 * time.Millisecond), DoneAt: base.Add(6 * time.Millisecond),
		RedrivenAt: base.Add(7 * time.Millisecond), ClearedAt: base.Add(8 * time.Millisecond),
		Died: 2, Refused: true, Unfailed: true, Undoes: true,
		Attempts: 9, Retention: time.Hour + time.Millisecond, Expiry: fullExpiry(), Detached: true,
		KeptDelivered: &idem.Kept{Reference: "ch_2", Evidence: []byte("\x01\xfe")}, KeptDeclined: &idem.Kept{Evidence: []byte("no")},
		Reference: "ch_1", LastOutcome: "ambiguous \u2014 504", SchemaVersion: idem.SchemaVersion,
	}
}

// scribble changes a response in place, as a careless caller does.
func scribble(r idem.Response) {
	for i := range r.Body {
		r.Body[i] = '!'
	}
	for i := range r.Header {
		r.Header[i] = idem.Field{Name: "X-Scribbled", Value: "yes"}
	}
}

func canceled(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx, cancel
}
