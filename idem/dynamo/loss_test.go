package dynamo_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// What a later release adds to the row stays, nothing removes the row, and no index has it. It is read strongly, for 1 R.
func TestTheRowOfALossIsARowOfItsOwn(t *testing.T) {
	var b bill
	store, client, tables := onDynoxide(t, dynamo.Config{Meter: b.meter})
	read := func(want time.Time) {
		t.Helper()
		at, err := store.RefuseBefore(t.Context())
		if err != nil || !at.Equal(want) {
			t.Errorf("%v, %v; want %v", at, err, want)
		}
	}
	set := func(at, want time.Time) {
		t.Helper()
		kept, err := store.SetRefuseBefore(t.Context(), at)
		if err != nil || !kept.Equal(want) {
			t.Errorf("%v, %v; want %v", kept, err, want)
		}
	}
	row := func() attributes { return stored(t, client, tables.Idempotency, "pk", schema.LossKey) }
	read(time.Time{})
	set(base, base)
	if it := row(); len(it) != 2 {
		t.Errorf("the row is %v, want its key and its instant", it)
	}
	b.take()
	read(base)
	if cost := b.take(); cost != "GetItem 1R" {
		t.Errorf("reading it costs %s", cost)
	}
	later(t, client, tables.Idempotency, "pk", schema.LossKey)
	set(base.Add(time.Hour), base.Add(time.Hour))
	set(base, base.Add(time.Hour))
	read(base.Add(time.Hour))
	wantLater(t, row(), "two settings")
}

// Keys of records and of their chunks are another alphabet's.
func TestNoRecordHasTheKeyOfTheRow(t *testing.T) {
	for _, key := range []string{"", schema.LossKey, "k", strings.Repeat(".", 100)} {
		if got := (idem.Scope{Tenant: key, Operation: key, Key: key, Principal: key}).RecordKey(); strings.HasPrefix(string(got), schema.LossKey[:1]) {
			t.Errorf("%s", got)
		}
	}
	id, err := storage.IDGenerator{Random: strings.NewReader(strings.Repeat("x", 16))}.OperationID(idem.Scope{}.RecordKey())
	if err != nil || strings.HasPrefix(string(id), schema.LossKey[:1]) {
		t.Errorf("%s, %v", id, err)
	}
}

// A row without an instant is what a restore leaves: nobody has said up to when data was lost, and that can be said.
func TestARowOfALossMayWaitForItsInstant(t *testing.T) {
	store, client, tables := onDynoxide(t, dynamo.Config{})
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Idempotency, Item: attributes{"pk": rowKey(schema.LossKey)["pk"]}})
	must(t, err)
	if at, err := store.RefuseBefore(t.Context()); !errors.Is(err, storage.ErrLossNotDated) {
		t.Errorf("%v, %v; want ErrLossNotDated", at, err)
	}
	if kept, err := store.SetRefuseBefore(t.Context(), base); err != nil || !kept.Equal(base) {
		t.Errorf("%v, %v", kept, err)
	}
	if at, err := store.RefuseBefore(t.Context()); err != nil || !at.Equal(base) {
		t.Errorf("%v, %v", at, err)
	}
}

// A row that says nothing readable is no permission.
func TestARowThatCanNotBeReadIsAnError(t *testing.T) {
	for name, damaged := range map[string]attributes{"no instant": {}, "a word": {schema.RefuseBefore: rowKey("noon")["pk"]}} {
		t.Run(name, func(t *testing.T) {
			store, client, tables := onDynoxide(t, dynamo.Config{})
			it := attributes{"pk": rowKey(schema.LossKey)["pk"]}
			maps.Copy(it, damaged)
			_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Idempotency, Item: it})
			must(t, err)
			if at, err := store.RefuseBefore(t.Context()); err == nil {
				t.Errorf("it is %v", at)
			}
			if _, err := engineAt(t, store, time.Now)("k", nil); !errors.As(err, new(*idem.UnavailableError)) {
				t.Errorf("%v, want an UnavailableError", err)
			}
		})
	}
}

// engineAt is an engine of its own on the store, and sends a request to it.
func engineAt(t *testing.T, store storage.Store, now func() time.Time) func(key string, firstSent *time.Time) (*idem.Result, error) {
	t.Helper()
	engine, err := idem.New(store, idem.Config{Now: now})
	must(t, err)
	orders, err := engine.Register(idem.Operation{Name: "orders.create", Kind: storage.KindAtomic, Policy: idem.IETF()})
	must(t, err)
	return func(key string, firstSent *time.Time) (*idem.Result, error) {
		request := idem.Request{Tenant: "t", Key: key, FirstSent: firstSent, Input: canonical.Input{MediaType: "application/json", Body: []byte(`{}`)}}
		return orders.Do(t.Context(), request, func(context.Context, *idem.Tx) (storage.Response, error) {
			return storage.Response{Status: 201}, nil
		})
	}
}

// Two instances that run stop when the row is set, without a restart, and go on for what is proven younger.
func TestTheRowStopsTwoEnginesOnOneTable(t *testing.T) {
	store, _, _ := onDynoxide(t, dynamo.Config{})
	now := time.Now()
	clock := func() time.Time { return now }
	one, other := engineAt(t, store, clock), engineAt(t, store, clock)
	want := func(outcome idem.Outcome) func(*idem.Result, error) {
		return func(result *idem.Result, err error) {
			t.Helper()
			if err != nil || result.Outcome != outcome {
				t.Errorf("%+v, %v; want it %s", result, err, outcome)
			}
		}
	}
	want(idem.OutcomeExecuted)(one("a", nil))
	want(idem.OutcomeExecuted)(other("b", nil))
	lost, err := store.SetRefuseBefore(t.Context(), now)
	must(t, err)
	now = now.Add(time.Minute)
	for name, send := range map[string]func(string, *time.Time) (*idem.Result, error){"one": one, "other": other} {
		want(idem.OutcomeReplayed)(send("a", nil))
		for _, at := range []*time.Time{nil, new(lost.Add(-time.Hour)), new(lost.Add(time.Minute))} {
			var barred *idem.RefusedBeforeError
			if result, err := send("lost", at); !errors.As(err, &barred) || !barred.Before.Equal(lost) {
				t.Errorf("the %s: %+v, %v; want it refused before %v", name, result, err, lost)
			}
		}
	}
	now = now.Add(time.Hour)
	want(idem.OutcomeExecuted)(one("c", &now))
	want(idem.OutcomeReplayed)(other("c", &now))
}
