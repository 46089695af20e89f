package awsctl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	kms "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/seal/tablekeys"
	"github.com/idem-go/idem-aws/idem/storage"
)

// opener opens what is encrypted, and counts what can't be.
type opener struct {
	client *dynamodb.Client
	store  operator.Store
	// erased are the tenants whose keys, or some of them, were erased.
	erased map[string]bool
	found  KeysAnswer
	wrong  map[string]*Unreadable
}

var errUnopened = errors.New("it can't be opened with the tenant's keys")

// all reads both tables whole.
func (o *opener) all(ctx context.Context, records, messages string) error {
	err := o.sealed(ctx, records, schema.RecordKey, func(key, tenant string) error {
		o.found.Records++
		r, err := o.store.Get(ctx, storage.RecordKey(key))
		if err != nil || r == nil { // it has expired meanwhile
			return err
		}
		_, err = o.store.LoadResponse(ctx, *r)
		return o.note(tenant, err)
	})
	if err != nil {
		return err
	}
	return o.sealed(ctx, messages, schema.MessageID, func(key, tenant string) error {
		o.found.Messages++
		m, err := o.store.Message(ctx, idem.MessageID(key))
		if err == nil && m != nil && m.Sealed {
			err = errUnopened
			if o.erased[tenant] {
				err = storage.ErrErased
			}
		}
		return o.note(tenant, err)
	})
}

// note counts what came of one row. It returns an error that says nothing of the row: the next try may open it.
func (o *opener) note(tenant string, err error) error {
	switch {
	case err == nil:
	case errors.Is(err, storage.ErrErased):
		o.found.Erased++
	case !stays(err):
		return err
	case o.wrong[tenant] == nil:
		o.wrong[tenant] = &Unreadable{Tenant: tenant, Rows: 1, Why: err.Error()}
	default:
		o.wrong[tenant].Rows++
	}
	return nil
}

// refusals are the answers of the KMS that say that its key does not open what was wrapped. After any other, such as a throttle, nobody
// knows.
var refusals = []string{
	(*kms.IncorrectKeyException)(nil).ErrorCode(), (*kms.InvalidCiphertextException)(nil).ErrorCode(), (*kms.NotFoundException)(nil).ErrorCode(),
	(*kms.DisabledException)(nil).ErrorCode(), (*kms.KMSInvalidStateException)(nil).ErrorCode(),
}

// stays says whether a row can't be opened however often it is tried: it is damaged or a later release's, or its key is not there or does not open.
func stays(err error) bool {
	var keys *seal.KeysError
	if !errors.As(err, &keys) {
		return errors.Is(err, errUnopened) || errors.Is(err, seal.ErrNotAuthentic) || errors.Is(err, seal.ErrVersion) || errors.Is(err, storage.ErrChunksMissing)
	}
	var answered smithy.APIError
	return errors.Is(keys.Cause, tablekeys.ErrNoKey) || errors.As(keys.Cause, &answered) && slices.Contains(refusals, answered.ErrorCode())
}

// sealed gives the key and the tenant of each encrypted row of a table.
func (o *opener) sealed(ctx context.Context, table, key string, take func(key, tenant string) error) error {
	pages := dynamodb.NewScanPaginator(o.client, &dynamodb.ScanInput{
		TableName: &table, ConsistentRead: aws.Bool(true), FilterExpression: aws.String("attribute_exists(#sealed)"), ProjectionExpression: aws.String("#key, #tenant"),
		ExpressionAttributeNames: map[string]string{"#sealed": schema.Sealed, "#key": key, "#tenant": schema.Tenant},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return about(table, err)
		}
		for _, it := range page.Items {
			id, named := it[key].(*types.AttributeValueMemberS)
			tenant, owned := it[schema.Tenant].(*types.AttributeValueMemberS)
			if !named || !owned {
				return fmt.Errorf("table %s has an encrypted row without a key or a tenant", table)
			}
			if err := take(id.Value, tenant.Value); err != nil {
				return err
			}
		}
	}
	return nil
}
