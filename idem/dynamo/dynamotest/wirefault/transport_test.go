package wirefault_test

import (
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// wired is a table of three rows, all in one partition of its index, and a client of it over the wire.
func wired(t *testing.T, wire *wirefault.Transport) (client *dynamodb.Client, table string) {
	t.Helper()
	client = dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Dynoxide), func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: wire} })
	table = t.Name()
	shape := schema.Table{Key: "id", Index: schema.Index{Name: "days", Partition: "day", Sort: "at"}}
	if err := dynamotest.CreateTable(t.Context(), client, table, shape); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b", "c"} {
		row := item{"id": text(id), "day": text("monday"), "at": &types.AttributeValueMemberN{Value: "1"}}
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: row}); err != nil {
			t.Fatal(err)
		}
	}
	wire.Inject("")
	return client, table
}

// With OneAPage a first page has one item and says that there are more; a limit of the client's own stands.
func TestOneAPage(t *testing.T) {
	wire := &wirefault.Transport{OneAPage: true}
	client, table := wired(t, wire)
	for want, limit := range map[int32]*int32{1: nil, 2: aws.Int32(2)} {
		scan, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table, Limit: limit})
		if err != nil || scan.Count != want || scan.LastEvaluatedKey == nil {
			t.Errorf("scanned %+v, %v, want %d and more", scan, err, want)
		}
		query, err := client.Query(t.Context(), &dynamodb.QueryInput{
			TableName: &table, IndexName: aws.String("days"), Limit: limit, KeyConditionExpression: aws.String("#day = :day"),
			ExpressionAttributeNames: map[string]string{"#day": "day"}, ExpressionAttributeValues: item{":day": text("monday")},
		})
		if err != nil || query.Count != want || query.LastEvaluatedKey == nil {
			t.Errorf("queried %+v, %v, want %d and more", query, err, want)
		}
	}
	found := 0
	for pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found += len(page.Items)
	}
	if found != 3 {
		t.Errorf("%d items on all pages, want 3", found)
	}
}

// Weak names each kind of read that may be stale, and none of an index.
func TestWeakReadsAreNamed(t *testing.T) {
	wire := &wirefault.Transport{}
	client, table := wired(t, wire)
	key := item{"id": text("a")}
	for _, strong := range []bool{true, false} {
		wire.Inject("")
		_, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: &strong})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table, ConsistentRead: &strong}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{table: {Keys: []item{key}, ConsistentRead: &strong}},
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table, IndexName: aws.String("days")}); err != nil {
			t.Fatal(err)
		}
		want := 3
		if strong {
			want = 0
		}
		if weak := wire.Weak(); len(weak) != want {
			t.Errorf("strong %t: weak are %v, want %d", strong, weak, want)
		}
	}
}
