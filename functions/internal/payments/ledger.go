package payments

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem"
)

// retryRead is when a request may come again whose row could not be read.
const retryRead = 2 * time.Second

// Ledger reads the application's rows, strongly. A row that does not exist is nil. Trouble with the store is an
// [*idem.UnavailableError].
type Ledger interface {
	Payment(ctx context.Context, tenant, id string) (*Payment, error)
	Refund(ctx context.Context, tenant, id string) (*Refund, error)
	Payout(ctx context.Context, tenant, id string) (*Payout, error)
	Account(ctx context.Context, tenant, id string) (*Account, error)
	// Incoming reads transfers that wait in a partition of a collecting account, from 1: at most so many, the oldest first. One that
	// was committed within the last moments may be missing, and is there later; one that is folded never is. With an error that is
	// [ErrUnfoldable] it returns the transfers beside one that can't be folded.
	Incoming(ctx context.Context, a Account, partition, limit int) ([]Transfer, error)
}

// Table is the Ledger on DynamoDB.
type Table struct {
	Client *dynamodb.Client
	Name   string
}

// Payment implements [Ledger].
func (t Table) Payment(ctx context.Context, tenant, id string) (*Payment, error) {
	it, err := t.get(ctx, paymentKey(tenant, id))
	if it == nil || err != nil {
		return nil, err
	}
	p, err := decodePayment(it)
	return p, named(it, err)
}

// Refund implements [Ledger].
func (t Table) Refund(ctx context.Context, tenant, id string) (*Refund, error) {
	it, err := t.get(ctx, refundKey(tenant, id))
	if it == nil || err != nil {
		return nil, err
	}
	r, err := decodeRefund(it)
	return r, named(it, err)
}

// Payout implements [Ledger].
func (t Table) Payout(ctx context.Context, tenant, id string) (*Payout, error) {
	it, err := t.get(ctx, payoutKey(tenant, id))
	if it == nil || err != nil {
		return nil, err
	}
	p, err := decodePayout(it)
	return p, named(it, err)
}

// Account implements [Ledger].
func (t Table) Account(ctx context.Context, tenant, id string) (*Account, error) {
	it, err := t.get(ctx, accountKey(tenant, id))
	if it == nil || err != nil {
		return nil, err
	}
	a, err := decodeAccount(it)
	return a, named(it, err)
}

func (t Table) get(ctx context.Context, pk string) (item, error) {
	out, err := t.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.Name, Key: key(pk), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, unreadable(err)
	}
	return out.Item, nil
}

// unreadable is the error for a row that could not be read.
func unreadable(cause error) error {
	return &idem.UnavailableError{RetryAfter: retryRead, Cause: fmt.Errorf("payments: read: %w", cause)}
}
