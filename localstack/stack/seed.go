package stack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/sdkhttp"
)

// seedBalance is what acct_1 of each tenant starts with, in minor units.
const seedBalance = 100_000_000

// tenant is a caller of the seeded stack and its API key.
type tenant struct{ id, token string }

// Attributes of the payments table that the seed writes; the application reads the same.
const (
	attributeKey      = "pk"
	attributeTenant   = "tn"
	attributeID       = "id"
	attributeCurrency = "cur"
	attributeBalance  = "bal"
)

// seedItems are the API key and the accounts of a tenant. Accounts have the same ids in every tenant, so that a leak
// between tenants shows.
func seedItems(t tenant) []map[string]types.AttributeValue {
	hash := sha256.Sum256([]byte(t.token))
	items := []map[string]types.AttributeValue{{
		attributeKey:    &types.AttributeValueMemberS{Value: "apikey#" + hex.EncodeToString(hash[:])},
		attributeTenant: &types.AttributeValueMemberS{Value: t.id},
	}}
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
func seed(ctx context.Context, client *dynamodb.Client, table string, tenants ...tenant) error {
	for _, t := range tenants {
		for _, item := range seedItems(t) {
			_, err := client.PutItem(ctx, &dynamodb.PutItemInput{
				TableName: aws.String(table), Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)"),
			})
			if exists := (*types.ConditionalCheckFailedException)(nil); err != nil && !errors.As(err, &exists) {
				return fmt.Errorf("seed %s: %w", t.id, err)
			}
		}
	}
	return nil
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
