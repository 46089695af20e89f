package payments

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
)

// A collecting account takes more transfers than one item takes writes (ADR 0047). A transfer to it changes no balance: the
// transfer's own row is the credit, and waits in a partition of the ledger index. Every minute a [Folder] adds what waits to the
// balance, each transfer in the transaction that also takes it out of the index. Debits see the balance only, so what is not folded
// is not spent.

// PartitionsMax bounds the partitions of one collecting account: what reads the waiting rows asks each of them. One takes 500
// transfers a second.
const PartitionsMax = 64

// FoldMax is how many transfers one transaction folds: DynamoDB takes 100 items, and the account is one.
const FoldMax = 99

// incomingPartition is a partition of the ledger index, from 1.
func incomingPartition(tenant, account string, partition int) string {
	return "to#" + tenant + "/" + account + "#" + strconv.Itoa(partition)
}

// partitionIn reads the number in a partition's name; 0 where it has none.
func partitionIn(name string) int {
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '#')+1:])
	if err != nil {
		return 0
	}
	return n
}

// partitionOf is where a transfer to the account waits.
func (a Account) partitionOf(transfer string) int { return 1 + spread(transfer, a.Partitions) }

// Incoming implements [Ledger]. The index says which transfers wait, and their rows are read strongly, because the index may be
// behind. It reads past what does not wait any more and past what can't be folded, in pages that grow with what it has passed over.
func (t Table) Incoming(ctx context.Context, a Account, partition, limit int) ([]Transfer, error) {
	name := incomingPartition(a.Tenant, a.ID, partition)
	var found []Transfer
	var unfoldable error
	var after item
	for passed := 0; len(found) < limit; {
		page, err := t.listed(ctx, name, after, max(limit-len(found), passed))
		if err != nil {
			return nil, err
		}
		rows, err := t.rows(ctx, page.Items)
		if err != nil {
			return nil, err
		}
		before := len(found)
		for _, listed := range page.Items {
			row, err := a.incoming(listed, rows, partition)
			if err != nil {
				unfoldable = err // the last one stands for all
			} else if row != nil {
				found = append(found, *row)
			}
		}
		passed += len(page.Items) - (len(found) - before)
		if after = page.LastEvaluatedKey; after == nil {
			break
		}
	}
	return found[:min(len(found), limit)], unfoldable
}

// incoming is the transfer that the index lists in a partition of the account; nil where the index is behind: it is folded, or waits in another
// partition, maybe of another account.
func (a Account) incoming(listed item, rows map[string]item, partition int) (*Transfer, error) {
	d := decoder{item: listed}
	pk := d.str(attrKey)
	row, ok := rows[pk]
	if !ok {
		return nil, fmt.Errorf("%w: %s is listed, but does not exist", ErrUnfoldable, pk)
	}
	transfer, err := decodeTransfer(row)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnfoldable, pk, err)
	}
	if transfer.Partition != partition || transfer.To != a.ID || transfer.Tenant != a.Tenant {
		return nil, nil
	}
	return transfer, a.admits(*transfer)
}

// ErrUnfoldable: a row has been changed by hand, or is damaged, so that its transfer can't be added to the balance.
var ErrUnfoldable = errors.New("payments: a transfer can't be folded")

// admits says whether a transfer can be added to the balance.
func (a Account) admits(t Transfer) error {
	switch {
	case t.Currency != a.Currency:
		return fmt.Errorf("%w: %s is in %s, and the account in %s", ErrUnfoldable, t.ID, t.Currency, a.Currency)
	case t.Amount < 1 || t.Amount > AmountMax:
		return fmt.Errorf("%w: %s has an amount of %d", ErrUnfoldable, t.ID, t.Amount)
	}
	return nil
}

// Collecting implements [Collections].
func (t Table) Collecting(ctx context.Context) ([]Account, error) {
	var found []Account
	var malformed error
	for after := item(nil); ; {
		page, err := t.listed(ctx, table.Collecting, after, 0)
		if err != nil {
			return nil, err
		}
		for _, listed := range page.Items {
			d := decoder{item: listed}
			pk := d.str(attrKey)
			it, err := t.get(ctx, pk)
			if err != nil {
				return nil, err
			}
			if a, err := decodeAccount(it); err != nil {
				malformed = errors.Join(malformed, fmt.Errorf("%w of %s", err, pk))
			} else if a.Collects() {
				found = append(found, *a)
			}
		}
		if after = page.LastEvaluatedKey; after == nil {
			return found, malformed
		}
	}
}

// listed is a page of a partition of the ledger index, the oldest first; 0 is no limit.
func (t Table) listed(ctx context.Context, partition string, after item, limit int) (*dynamodb.QueryOutput, error) {
	in := &dynamodb.QueryInput{
		TableName: &t.Name, IndexName: aws.String(table.Payments().Index.Name), KeyConditionExpression: aws.String(table.Hour + " = :partition"),
		ExpressionAttributeValues: item{":partition": str(partition)}, ExclusiveStartKey: after,
	}
	if limit > 0 {
		in.Limit = aws.Int32(int32(min(limit, batchGetMax)))
	}
	out, err := t.Client.Query(ctx, in)
	if err != nil {
		return nil, unreadable(err)
	}
	return out, nil
}

// batchGetMax is DynamoDB's bound on a BatchGetItem.
const batchGetMax = 100

// rows reads listed rows strongly, by their keys.
func (t Table) rows(ctx context.Context, listed []item) (map[string]item, error) {
	rows := make(map[string]item, len(listed))
	left := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
	for _, it := range listed {
		left.Keys = append(left.Keys, item{attrKey: it[attrKey]})
	}
	for try := 0; len(left.Keys) > 0; try++ {
		if err := restOf(ctx, try); err != nil {
			return nil, unreadable(err)
		}
		out, err := t.Client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{t.Name: left}})
		if err != nil {
			return nil, unreadable(err)
		}
		for _, it := range out.Responses[t.Name] {
			d := decoder{item: it}
			rows[d.str(attrKey)] = it
		}
		left.Keys = out.UnprocessedKeys[t.Name].Keys
	}
	return rows, nil
}

// The rest of a batch is asked for so often, and after a pause that begins so short and doubles: 6 s in all. The SDK pauses only where the
// whole batch was throttled.
const (
	batchTries = 8
	batchPause = 50 * time.Millisecond
)

// errBatchUnread: the rest of a batch was asked for as often as that helps.
var errBatchUnread = errors.New("DynamoDB leaves rows of a batch unread")

// restOf waits before a batch's rest is asked for, which has been asked for so often.
func restOf(ctx context.Context, tries int) error {
	switch tries {
	case 0:
		return nil
	case batchTries:
		return errBatchUnread
	}
	return idem.Pause(ctx, batchPause<<(tries-1))
}

// Fold implements [Collections]. A try whose reply is lost may still be applied: each transfer is folded only while it waits, so
// whichever try comes first is the one that counts.
func (t Table) Fold(ctx context.Context, a Account, transfers []Transfer, at time.Time) error {
	var sum int64
	items := make([]types.TransactWriteItem, 0, len(transfers)+1)
	for _, each := range transfers {
		sum += each.Amount
		items = append(items, types.TransactWriteItem{Update: &types.Update{
			TableName: &t.Name, Key: key(transferKey(each.Tenant, each.ID)),
			UpdateExpression:    aws.String("SET " + attrFoldedAt + " = :at REMOVE " + table.Hour),
			ConditionExpression: aws.String(table.Hour + " = :partition"),
			ExpressionAttributeValues: item{
				":at": num(at.UnixMilli()), ":partition": str(incomingPartition(each.Tenant, each.To, each.Partition)),
			},
		}})
	}
	items = append(items, types.TransactWriteItem{Update: &types.Update{
		TableName: &t.Name, Key: key(accountKey(a.Tenant, a.ID)),
		UpdateExpression:          aws.String("SET bal = bal + :sum ADD " + attrFoldedSum + " :sum, " + attrFoldedCount + " :count"),
		ConditionExpression:       aws.String("cur = :currency AND attribute_exists(" + attrPartitions + ")"),
		ExpressionAttributeValues: item{":sum": num(sum), ":count": num(int64(len(transfers))), ":currency": str(a.Currency)},
	}})
	if _, err := t.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items}); err != nil {
		return fmt.Errorf("payments: fold %d transfers to %s: %w", len(transfers), a.ID, err)
	}
	return nil
}

// Collect makes an account collect, in so many partitions, or in more than it has. There are never fewer again, because a
// process that folds with the old number would miss the upper ones. Transfers that are being made credit the balance meanwhile or wait; both count.
func (t Table) Collect(ctx context.Context, tenant, id string, partitions int, at time.Time) error {
	if partitions < 1 || partitions > PartitionsMax {
		return &idem.ConfigError{Field: "partitions", Value: partitions, Rule: fmt.Sprintf("must be 1 to %d", PartitionsMax)}
	}
	_, err := t.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: key(accountKey(tenant, id)),
		UpdateExpression: aws.String("SET " + attrPartitions + " = :n, " + table.Hour + " = :collecting, " + attrCreatedAt + " = :at, " +
			attrComparedTo + " = if_not_exists(" + attrComparedTo + ", :at)"),
		ConditionExpression:       aws.String("attribute_exists(bal) AND (attribute_not_exists(" + attrPartitions + ") OR " + attrPartitions + " <= :n)"),
		ExpressionAttributeValues: item{":n": num(int64(partitions)), ":collecting": str(table.Collecting), ":at": num(at.UnixMilli())},
	})
	if as := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &as) {
		return fmt.Errorf("%w: %s of %s", ErrNotCollected, id, tenant)
	}
	return err
}

// ErrNotCollected: Collect found no account, or one with more partitions. Nothing was changed.
var ErrNotCollected = errors.New("payments: there is no such account, or it collects in more partitions already")
