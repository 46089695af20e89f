package apikey_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// nobody is an authenticator whose every look-up fails.
func nobody() apikey.Authenticator {
	return apikey.Authenticator{Table: "payments", Client: dynamotest.Client("http://127.0.0.1:1", func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })}
}

// docs/payments-api.md "Conventions": Authorization: Bearer <token>; the scheme's case does not matter (RFC 9110 section
// 11.1).
func TestTenantOfAToken(t *testing.T) {
	s := lambdatest.New(t)
	keys := apikey.Authenticator{Client: s.Client, Table: s.Payments}
	const revoked, padded = "a-token-without-a-tenant", "cGFkZGVkLXRva2Vu-._~+/=="
	s.Put(t, s.Payments, map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: apikey.RowKey(revoked)}})
	s.Put(t, s.Payments, map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: apikey.RowKey(padded)}, "tn": &types.AttributeValueMemberS{Value: "tenant-b"},
	})
	for _, c := range []struct {
		name, authorization, tenant string
		err                         error
	}{
		{"known", "Bearer " + lambdatest.Token, lambdatest.Tenant, nil},
		{"another", "Bearer " + padded, "tenant-b", nil},
		{"lower-case scheme", "bearer " + lambdatest.Token, lambdatest.Tenant, nil},
		{"space around", "  Bearer   " + lambdatest.Token + " ", lambdatest.Tenant, nil},
		{"unknown", "Bearer another-token-of-tenant-a", "", apikey.ErrUnknown},
		{"another case", "Bearer " + strings.ToUpper(lambdatest.Token), "", apikey.ErrUnknown},
		{"row without a tenant", "Bearer " + revoked, "", apikey.ErrUnknown},
		{"the key of another row", "Bearer account#tenant-a/acct_1", "", apikey.ErrUnknown},
		{"the stored hash", "Bearer " + strings.TrimPrefix(apikey.RowKey(lambdatest.Token), apikey.KeyPrefix), "", apikey.ErrUnknown},
	} {
		if tenant, err := keys.Tenant(t.Context(), c.authorization); tenant != c.tenant || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v, want %q, %v", c.name, tenant, err, c.tenant, c.err)
		}
	}
}

// What can't be a token is judged without asking anybody: here nobody answers.
func TestTenantOfWhatIsNoToken(t *testing.T) {
	for _, c := range []struct {
		name, authorization string
		err                 error
	}{
		{"nothing", "", apikey.ErrMissing},
		{"no token", "Bearer", apikey.ErrMissing},
		{"an empty token", "Bearer  ", apikey.ErrMissing},
		{"another scheme", "Basic dGVuYW50LWE6c2VjcmV0", apikey.ErrMissing},
		{"no scheme", lambdatest.Token, apikey.ErrMissing},
		{"too short", "Bearer short", apikey.ErrUnknown},
		{"too long", "Bearer " + strings.Repeat("a", 257), apikey.ErrUnknown},
		{"two tokens", "Bearer " + lambdatest.Token + " " + lambdatest.Token, apikey.ErrUnknown},
		{"joined by a gateway", "Bearer " + lambdatest.Token + ", Bearer " + lambdatest.Token, apikey.ErrUnknown},
		{"other characters", "Bearer " + lambdatest.Token + "\x00", apikey.ErrUnknown},
		{"letters of another script", "Bearer " + strings.Repeat("é", 20), apikey.ErrUnknown},
		{"padding in the middle", "Bearer aaaaaaaaaaaaaaaa==a", apikey.ErrUnknown},
	} {
		if tenant, err := nobody().Tenant(t.Context(), c.authorization); tenant != "" || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v, want %v", c.name, tenant, err, c.err)
		}
	}
}

// A table that can't be asked says nothing about the token: neither 401 nor 403.
func TestTenantWhileTheTableIsDown(t *testing.T) {
	tenant, err := nobody().Tenant(t.Context(), "Bearer "+lambdatest.Token)
	if err == nil || tenant != "" || errors.Is(err, apikey.ErrUnknown) || errors.Is(err, apikey.ErrMissing) {
		t.Errorf("%q, %v, want an error of its own", tenant, err)
	}
	if err != nil && strings.Contains(err.Error(), lambdatest.Token) {
		t.Errorf("the error tells the token: %v", err)
	}
}

// The rows are there already: a key is found by its SHA-256 in hex, and by nothing else.
func TestRowKeyIsTheTokensHash(t *testing.T) {
	const want = "apikey#6cc770803778aa3de6579ea16e2e6c6500af061e2151617f5f18d976dcd32cc6"
	if got := apikey.RowKey(lambdatest.Token); got != want {
		t.Errorf("row key %q, want %q", got, want)
	}
}
