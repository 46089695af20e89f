package dynamo_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Codes of cancellation reasons, as DynamoDB writes them.
const (
	none      = "None"
	condition = "ConditionalCheckFailed"
	running   = "TransactionConflict"
	throttle  = "ThrottlingError"
	provision = "ProvisionedThroughputExceeded"
	invalid   = "ValidationError"
)

// The reasons of a cancelled transaction are read position by position (design.md "What a lost reply means"): a commit
// of record, message and two writes.
func TestCancellationReasonsAreReadByPosition(t *testing.T) {
	client, faults := faultyClient(dynamotest.Endpoint(t, dynamotest.Names()[0]), 1)
	tables := createTables(t, client)
	store := newStore(t, client, tables, dynamo.Config{})
	record, message0 := &storage.RecordConflictError{}, &storage.MessageConflictError{}
	for _, row := range []struct {
		name  string
		codes []string
		want  error // nil: an error that is none of the others
	}{
		{"the record's condition", []string{condition, none, none, none}, record},
		{"the record's condition wins over a write's", []string{condition, none, condition, condition}, record},
		{"the record's condition wins over contention and a throttle", []string{condition, running, throttle, running}, record},
		{"the record's condition wins over a message's", []string{condition, condition, none, none}, record},
		{"the message's condition", []string{none, condition, none, none}, message0},
		{"the message's condition wins over a write's", []string{none, condition, condition, none}, message0},
		{"the first write's condition", []string{none, none, condition, none}, &storage.WriteFailedError{Indexes: []int{0}}},
		{"the second write's condition", []string{none, none, none, condition}, &storage.WriteFailedError{Indexes: []int{1}}},
		{"both writes' conditions", []string{none, none, condition, condition}, &storage.WriteFailedError{Indexes: []int{0, 1}}},
		{"a write's condition beside another's contention", []string{none, none, running, condition}, &storage.WriteFailedError{Indexes: []int{1}, Unjudged: []int{0}}},
		{"a write's condition beside another's throttle", []string{none, none, condition, throttle}, &storage.WriteFailedError{Indexes: []int{0}, Unjudged: []int{1}}},
		{"a write's condition beside what nobody knows", []string{none, none, condition, "Sunspots"}, &storage.WriteFailedError{Indexes: []int{0}, Unjudged: []int{1}}},
		{"a write's condition beside a message in contention", []string{none, running, condition, none}, &storage.WriteFailedError{Indexes: []int{0}, OwnUnjudged: true}},
		{"a write's condition beside a record in contention", []string{running, none, none, condition}, &storage.WriteFailedError{Indexes: []int{1}, OwnUnjudged: true}},
		{"contention on the record", []string{running, none, none, none}, &storage.ContentionError{}},
		{"contention on a write", []string{none, none, none, running}, &storage.ContentionError{Unjudged: []int{1}}},
		{"a throttled write", []string{none, none, throttle, none}, &storage.ContentionError{Unjudged: []int{0}, Throttled: true}},
		{"a throttle beside contention", []string{running, none, throttle, none}, &storage.ContentionError{Unjudged: []int{0}}},
		{"provisioned capacity", []string{none, provision, none, none}, &storage.ContentionError{Throttled: true}},
		{"an invalid write", []string{none, none, invalid, none}, nil},
		{"a code of a later day", []string{none, none, none, "Sunspots"}, nil},
		{"no reason at all", []string{none, none, none, none}, nil},
		{"too few reasons", []string{condition}, nil},
		{"too many reasons", []string{none, none, none, none, condition}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := reserved(t)
			send, err := store.Prepare(storage.Commit{
				Record: completed(r, []byte("{}")), Now: base, Token: string(owner(t)), Messages: []storage.Message{message(r, 1)},
				Writes: []storage.Write{insertRow(tables, string(owner(t))), insertRow(tables, string(owner(t)))},
			})
			must(t, err)
			faults.Inject("TransactWriteItems", wirefault.Cancelled(row.codes...))
			err = send(t.Context())
			if got := firstKnown(err); !reflect.DeepEqual(got, row.want) {
				t.Errorf("got %#v, want %#v: %v", got, row.want, err)
			}
			if row.want == nil && meaningOf(err) != final {
				t.Errorf("the error means %q, want %q: %v", meaningOf(err), final, err)
			}
		})
	}
}

// firstKnown picks out of an error's chain the one that callers act on.
func firstKnown(err error) error {
	var record *storage.RecordConflictError
	var message *storage.MessageConflictError
	var write *storage.WriteFailedError
	var contention *storage.ContentionError
	switch {
	case errors.As(err, &record):
		return record
	case errors.As(err, &message):
		return message
	case errors.As(err, &write):
		return write
	case errors.As(err, &contention):
		return contention
	}
	return nil
}

// A settlement's message decides before its record, and that before the next message.
func TestReasonsOfASettlement(t *testing.T) {
	client, faults := faultyClient(dynamotest.Endpoint(t, dynamotest.Names()[0]), 1)
	store := newStore(t, client, createTables(t, client), dynamo.Config{})
	for _, row := range []struct {
		codes []string
		want  error
	}{
		{[]string{condition, condition, condition}, &storage.MessageConflictError{}},
		{[]string{none, condition, condition}, &storage.RecordConflictError{}},
		{[]string{none, none, condition}, &storage.MessageConflictError{}},
		{[]string{running, none, none}, &storage.ContentionError{}},
		{[]string{none, throttle, none}, &storage.ContentionError{Throttled: true}},
	} {
		r, m := deferred(t, store)
		s := settlement(t, r, m, []byte("{}"))
		next := message(r, 2)
		s.Next = &next
		send, err := store.PrepareSettle(s)
		must(t, err)
		faults.Inject("TransactWriteItems", wirefault.Cancelled(row.codes...))
		if err = send(t.Context()); !reflect.DeepEqual(firstKnown(err), row.want) {
			t.Errorf("%v: got %v, want %#v", row.codes, err, row.want)
		}
	}
}
