package awsctl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/seal/tablekeys"
	"github.com/idem-go/idem-aws/idem/storage"
)

// docs/recovery.md: whatever is encrypted is opened before somebody relies on the keys, also what is on the table's later pages; and a
// row that was written a moment ago.
func TestEveryEncryptedRowIsLookedAt(t *testing.T) {
	wire := &wirefault.Transport{OneAPage: true}
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Dynoxide), func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: wire} })
	table := t.Name()
	if err := dynamotest.CreateTable(t.Context(), client, table, schema.Table{Key: schema.MessageID}); err != nil {
		t.Fatal(err)
	}
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	var want []string
	for n := range 6 {
		id := fmt.Sprint("op_", n, ".1")
		row := map[string]types.AttributeValue{schema.MessageID: text(id), schema.Tenant: text("ada")}
		if n%2 == 0 {
			row[schema.Sealed] = text("{}")
			want = append(want, id)
		}
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: row}); err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	err := (&opener{client: client}).sealed(t.Context(), table, schema.MessageID, func(key, tenant string) error {
		found = append(found, key)
		if tenant != "ada" {
			t.Errorf("%s is of %q", key, tenant)
		}
		return nil
	})
	if slices.Sort(found); err != nil || !slices.Equal(found, want) {
		t.Errorf("%v, %v, want %v", found, err, want)
	}
	if weak := wire.Weak(); len(weak) > 0 {
		t.Errorf("a read is not strong: %v", weak[0])
	}
}

// failing is a store of which each message fails.
type failing struct {
	operator.Store
	err error
}

func (f failing) Message(context.Context, idem.MessageID) (*storage.Message, error) {
	return nil, f.err
}

// What could not be read may well be opened by the next try: it is trouble, and no row that can't be opened.
func TestAReadThatFailsIsNoRowThatCannotBeOpened(t *testing.T) {
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Dynoxide))
	records, messages := t.Name()+"-records", t.Name()+"-messages"
	for table, key := range map[string]string{records: schema.RecordKey, messages: schema.MessageID} {
		if err := dynamotest.CreateTable(t.Context(), client, table, schema.Table{Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	row := map[string]types.AttributeValue{schema.MessageID: text("op_1.1"), schema.Tenant: text("ada"), schema.Sealed: text("{}")}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &messages, Item: row}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		err    error
		counts bool
	}{
		"the store times out":       {context.DeadlineExceeded, false},
		"the store throttles":       {&storage.ContentionError{Throttled: true}, false},
		"the KMS is out of reach":   {&seal.KeysError{Cause: context.DeadlineExceeded}, false},
		"the KMS throttles":         {&seal.KeysError{Cause: &smithy.GenericAPIError{Code: "ThrottlingException"}}, false},
		"the KMS has another key":   {&seal.KeysError{Cause: &smithy.GenericAPIError{Code: "IncorrectKeyException"}}, true},
		"there is no such key":      {&seal.KeysError{Cause: tablekeys.ErrNoKey}, true},
		"it is not what was sealed": {seal.ErrNotAuthentic, true},
		"it is another release's":   {fmt.Errorf("%w: 9", seal.ErrVersion), true},
	} {
		o := &opener{client: client, store: failing{err: c.err}, erased: map[string]bool{}, wrong: map[string]*Unreadable{}}
		err := o.all(t.Context(), records, messages)
		if (o.wrong["ada"] != nil) != c.counts || c.counts != (err == nil) || err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %v, unreadable %v", name, err, o.wrong)
		}
	}
}
