package tablekeys

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/seal"
)

// Wrapped are a tenant's keys as a table has them, wrapped: what a copy of the table for another Region is made of. Anybody who has it
// reads nothing without the KMS.
type Wrapped struct {
	// Tenant is whose keys they are.
	Tenant string `json:"tenant"`
	// Current is the id of the key to seal under, and ErasedThrough the highest id that was erased; 0 where none was.
	Current       uint32 `json:"current"`
	ErasedThrough uint32 `json:"erased_through,omitzero"`
	// Keys are the wrapped keys by id. There are none where all were erased.
	Keys map[uint32][]byte `json:"keys,omitempty"`
}

// ErrOtherKeys: the table has other keys of the tenant under the same ids. What is sealed under either can't be opened with the other.
var ErrOtherKeys = errors.New("tablekeys: the table has other keys of the tenant under the same ids")

// Each gives the keys of every tenant to a function, in no order, and stops at its first error. It reads the whole table, strongly.
func (k *Keys) Each(ctx context.Context, take func(Wrapped) error) error {
	pages := dynamodb.NewScanPaginator(k.client, &dynamodb.ScanInput{TableName: &k.cfg.Table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("tablekeys: scan: %w", err)
		}
		for _, it := range page.Items {
			tenant, ok := it[schema.Tenant].(*types.AttributeValueMemberS)
			if !ok {
				return errMalformed
			}
			stored, err := decode(it)
			if err != nil {
				return err
			}
			if err := take(Wrapped{Tenant: tenant.Value, Current: stored.current, ErasedThrough: stored.erasedThrough, Keys: stored.wrapped}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Rewrap returns a tenant's keys wrapped by another KMS key. The caller must be allowed to use both. The keys are in the memory of this
// process meanwhile, and nowhere else.
func (k *Keys) Rewrap(ctx context.Context, w Wrapped, to seal.Wrapper) (Wrapped, error) {
	keys := make(map[uint32][]byte, len(w.Keys))
	for id, wrapped := range w.Keys {
		secret, err := k.cfg.Wrapper.Unwrap(ctx, w.Tenant, wrapped)
		if err != nil {
			return Wrapped{}, fmt.Errorf("tablekeys: unwrap key %d: %w", id, err)
		}
		keys[id], err = to.Wrap(ctx, w.Tenant, secret)
		clear(secret)
		if err != nil {
			return Wrapped{}, fmt.Errorf("tablekeys: wrap key %d: %w", id, err)
		}
	}
	w.Keys = keys
	return w, nil
}

// Lacks says whether the table lacks something of a tenant's keys: keys that it does not have, or an erasure. It changes nothing. It
// returns [ErrOtherKeys].
func (k *Keys) Lacks(ctx context.Context, w Wrapped) (bool, error) {
	_, _, lacks, err := k.merge(ctx, w)
	return lacks, err
}

// Keep puts a tenant's keys into the table, wrapped as they are, and says whether that changed anything. What was erased on either side
// stays erased, and keys that the table has beside them stay. Where the tenant is erased on one side, and the other was never told of an
// erasure, all that the other has is erased. It returns [ErrOtherKeys] and changes nothing where the table has another key under one of the
// ids: copy keys before the tenant's first operation there.
func (k *Keys) Keep(ctx context.Context, w Wrapped) (changed bool, err error) {
	for range triesMax {
		stored, merged, lacks, err := k.merge(ctx, w)
		if err != nil || !lacks {
			return false, err
		}
		put, err := k.replace(ctx, w.Tenant, stored, merged)
		if put || err != nil {
			return put, err
		}
	}
	return false, errContended
}

// merge reads what is stored, nil where nothing is, and returns what there is to be.
func (k *Keys) merge(ctx context.Context, w Wrapped) (stored, merged *keys, lacks bool, err error) {
	if stored, err = k.read(ctx, w.Tenant); err != nil {
		return nil, nil, false, err
	}
	merged = &keys{stored: true, current: w.Current, erasedThrough: w.ErasedThrough, wrapped: map[uint32][]byte{}}
	if stored != nil {
		copied := &keys{stored: true, current: w.Current, erasedThrough: w.ErasedThrough, wrapped: w.Keys}
		merged.current = max(copied.current, stored.current)
		merged.erasedThrough = max(copied.erasedThrough, stored.erasedThrough, copied.erases(stored), stored.erases(copied))
		lacks = merged.current > stored.current || merged.erasedThrough > stored.erasedThrough
		for id, wrapped := range stored.wrapped {
			if id > merged.erasedThrough {
				merged.wrapped[id] = wrapped
			}
		}
	}
	for id, wrapped := range w.Keys {
		there, known := merged.wrapped[id]
		switch {
		case id <= merged.erasedThrough:
		case !known:
			merged.wrapped[id], lacks = wrapped, true
		default:
			same, err := k.same(ctx, w.Tenant, there, wrapped)
			if err != nil {
				return nil, nil, false, fmt.Errorf("tablekeys: compare key %d: %w", id, err)
			}
			if !same {
				return nil, nil, false, ErrOtherKeys
			}
		}
	}
	return stored, merged, lacks || stored == nil, nil
}

// erases is the highest key of the other side that a tombstone on this side erases; 0 where it erases none. Ids alone don't say it: a
// tenant may be erased where it had fewer keys, or none. A side that has erased keys itself was given its others after that.
func (k *keys) erases(other *keys) uint32 {
	if k.erased() && other.erasedThrough == 0 {
		return other.current
	}
	return 0
}

// same says whether two wrappings are of one key.
func (k *Keys) same(ctx context.Context, tenant string, a, b []byte) (bool, error) {
	if subtle.ConstantTimeCompare(a, b) == 1 {
		return true, nil
	}
	secret, err := k.cfg.Wrapper.Unwrap(ctx, tenant, a)
	if err != nil {
		return false, err
	}
	defer clear(secret)
	other, err := k.cfg.Wrapper.Unwrap(ctx, tenant, b)
	if err != nil {
		return false, err
	}
	defer clear(other)
	return subtle.ConstantTimeCompare(secret, other) == 1, nil
}

// replace writes a tenant's item anew, unless it was changed since it was read.
func (k *Keys) replace(ctx context.Context, tenant string, stored, merged *keys) (won bool, err error) {
	it := merged.item(tenant)
	if merged.erased() {
		delete(it, schema.WrappedKeys)
		it[schema.ErasedAt] = number(k.cfg.Now().UnixMilli())
	}
	if stored == nil {
		stored = &keys{}
	}
	put := &dynamodb.PutItemInput{
		TableName: &k.cfg.Table, Item: it, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	put.ConditionExpression, put.ExpressionAttributeNames, put.ExpressionAttributeValues = stored.unchanged()
	_, err = k.client.PutItem(ctx, put)
	if failed, lost := errors.AsType[*types.ConditionalCheckFailedException](err); lost {
		there, err := decode(failed.Item)
		return err == nil && reflect.DeepEqual(there, merged), nil // its own: the SDK sends a call again whose reply was lost
	}
	if err != nil {
		return false, fmt.Errorf("tablekeys: put copied keys: %w", err)
	}
	return true, nil
}
