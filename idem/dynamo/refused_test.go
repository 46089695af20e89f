package dynamo_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

// A call that DynamoDB does not allow, or finds not valid, is a line that an alarm counts. A condition that fails, alone or in a
// transaction, is how an account without money, a lost fence and a second request are told: it is no line at any traffic.
func TestOnlyWhatIsWrongIsLoggedAsRefused(t *testing.T) {
	dynamotest.Each(t, func(t *testing.T, url string) {
		var lines bytes.Buffer
		client := dynamotest.Client(url, dynamo.LogRefused(slog.New(slog.NewJSONHandler(&lines, nil))))
		tables, err := dynamotest.CreateTables(t.Context(), dynamotest.Client(url), "refused")
		must(t, err)
		key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "r#refused"}}
		never := aws.String("attribute_exists(absent)")
		told := func(name string, err error, wantCall, wantCode string) {
			t.Helper()
			if err == nil {
				t.Errorf("%s passed", name)
			}
			var line struct{ Level, Msg, Call, Code, Error string }
			if wantCall != "" {
				if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
					t.Errorf("%s: %q: %v", name, lines.String(), err)
				}
				if line.Level != "ERROR" || line.Msg != "idempotency.store.refused" || line.Call != wantCall || line.Code != wantCode || line.Error == "" {
					t.Errorf("%s: %s", name, lines.String())
				}
			} else if lines.Len() > 0 {
				t.Errorf("%s: %s", name, lines.String())
			}
			lines.Reset()
		}
		_, err = client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Idempotency, Item: key, ConditionExpression: never})
		told("a failed condition", err, "", "")
		_, err = client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: &tables.Idempotency, Item: key, ConditionExpression: never}},
		}})
		told("a cancelled transaction", err, "", "")
		_, err = client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("there-is-none"), Key: key})
		told("a missing table", err, "GetItem", "ResourceNotFoundException")
		_, err = client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Idempotency, Item: key, ConditionExpression: aws.String("no condition")})
		told("a malformed condition", err, "PutItem", "ValidationException")
	})
}
