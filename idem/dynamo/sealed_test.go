package dynamo

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/idem-go/idem-aws/idem/storage"
)

// What is sealed says so in its item, is not compressed, and is not mistaken for a response. Items of earlier releases say
// nothing and are not sealed.
func TestASealedRecordsItem(t *testing.T) {
	store, r := offline(t), everyField()
	for _, sealed := range []bool{true, false} {
		r.Sealed = sealed
		it, _, err := store.encodeRecord(r)
		if err != nil {
			t.Fatal(err)
		}
		_, says := it["sl"]
		compressed := reflect.DeepEqual(it["re"], stringValue("z"))
		got, err := store.decodeRecord(it)
		if err != nil || says != sealed || compressed == sealed || got.Sealed != sealed || !bytes.Equal(got.Response.Body, r.Response.Body) {
			t.Errorf("sealed %v: the flag %v, compressed %v, read %+v, %v", sealed, says, compressed, got, err)
		}
		if _, err := store.LoadResponse(t.Context(), *got); (err != nil) != sealed {
			t.Errorf("sealed %v: loaded with %v", sealed, err)
		}
	}
}

func TestASealedMessagesItem(t *testing.T) {
	store, m := offline(t), everyFieldOfMessage()
	for _, sealed := range []bool{true, false} {
		m.Sealed = sealed
		it, err := store.encodeMessage(m)
		if err != nil {
			t.Fatal(err)
		}
		_, says := it["sl"]
		if got, err := store.decodeMessage(it); err != nil || says != sealed || got.Sealed != sealed {
			t.Errorf("sealed %v: the flag %v, read %+v, %v", sealed, says, got, err)
		}
	}
}

// A settlement says it of the response that it stores, whatever the 202 before was.
func TestASettlementsResponseIsSealedOrNot(t *testing.T) {
	store := offline(t)
	for _, sealed := range []bool{true, false} {
		tx := &transaction{}
		_, err := tx.endRecord(store, storage.RecordEnd{
			Key: "key", OperationID: "op_1", State: storage.StateCompleted, Response: storage.Response{Status: 201, Body: []byte("{}")}, Sealed: sealed,
		})
		if err != nil {
			t.Fatal(err)
		}
		update := tx.items[0].Update
		placeholder := ""
		for name, attribute := range update.ExpressionAttributeNames {
			if attribute == "sl" {
				placeholder = name
			}
		}
		set, remove, _ := bytes.Cut([]byte(*update.UpdateExpression), []byte("REMOVE"))
		if placeholder == "" || bytes.Contains(set, []byte(placeholder+" =")) != sealed || bytes.Contains(remove, []byte(placeholder)) == sealed {
			t.Errorf("sealed %v: %s with %v", sealed, *update.UpdateExpression, update.ExpressionAttributeNames)
		}
	}
}
