package payments

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A table that was restored to a point in time may also hold a part of a refund's transaction: the amount on the payment without the refund,
// or the refund without it. A payment's Refunded is the sum of its refunds that are pending or have succeeded, so the rows say what it must be.

// PaymentName names a payment among those of all tenants.
type PaymentName struct{ Tenant, ID string }

// RefundSum is what a payment says was refunded of it, and what its refunds add up to.
type RefundSum struct{ Payment, Refunds int64 }

// RefundSums add up the refunds of all payments that have any, or say so. It scans the whole table, strongly.
func (t Table) RefundSums(ctx context.Context) (map[PaymentName]RefundSum, error) {
	filter := dynamodb.ScanInput{
		FilterExpression: aws.String(
			"begins_with(" + attrKey + ", :refunds) OR (begins_with(" + attrKey + ", :payments) AND attribute_exists(" + attrRefunded + "))"),
		ExpressionAttributeValues: item{":refunds": str(refundRows), ":payments": str(paymentRows)},
	}
	all := refundSums{}
	err := t.scan(ctx, filter, func(it item) error { return named(it, all.row(it)) })
	return all, err
}

type refundSums map[PaymentName]RefundSum

func (r refundSums) row(it item) error {
	d := decoder{item: it}
	if strings.HasPrefix(d.str(attrKey), paymentRows) {
		p, err := decodePayment(it)
		if err == nil {
			r.add(PaymentName{p.Tenant, p.ID}, RefundSum{Payment: p.Refunded})
		}
		return err
	}
	refund, err := decodeRefund(it)
	if err == nil && (refund.Status == StatusPending || refund.Status == StatusSucceeded) {
		r.add(PaymentName{refund.Tenant, refund.Payment}, RefundSum{Refunds: refund.Amount})
	}
	return err
}

func (r refundSums) add(name PaymentName, more RefundSum) {
	sum := r[name]
	r[name] = RefundSum{sum.Payment + more.Payment, sum.Refunds + more.Refunds}
}

// CorrectRefunded has a payment say that as much was refunded of it as its refunds add up to. It is written where the payment still says
// what was read, and where no other comparison was written since: so a repetition, after a lost reply or beside another operator's, changes
// nothing twice, as with [Table.Compared]. A refund that is begun and one that ends between the two may cancel each other out, so the sums
// are added up while no requests come.
func (t Table) CorrectRefunded(ctx context.Context, p Payment, sum int64, comparison string) error {
	admitted := "attribute_exists(" + attrKey + ") AND (" + attrRefunded + " = :seen OR :seen = :zero AND attribute_not_exists(" + attrRefunded + "))"
	values := item{":sum": num(sum), ":seen": num(p.Refunded), ":zero": num(0), ":comparison": str(comparison)}
	if p.Comparison == "" {
		admitted += " AND attribute_not_exists(" + attrComparison + ")"
	} else {
		admitted += " AND " + attrComparison + " = :seenComparison"
		values[":seenComparison"] = str(p.Comparison)
	}
	_, err := t.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: key(paymentKey(p.Tenant, p.ID)), ConditionExpression: &admitted, ExpressionAttributeValues: values,
		UpdateExpression: aws.String("SET " + attrRefunded + " = :sum, " + attrComparison + " = :comparison"),
	})
	if as := (*types.ConditionalCheckFailedException)(nil); !errors.As(err, &as) {
		return err
	}
	now, err := t.Payment(ctx, p.Tenant, p.ID)
	switch {
	case err != nil:
		return err
	case now != nil && now.Comparison == comparison:
		return nil
	case now != nil && now.Comparison != p.Comparison:
		return fmt.Errorf("%w: %s of %s", errComparedBeside, p.ID, p.Tenant)
	}
	return fmt.Errorf("%w: %s of %s", ErrNotCompared, p.ID, p.Tenant)
}
