package storetest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/storage"
)

// base is when every test begins. Stores get all times from their caller, so it need not be the present.
var base = time.Date(2101, 2, 3, 4, 5, 6, int(789*time.Millisecond), time.UTC)

const (
	lease     = 30 * time.Second
	retention = 24 * time.Hour
)

// env is what one test has: a harness, and makers of what it writes.
type env struct {
	*testing.T
	Harness
	ctx context.Context
}

// sub runs a part of the test as a subtest, on the same harness.
func (e *env) sub(name string, run func(e *env)) {
	e.Helper()
	e.Run(name, func(t *testing.T) { run(&env{T: t, Harness: e.Harness, ctx: e.ctx}) })
}

// ordered ranges over named cases in the order of their names, so that a run is like every other run.
func ordered[T any](cases map[string]T) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			if !yield(name, cases[name]) {
				return
			}
		}
	}
}

var mint = storage.IDGenerator{Random: rand.Reader}

func (e *env) owner() storage.Owner {
	e.Helper()
	owner, err := mint.Owner()
	e.ok(err)
	return owner
}

func (e *env) revision() storage.Revision {
	e.Helper()
	revision, err := mint.Revision()
	e.ok(err)
	return revision
}

// tokenBytesMax is the longest ClientRequestToken that DynamoDB takes.
const tokenBytesMax = 36

// token makes a client request token as long as one may be.
func (e *env) token() string {
	e.Helper()
	owner := string(e.owner())
	return owner + strings.Repeat("-", tokenBytesMax-len(owner))
}

// rowKey names a business row that no other test has.
func (e *env) rowKey() string {
	e.Helper()
	return "row-" + string(e.owner())
}

// key makes the key of a scope that no other test has.
func (e *env) key() storage.RecordKey {
	e.Helper()
	return idem.Scope{Tenant: "tenant", Operation: "orders.create", Key: string(e.owner())}.RecordKey()
}

func (e *env) operationID(key storage.RecordKey) storage.OperationID {
	e.Helper()
	id, err := mint.OperationID(key)
	e.ok(err)
	return id
}

// reserved is a record as a reserve of an atomic operation inserts it, in a scope of its own.
func (e *env) reserved() storage.Record {
	e.Helper()
	key := e.key()
	return storage.Record{
		Key: key, State: storage.StateInProgress, OperationID: e.operationID(key), Epoch: 1, Owner: e.owner(),
		Revision: e.revision(), LeaseUntil: base.Add(lease), Tenant: "tenant", Operation: "orders.create", Kind: storage.KindAtomic,
		Fingerprint: canonical.Fingerprint{Version: 1, Sum: sha256.Sum256([]byte(key))},
		CreatedAt:   base, Retention: retention, Attempts: 1, SchemaVersion: storage.SchemaVersion,
	}
}

// again is a rival's reserve of the same scope: another incarnation.
func (e *env) again(r storage.Record) storage.Record {
	e.Helper()
	rival := e.reserved()
	rival.Key, rival.OperationID = r.Key, e.operationID(r.Key)
	return rival
}

// rewritten is the record as another write's: the same for the same record, so that two of a test's copies are equal.
func rewritten(r storage.Record) storage.Record {
	r.Revision += "+"
	return r
}

// completed is the record as a commit completes it.
func completed(r storage.Record, body string) storage.Record {
	r = rewritten(r)
	r.State, r.LeaseUntil = storage.StateCompleted, time.Time{}
	r.DoneAt, r.ExpiresAt = base.Add(time.Second), base.Add(time.Second+retention)
	r.FreeAt = r.ExpiresAt
	r.Response = response(201, []byte(body))
	return r
}

// pending is the record as a deferred operation's commit inserts it, with its 202.
func pending(r storage.Record) storage.Record {
	r = rewritten(r)
	r.Kind, r.State, r.LeaseUntil = storage.KindDeferred, storage.StatePending, time.Time{}
	r.Response = response(202, []byte(`{"state":"pending"}`))
	return r
}

func response(status int, body []byte) storage.Response {
	return storage.Response{Status: status, Header: []storage.Field{{Name: "Content-Type", Value: "application/json"}}, Body: body}
}

// message is the n-th message of the record's chain, as it is inserted.
func message(r storage.Record, n int) storage.Message {
	return storage.Message{
		Revision: named("inserted", string(r.OperationID.Message(n))), ID: r.OperationID.Message(n), Index: n, OperationID: r.OperationID, RecordKey: r.Key, Tenant: r.Tenant,
		Topic: "orders.charge", Payload: []byte(`{"amount":1}`), State: storage.MessagePending,
		CreatedAt: base, NextAttemptAt: base, SweepAt: base.Add(15 * time.Second),
		Retention: retention, SchemaVersion: storage.SchemaVersion,
	}
}

// claimed is the message as a worker's claim makes it.
func (e *env) claimed(m storage.Message) storage.Message {
	e.Helper()
	m.State, m.Owner, m.Revision, m.LeaseUntil = storage.MessageClaimed, e.owner(), e.revision(), base.Add(lease)
	m.Epoch++
	m.Attempts++
	m.FirstClaimedAt, m.OpenSince, m.SweepAt = base, base, base.Add(lease)
	return m
}

// insert reserves the record, which must succeed.
func (e *env) insert(r storage.Record) storage.Record {
	e.Helper()
	e.ok(e.Store.Insert(e.ctx, r, base))
	return r
}

// send prepares the commit and sends it once.
func (e *env) send(c storage.Commit) error {
	send, err := e.Store.Prepare(c)
	if err != nil {
		return err
	}
	return send(e.ctx)
}

// named is a revision that is the same each time.
func named(parts ...string) storage.Revision {
	sum := sha256.Sum256([]byte(strings.Join(parts, " ")))
	return storage.Revision(base64.RawURLEncoding.EncodeToString(sum[:16]))
}

// open is the fence of definite evidence.
var open = storage.MessageFence{Open: true}

// settle prepares the settlement and sends it once. Without a fence it has that of definite evidence.
func (e *env) settle(s storage.Settlement) error {
	if s.Fence.Empty() {
		s.Fence = open
	}
	send, err := e.Store.PrepareSettle(s)
	if err != nil {
		return err
	}
	return send(e.ctx)
}

// deferred commits a deferred operation: its pending record and its first message.
func (e *env) deferred() (storage.Record, storage.Message) {
	e.Helper()
	r := pending(e.reserved())
	m := message(r, 1)
	e.ok(e.send(storage.Commit{Record: r, Now: base, Messages: []storage.Message{m}, Token: e.token()}))
	return r, m
}

// record reads the record with its body; nil where there is none.
func (e *env) record(key storage.RecordKey) *storage.Record {
	e.Helper()
	r, err := e.Store.Get(e.ctx, key)
	e.ok(err)
	if r == nil {
		return nil
	}
	loaded := e.load(*r)
	return &loaded
}

func (e *env) load(r storage.Record) storage.Record {
	e.Helper()
	loaded, err := e.Store.LoadResponse(e.ctx, r)
	e.ok(err)
	return loaded
}

func (e *env) message(id storage.MessageID) *storage.Message {
	e.Helper()
	m, err := e.Store.Message(e.ctx, id)
	e.ok(err)
	return m
}

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// wantRecord demands that the record is stored exactly so; nil demands that there is none.
func (e *env) wantRecord(key storage.RecordKey, want *storage.Record) {
	e.Helper()
	e.sameRecord(e.record(key), want)
}

func (e *env) sameRecord(got, want *storage.Record) {
	e.Helper()
	switch {
	case got == nil && want == nil:
	case got == nil:
		e.Errorf("there is no record, want %s", want.State)
	case want == nil:
		e.Errorf("there is a record in state %s, want none", got.State)
	default:
		if diff := diffRecords(*got, *want); diff != "" {
			e.Errorf("the stored record differs:\n%s", diff)
		}
	}
}

// wantMessage demands that the message is stored exactly so; nil demands that there is none.
func (e *env) wantMessage(id storage.MessageID, want *storage.Message) {
	e.Helper()
	e.sameMessage(e.message(id), want)
}

func (e *env) sameMessage(got, want *storage.Message) {
	e.Helper()
	switch {
	case got == nil && want == nil:
	case got == nil:
		e.Errorf("there is no message, want %s", want.State)
	case want == nil:
		e.Errorf("there is a message in state %s, want none", got.State)
	default:
		if diff := diffMessages(*got, *want); diff != "" {
			e.Errorf("the stored message differs:\n%s", diff)
		}
	}
}

func (e *env) wantRow(key string, want int) {
	e.Helper()
	got, err := e.CountRow(e.ctx, key)
	e.ok(err)
	if got != want {
		e.Errorf("the row counts %d, want %d", got, want)
	}
}

// wantRecordConflict demands a RecordConflictError that carries exactly existing.
func (e *env) wantRecordConflict(err error, existing *storage.Record) {
	e.Helper()
	var conflict *storage.RecordConflictError
	if !errors.As(err, &conflict) {
		e.Fatalf("got error %v, want a RecordConflictError", err)
	}
	if conflict.Existing != nil {
		loaded := e.load(*conflict.Existing)
		conflict.Existing = &loaded
	}
	e.sameRecord(conflict.Existing, existing)
}

// wantMessageBeside demands that a RecordConflictError carries exactly this message too.
func (e *env) wantMessageBeside(err error, existing *storage.Message) {
	e.Helper()
	var conflict *storage.RecordConflictError
	if !errors.As(err, &conflict) {
		e.Fatalf("got error %v, want a RecordConflictError", err)
	}
	e.sameMessage(conflict.Message, existing)
}

// wantMessageConflict demands a MessageConflictError that carries exactly existing.
func (e *env) wantMessageConflict(err error, existing *storage.Message) {
	e.Helper()
	var conflict *storage.MessageConflictError
	if !errors.As(err, &conflict) {
		e.Fatalf("got error %v, want a MessageConflictError", err)
	}
	e.sameMessage(conflict.Existing, existing)
}

// wantWriteFailed demands a WriteFailedError that names exactly the positions.
func (e *env) wantWriteFailed(err error, indexes ...int) {
	e.Helper()
	var failed *storage.WriteFailedError
	if !errors.As(err, &failed) {
		e.Fatalf("got error %v, want a WriteFailedError", err)
	}
	if diff := diff(failed.Indexes, indexes); diff != "" {
		e.Errorf("the failed writes differ: %s", diff)
	}
}

// untilUncontended calls until a running transaction is no longer in the way; the caller that meets one knows that nothing
// happened. It is bounded by the test's deadline.
func (e *env) untilUncontended(call func() error) error {
	for {
		err := call()
		if !errors.Is(err, storage.ErrContention) {
			return err
		}
		if pauseErr := idem.Pause(e.ctx, 10*time.Millisecond); pauseErr != nil {
			return errors.Join(err, pauseErr)
		}
	}
}
