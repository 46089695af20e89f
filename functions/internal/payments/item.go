package payments

import (
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
)

// Attributes of the payments table. Its partition key is "pk"; there is no sort key.
const (
	attrKey       = "pk"
	attrTenant    = "tn"
	attrID        = "id"
	attrStatus    = "st"
	attrAmount    = "amt"
	attrCurrency  = "cur"
	attrBalance   = "bal"
	attrSource    = "src"
	attrReference = "ref"
	attrProvider  = "prv"
	attrMessage   = "msg"
	attrFrom      = "frm"
	attrTo        = "to"
	attrCreatedAt = "ca" // epoch ms
)

// The keys of the rows. Ids hold no "/" (validated where they come from a client) and tenants are ours.
func paymentKey(tenant, id string) string  { return "payment#" + tenant + "/" + id }
func accountKey(tenant, id string) string  { return "account#" + tenant + "/" + id }
func transferKey(tenant, id string) string { return "transfer#" + tenant + "/" + id }

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
func key(pk string) item { return item{attrKey: str(pk)} }

// Items returns the translator of domain writes into items of the payments table.
func Items(table string) func(idem.Write) (types.TransactWriteItem, error) {
	return func(w idem.Write) (types.TransactWriteItem, error) {
		switch w := w.(type) {
		case InsertPayment:
			return insert(table, paymentItem(w.Payment)), nil
		case FinishPayment:
			return finishPayment(table, w), nil
		case InsertTransfer:
			return insert(table, transferItem(w.Transfer)), nil
		case Debit:
			return balance(table, accountKey(w.Tenant, w.Account), -w.Amount, w.Currency), nil
		case Credit:
			return balance(table, accountKey(w.Tenant, w.Account), w.Amount, w.Currency), nil
		}
		return types.TransactWriteItem{}, fmt.Errorf("payments: no item for a write of type %T", w)
	}
}

func insert(table string, it item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &table, Item: it, ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}}
}

// balance adds a delta to a balance that stays at or above zero.
func balance(table, pk string, delta int64, currency string) types.TransactWriteItem {
	least := max(0, -delta)
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &table, Key: key(pk),
		UpdateExpression:          aws.String("SET bal = bal + :delta"),
		ConditionExpression:       aws.String("cur = :currency AND bal >= :least"),
		ExpressionAttributeValues: item{":delta": num(delta), ":currency": str(currency), ":least": num(least)},
	}}
}

func finishPayment(table string, w FinishPayment) types.TransactWriteItem {
	values := item{":status": str(string(w.Status)), ":pending": str(string(StatusPending))}
	set := "SET st = :status"
	if w.ProviderReference != "" {
		set += ", prv = :provider"
		values[":provider"] = str(w.ProviderReference)
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &table, Key: key(paymentKey(w.Tenant, w.ID)),
		UpdateExpression:          aws.String(set),
		ConditionExpression:       aws.String("st = :pending"),
		ExpressionAttributeValues: values,
	}}
}

func paymentItem(p Payment) item {
	it := item{
		attrKey: str(paymentKey(p.Tenant, p.ID)), attrTenant: str(p.Tenant), attrID: str(p.ID), attrStatus: str(string(p.Status)),
		attrAmount: num(p.Amount), attrCurrency: str(p.Currency), attrSource: str(p.Source), attrMessage: str(string(p.Message)),
		attrCreatedAt: num(p.CreatedAt.UnixMilli()),
	}
	if p.Reference != "" {
		it[attrReference] = str(p.Reference)
	}
	return it
}

func transferItem(t Transfer) item {
	return item{
		attrKey: str(transferKey(t.Tenant, t.ID)), attrTenant: str(t.Tenant), attrID: str(t.ID), attrFrom: str(t.From), attrTo: str(t.To),
		attrAmount: num(t.Amount), attrCurrency: str(t.Currency), attrCreatedAt: num(t.CreatedAt.UnixMilli()),
	}
}

// decoder reads attributes and keeps the first error.
type decoder struct {
	item item
	err  error
}

func (d *decoder) str(name string) string {
	switch v := d.item[name].(type) {
	case nil:
		return ""
	case *types.AttributeValueMemberS:
		return v.Value
	}
	d.fail(name)
	return ""
}

func (d *decoder) num(name string) int64 {
	v, ok := d.item[name].(*types.AttributeValueMemberN)
	if !ok {
		d.fail(name)
		return 0
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil {
		d.fail(name)
	}
	return n
}

func (d *decoder) fail(name string) {
	if d.err == nil {
		d.err = fmt.Errorf("payments: malformed attribute %s", name)
	}
}

func decodePayment(it item) (*Payment, error) {
	d := &decoder{item: it}
	p := &Payment{
		Tenant: d.str(attrTenant), ID: d.str(attrID), Status: Status(d.str(attrStatus)), Amount: d.num(attrAmount),
		Currency: d.str(attrCurrency), Source: d.str(attrSource), Reference: d.str(attrReference),
		ProviderReference: d.str(attrProvider), Message: idem.MessageID(d.str(attrMessage)),
		CreatedAt: time.UnixMilli(d.num(attrCreatedAt)).UTC(),
	}
	return p, d.err
}

func decodeAccount(it item) (*Account, error) {
	d := &decoder{item: it}
	a := &Account{Tenant: d.str(attrTenant), ID: d.str(attrID), Currency: d.str(attrCurrency), Balance: d.num(attrBalance)}
	return a, d.err
}
