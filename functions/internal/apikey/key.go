package apikey

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/table"
)

// Key is what is stored of an API key: everything but the key itself.
type Key struct {
	ID        string    `json:"id"`
	Tenant    string    `json:"tenant"`
	Name      string    `json:"name"`
	Scopes    []Scope   `json:"scopes"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by"`
	// ExpiresAt is zero for a key that does not expire.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	RevokedAt time.Time `json:"revoked_at,omitzero"`
	RevokedBy string    `json:"revoked_by,omitempty"`
	// LastUsed is at most an hour, and the age of what processes hold, behind.
	LastUsed time.Time `json:"last_used,omitzero"`
	// Limits are the tenant's own.
	Limits Limits `json:"limits,omitzero"`
}

// goneAfter is for how long an expired key is still listed. A key that was never to expire stays.
const goneAfter = 90 * 24 * time.Hour

// judge says whether the key is valid: nil, [ErrRevoked] or [ErrExpired].
func (k Key) judge(now time.Time) error {
	switch {
	case !k.RevokedAt.IsZero(): // whenever that was: clocks differ
		return ErrRevoked
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt):
		return ErrExpired
	}
	return nil
}

// State is the key's in a word.
func (k Key) State(now time.Time) string {
	switch err := k.judge(now); {
	case errors.Is(err, ErrRevoked):
		return "revoked"
	case errors.Is(err, ErrExpired):
		return "expired"
	}
	return "valid"
}

type item = map[string]types.AttributeValue

func (k Key) item() item {
	scopes := make([]string, len(k.Scopes))
	for i, scope := range k.Scopes {
		scopes[i] = string(scope)
	}
	it := item{
		table.KeyID: text(k.ID), table.KeyTenant: text(k.Tenant), table.KeyName: text(k.Name), table.KeyCreatedAt: instant(k.CreatedAt),
		table.KeyCreatedBy: text(k.CreatedBy), table.KeyScopes: &types.AttributeValueMemberSS{Value: scopes},
	}
	if !k.ExpiresAt.IsZero() {
		it[table.KeyExpiresAt] = instant(k.ExpiresAt)
		it[table.KeyGone] = number(k.ExpiresAt.Add(goneAfter).Unix())
	}
	if words := k.Limits.String(); words != "" {
		it[table.KeyLimits] = text(words)
	}
	return it
}

// decode reads an item. What says that a key must not be used any more is never passed over because it is malformed.
func decode(it item) (Key, error) {
	k := Key{
		ID: textOf(it, table.KeyID), Tenant: textOf(it, table.KeyTenant), Name: textOf(it, table.KeyName),
		CreatedBy: textOf(it, table.KeyCreatedBy), RevokedBy: textOf(it, table.KeyRevokedBy),
		Limits: ParseLimits(textOf(it, table.KeyLimits)),
	}
	if set, ok := it[table.KeyScopes].(*types.AttributeValueMemberSS); ok {
		for _, scope := range set.Value {
			k.Scopes = append(k.Scopes, Scope(scope))
		}
		slices.Sort(k.Scopes)
	}
	for name, at := range map[string]*time.Time{
		table.KeyCreatedAt: &k.CreatedAt, table.KeyExpiresAt: &k.ExpiresAt, table.KeyRevokedAt: &k.RevokedAt, table.KeyLastUsed: &k.LastUsed,
	} {
		var err error
		if *at, err = instantOf(it, name); err != nil {
			return Key{}, fmt.Errorf("apikey: the item %s of tenant %q: %w", k.ID, k.Tenant, err)
		}
	}
	if k.Tenant == "" {
		return Key{}, fmt.Errorf("apikey: the item %s has no tenant", k.ID)
	}
	return k, nil
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func instant(t time.Time) types.AttributeValue { return number(t.UnixMilli()) }

func textOf(it item, name string) string {
	if v, ok := it[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func instantOf(it item, name string) (time.Time, error) {
	value, there := it[name]
	if !there {
		return time.Time{}, nil
	}
	if n, ok := value.(*types.AttributeValueMemberN); ok {
		if ms, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			return time.UnixMilli(ms).UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("attribute %s is not a time", name)
}
