package dynamo_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// A table that something else has made is compared in all that the store relies on.
func TestCheckTableNamesEveryDifference(t *testing.T) {
	for _, endpoint := range dynamotest.Names() {
		t.Run(endpoint, func(t *testing.T) {
			client := dynamotest.Client(dynamotest.Endpoint(t, endpoint))
			for what, c := range map[string]struct {
				made, shape schema.Table
				want        []string
			}{
				"idempotency": {schema.Idempotency(), schema.Idempotency(), nil},
				"outbox":      {schema.Outbox(), schema.Outbox(), nil},
				"restored": { // as a restore leaves it: no time to live, no stream
					schema.Table{Key: schema.MessageID, Index: schema.Outbox().Index}, schema.Outbox(),
					[]string{"its time to live is off, must be on ttl", "its stream is off, must be NEW_IMAGE"},
				},
				"other": {
					schema.Table{Key: "id", TTL: "gone", Index: schema.Index{Name: "sweep", Partition: "x", Sort: "qa"}}, schema.Idempotency(),
					[]string{
						"its key is id S, must be pk S", "its time to live is on gone, must be on ttl", "the key of its index sweep is x S, qa N, must be q S, qa N",
						"its index sweep does not project op", "its index sweep does not project tn",
					},
				},
				"bare": {schema.Table{Key: "pk", TTL: "ttl"}, schema.Idempotency(), []string{"it has no index sweep"}},
			} {
				name := "check-" + what
				if err := dynamotest.CreateTable(t.Context(), client, name, c.made); err != nil {
					t.Fatal(err)
				}
				found, err := dynamo.CheckTable(t.Context(), client, name, c.shape)
				var differs *dynamo.TableError
				switch {
				case c.want == nil && err != nil, c.want != nil && !errors.As(err, &differs):
					t.Errorf("%s: %v", what, err)
				case c.want != nil && !slices.Equal(differs.Differences, c.want):
					t.Errorf("%s: %q, want %q", what, differs.Differences, c.want)
				}
				if found == nil || *found.TableName != name {
					t.Errorf("%s: described %v", what, found)
				}
			}
			if _, err := dynamo.CheckTable(t.Context(), client, "not-there", schema.Outbox()); err == nil || !strings.Contains(err.Error(), "not-there") {
				t.Errorf("a table that is not there: %v", err)
			}
		})
	}
}

// Whoever reads both images finds the new one.
func TestCheckTableTakesAStreamOfBothImages(t *testing.T) {
	client := dynamotest.Client(dynamotest.Endpoint(t, dynamotest.Names()[0]))
	if err := dynamotest.CreateTable(t.Context(), client, "check-images", schema.Table{Key: schema.MessageID, TTL: schema.TTL, Index: schema.Outbox().Index}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		view types.StreamViewType
		want string
	}{{types.StreamViewTypeKeysOnly, "its stream is KEYS_ONLY, must be NEW_IMAGE"}, {types.StreamViewTypeNewAndOldImages, ""}} {
		_, err := client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String("check-images"), StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)}})
		if err != nil {
			t.Log(err) // it has none yet
		}
		_, err = client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
			TableName: aws.String("check-images"), StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: c.view},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = dynamo.CheckTable(t.Context(), client, "check-images", schema.Outbox())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.view, err, c.want)
		}
	}
}
