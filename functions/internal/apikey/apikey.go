// Package apikey authenticates bearer API keys. A key is stored only as its SHA-256, so that nobody who reads the table
// can call as a tenant; keys are random and long, so the hash needs no salt.
package apikey

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Errors of Tenant. Any other error means that the table could not be asked.
var (
	// ErrMissing: there is no bearer token: 401.
	ErrMissing = errors.New("apikey: no bearer token")
	// ErrUnknown: the token is nobody's: 403.
	ErrUnknown = errors.New("apikey: unknown token")
)

// KeyPrefix begins the partition key of a row that holds an API key; the hash of the key follows.
const KeyPrefix = "apikey#"

const (
	attrKey    = "pk"
	attrTenant = "tn"
)

// RowKey is the partition key of a token's row.
func RowKey(token string) string {
	sum := sha256.Sum256([]byte(token))
	return KeyPrefix + hex.EncodeToString(sum[:])
}

// b64token of RFC 6750 section 2.1, bounded.
var tokenSyntax = regexp.MustCompile(`^[A-Za-z0-9._~+/-]{16,256}=*$`)

// Authenticator looks tokens up in the payments table.
type Authenticator struct {
	Client *dynamodb.Client
	Table  string
}

// Tenant returns the tenant that the value of an Authorization header belongs to, [ErrMissing] or [ErrUnknown]. The
// value is parsed before anything is looked up.
func (a Authenticator) Tenant(ctx context.Context, authorization string) (string, error) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", ErrMissing
	}
	if !tokenSyntax.MatchString(token) {
		return "", ErrUnknown
	}
	out, err := a.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &a.Table, Key: map[string]types.AttributeValue{attrKey: &types.AttributeValueMemberS{Value: RowKey(token)}},
	})
	if err != nil {
		return "", fmt.Errorf("apikey: look up: %w", err)
	}
	tenant, ok := out.Item[attrTenant].(*types.AttributeValueMemberS)
	if !ok || tenant.Value == "" {
		return "", ErrUnknown
	}
	return tenant.Value, nil
}
