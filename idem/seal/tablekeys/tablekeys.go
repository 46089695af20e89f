// Package tablekeys keeps the data keys of package seal in a DynamoDB table. [New] returns the Keys that seal.Config
// takes. There is one item for each tenant, with the tenant's keys wrapped by a KMS, such as package awskms. The
// table has the shape that schema.Keys describes, and idemconstruct.NewKeys, of the module infra, creates it.
//
// Use it wherever a store is sealed. Every change is one conditional write, so any number of processes agree on a
// tenant's keys. Reads are strong, and nothing is cached here: package seal caches keys for a bounded time.
//
// # Erasure
//
// [Keys.Erase] removes a tenant's wrapped keys and leaves a tombstone. No new key is made for the tenant from then on,
// unless [Keys.Renew] asks for one. Processes may use the keys that they hold for seal.Config.KeyAgeMax more.
//
// A backup of the table brings erased keys back. Keep no point-in-time recovery of the table, or count an erasure as
// complete only when the recovery period is over. If the table is lost, everything that is sealed is lost with it; sealed
// rows live for as long as their retention.
package tablekeys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Keys are the data keys of tenants in a table. It implements [seal.Keys] and is safe for concurrent use.
type Keys struct {
	client *dynamodb.Client
	cfg    Config
}

// ErrNotErased: the tenant's keys were not erased, so there is nothing to renew.
var ErrNotErased = errors.New("tablekeys: the tenant's keys were not erased")

// triesMax bounds how often an item is written anew that others keep changing.
const triesMax = 4

var errContended = errors.New("tablekeys: others keep changing the tenant's keys")

// Current implements [seal.Keys]: a read, and an unwrapping. A tenant's first is made with one conditional write.
func (k *Keys) Current(ctx context.Context, tenant string) (seal.Key, error) {
	stored, err := k.read(ctx, tenant)
	if err != nil {
		return seal.Key{}, err
	}
	if stored == nil {
		return k.first(ctx, tenant)
	}
	return k.current(ctx, tenant, stored)
}

func (k *Keys) current(ctx context.Context, tenant string, stored *keys) (seal.Key, error) {
	if stored.erased() {
		return seal.Key{}, fmt.Errorf("tablekeys: %w", storage.ErrErased)
	}
	return k.unwrap(ctx, tenant, stored, stored.current)
}

// first makes a tenant's first key. Of two that do so at once one wins, and both use its key.
func (k *Keys) first(ctx context.Context, tenant string) (seal.Key, error) {
	made, secret, err := k.mint(ctx, tenant, firstKey)
	if err != nil {
		return seal.Key{}, err
	}
	_, err = k.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &k.cfg.Table, Item: made.item(tenant), ConditionExpression: aws.String("attribute_not_exists(#tenant)"),
		ExpressionAttributeNames:            map[string]string{"#tenant": schema.Tenant},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		stored, err := decode(failed.Item)
		if err != nil {
			return seal.Key{}, err
		}
		return k.current(ctx, tenant, stored)
	}
	if err != nil {
		return seal.Key{}, fmt.Errorf("tablekeys: put the first key: %w", err)
	}
	return seal.Key{ID: made.current, Secret: secret, Current: true}, nil
}

// ErrNoKey: the table does not have the key, or what it has is none. Asking again does not help.
var ErrNoKey = errors.New("tablekeys: there is no such key")

// Open implements [seal.Keys]: a read, and an unwrapping. A tenant without an item is no erased one: that is an error. Of an
// erased one every key is erased, also one that this table never had: a restore may bring back rows that were sealed under it.
func (k *Keys) Open(ctx context.Context, tenant string, id uint32) (seal.Key, error) {
	stored, err := k.read(ctx, tenant)
	switch {
	case err != nil:
		return seal.Key{}, err
	case stored == nil:
		return seal.Key{}, fmt.Errorf("%w: the tenant has no keys: check the table's name", ErrNoKey)
	case stored.erased() || id <= stored.erasedThrough:
		return seal.Key{}, fmt.Errorf("tablekeys: key %d: %w", id, storage.ErrErased)
	}
	return k.unwrap(ctx, tenant, stored, id)
}

func (k *Keys) unwrap(ctx context.Context, tenant string, stored *keys, id uint32) (seal.Key, error) {
	wrapped, ok := stored.wrapped[id]
	if !ok {
		return seal.Key{}, fmt.Errorf("%w: the tenant has no key %d", ErrNoKey, id)
	}
	secret, err := k.cfg.Wrapper.Unwrap(ctx, tenant, wrapped)
	if err != nil {
		return seal.Key{}, fmt.Errorf("tablekeys: unwrap key %d: %w", id, err)
	}
	if len(secret) != seal.KeyBytes {
		return seal.Key{}, fmt.Errorf("%w: key %d has %d bytes", ErrNoKey, id, len(secret))
	}
	return seal.Key{ID: id, Secret: [seal.KeyBytes]byte(secret), Current: id == stored.current}, nil
}

// mint makes a key with that id, the only one of its tenant.
func (k *Keys) mint(ctx context.Context, tenant string, id uint32) (*keys, [seal.KeyBytes]byte, error) {
	var secret [seal.KeyBytes]byte
	if _, err := io.ReadFull(k.cfg.Random, secret[:]); err != nil {
		return nil, secret, fmt.Errorf("tablekeys: read randomness: %w", err)
	}
	wrapped, err := k.cfg.Wrapper.Wrap(ctx, tenant, secret[:])
	if err != nil {
		return nil, secret, fmt.Errorf("tablekeys: wrap a key: %w", err)
	}
	return &keys{current: id, wrapped: map[uint32][]byte{id: wrapped}}, secret, nil
}

// Rotate gives the tenant a new key to seal under, and its first one where it has none. What is sealed under the older ones
// still opens. Processes change to it within half of seal.Config.KeyAgeMax. It returns an [storage.ErrErased] for an erased
// tenant.
func (k *Keys) Rotate(ctx context.Context, tenant string) error {
	return k.renew(ctx, tenant, func(stored *keys) error {
		if stored.erased() {
			return fmt.Errorf("tablekeys: %w", storage.ErrErased)
		}
		return nil
	})
}

// Renew makes a key for a tenant whose keys were erased: from then on its operations are taken again, and what was sealed
// before stays erased. Processes may seal under an erased key for seal.Config.KeyAgeMax after the erasure, so renew no
// sooner, or answers of the first operations may read as erased. It returns [ErrNotErased], and an [storage.ErrErased] where others
// have erased the tenant's keys again meanwhile: what they have erased is not renewed unseen.
func (k *Keys) Renew(ctx context.Context, tenant string) error {
	var first *keys
	return k.renew(ctx, tenant, func(stored *keys) error {
		if first == nil {
			first = stored
		}
		switch {
		case !stored.erased():
			return ErrNotErased
		case stored.erasedThrough > first.erasedThrough:
			return fmt.Errorf("tablekeys: again, meanwhile: %w", storage.ErrErased)
		}
		return nil
	})
}

// renew adds a key and makes it current.
func (k *Keys) renew(ctx context.Context, tenant string, admit func(*keys) error) error {
	for range triesMax {
		stored, err := k.read(ctx, tenant)
		if err != nil {
			return err
		}
		if stored == nil {
			stored = &keys{}
		}
		if err := admit(stored); err != nil {
			return err
		}
		if won, err := k.add(ctx, tenant, stored); won || err != nil {
			return err
		}
	}
	return errContended
}

// add writes the keys with one more, unless they were changed since they were read. What it meets there may be its own: the SDK sends
// a call again whose reply was lost. Nobody else wraps a key to the same bytes.
func (k *Keys) add(ctx context.Context, tenant string, stored *keys) (won bool, err error) {
	made, _, err := k.mint(ctx, tenant, stored.current+1)
	if err != nil {
		return false, err
	}
	for id, wrapped := range stored.wrapped {
		made.wrapped[id] = wrapped
	}
	made.erasedThrough = stored.erasedThrough
	put := &dynamodb.PutItemInput{
		TableName: &k.cfg.Table, Item: made.item(tenant), ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	put.ConditionExpression, put.ExpressionAttributeNames, put.ExpressionAttributeValues = stored.unchanged()
	_, err = k.client.PutItem(ctx, put)
	if failed, lost := errors.AsType[*types.ConditionalCheckFailedException](err); lost {
		there, err := decode(failed.Item)
		return err == nil && bytes.Equal(there.wrapped[made.current], made.wrapped[made.current]), nil
	}
	if err != nil {
		return false, fmt.Errorf("tablekeys: put a new key: %w", err)
	}
	return true, nil
}

// Erase removes all keys of the tenant, for good, and leaves a tombstone: also of a tenant that never had one, whose first
// key counts as erased then. Erasing again changes nothing. A key that others renew meanwhile stays: it is no key of those that were
// to be erased.
func (k *Keys) Erase(ctx context.Context, tenant string) error {
	var through uint32 // what was there when the erasure was asked for
	for range triesMax {
		stored, err := k.read(ctx, tenant)
		if err != nil {
			return err
		}
		if stored == nil {
			stored = &keys{}
		}
		if stored.erased() || through > 0 && stored.erasedThrough >= through { // by this call, or by another
			return nil
		}
		through = max(stored.current, firstKey) // where nothing was erased since, what came meanwhile is erased, too
		if won, err := k.bury(ctx, tenant, stored, through); won || err != nil {
			return err
		}
	}
	return errContended
}

// firstKey is the id of a tenant's first key.
const firstKey = 1

// bury leaves a tombstone, unless the keys were changed since they were read: an erasure that arrives late, or that the SDK sends again,
// must not take a key that was renewed since.
func (k *Keys) bury(ctx context.Context, tenant string, stored *keys, through uint32) (won bool, err error) {
	condition, names, values := stored.unchanged()
	if values == nil {
		values = item{}
	}
	names["#current"], names["#through"], names["#at"], names["#keys"] = schema.CurrentKey, schema.ErasedThrough, schema.ErasedAt, schema.WrappedKeys
	values[":through"], values[":now"] = number(int64(through)), number(k.cfg.Now().UnixMilli())
	_, err = k.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &k.cfg.Table, Key: keyOf(tenant),
		UpdateExpression:    aws.String("SET #current = :through, #through = :through, #at = :now REMOVE #keys"),
		ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	if _, lost := errors.AsType[*types.ConditionalCheckFailedException](err); lost {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("tablekeys: erase: %w", err)
	}
	return true, nil
}

// read reads the tenant's item strongly; nil where there is none.
func (k *Keys) read(ctx context.Context, tenant string) (*keys, error) {
	out, err := k.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &k.cfg.Table, Key: keyOf(tenant), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, fmt.Errorf("tablekeys: read: %w", err)
	}
	if out.Item == nil {
		return nil, nil
	}
	return decode(out.Item)
}

func keyOf(tenant string) item {
	return item{schema.Tenant: &types.AttributeValueMemberS{Value: tenant}}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
