package sequences_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
	"github.com/idem-go/idem-aws/idem/storetest/sequences"
)

// t is the argument of a test, which an Example has not. So the Example is compiled only.
var t *testing.T

// count reads a row that is a counter; an absent one is 0.
func count(row []byte) (int, error) {
	if row == nil {
		return 0, nil
	}
	return strconv.Atoi(string(row))
}

// add counts up a row.
func add(row []byte) []byte {
	n, err := count(row)
	if err != nil {
		return row
	}
	return strconv.AppendInt(nil, int64(n+1), 10)
}

// open makes the store, whose clock is that of the sequence's bubble, and writes on rows that are counters.
func open(t *testing.T) storetest.Harness {
	store, err := memstore.New(memstore.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Harness{
		Store: store,
		InsertRow: func(key string, failure storage.Failure) storage.Write {
			absent := func(row []byte) bool { return row == nil }
			return memstore.Write{Key: key, Condition: absent, Apply: add, Failure: failure}
		},
		AddRow:   func(key string) storage.Write { return memstore.Write{Key: key, Apply: add} },
		CountRow: func(_ context.Context, key string) (int, error) { return count(store.Row(key)) },
	}
}

// The test of a store that fails by package faulty.
func Example() {
	sequences.Run(t, sequences.Harness{
		Open: open,
		Faults: sequences.Faults{
			LoseReply: faulty.LoseReply(), LoseRequest: faulty.LoseRequest(),
			Busy: map[string]faulty.Fault{
				"throttled": faulty.Refuse(storage.ErrThrottled), "contention": faulty.Refuse(storage.ErrContention),
			},
			CredentialsExpired: faulty.Refuse(&storage.NotAskedError{Cause: errors.New("the credentials have expired")}),
		},
	})
}
