package apikey_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/internal/token"
)

func TestLimitsAreReadAsTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		one := rapid.Int64Range(0, apikey.LimitMax)
		want := apikey.Limits{
			NewKeysPerSecond: one.Draw(r, "new keys"), ActiveKeys: one.Draw(r, "active keys"),
			LookUpsPerSecond: one.Draw(r, "look-ups"), WaitsPerSecond: one.Draw(r, "waits"),
		}
		if got := apikey.ParseLimits(want.String()); got != want {
			r.Errorf("%+v as %q is read as %+v", want, want.String(), got)
		}
	})
}

// A word that is not understood leaves the deployment's limit: it never means that there is none, nor that nothing is admitted.
func TestWordsThatAreNotUnderstoodAreTheDeploymentsLimit(t *testing.T) {
	for words, want := range map[string]apikey.Limits{
		"": {}, "new_keys": {}, "new_keys=": {}, "new_keys=0": {}, "new_keys=-5": {}, "new_keys=many": {}, "new_keys=5.5": {}, "new_keys=1000000001": {},
		"new_keys=99999999999999999999": {}, "NEW_KEYS=5": {}, "keys=5": {}, "new_keys = 5": {}, "new_keys=0 waits=3 rest=1": {WaitsPerSecond: 3},
	} {
		if got := apikey.ParseLimits(words); got != want {
			t.Errorf("%q: %+v, want %+v", words, got, want)
		}
	}
}

func TestLimitsAreWrittenOnTheTenantsKeys(t *testing.T) {
	s := lambdatest.New(t)
	keys, id := s.KeyTable(), token.ID(lambdatest.Token)
	limits := apikey.Limits{NewKeysPerSecond: 5, WaitsPerSecond: 1}
	read := func() apikey.Limits {
		t.Helper()
		key, err := s.Keys(t).Caller(t.Context(), "Bearer "+lambdatest.Token)
		if err != nil {
			t.Fatal(err)
		}
		return key.Limits
	}
	if err := keys.Limit(t.Context(), lambdatest.Tenant, id, limits); err != nil || read() != limits {
		t.Errorf("%v, %+v, want %+v", err, read(), limits)
	}
	for tenant, id := range map[string]string{"tenant-b": id, lambdatest.Tenant: token.ID("nobody's")} {
		if err := keys.Limit(t.Context(), tenant, id, apikey.Limits{ActiveKeys: 1}); !errors.Is(err, apikey.ErrNoKey) {
			t.Errorf("a key that %s does not have: %v, want ErrNoKey", tenant, err)
		}
	}
	if n := len(s.Items(t, s.APIKeys)); n != 1 || read() != limits {
		t.Errorf("%d keys with %+v, want one, unchanged", n, read())
	}
	if err := keys.Limit(t.Context(), lambdatest.Tenant, id, apikey.Limits{}); err != nil || read() != (apikey.Limits{}) {
		t.Errorf("%v, %+v, want none", err, read())
	}
	item := s.Items(t, s.APIKeys)[0]
	for name, malformed := range map[string]types.AttributeValue{
		"words": &types.AttributeValueMemberS{Value: "new_keys=all"}, "a number": &types.AttributeValueMemberN{Value: "5"},
	} {
		item[table.KeyLimits] = malformed
		s.Put(t, s.APIKeys, item)
		if read() != (apikey.Limits{}) {
			t.Errorf("%s: %+v, want the deployment's", name, read())
		}
	}
}
