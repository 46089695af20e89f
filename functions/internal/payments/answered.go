package payments

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/storage"
)

// A transfer is one transaction: its record, its row and both balances. Where a restore has brought back the record and not the row, its
// client has been told 201, and is told so again. So the row is made again from that answer, and the balances are compared with it after
// that.

// Answered finds transfers that were answered and have no row.
type Answered struct {
	Table Table
	// Records is the name of the idempotency table, and Store reads its records.
	Records string
	Store   storage.Store
}

// AnsweredTransfer is a transfer whose client was told 201 and whose row is not there. Where Trouble is set, no more of it is known than
// its tenant and its id.
type AnsweredTransfer struct {
	Operation idem.OperationID
	Tenant    string
	Transfer  Transfer
	Trouble   error
}

// Transfers are the transfers since an instant that have an answer and no row. It scans the whole table of records. The error says that
// not all could be looked at; trouble with one of them is its own.
func (a Answered) Transfers(ctx context.Context, since time.Time) (found []AnsweredTransfer, err error) {
	transfers := map[string]rowOf{operationTransfers: func(tenant string, operation idem.OperationID) string {
		return transferKey(tenant, entityID(transferPrefix, operation))
	}}
	err = a.Table.lacking(ctx, a.Records, since, transfers, func(one recorded) error {
		lost, err := a.withoutRow(ctx, one)
		if lost != nil {
			found = append(found, *lost)
		}
		return err
	})
	return found, err
}

// withoutRow is the transfer of a record whose row is not there; nil where its client was not told 201.
func (a Answered) withoutRow(ctx context.Context, answered recorded) (*AnsweredTransfer, error) {
	record, err := a.Store.Get(ctx, answered.key)
	if err != nil {
		return nil, fmt.Errorf("payments: read record: %w", err)
	}
	if record == nil || record.OperationID != answered.operation || record.State != storage.StateCompleted || record.Response.Status != http.StatusCreated {
		return nil, nil // it was declined, or is removed, or its key is another operation's by now
	}
	lost := AnsweredTransfer{Operation: record.OperationID, Tenant: record.Tenant}
	lost.Transfer, lost.Trouble = a.said(ctx, *record)
	return &lost, nil
}

// said is the transfer that the record's answer tells of.
func (a Answered) said(ctx context.Context, record storage.Record) (Transfer, error) {
	unread := Transfer{Tenant: record.Tenant, ID: entityID(transferPrefix, record.OperationID)}
	loaded, err := a.Store.LoadResponse(ctx, record)
	if err != nil {
		return unread, fmt.Errorf("payments: read the 201: %w", err)
	}
	var v transferView
	if err := json.Unmarshal(loaded.Response.Body, &v); err != nil || v.ID != unread.ID {
		return unread, errors.New("payments: the 201 does not say what was transferred")
	}
	t := Transfer{Tenant: record.Tenant, ID: v.ID, From: v.From, To: v.To, Amount: v.Amount, Currency: v.Currency, Counted: true}
	if t.CreatedAt, err = time.Parse(milliseconds, v.CreatedAt); err != nil {
		return unread, fmt.Errorf("payments: the 201 does not say when it was transferred: %w", err)
	}
	to, err := a.Table.Account(ctx, t.Tenant, t.To)
	if err == nil && to != nil && to.Collects() { // it waits: a credit or a fold that is in the account's totals already is taken off by the comparison
		t.Partition = to.partitionOf(t.ID)
	}
	return t, err
}

// PutBack makes the row of a transfer again. It moves no money: the comparison of its accounts does. A row that is there by now is left
// as it is.
func (t Table) PutBack(ctx context.Context, lost Transfer) error {
	put := insert(t.Name, transferItem(lost)).Put
	_, err := t.Client.PutItem(ctx, &dynamodb.PutItemInput{TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression})
	if errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return nil
	}
	return err
}
