package apikey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/table"
)

// Table is the table of API keys. It is safe for concurrent use.
type Table struct {
	Client *dynamodb.Client
	Name   string
}

// ErrNoKey: there is no key of this id.
var ErrNoKey = errors.New("apikey: there is no such key")

// Key reads a key strongly; nil where there is none.
func (t Table) Key(ctx context.Context, id string, options ...func(*dynamodb.Options)) (*Key, error) {
	out, err := t.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &t.Name, ConsistentRead: aws.Bool(true), Key: item{table.KeyID: text(id)},
	}, options...)
	if err != nil {
		return nil, fmt.Errorf("apikey: look up: %w", err)
	}
	if out.Item == nil {
		return nil, nil
	}
	key, err := decode(out.Item)
	return &key, err
}

// Insert stores a new key. The id is the hash of what nobody else knows: where it is there already, a reply was lost.
func (t Table) Insert(ctx context.Context, key Key) error {
	_, err := t.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &t.Name, Item: key.item(), ConditionExpression: aws.String("attribute_not_exists(#id)"),
		ExpressionAttributeNames: map[string]string{"#id": table.KeyID},
	})
	if there := (*types.ConditionalCheckFailedException)(nil); err != nil && !errors.As(err, &there) {
		return fmt.Errorf("apikey: insert: %w", err)
	}
	return nil
}

// Revoke takes a key away, for ever, and returns it, or [ErrNoKey]. Who did so first stays written.
func (t Table) Revoke(ctx context.Context, id, by string, at time.Time) (Key, error) {
	out, err := t.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: item{table.KeyID: text(id)}, ReturnValues: types.ReturnValueAllNew,
		UpdateExpression:    aws.String("SET #ra = if_not_exists(#ra, :at), #rb = if_not_exists(#rb, :by)"),
		ConditionExpression: aws.String("attribute_exists(#id)"),
		ExpressionAttributeNames: map[string]string{
			"#id": table.KeyID, "#ra": table.KeyRevokedAt, "#rb": table.KeyRevokedBy,
		},
		ExpressionAttributeValues: item{":at": instant(at), ":by": text(by)},
	})
	if none := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &none) {
		return Key{}, ErrNoKey
	}
	if err != nil {
		return Key{}, fmt.Errorf("apikey: revoke: %w", err)
	}
	return decode(out.Attributes)
}

// Limit writes the tenant's limits on a key, or [ErrNoKey] where it has none of this id. The zero value removes them.
func (t Table) Limit(ctx context.Context, tenant, id string, limits Limits) error {
	update := &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: item{table.KeyID: text(id)}, UpdateExpression: aws.String("REMOVE #lm"),
		ConditionExpression:       aws.String("attribute_exists(#id) AND #tn = :tn"),
		ExpressionAttributeNames:  map[string]string{"#id": table.KeyID, "#tn": table.KeyTenant, "#lm": table.KeyLimits},
		ExpressionAttributeValues: item{":tn": text(tenant)},
	}
	if words := limits.String(); words != "" {
		update.UpdateExpression, update.ExpressionAttributeValues[":lm"] = aws.String("SET #lm = :lm"), text(words)
	}
	_, err := t.Client.UpdateItem(ctx, update)
	if none := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &none) {
		return ErrNoKey
	}
	if err != nil {
		return fmt.Errorf("apikey: limit: %w", err)
	}
	return nil
}

// List returns all keys, or a tenant's, by tenant and creation. It reads and holds the whole table, also for one
// tenant, because their order is not the table's: about 230 bytes for each key, revoked ones too. An item that is malformed is
// an error, which names each such item, unless another tenant's keys were asked for.
func (t Table) List(ctx context.Context, tenant string) ([]Key, error) {
	keys, malformed := []Key{}, []error(nil)
	pages := dynamodb.NewScanPaginator(t.Client, &dynamodb.ScanInput{TableName: &t.Name, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("apikey: list: %w", err)
		}
		for _, it := range page.Items {
			if tenant != "" && textOf(it, table.KeyTenant) != tenant {
				continue
			}
			key, err := decode(it)
			if err != nil {
				malformed = append(malformed, err)
				continue
			}
			keys = append(keys, key)
		}
	}
	if err := errors.Join(malformed...); err != nil {
		return nil, err
	}
	slices.SortFunc(keys, func(a, b Key) int {
		if by := strings.Compare(a.Tenant, b.Tenant); by != 0 {
			return by
		}
		return a.CreatedAt.Compare(b.CreatedAt)
	})
	return keys, nil
}

// used writes when a key was used, unless another process has written so within [usedEvery].
func (t Table) used(ctx context.Context, id string, at time.Time) error {
	_, err := t.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: item{table.KeyID: text(id)},
		UpdateExpression:          aws.String("SET #lu = :at"),
		ConditionExpression:       aws.String("attribute_exists(#id) AND (attribute_not_exists(#lu) OR #lu <= :before)"),
		ExpressionAttributeNames:  map[string]string{"#id": table.KeyID, "#lu": table.KeyLastUsed},
		ExpressionAttributeValues: item{":at": instant(at), ":before": instant(at.Add(-usedEvery))},
	}, oneAttempt)
	if other := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &other) {
		return nil
	}
	return err
}
