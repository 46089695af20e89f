package lambdatest

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/sdkhttp"
	"github.com/idem-go/idem-aws/idem/seal/awskms"
	"github.com/idem-go/idem-aws/idem/seal/tablekeys"
)

// Seal gives the functions that start from now on a table of keys and a KMS key, as a deployment with encryption has them,
// and returns the keys.
func (s *Stage) Seal(t *testing.T) *tablekeys.Keys {
	t.Helper()
	table, endpoint := s.Idempotency+"-keys", dynamotest.Endpoint(t, dynamotest.Ministack)
	if err := dynamotest.CreateTable(t.Context(), s.Client, table, schema.Keys()); err != nil {
		t.Fatal(err)
	}
	client := kms.New(kms.Options{
		BaseEndpoint: &endpoint, Region: "us-east-1", HTTPClient: sdkhttp.BufferedBody(nil),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	key, err := client.CreateKey(t.Context(), &kms.CreateKeyInput{})
	if err != nil {
		t.Fatal(err)
	}
	wrapper, err := awskms.New(client, aws.ToString(key.KeyMetadata.KeyId))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := tablekeys.New(s.Client, tablekeys.Config{Table: table, Wrapper: wrapper})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ENDPOINT_URL_KMS", endpoint)
	t.Setenv("KEYS_TABLE", table)
	t.Setenv("KEY_TIMEOUT", "10s") // tests are about what a key does, not about how soon an emulator has it
	t.Setenv("KMS_KEY_ID", aws.ToString(key.KeyMetadata.KeyId))
	return keys
}

// seal makes the stream event show the row as it is stored, where that is encrypted.
func (a *Accepted) seal(t *testing.T) {
	t.Helper()
	out, err := a.stage.Client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &a.stage.Outbox, Key: map[string]types.AttributeValue{schema.MessageID: text(string(a.Message.ID))},
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.Item[schema.Sealed] == nil {
		return
	}
	var event events.DynamoDBEvent
	if err := json.Unmarshal(a.Stream, &event); err != nil {
		t.Fatal(err)
	}
	image := map[string]events.DynamoDBAttributeValue{}
	for name, value := range out.Item {
		image[name] = streamed(t, value)
	}
	event.Records[0].Change.NewImage = image
	if a.Stream, err = json.Marshal(event); err != nil {
		t.Fatal(err)
	}
}

// streamed is an attribute of a message in the form of stream events.
func streamed(t *testing.T, value types.AttributeValue) events.DynamoDBAttributeValue {
	t.Helper()
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return events.NewStringAttribute(v.Value)
	case *types.AttributeValueMemberN:
		return events.NewNumberAttribute(v.Value)
	case *types.AttributeValueMemberB:
		return events.NewBinaryAttribute(v.Value)
	case *types.AttributeValueMemberBOOL:
		return events.NewBooleanAttribute(v.Value)
	}
	t.Fatalf("a message has an attribute of type %T", value)
	return events.DynamoDBAttributeValue{}
}
