package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/storage"
)

const (
	day  = 24 * time.Hour
	skew = 2 * time.Second // the default of idem.Config.ClockSkew
	// late is how much longer than its key is held a record is kept: a request may be that late on the wire.
	late = 16 * time.Minute
)

// shop is an engine on a real endpoint, with a clock that the test owns.
type shop struct {
	*testing.T
	store  *dynamo.Store
	client *dynamodb.Client
	tables tables
	engine *idem.Engine
	now    time.Time
	runs   int
}

func newShop(t *testing.T, cfg dynamo.Config) *shop {
	t.Helper()
	s := &shop{T: t, now: base}
	s.store, s.client, s.tables = onDynoxide(t, cfg)
	var err error
	s.engine, err = idem.New(s.store, idem.Config{Now: func() time.Time { return s.now }})
	must(t, err)
	return s
}

func (s *shop) register(kind storage.Kind, change func(*idem.Policy)) *idem.Registered {
	s.Helper()
	policy := idem.IETF()
	change(&policy)
	registered, err := s.engine.Register(idem.Operation{Name: "orders." + string(kind), Kind: kind, Policy: policy})
	must(s.T, err)
	return registered
}

func (s *shop) do(op *idem.Registered, sent *time.Time) (*idem.Result, error) {
	s.Helper()
	return op.Do(s.Context(), idem.Request{
		Tenant: "t", Key: "k", FirstSent: sent, Input: canonical.Input{MediaType: "application/json", Body: []byte("{}")},
	}, func(context.Context, *idem.Tx) (storage.Response, error) {
		s.runs++
		return idem.JSON(201, s.runs)
	})
}

// wants demands the answer of a run, and how often the handler has run.
func (s *shop) wants(op *idem.Registered, outcome idem.Outcome, run int) *idem.Result {
	s.Helper()
	result, err := s.do(op, nil)
	if err != nil || result.Outcome != outcome || string(result.Response.Body) != fmt.Sprint(run) || s.runs != run {
		s.Fatalf("%+v, %v after %d runs; want %s of run %d", result, err, s.runs, outcome, run)
	}
	return result
}

func (s *shop) expired(op *idem.Registered, sent *time.Time) {
	s.Helper()
	runs := s.runs
	result, err := s.do(op, sent)
	var expired *idem.ExpiredError
	if !errors.As(err, &expired) || s.runs != runs {
		s.Errorf("%+v, %v; want an ExpiredError and no run", result, err)
	}
}

// remove deletes an item of the records' table as native TTL does, once its ttl has passed.
func (s *shop) remove(key string) {
	s.Helper()
	it := stored(s.T, s.client, s.tables.Idempotency, "pk", key)
	if ttl := time.Unix(int64(numberOf(s.T, it["ttl"])), 0); ttl.After(s.now) {
		s.Fatalf("TTL would remove %s at %v, not at %v", key, ttl, s.now)
	}
	_, err := s.client.DeleteItem(s.Context(), &dynamodb.DeleteItemInput{TableName: &s.tables.Idempotency, Key: rowKey(key)})
	must(s.T, err)
}

// recordKey is the key of an operation's record.
func recordKey(t *testing.T, id storage.OperationID) string {
	t.Helper()
	key, err := id.RecordKey()
	must(t, err)
	return string(key)
}

// Expiry is judged by the clock, in the read and in the condition: that TTL is late, or was quick, changes nothing
// (semantics.md "expired", peers.md H12).
func TestExpiryAcrossDaysWithAndWithoutTTL(t *testing.T) {
	for _, kind := range []storage.Kind{storage.KindAtomic, storage.KindOptimistic} {
		for _, removed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, removed by TTL %v", kind, removed), func(t *testing.T) {
				s := newShop(t, dynamo.Config{})
				orders := s.register(kind, func(*idem.Policy) {})
				id := s.wants(orders, idem.OutcomeExecuted, 1).OperationID
				s.now = base.Add(day + skew - time.Millisecond)
				s.wants(orders, idem.OutcomeReplayed, 1)
				if s.now = base.Add(day + skew); removed {
					s.now = s.now.Add(late + time.Second) // ttl is in seconds, rounded up
					s.remove(recordKey(t, id))
				}
				s.expired(orders, &base)
				if again := s.wants(orders, idem.OutcomeExecuted, 2); again.OperationID == id {
					t.Error("both incarnations have one operation id")
				}
			})
		}
	}
}

func TestTombstoneAcrossDaysWithAndWithoutTTL(t *testing.T) {
	for _, kind := range []storage.Kind{storage.KindAtomic, storage.KindOptimistic} {
		for _, removed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, removed by TTL %v", kind, removed), func(t *testing.T) {
				s := newShop(t, dynamo.Config{})
				orders := s.register(kind, func(p *idem.Policy) { p.GoneAfterExpiry, p.KeepFor = true, 7*day })
				id := s.wants(orders, idem.OutcomeExecuted, 1).OperationID
				for d := range 7 {
					s.now = base.Add(day + time.Duration(d)*day)
					s.expired(orders, nil)
					var expired *idem.ExpiredError
					if r, err := s.engine.Status(t.Context(), "t", id); r != nil || !errors.As(err, &expired) {
						t.Errorf("status %+v, %v; want an ExpiredError", r, err)
					}
				}
				s.now = base.Add(8*day + skew - time.Millisecond)
				s.expired(orders, nil)
				if s.now = base.Add(8*day + skew); removed {
					s.now = s.now.Add(late + time.Second)
					s.remove(recordKey(t, id))
				}
				s.wants(orders, idem.OutcomeExecuted, 2)
			})
		}
	}
}

// peers.md H13: chunks outlive their record, also where its end is moved, or comes with its resource.
func TestH13ChunksOutliveAnAmendedRecord(t *testing.T) {
	s := newShop(t, dynamo.Config{ChunkBytes: 64 << 10, ResponseBytesMax: 1<<20 + 1<<10})
	extended, backed := completed(reserved(t), random(200<<10)), completed(reserved(t), random(200<<10))
	backed.Expiry.ResourceBacked, backed.ExpiresAt, backed.FreeAt = true, time.Time{}, time.Time{}
	for _, r := range []storage.Record{extended, backed} {
		must(t, s.store.Insert(t.Context(), r, base))
	}
	for n := range 4 {
		if chunk := s.chunk(backed, n); chunk["ttl"] != nil {
			t.Errorf("chunk %d of a record without an end goes at %v", n, chunk["ttl"])
		}
	}
	until, err := s.engine.Extend(t.Context(), "tenant", extended.OperationID, base.Add(60*day))
	must(t, err)
	s.now = base.Add(70 * day)
	must(t, s.engine.End(t.Context(), "tenant", backed.OperationID))
	free := map[*storage.Record]time.Duration{&backed: skew} // the other was completed without one
	for r, end := range map[*storage.Record]time.Time{&extended: until, &backed: s.now} {
		ttl := numberOf(t, stored(t, s.client, s.tables.Idempotency, "pk", string(r.Key))["ttl"])
		if want := int(end.Add(free[r]+late).Unix()) + 1; ttl != want {
			t.Errorf("the record goes at %d, want %d", ttl, want)
		}
		for n := range 4 {
			if late := numberOf(t, s.chunk(*r, n)["ttl"]) - ttl; late < 3600 {
				t.Errorf("chunk %d goes %d s after its record", n, late)
			}
		}
		if back := got(t, s.store, r.Key); !bytes.Equal(back.Response.Body, r.Response.Body) {
			t.Error("the body differs")
		}
	}
}

func (s *shop) chunk(r storage.Record, n int) map[string]types.AttributeValue {
	s.Helper()
	chunk := stored(s.T, s.client, s.tables.Idempotency, "pk", fmt.Sprintf("%s#%d", r.OperationID, n))
	if chunk == nil {
		s.Fatalf("chunk %d is missing", n)
	}
	return chunk
}
