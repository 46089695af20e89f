package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator"
)

// find names the operation that made a payment, refund or payout, by its id, or by the beginning of its id. Refunds of older releases
// don't tell.
func find(ctx context.Context, tenant, id string) (idem.OperationID, error) {
	cfg, parts, err := wired(ctx)
	if err != nil {
		return "", err
	}
	if !storable(tenant, id) {
		return "", nil
	}
	rows := application{parts, cfg.PaymentsTable}
	for _, kind := range kinds {
		pk, _ := payments.EntryKey(kind, tenant, id)
		e, err := rows.entry(ctx, pk)
		switch {
		case err != nil:
			return "", err
		case e != nil && e.Message != "":
			operation, _, err := e.Message.Operation()
			return operation, err
		}
	}
	if kind, ok := payments.EntryBeginning(id); ok {
		return rows.begins(ctx, kind, tenant, id)
	}
	return "", nil
}

// storable says whether a row may have a key of these parts. DynamoDB refuses to look up a key of more than 2,048 bytes, which reads
// like trouble with the table.
func storable(tenant, id string) bool { return len(tenant)+len(id) <= 1024 }

// begins names the operation that made the one entry of the tenant whose id begins so. The table has an entry under its whole id only,
// and no index has ids in their order. But an entry's id is made from its operation's: so the operations that stand in a queue are
// searched, as for the beginning of their own ids. What has ended well stands in none.
func (a application) begins(ctx context.Context, kind payments.EntryKind, tenant, text string) (idem.OperationID, error) {
	if err := operator.CheckBeginning(text); err != nil {
		return "", err
	}
	desk, err := app().Build(ctx)
	if err != nil {
		return "", err
	}
	found, err := desk.Queued(ctx, func(id idem.OperationID) bool { return strings.HasPrefix(payments.EntryID(kind, id), text) })
	if err != nil {
		return "", err
	}
	var operations []idem.OperationID
	var ids []string
	for _, operation := range found.Operations {
		pk, _ := payments.EntryOf(kind, tenant, operation)
		e, err := a.entry(ctx, pk) // the row says what the operation made, and whose it is
		if err != nil {
			return "", err
		}
		if e != nil {
			operations, ids = append(operations, operation), append(ids, e.ID)
		}
	}
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("%w: no %s of %s whose id begins with %s has a message in a queue, and others are found by their whole id only", operator.ErrNotFound, kind, tenant, text)
	case 1:
		return operations[0], nil
	}
	return "", &operator.AmbiguousError{What: string(kind) + "s", Begins: text, IDs: ids, More: found.More}
}
