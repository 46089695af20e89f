package tablekeys

import (
	"errors"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

type item = map[string]types.AttributeValue

// keys are a tenant's, as they stand in its item. The zero value is of a tenant without one.
type keys struct {
	stored        bool
	current       uint32
	erasedThrough uint32
	wrapped       map[uint32][]byte
}

// known says that the tenant has an item, and erased that it is a tombstone.
func (k *keys) known() bool  { return k.stored }
func (k *keys) erased() bool { return k.stored && len(k.wrapped) == 0 }

// unchanged is the condition that a tenant's item is still as it was read. A new key has a new current id; a copy may add keys, and erase
// some, under the id that is there.
func (k *keys) unchanged() (condition *string, names map[string]string, values item) {
	if !k.known() {
		return aws.String("attribute_not_exists(#tenant)"), map[string]string{"#tenant": schema.Tenant}, nil
	}
	names, values = map[string]string{"#current": schema.CurrentKey, "#keys": schema.WrappedKeys}, item{":current": number(int64(k.current))}
	if k.erased() {
		return aws.String("#current = :current AND attribute_not_exists(#keys)"), names, values
	}
	values[":keys"] = k.value()
	return aws.String("#current = :current AND #keys = :keys"), names, values
}

// value is the attribute of the wrapped keys.
func (k *keys) value() types.AttributeValue {
	wrapped := item{}
	for id, key := range k.wrapped {
		wrapped[strconv.FormatUint(uint64(id), 10)] = &types.AttributeValueMemberB{Value: key}
	}
	return &types.AttributeValueMemberM{Value: wrapped}
}

func (k *keys) item(tenant string) item {
	it := keyOf(tenant)
	it[schema.CurrentKey] = number(int64(k.current))
	it[schema.WrappedKeys] = k.value()
	if k.erasedThrough > 0 {
		it[schema.ErasedThrough] = number(int64(k.erasedThrough))
	}
	return it
}

var errMalformed = errors.New("tablekeys: a malformed item")

func decode(it item) (*keys, error) {
	k := &keys{stored: true, wrapped: map[uint32][]byte{}}
	var err error
	if k.current, err = id(it[schema.CurrentKey]); err != nil {
		return nil, err
	}
	if through, ok := it[schema.ErasedThrough]; ok {
		if k.erasedThrough, err = id(through); err != nil {
			return nil, err
		}
	}
	wrapped, ok := it[schema.WrappedKeys]
	if !ok {
		return k, nil
	}
	all, ok := wrapped.(*types.AttributeValueMemberM)
	if !ok || len(all.Value) == 0 {
		return nil, errMalformed
	}
	for name, value := range all.Value {
		n, err := strconv.ParseUint(name, 10, 32)
		key, ok := value.(*types.AttributeValueMemberB)
		if err != nil || !ok {
			return nil, errMalformed
		}
		k.wrapped[uint32(n)] = key.Value
	}
	return k, nil
}

func id(value types.AttributeValue) (uint32, error) {
	n, ok := value.(*types.AttributeValueMemberN)
	if !ok {
		return 0, errMalformed
	}
	parsed, err := strconv.ParseUint(n.Value, 10, 32)
	if err != nil {
		return 0, errMalformed
	}
	return uint32(parsed), nil
}
