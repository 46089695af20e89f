package stack

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/sdkhttp"
	"github.com/idem-go/idem-aws/internal/token"
)

// seedBalance is what acct_1 of each tenant starts with, in minor units.
const seedBalance = 100_000_000

// tenant is a caller of the seeded stack and its API key.
type tenant struct{ id, token string }

// Attributes of the tables that the seed writes; the application reads the same.
const (
	attributeKey      = "pk"
	attributeTenant   = "tn"
	attributeID       = "id"
	attributeCurrency = "cur"
	attributeBalance  = "bal"
	attributeName     = "nm"
	attributeScopes   = "sc"
	attributeCreated  = "ca"
	attributeBy       = "cb"
)

// Scopes are all that an API key may have: those of the application.
var Scopes = []string{
	"accounts:read", "operations:read", "payments:read", "payments:write", "payouts:read", "payouts:write", "refunds:write", "transfers:write",
}

// APIKey is the item of a tenant's API key, in the table of API keys.
func APIKey(tenant, key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		attributeID:      &types.AttributeValueMemberS{Value: token.ID(key)},
		attributeTenant:  &types.AttributeValueMemberS{Value: tenant},
		attributeName:    &types.AttributeValueMemberS{Value: "local stack"},
		attributeScopes:  &types.AttributeValueMemberSS{Value: Scopes},
		attributeCreated: &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().UnixMilli(), 10)},
		attributeBy:      &types.AttributeValueMemberS{Value: "local stack"},
	}
}

// accounts are those of a tenant. They have the same ids in every tenant, so that a leak between tenants shows.
func accounts(t tenant) []map[string]types.AttributeValue {
	var items []map[string]types.AttributeValue
	for account, balance := range map[string]int64{"acct_1": seedBalance, "acct_2": 0} {
		items = append(items, map[string]types.AttributeValue{
			attributeKey:      &types.AttributeValueMemberS{Value: "account#" + t.id + "/" + account},
			attributeTenant:   &types.AttributeValueMemberS{Value: t.id},
			attributeID:       &types.AttributeValueMemberS{Value: account},
			attributeCurrency: &types.AttributeValueMemberS{Value: "EUR"},
			attributeBalance:  &types.AttributeValueMemberN{Value: strconv.FormatInt(balance, 10)},
		})
	}
	return items
}

// seed writes what is missing and changes nothing that is there: balances survive another `up`.
func seed(ctx context.Context, client *dynamodb.Client, payments, keys string, tenants ...tenant) error {
	for _, t := range tenants {
		if err := insert(ctx, client, keys, attributeID, APIKey(t.id, t.token)); err != nil {
			return fmt.Errorf("seed the key of %s: %w", t.id, err)
		}
		for _, item := range accounts(t) {
			if err := insert(ctx, client, payments, attributeKey, item); err != nil {
				return fmt.Errorf("seed %s: %w", t.id, err)
			}
		}
	}
	return nil
}

func insert(ctx context.Context, client *dynamodb.Client, table, key string, item map[string]types.AttributeValue) error {
	_, err := client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(table), Item: item, ConditionExpression: aws.String("attribute_not_exists(#key)"),
		ExpressionAttributeNames: map[string]string{"#key": key},
	})
	if exists := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &exists) {
		return nil
	}
	return err
}

// localConfig is the SDK configuration for an emulator. It reads no environment and no files.
func localConfig(endpoint string) (aws.Config, error) {
	if !isLoopback(endpoint) {
		return aws.Config{}, &NotLocalError{Endpoint: endpoint}
	}
	return aws.Config{
		Region:       localRegion,
		BaseEndpoint: aws.String(endpoint),
		HTTPClient:   sdkhttp.BufferedBody(nil),
		Credentials:  credentials.NewStaticCredentialsProvider(localCredentials, localCredentials, ""),
	}, nil
}
