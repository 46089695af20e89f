package awsctl

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
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
