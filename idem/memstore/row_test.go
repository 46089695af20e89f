package memstore_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Writes of an application's own job happen together or not at all, and the error names those that could not.
func TestWriteRowsIsAllOrNothing(t *testing.T) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	store.PutRow("a", []byte("1"))
	set := func(key, from, to string) memstore.Write {
		return memstore.Write{
			Key: key, Condition: func(row []byte) bool { return string(row) == from }, Apply: func([]byte) []byte { return []byte(to) },
		}
	}
	var failed *storage.WriteFailedError
	if err := store.WriteRows(set("a", "1", "2"), set("b", "x", "y"), set("c", "x", "y")); !errors.As(err, &failed) || !slices.Equal(failed.Indexes, []int{1, 2}) {
		t.Errorf("%v, want the second and the third to fail", err)
	}
	if a := store.Row("a"); string(a) != "1" {
		t.Errorf("%s: one was written all the same", a)
	}
	if err := store.WriteRows(set("a", "1", "2"), set("b", "", "y")); err != nil || string(store.Row("a")) != "2" || string(store.Row("b")) != "y" {
		t.Errorf("%v, %s, %s", err, store.Row("a"), store.Row("b"))
	}
}
