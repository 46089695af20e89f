package meter

import (
	"errors"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

const wireTable = "meter-wire"

// wired is a client whose calls a wire meters, with every kind of value in what it writes.
func wired(t *testing.T) (*Wire, *dynamodb.Client) {
	t.Helper()
	url := dynamotest.Endpoint(t, dynamotest.Dynoxide)
	shape := schema.Table{Key: "pk"}
	if err := dynamotest.CreateTable(t.Context(), dynamotest.Client(url), wireTable, shape); err != nil {
		t.Fatal(err)
	}
	wire := NewWire(url, &Meter{Raw: dynamotest.Client(url), Shapes: map[string]schema.Table{wireTable: shape}})
	server := httptest.NewServer(wire)
	t.Cleanup(wire.Close)
	t.Cleanup(server.Close)
	return wire, dynamotest.Client(server.URL, func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 })
}

func wiredItem(key string, bytes int) Item {
	return Item{
		"pk": &types.AttributeValueMemberS{Value: key},
		"n":  &types.AttributeValueMemberN{Value: "17"},
		"b":  &types.AttributeValueMemberB{Value: make([]byte, bytes)},
		"t":  &types.AttributeValueMemberBOOL{Value: true},
		"z":  &types.AttributeValueMemberNULL{Value: true},
		"m":  &types.AttributeValueMemberM{Value: Item{"s": &types.AttributeValueMemberS{Value: ""}}},
		"l":  &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberN{Value: "1"}}},
	}
}

// What a wire sees of a call is priced as what a client of this process sends.
func TestAWirePricesEachKindOfCall(t *testing.T) {
	wire, client := wired(t)
	put := func(key string, bytes int) *dynamodb.PutItemInput {
		return &dynamodb.PutItemInput{TableName: aws.String(wireTable), Item: wiredItem(key, bytes), ConditionExpression: aws.String("attribute_not_exists(pk)")}
	}
	key := Item{"pk": &types.AttributeValueMemberS{Value: "a"}}
	for _, call := range []struct {
		send          func() error
		name          string
		writes, reads float64
	}{
		{func() error { _, err := client.PutItem(t.Context(), put("a", 5000)); return err }, "PutItem", 5, 0},
		{func() error { _, err := client.PutItem(t.Context(), put("a", 10)); return err }, "PutItem lost", 5, 0},
		{func() error {
			_, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(wireTable), Key: key, ConsistentRead: aws.Bool(true)})
			return err
		}, "GetItem", 0, 2},
		{func() error {
			_, err := client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{wireTable: {Keys: []map[string]types.AttributeValue{key}}}})
			return err
		}, "BatchGetItem(1)", 0, 1},
		{func() error {
			_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				TableName: aws.String(wireTable), Key: key, UpdateExpression: aws.String("SET n = :n"),
				ExpressionAttributeValues: Item{":n": &types.AttributeValueMemberN{Value: "18"}},
			})
			return err
		}, "UpdateItem", 5, 0},
		{func() error {
			in := put("b", 10)
			_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
				{Put: &types.Put{TableName: in.TableName, Item: in.Item}},
				{Update: &types.Update{TableName: in.TableName, Key: key, UpdateExpression: aws.String("REMOVE b")}},
			}})
			return err
		}, "TransactWriteItems(2)", 2 + 10, 0},
	} {
		err := call.send()
		if _, lost := errors.AsType[*types.ConditionalCheckFailedException](err); lost != strings.HasSuffix(call.name, "lost") || err != nil && !lost {
			t.Fatalf("%s: %v", call.name, err)
		}
		calls, err := wire.Take()
		if err != nil || len(calls) != 1 {
			t.Fatalf("%s: %+v, %v", call.name, calls, err)
		}
		if c := calls[0]; c.Name != call.name || c.Ruled.Writes() != call.writes || c.Ruled.Reads != call.reads {
			t.Errorf("got %s, %g W %g R, want %s, %g W %g R", c.Name, c.Ruled.Writes(), c.Ruled.Reads, call.name, call.writes, call.reads)
		}
	}
}

// A call without a price must not look as if it were free.
func TestAWireRefusesWhatItHasNoRuleFor(t *testing.T) {
	wire, client := wired(t)
	_, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(wireTable), Key: Item{"pk": &types.AttributeValueMemberS{Value: "a"}}})
	if err == nil {
		t.Error("the call was passed on")
	}
	if _, err := wire.Take(); err == nil || !strings.Contains(err.Error(), "DeleteItem") {
		t.Errorf("got %v, want an error about DeleteItem", err)
	}
}

// A deployed stack has calls of its own besides, such as a sweep's: they pass, and are told from those that are free.
func TestAWireThatPassesOthersOnSaysThatTheyHaveNoPrice(t *testing.T) {
	wire, client := wired(t)
	wire.Others = true
	before := wire.Idle()
	if _, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(wireTable)}); err != nil {
		t.Fatal(err)
	}
	if idle := wire.Idle(); idle >= before {
		t.Errorf("idle for %v after a call, %v before", idle, before)
	}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(wireTable), Item: wiredItem("other", 10)}); err != nil {
		t.Fatal(err)
	}
	calls, err := wire.Take()
	if err != nil || len(calls) != 2 || !calls[0].Unpriced || calls[0].Name != "Scan" || calls[1].Unpriced || !slices.Equal(calls[1].Tables, []string{wireTable}) {
		t.Errorf("%+v, %v, want a Scan without a price and a PutItem to %s", calls, err, wireTable)
	}
}

func TestAnErrorThatIsNoLostConditionIsTold(t *testing.T) {
	wire, client := wired(t)
	_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(wireTable), Key: Item{"pk": &types.AttributeValueMemberS{Value: "a"}}, UpdateExpression: aws.String("SET n = :n"),
	})
	if err == nil {
		t.Error("the client was told of no error")
	}
	calls, err := wire.Take()
	if err == nil || slices.ContainsFunc(calls, func(c Call) bool { return c.Lost }) {
		t.Errorf("%+v, %v", calls, err)
	}
}

// The shapes that an endpoint tells of are those that its tables were made of.
func TestShapesAreThoseOfTheTables(t *testing.T) {
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Dynoxide))
	want := map[string]schema.Table{"meter-records": schema.Idempotency(), "meter-messages": schema.Outbox(), "meter-counters": schema.Quota()}
	for name, shape := range want {
		if err := dynamotest.CreateTable(t.Context(), client, name, shape); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Shapes(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	for name, shape := range want {
		slices.Sort(shape.Index.Projected)
		found := got[name]
		slices.Sort(found.Index.Projected)
		if found.Key != shape.Key || !reflect.DeepEqual(found.Index, shape.Index) {
			t.Errorf("%s: %+v, want %+v", name, found, shape)
		}
	}
}
