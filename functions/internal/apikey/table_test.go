package apikey_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest"
	"github.com/idem-go/idem-aws/idem/dynamo/dynamotest/wirefault"
	"github.com/idem-go/idem-aws/internal/token"
)

// ms is a time as rows have it.
func ms(n int64) time.Time { return time.UnixMilli(n).UTC() }

func TestTableKeepsWhatIsKnownOfAKey(t *testing.T) {
	s := lambdatest.New(t)
	keys := s.KeyTable()
	const expiry = 1_800_000_000_000
	want := apikey.Key{
		ID: token.ID(token.New(token.Live)), Tenant: "tenant-b", Name: "back office", Scopes: []apikey.Scope{apikey.AccountsRead, apikey.PaymentsRead},
		CreatedAt: ms(1_790_000_000_001), CreatedBy: "ada", ExpiresAt: ms(expiry),
	}
	for range 2 { // the second is of a lost reply
		if err := keys.Insert(t.Context(), want); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := keys.Key(t.Context(), want.ID); err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, it := range s.Items(t, s.APIKeys) {
		gone, _ := it[table.KeyGone].(*types.AttributeValueMemberN)
		switch mine := it[table.KeyID].(*types.AttributeValueMemberS).Value == want.ID; {
		case mine && (gone == nil || gone.Value != "1807776000"): // 90 days after
			t.Errorf("TTL %v", gone)
		case !mine && gone != nil:
			t.Errorf("a key that does not expire has the TTL %s", gone.Value)
		}
	}

	revoked, err := keys.Revoke(t.Context(), want.ID, "bob", ms(1_790_000_000_002))
	want.RevokedAt, want.RevokedBy = ms(1_790_000_000_002), "bob"
	if err != nil || !reflect.DeepEqual(revoked, want) || revoked.State(ms(0)) != "revoked" {
		t.Errorf("%+v, %v, want %+v", revoked, err, want)
	}
	if again, err := keys.Revoke(t.Context(), want.ID, "eve", ms(1_790_000_000_003)); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("again: %+v, %v, want %+v", again, err, want)
	}
	if _, err := keys.Revoke(t.Context(), token.ID("nobody's"), "ada", ms(1)); !errors.Is(err, apikey.ErrNoKey) {
		t.Errorf("a key that is not there: %v", err)
	}
	if none, err := keys.Key(t.Context(), token.ID("nobody's")); err != nil || none != nil {
		t.Errorf("revoking made %+v, %v", none, err)
	}
}

// Who looks for a tenant's keys to revoke them is shown all of them, also of a table of many pages.
func TestListIsByTenantAndCreation(t *testing.T) {
	s := lambdatest.New(t)
	for i, tenant := range []string{"tenant-c", "tenant-b", "tenant-b"} {
		s.Key(t, apikey.Key{ID: token.ID(token.New(token.Live)), Tenant: tenant, Scopes: apikey.Scopes(), Name: tenant, CreatedAt: ms(int64(10 - i))})
	}
	endpoint := dynamotest.Endpoint(t, dynamotest.Names()[0])
	onPages := apikey.Table{Client: dynamotest.Client(endpoint, lambdatest.Wire(t, &wirefault.Transport{OneAPage: true})), Name: s.APIKeys}
	all, err := onPages.List(t.Context(), "")
	if err != nil || len(all) != 4 || all[0].Tenant != lambdatest.Tenant || all[1].CreatedAt != ms(8) || all[2].CreatedAt != ms(9) || all[3].Tenant != "tenant-c" {
		t.Errorf("%+v, %v", all, err)
	}
	if of, err := onPages.List(t.Context(), "tenant-b"); err != nil || len(of) != 2 {
		t.Errorf("%+v, %v", of, err)
	}
	if none, err := s.KeyTable().List(t.Context(), "tenant"); err != nil || none == nil || len(none) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
}

// What says that a key must not be used is never passed over: a row that can't be understood is trouble, and no key.
func TestMalformedRowsAreNoKeys(t *testing.T) {
	s := lambdatest.New(t)
	text := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	for name, attributes := range map[string]map[string]types.AttributeValue{
		"no tenant":       {},
		"revoked, a text": {table.KeyTenant: text("tenant-b"), table.KeyRevokedAt: text("yesterday")},
		"expired, a text": {table.KeyTenant: text("tenant-b"), table.KeyExpiresAt: text("2026-01-01")},
	} {
		key := token.New(token.Live)
		attributes[table.KeyID] = text(token.ID(key))
		s.Put(t, s.APIKeys, attributes)
		if caller, err := s.Keys(t).Caller(t.Context(), "Bearer "+key); err == nil || apikey.Refused(err) || caller.Tenant != "" {
			t.Errorf("%s: %+v, %v", name, caller, err)
		}
	}
}

// One malformed row stops no other tenant's key from being made or limited, and who meets it is told which it is.
func TestAMalformedRowStopsNoOtherTenant(t *testing.T) {
	s := lambdatest.New(t)
	text := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	var ids []string
	for range 2 {
		ids = append(ids, token.ID(token.New(token.Live)))
		s.Put(t, s.APIKeys, map[string]types.AttributeValue{
			table.KeyID: text(ids[len(ids)-1]), table.KeyTenant: text("tenant-b"), table.KeyRevokedAt: text("yesterday"),
		})
	}
	if of, err := s.KeyTable().List(t.Context(), lambdatest.Tenant); err != nil || len(of) != 1 {
		t.Errorf("%+v, %v", of, err)
	}
	for _, tenant := range []string{"", "tenant-b"} {
		keys, err := s.KeyTable().List(t.Context(), tenant)
		if err == nil || !strings.Contains(err.Error(), ids[0]) || !strings.Contains(err.Error(), ids[1]) {
			t.Errorf("of %q: %+v, %v, want an error that names both items", tenant, keys, err)
		}
	}
}
