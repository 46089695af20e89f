package payments

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A table that was restored to a point in time may hold a part of a transaction: a transfer without its debit, a debit without its
// transfer, a fold's sum while its transfers wait still. An account has totals of what was ever moved and folded in the same item as its
// balance, and each row says in its own item which of its movements are in those totals. So totals and rows differ by exactly what torn
// transactions have left, and the rows are what counts (ADR 0059).

// AccountName names an account among those of all tenants.
type AccountName struct{ Tenant, ID string }

// Name is the account's.
func (a Account) Name() AccountName { return AccountName{a.Tenant, a.ID} }

// Totals is what an account has, or what its rows add up to.
type Totals struct {
	Moved  Moved `json:"moved"`
	Folded Total `json:"folded"`
}

// Totals is what the account says was moved and folded.
func (a Account) Totals() Totals { return Totals{Moved: a.Moved, Folded: a.Folded} }

// Lacks is what must be added to a balance for the rows to be right; below zero, it is too high by that.
func (t Totals) Lacks(rows Totals) int64 {
	return rows.Moved.Amount + rows.Folded.Amount - t.Moved.Amount - t.Folded.Amount
}

// Accounts are all accounts of all tenants, read strongly. It scans the whole table.
func (t Table) Accounts(ctx context.Context) (all []Account, err error) {
	filter := dynamodb.ScanInput{
		FilterExpression:          aws.String("begins_with(" + attrKey + ", :accounts)"),
		ExpressionAttributeValues: item{":accounts": str(accountRows)},
	}
	err = t.scan(ctx, filter, func(it item) error {
		a, err := decodeAccount(it)
		all = append(all, *a)
		return named(it, err)
	})
	return all, err
}

// Rows adds up what the transfers and payouts say of the accounts. It scans the whole table, strongly. What they say of an account is
// true where the account was read before, and has not changed when [Table.Compared] writes.
func (t Table) Rows(ctx context.Context) (RowTotals, error) {
	counted := "(attribute_exists(" + attrCounted + ") OR attribute_exists(" + attrGivenBack + ") OR attribute_exists(" + attrFoldedAt + "))"
	filter := dynamodb.ScanInput{
		FilterExpression: aws.String("(begins_with(" + attrKey + ", :transfers) OR begins_with(" + attrKey + ", :payouts)) AND " + counted),
		ExpressionAttributeValues: item{
			":transfers": str(transferRows), ":payouts": str(payoutRows),
		},
	}
	all := RowTotals{}
	err := t.scan(ctx, filter, func(it item) error { return named(it, all.row(it)) })
	return all, err
}

// scan shows every item of the table that the filter admits.
func (t Table) scan(ctx context.Context, in dynamodb.ScanInput, show func(item) error) error {
	in.TableName, in.ConsistentRead = &t.Name, aws.Bool(true)
	for pages := dynamodb.NewScanPaginator(t.Client, &in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return unreadable(err)
		}
		for _, it := range page.Items {
			if err := show(it); err != nil {
				return err
			}
		}
	}
	return nil
}

// named names the row that can't be decoded, for a person to correct it.
func named(it item, err error) error {
	if err == nil {
		return nil
	}
	d := decoder{item: it}
	return fmt.Errorf("%w of %s", err, d.str(attrKey))
}

// RowTotals are what rows add up to, by the account that they moved money of.
type RowTotals map[AccountName]Totals

func (r RowTotals) row(it item) error {
	d := decoder{item: it}
	if strings.HasPrefix(d.str(attrKey), payoutRows) {
		p, err := decodePayout(it)
		if err == nil {
			r.payout(*p)
		}
		return err
	}
	t, err := decodeTransfer(it)
	if err == nil {
		r.Transfer(*t)
	}
	return err
}

// Transfer adds a transfer as it stands in its row.
func (r RowTotals) Transfer(t Transfer) {
	from, to := AccountName{t.Tenant, t.From}, AccountName{t.Tenant, t.To}
	if t.Counted {
		r.move(from, -t.Amount)
	}
	switch {
	case t.Folded:
		sum := r[to]
		sum.Folded.Transfers, sum.Folded.Amount = sum.Folded.Transfers+1, sum.Folded.Amount+t.Amount
		r[to] = sum
	case t.Counted && t.Partition == 0:
		r.move(to, t.Amount)
	case t.Counted: // it waits to be folded: its receiver is named all the same
		r.name(to)
	}
}

func (r RowTotals) payout(p Payout) {
	from := AccountName{p.Tenant, p.From}
	if p.Counted {
		r.move(from, -p.Amount)
	}
	if p.GivenBack {
		r.move(from, p.Amount)
	}
}

// name has the account among those that rows name, whatever they add up to.
func (r RowTotals) name(account AccountName) {
	sum := r[account]
	r[account] = sum
}

func (r RowTotals) move(account AccountName, amount int64) {
	sum := r[account]
	sum.Moved.Movements, sum.Moved.Amount = sum.Moved.Movements+1, sum.Moved.Amount+amount
	r[account] = sum
}

// ErrNotCompared: the account, or the payment, is not as it was read before the comparison, or the balance is lower than what must be taken
// off. Nothing was changed.
var ErrNotCompared = errors.New("payments: it has changed since it was read, or holds less than what must be taken off")

// errComparedBeside: whether this comparison was written can't be seen any more.
var errComparedBeside = errors.New("payments: it was compared by somebody else at the same time: compare it again")

// Compared gives an account the totals that its rows add up to, corrects its balance by the difference, and lets it be folded again after
// the loss. A repetition, after a lost reply or beside another operator's, changes nothing twice: the account has the name of its last
// comparison, and this one is written only where that is still the one that was read. The totals alone would not do: a comparison takes
// them back, and money that moves after it may make them what they were. An account that does not collect has its folded total written too: one
// that collected may have been made again without that, and a row that is written by hand may say that it was folded.
func (t Table) Compared(ctx context.Context, a Account, rows Totals, lost time.Time, comparison string) error {
	set := "SET bal = bal + :lacks, " + attrMovedSum + " = :sum, " + attrMovedCount + " = :count, " +
		attrFoldedSum + " = :folded, " + attrFoldedCount + " = :transfers, " + attrComparison + " = :comparison"
	admitted := "bal >= :least AND " + sameTotal(attrMovedSum, attrMovedCount, ":seenSum", ":seenCount") +
		" AND " + sameTotal(attrFoldedSum, attrFoldedCount, ":seenFolded", ":seenTransfers")
	lacks := a.Totals().Lacks(rows)
	values := item{
		":lacks": num(lacks), ":least": num(-lacks), ":zero": num(0), ":comparison": str(comparison),
		":sum": num(rows.Moved.Amount), ":count": num(rows.Moved.Movements), ":seenSum": num(a.Moved.Amount), ":seenCount": num(a.Moved.Movements),
		":folded": num(rows.Folded.Amount), ":transfers": num(rows.Folded.Transfers),
		":seenFolded": num(a.Folded.Amount), ":seenTransfers": num(a.Folded.Transfers),
	}
	if a.Collects() {
		set += ", " + attrComparedTo + " = :lost"
		admitted += " AND " + attrComparedTo + " = :compared"
		values[":compared"], values[":lost"] = num(a.ComparedTo.UnixMilli()), num(later(a.ComparedTo, lost).UnixMilli())
	} else {
		admitted += " AND attribute_not_exists(" + attrPartitions + ")"
	}
	if a.Comparison == "" {
		admitted += " AND attribute_not_exists(" + attrComparison + ")"
	} else {
		admitted += " AND " + attrComparison + " = :seenComparison"
		values[":seenComparison"] = str(a.Comparison)
	}
	_, err := t.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: key(accountKey(a.Tenant, a.ID)), UpdateExpression: &set, ConditionExpression: &admitted,
		ExpressionAttributeValues: values,
	})
	if as := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &as) {
		return t.comparedBefore(ctx, a, comparison)
	}
	return err
}

// sameTotal holds while an account has the total that was read. None is a total of nothing.
func sameTotal(sum, count, seenSum, seenCount string) string {
	return "(" + sum + " = " + seenSum + " AND " + count + " = " + seenCount + " OR " + seenCount + " = :zero AND attribute_not_exists(" + count + "))"
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// comparedBefore tells a condition that our own earlier try has made false from one that was never true.
func (t Table) comparedBefore(ctx context.Context, a Account, comparison string) error {
	now, err := t.Account(ctx, a.Tenant, a.ID)
	switch {
	case err != nil:
		return err
	case now != nil && now.Comparison == comparison:
		return nil
	case now != nil && now.Comparison != a.Comparison:
		return fmt.Errorf("%w: %s of %s", errComparedBeside, a.ID, a.Tenant)
	}
	return fmt.Errorf("%w: %s of %s", ErrNotCompared, a.ID, a.Tenant)
}
