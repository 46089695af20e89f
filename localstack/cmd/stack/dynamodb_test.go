package main

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

// An adopter's program that has quotas, encryption or an audit log finds its tables, too.
func TestDynamoDBHasEveryTableOfTheLibrary(t *testing.T) {
	url := dynamotest.Endpoint(t, dynamotest.Dynoxide)
	prefix := t.Name()
	if err := (dynamodbCommand{Prefix: prefix, Table: []string{prefix + "-orders"}}).create(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	listed, err := dynamotest.Client(url).ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"idempotency", "outbox", "quota", "keys", "audit", "orders"} {
		if !slices.Contains(listed.TableNames, prefix+"-"+name) {
			t.Errorf("there is no table %s-%s: %v", prefix, name, listed.TableNames)
		}
	}
}
