package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/storage"
)

// meaning is what an error of a write tells its caller (storage.Store).
type meaning string

const (
	success    meaning = "success"
	conflict   meaning = "conflict"
	unknown    meaning = "outcome unknown"
	contention meaning = "contention"
	throttled  meaning = "throttled"
	notAsked   meaning = "not asked"
	final      meaning = "final error"
)

func meaningOf(err error) meaning {
	var lost *storage.OutcomeUnknownError
	var record *storage.RecordConflictError
	var message *storage.MessageConflictError
	var unasked *storage.NotAskedError
	switch {
	case err == nil:
		return success
	case errors.As(err, &unasked):
		return notAsked
	case errors.As(err, &lost):
		return unknown
	case errors.As(err, &record), errors.As(err, &message):
		return conflict
	case errors.Is(err, storage.ErrThrottled):
		return throttled
	case errors.Is(err, storage.ErrContention):
		return contention
	}
	return final
}

// faultRow is a fault of a single attempt.
type faultRow struct {
	name     string
	fault    wirefault.Fault
	meaning  meaning
	happened bool
	ctx      func(t *testing.T) context.Context // nil: the test's own
}

func (r faultRow) context(t *testing.T) context.Context {
	if r.ctx == nil {
		return t.Context()
	}
	return r.ctx(t)
}

// faultTable is what each fault of a single attempt means, and whether the write happened all the same.
var faultTable = []faultRow{
	{"the reply is lost", wirefault.LoseReply, unknown, true, nil},
	{"the reply ends early", wirefault.CutReply, unknown, true, nil},
	{"the connection is refused", wirefault.Refuse, unknown, false, nil},
	{"the caller's time is over", timeOver, unknown, false, patiently},
	{"500 InternalServerError", wirefault.Answer(http.StatusInternalServerError, "InternalServerError"), unknown, false, nil},
	{"503 ServiceUnavailable", wirefault.Answer(http.StatusServiceUnavailable, "ServiceUnavailableException"), unknown, false, nil},
	{"408 without a body, of a write that happened", wirefault.InterceptReply(http.StatusRequestTimeout, ""), unknown, true, nil},
	{"408 without a body", wirefault.Intercept(http.StatusRequestTimeout, ""), unknown, false, nil},
	{"408 without a code, of a write that happened", wirefault.InterceptReply(http.StatusRequestTimeout, "{}"), unknown, true, nil},
	{"408 without a code", wirefault.Intercept(http.StatusRequestTimeout, "{}"), unknown, false, nil},
	{"408 with a code of its own, of a write that happened", wirefault.InterceptReply(http.StatusRequestTimeout, `{"code":"timeout"}`), unknown, true, nil},
	{"499 with a code of its own, of a write that happened", wirefault.InterceptReply(499, `{"code":"canceled"}`), unknown, true, nil},
	{"a redirection with a code of its own, of a write that happened", wirefault.InterceptReply(http.StatusFound, `{"code":"login"}`), unknown, true, nil},
	{"403 without a body", wirefault.Intercept(http.StatusForbidden, ""), unknown, false, nil},
	{"400 with an empty code", wirefault.Intercept(http.StatusBadRequest, `{"__type":"namespace#"}`), unknown, false, nil},
	{"TransactionInProgressException", wirefault.Answer(http.StatusBadRequest, "TransactionInProgressException"), unknown, false, nil},
	{"TransactionConflictException", wirefault.Answer(http.StatusBadRequest, "TransactionConflictException"), contention, false, nil},
	{"ReplicatedWriteConflictException", wirefault.Answer(http.StatusBadRequest, "ReplicatedWriteConflictException"), contention, false, nil},
	{"ThrottlingException", wirefault.Answer(http.StatusBadRequest, "ThrottlingException"), throttled, false, nil},
	{"ProvisionedThroughputExceededException", wirefault.Answer(http.StatusBadRequest, "ProvisionedThroughputExceededException"), throttled, false, nil},
	{"RequestLimitExceeded", wirefault.Answer(http.StatusBadRequest, "RequestLimitExceeded"), throttled, false, nil},
	{"ExpiredTokenException", wirefault.Answer(http.StatusBadRequest, "ExpiredTokenException"), notAsked, false, nil},
	{"ExpiredToken", wirefault.Answer(http.StatusBadRequest, "ExpiredToken"), notAsked, false, nil},
	{"ValidationException", wirefault.Answer(http.StatusBadRequest, "ValidationException"), final, false, nil},
	{"AccessDeniedException", wirefault.Answer(http.StatusBadRequest, "AccessDeniedException"), final, false, nil},
	{"ResourceNotFoundException", wirefault.Answer(http.StatusBadRequest, "ResourceNotFoundException"), final, false, nil},
	{"IdempotentParameterMismatchException", wirefault.Answer(http.StatusBadRequest, "IdempotentParameterMismatchException"), final, false, nil},
}

// aWrite is one of the store's writes: the operation it is sent as, and what makes and checks one.
type aWrite struct {
	operation string
	prepare   func(t *testing.T, store *dynamo.Store) (send func(context.Context) error, happened func() bool)
}

var writes = map[string]aWrite{
	"insert": {"PutItem", func(t *testing.T, store *dynamo.Store) (func(context.Context) error, func() bool) {
		r := reserved(t)
		return func(ctx context.Context) error { return store.Insert(ctx, r, base) }, func() bool {
			r, err := store.Get(t.Context(), r.Key)
			must(t, err)
			return r != nil
		}
	}},
	"update": {"PutItem", func(t *testing.T, store *dynamo.Store) (func(context.Context) error, func() bool) {
		r := reserved(t)
		must(t, store.Insert(t.Context(), r, base))
		return func(ctx context.Context) error {
			return store.Update(ctx, completed(r, []byte("{}")), storage.FenceOf(r))
		}, func() bool { return got(t, store, r.Key).State == storage.StateCompleted }
	}},
	"update with chunks": {"TransactWriteItems", func(t *testing.T, store *dynamo.Store) (func(context.Context) error, func() bool) {
		r := reserved(t)
		must(t, store.Insert(t.Context(), r, base))
		done := completed(r, random(10<<10))
		return func(ctx context.Context) error { return store.Update(ctx, done, storage.FenceOf(r)) },
			func() bool { return got(t, store, r.Key).State == storage.StateCompleted }
	}},
	"renew": {"UpdateItem", func(t *testing.T, store *dynamo.Store) (func(context.Context) error, func() bool) {
		r := reserved(t)
		must(t, store.Insert(t.Context(), r, base))
		next := renewed(r)
		return func(ctx context.Context) error { return store.Renew(ctx, next, storage.FenceOf(r)) },
			func() bool { return got(t, store, r.Key).Revision == next.Revision }
	}},
	"postpone": {"UpdateItem", func(t *testing.T, store *dynamo.Store) (func(context.Context) error, func() bool) {
		r := reserved(t)
		r.Kind = storage.KindWrapped
		must(t, store.Insert(t.Context(), r, base))
		next := r
		next.LookAt = r.LeaseUntil.Add(time.Hour)
		return func(ctx context.Context) error { return store.Postpone(ctx, next, storage.FenceOfHolder(r)) },
			func() bool { return got(t, store, r.Key).LookAt.Equal(next.LookAt) }
	}},
	"commit": {"TransactWriteItems", func(t *testing.T, store *dynamo.Store) (func(context.Context) error, func() bool) {
		r := reserved(t)
		must(t, store.Insert(t.Context(), r, base))
		fence := storage.FenceOf(r)
		send, err := store.Prepare(storage.Commit{Record: completed(r, []byte("{}")), Fence: &fence, Now: base, Token: string(owner(t))})
		must(t, err)
		return send, func() bool { return got(t, store, r.Key).State == storage.StateCompleted }
	}},
	"settle": {"TransactWriteItems", func(t *testing.T, store *dynamo.Store) (func(context.Context) error, func() bool) {
		r, m := deferred(t, store)
		send, err := store.PrepareSettle(settlement(t, r, m, []byte("{}")))
		must(t, err)
		return send, func() bool { return got(t, store, r.Key).State == storage.StateCompleted }
	}},
	"update message": {"PutItem", func(t *testing.T, store *dynamo.Store) (func(context.Context) error, func() bool) {
		_, m := deferred(t, store)
		claimed := m
		claimed.State, claimed.Owner, claimed.Epoch, claimed.Revision = storage.MessageClaimed, owner(t), 1, "claimed"
		return func(ctx context.Context) error { return store.UpdateMessage(ctx, claimed, storage.FenceOfMessage(m)) }, func() bool {
			now, err := store.Message(t.Context(), m.ID)
			must(t, err)
			return now.State == storage.MessageClaimed
		}
	}},
}

// Every fault of the transport or of DynamoDB has one meaning, whichever write meets it (storage.Store).
func TestWritesTellWhatAFaultMeans(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		client, faults := faultyClient(url, 1)
		store := newStore(t, client, createTables(t, client), dynamo.Config{})
		for name, write := range writes {
			for _, row := range faultTable {
				t.Run(name+"/"+row.name, func(t *testing.T) {
					send, happened := write.prepare(t, store)
					faults.Inject(write.operation, row.fault)
					err := send(row.context(t))
					if got := meaningOf(err); got != row.meaning {
						t.Errorf("the error means %q, want %q: %v", got, row.meaning, err)
					}
					if happened() != row.happened {
						t.Errorf("happened is %v, want %v", !row.happened, row.happened)
					}
				})
			}
		}
	})
}

// A write that is sent again after a lost reply meets itself: a transaction by its token, a single write by the owner in
// what it lost against.
func TestASendingAfterALostReplyIsResolved(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		client, faults := faultyClient(url, 1)
		store := newStore(t, client, createTables(t, client), dynamo.Config{})
		for name, want := range map[string]meaning{
			"insert": conflict, "update": conflict, "update with chunks": conflict, "update message": conflict, "renew": conflict,
			"commit": success, "settle": success, "postpone": success,
		} {
			t.Run(name, func(t *testing.T) {
				send, _ := writes[name].prepare(t, store)
				faults.Inject(writes[name].operation, wirefault.LoseReply)
				if got := meaningOf(send(t.Context())); got != unknown {
					t.Fatalf("a lost reply means %q", got)
				}
				if got := meaningOf(send(t.Context())); got != want {
					t.Errorf("sent again it means %q, want %q", got, want)
				}
			})
		}
	})
}

// A write is one request, whatever retries the client is configured with: after a lost reply, a throttle of the next try
// would say that nothing happened. A read is tried again.
func TestAWriteIsOneRequestAndAReadIsRetried(t *testing.T) {
	throttle := wirefault.Answer(http.StatusBadRequest, "ThrottlingException")
	client, faults := faultyClient(dynamotest.Endpoint(t, dynamotest.Names()[0]), 3)
	store := newStore(t, client, createTables(t, client), dynamo.Config{})
	for name, write := range writes {
		for _, row := range []struct {
			fault wirefault.Fault
			want  meaning
		}{{wirefault.LoseReply, unknown}, {throttle, throttled}, {wirefault.Answer(http.StatusInternalServerError, "InternalServerError"), unknown}} {
			send, _ := write.prepare(t, store)
			faults.Inject(write.operation, row.fault)
			if err := send(t.Context()); meaningOf(err) != row.want {
				t.Errorf("%s: the error means %q, want %q: %v", name, meaningOf(err), row.want, err)
			}
			if n := len(faults.Bodies(write.operation)); n != 1 {
				t.Errorf("%s was sent %d times", name, n)
			}
		}
	}
	faults.Inject("GetItem", throttle, wirefault.LoseReply)
	if _, err := store.Get(t.Context(), "absent"); err != nil || len(faults.Bodies("GetItem")) != 3 {
		t.Errorf("a read was sent %d times: %v", len(faults.Bodies("GetItem")), err)
	}
	faults.Inject("Query", throttle)
	if _, _, err := store.QueuedRecords(t.Context(), storage.QueueLease, 0, base, 1, ""); err != nil || len(faults.Bodies("Query")) != 2 {
		t.Errorf("a listing was sent %d times: %v", len(faults.Bodies("Query")), err)
	}
}

// A conflict after a lost reply carries the revision that tells one's own write from another's.
func TestAnInsertMeetsItsOwnRecordWhenItIsSentAgain(t *testing.T) {
	client, faults := faultyClient(dynamotest.Endpoint(t, dynamotest.Names()[0]), 1)
	store := newStore(t, client, createTables(t, client), dynamo.Config{})
	r := reserved(t)
	faults.Inject("PutItem", wirefault.LoseReply)
	if err := store.Insert(t.Context(), r, base); meaningOf(err) != unknown {
		t.Fatalf("got %v, want an outcome that is unknown", err)
	}
	var conflict *storage.RecordConflictError
	if err := store.Insert(t.Context(), r, base); !errors.As(err, &conflict) {
		t.Fatalf("got %v, want a RecordConflictError", err)
	}
	if conflict.Existing == nil || conflict.Existing.Revision != r.Revision || conflict.Existing.OperationID != r.OperationID {
		t.Errorf("the conflict carries %+v, want the inserted record", conflict.Existing)
	}
}

// Reads that lead to a decision are strong: an eventually consistent one may show a record from before its commit.
func TestReadsAreStrong(t *testing.T) {
	client, faults := faultyClient(dynamotest.Endpoint(t, dynamotest.Names()[0]), 1)
	store := newStore(t, client, createTables(t, client), dynamo.Config{})
	done := completed(reserved(t), random(10<<10))
	must(t, store.Insert(t.Context(), done, base))
	faults.Inject("")
	got(t, store, done.Key)
	_, err := store.Message(t.Context(), done.OperationID.Message(1))
	must(t, err)
	for operation, want := range map[string]int{"GetItem": 2, "BatchGetItem": 1} {
		bodies := faults.Bodies(operation)
		if len(bodies) != want {
			t.Errorf("%d requests of %s, want %d", len(bodies), operation, want)
		}
		for _, body := range bodies {
			if !bytes.Contains(body, []byte(`"ConsistentRead":true`)) {
				t.Errorf("%s is not strong: %s", operation, body)
			}
		}
	}
}

// A mark whose reply was lost may be kept or not: the next question tells.
func TestAMarkWithoutAReplyIsAskedForAgain(t *testing.T) {
	client, faults := faultyClient(dynamotest.Endpoint(t, dynamotest.Names()[0]), 1)
	store := newStore(t, client, createTables(t, client), dynamo.Config{})
	faults.Inject("PutItem", wirefault.LoseReply)
	if kept, err := store.ScopeMark(t.Context(), "one"); meaningOf(err) != unknown || kept != "" {
		t.Errorf("a lost reply: %q, %v", kept, err)
	}
	for _, keep := range []string{"another", "", "one"} {
		if kept, err := store.ScopeMark(t.Context(), keep); err != nil || kept != "one" {
			t.Errorf("asked again with %q: %q, %v", keep, kept, err)
		}
	}
}

// A read that fails is a plain error: it wrote nothing that could have happened, and its caller decides.
func TestReadsFailPlainly(t *testing.T) {
	client, faults := faultyClient(dynamotest.Endpoint(t, dynamotest.Names()[0]), 1)
	store := newStore(t, client, createTables(t, client), dynamo.Config{})
	big := completed(reserved(t), random(10<<10))
	must(t, store.Insert(t.Context(), big, base))
	chunked, err := store.Get(t.Context(), big.Key)
	must(t, err)
	for name, read := range map[string]struct {
		operation string
		call      func(ctx context.Context) error
	}{
		"get":           {"GetItem", func(ctx context.Context) error { _, err := store.Get(ctx, big.Key); return err }},
		"scope mark":    {"GetItem", func(ctx context.Context) error { _, err := store.ScopeMark(ctx, "mark"); return err }},
		"load response": {"BatchGetItem", func(ctx context.Context) error { _, err := store.LoadResponse(ctx, *chunked); return err }},
		"message":       {"GetItem", func(ctx context.Context) error { _, err := store.Message(ctx, "op_1.1"); return err }},
		"queue": {"Query", func(ctx context.Context) error {
			_, _, err := store.QueuedMessages(ctx, storage.QueueOffer, 0, base, 1, "")
			return err
		}},
		"place": {"GetItem", func(ctx context.Context) error { _, err := store.Place(ctx, "offer.0"); return err }},
		"queue of records": {"Query", func(ctx context.Context) error {
			_, _, err := store.QueuedRecords(ctx, storage.QueueLease, 0, base, 1, "")
			return err
		}},
	} {
		for _, row := range faultTable {
			t.Run(name+"/"+row.name, func(t *testing.T) {
				faults.Inject(read.operation, row.fault)
				err := read.call(row.context(t))
				if got := meaningOf(err); got != final {
					t.Errorf("the error means %q: %v", got, err)
				}
				if errors.Is(err, storage.ErrChunksMissing) {
					t.Errorf("a failed read says that chunks are missing: %v", err)
				}
			})
		}
	}
}
