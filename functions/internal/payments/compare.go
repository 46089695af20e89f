package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A table that was restored to a point in time may hold a part of a transaction. Of a fold that is money that was added while its
// transfers wait still, and would be added again; or transfers that are marked as folded while the balance lacks their sum. The
// account's total of what was ever folded is in the same item as its balance, and the mark of a transfer in the same item as its
// place among those that wait. So the two differ by exactly what such folds have left.

// FoldedRows adds up the transfers to the account that are marked as folded. It scans the whole table, strongly.
func (t Table) FoldedRows(ctx context.Context, a Account) (Total, error) {
	in := &dynamodb.ScanInput{
		TableName: &t.Name, ConsistentRead: aws.Bool(true),
		FilterExpression:         aws.String("begins_with(" + attrKey + ", :transfers) AND #to = :account AND attribute_exists(" + attrFoldedAt + ")"),
		ProjectionExpression:     aws.String(attrKey + ", " + attrAmount),
		ExpressionAttributeNames: map[string]string{"#to": attrTo},
		ExpressionAttributeValues: item{
			":transfers": str(transferKey(a.Tenant, "")), ":account": str(a.ID),
		},
	}
	var all Total
	for pages := dynamodb.NewScanPaginator(t.Client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return Total{}, unreadable(err)
		}
		for _, it := range page.Items {
			d := decoder{item: it}
			pk, amount := d.str(attrKey), d.num(attrAmount)
			if d.err != nil {
				return Total{}, fmt.Errorf("%w of %s", d.err, pk)
			}
			all.Transfers, all.Amount = all.Transfers+1, all.Amount+amount
		}
	}
	return all, nil
}

// ErrNotCompared: the account is not as it was read before the comparison, or its balance is lower than what must be taken off.
// Nothing was changed.
var ErrNotCompared = errors.New("payments: the account has changed since it was compared, or holds less than what must be taken off")

// Compared makes an account agree with what FoldedRows found after the account was read, and lets it be folded again after the loss:
// what its total has too much is taken off the balance, and what it lacks is added. Who repeats it, after a lost reply or beside
// somebody else, changes nothing twice.
func (t Table) Compared(ctx context.Context, a Account, rows Total, lost time.Time) error {
	tooMuch := a.Folded.Amount - rows.Amount
	_, err := t.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: key(accountKey(a.Tenant, a.ID)),
		UpdateExpression: aws.String("SET bal = bal - :much, " + attrFoldedSum + " = :sum, " + attrFoldedCount + " = :count, " + attrComparedTo + " = :lost"),
		ConditionExpression: aws.String(attrComparedTo + " = :seen AND bal >= :much AND (" + attrFoldedSum + " = :seenSum AND " + attrFoldedCount + " = :seenCount" +
			" OR :seenCount = :zero AND attribute_not_exists(" + attrFoldedCount + "))"),
		ExpressionAttributeValues: item{
			":much": num(tooMuch), ":sum": num(rows.Amount), ":count": num(rows.Transfers), ":lost": num(lost.UnixMilli()),
			":seen": num(a.ComparedTo.UnixMilli()), ":seenSum": num(a.Folded.Amount), ":seenCount": num(a.Folded.Transfers), ":zero": num(0),
		},
	})
	if as := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &as) {
		return t.comparedBefore(ctx, a, lost)
	}
	return err
}

// comparedBefore tells a condition that our own earlier try has made false, or somebody else's, from one that was never true.
func (t Table) comparedBefore(ctx context.Context, a Account, lost time.Time) error {
	now, err := t.Account(ctx, a.Tenant, a.ID)
	switch {
	case err != nil:
		return err
	case now == nil || now.ComparedTo.Before(lost):
		return fmt.Errorf("%w: %s of %s", ErrNotCompared, a.ID, a.Tenant)
	}
	return nil
}
