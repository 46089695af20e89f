package payments

import (
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
)

// Attributes of the payments table.
const (
	attrKey         = table.Key
	attrTenant      = "tn"
	attrID          = "id"
	attrStatus      = "st"
	attrAmount      = "amt"
	attrCurrency    = "cur"
	attrBalance     = "bal"
	attrSource      = "src"
	attrReference   = "ref"
	attrProvider    = "prv"
	attrRefunded    = "rfd" // absent before the first refund
	attrPayment     = "pay"
	attrDestination = "dst"
	attrMessage     = "msg"
	attrFrom        = "frm"
	attrTo          = "to"
	attrPartitions  = "col" // only of a collecting account
	attrFoldedAt    = "fol" // epoch ms; only of a transfer to a collecting account
	attrFoldedSum   = "fsm" // absent before the first fold or comparison, as is the count
	attrFoldedCount = "fct"
	attrComparedTo  = "cmp" // epoch ms; only of a collecting account
	attrMovedSum    = "mvs" // absent before the first movement, as is the count
	attrMovedCount  = "mvc"
	attrComparison  = "cmn"           // absent before the first comparison
	attrCounted     = "cnt"           // 1, or absent: of a transfer or payout whose movements are in the accounts' totals
	attrGivenBack   = "gvb"           // 1, or absent: of a payout whose credit is in its account's total
	attrCreatedAt   = table.CreatedAt // epoch ms
)

// What the keys of the rows begin with.
const (
	paymentRows  = "payment#"
	accountRows  = "account#"
	refundRows   = "refund#"
	payoutRows   = "payout#"
	transferRows = "transfer#"
)

// The keys of the rows. Ids hold no "/" (validated where they come from a client) and tenants are ours.
func paymentKey(tenant, id string) string  { return paymentRows + tenant + "/" + id }
func accountKey(tenant, id string) string  { return accountRows + tenant + "/" + id }
func refundKey(tenant, id string) string   { return refundRows + tenant + "/" + id }
func payoutKey(tenant, id string) string   { return payoutRows + tenant + "/" + id }
func transferKey(tenant, id string) string { return transferRows + tenant + "/" + id }

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
func key(pk string) item { return item{attrKey: str(pk)} }

// Items returns the translator of domain writes into items of the payments table, whose ledger index has so many shards.
func Items(table string, ledgerShards int) func(idem.Write) (types.TransactWriteItem, error) {
	return func(w idem.Write) (types.TransactWriteItem, error) {
		switch w := w.(type) {
		case InsertPayment:
			return insert(table, paymentItem(w.Payment, ledgerShards)), nil
		case FinishPayment:
			return finish(table, paymentKey(w.Tenant, w.ID), w.Status, w.ProviderReference), nil
		case ReserveRefund:
			return reserveRefund(table, w), nil
		case ReleaseRefund:
			return releaseRefund(table, w), nil
		case InsertRefund:
			return insert(table, refundItem(w.Refund, ledgerShards)), nil
		case FinishRefund:
			return finish(table, refundKey(w.Tenant, w.ID), w.Status, w.ProviderReference), nil
		case InsertPayout:
			return insert(table, payoutItem(w.Payout, ledgerShards)), nil
		case FinishPayout:
			return finishPayout(table, w), nil
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

// balance adds a delta to a balance that stays at or above zero, and to the total of what has moved.
func balance(table, pk string, delta int64, currency string) types.TransactWriteItem {
	least := max(0, -delta)
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &table, Key: key(pk),
		UpdateExpression:          aws.String("SET bal = bal + :delta ADD " + attrMovedSum + " :delta, " + attrMovedCount + " :one"),
		ConditionExpression:       aws.String("cur = :currency AND bal >= :least"),
		ExpressionAttributeValues: item{":delta": num(delta), ":currency": str(currency), ":least": num(least), ":one": num(1)},
	}}
}

// finish gives a pending row its final status, and the provider's reference where there is one.
func finish(table, pk string, status Status, reference string) types.TransactWriteItem {
	values := item{":status": str(string(status)), ":pending": str(string(StatusPending))}
	set := "SET st = :status"
	if reference != "" {
		set += ", prv = :provider"
		values[":provider"] = str(reference)
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &table, Key: key(pk),
		UpdateExpression:          aws.String(set),
		ConditionExpression:       aws.String("st = :pending"),
		ExpressionAttributeValues: values,
	}}
}

// finishPayout marks a payout that is not made: its funds are given back in the same transaction. One that is marked already was set back to
// pending by hand, and made again it would be paid out beside what was given back.
func finishPayout(table string, w FinishPayout) types.TransactWriteItem {
	finished := finish(table, payoutKey(w.Tenant, w.ID), w.Status, w.ProviderReference)
	*finished.Update.ConditionExpression += " AND attribute_not_exists(" + attrGivenBack + ")"
	if w.givesBack() {
		*finished.Update.UpdateExpression += ", " + attrGivenBack + " = :one"
		finished.Update.ExpressionAttributeValues[":one"] = num(1)
	}
	return finished
}

// reserveRefund compares with what the payment's amount leaves, because a condition can't add.
func reserveRefund(table string, w ReserveRefund) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &table, Key: key(paymentKey(w.Tenant, w.Payment)),
		UpdateExpression:    aws.String("ADD rfd :amount"),
		ConditionExpression: aws.String("st = :succeeded AND amt = :paid AND amt >= :amount AND (attribute_not_exists(rfd) OR rfd <= :most)"),
		ExpressionAttributeValues: item{
			":amount": num(w.Amount), ":paid": num(w.Paid), ":most": num(w.Paid - w.Amount), ":succeeded": str(string(StatusSucceeded)),
		},
	}}
}

func releaseRefund(table string, w ReleaseRefund) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &table, Key: key(paymentKey(w.Tenant, w.Payment)),
		UpdateExpression:          aws.String("SET rfd = rfd - :amount"),
		ConditionExpression:       aws.String("rfd >= :amount"),
		ExpressionAttributeValues: item{":amount": num(w.Amount)},
	}}
}

func paymentItem(p Payment, ledgerShards int) item {
	it := item{
		attrKey: str(paymentKey(p.Tenant, p.ID)), attrTenant: str(p.Tenant), attrID: str(p.ID), attrStatus: str(string(p.Status)),
		attrAmount: num(p.Amount), attrCurrency: str(p.Currency), attrSource: str(p.Source), attrMessage: str(string(p.Message)),
		attrCreatedAt: num(p.CreatedAt.UnixMilli()),
	}
	if p.Reference != "" {
		it[attrReference] = str(p.Reference)
	}
	return entered(referred(it, p.ProviderReference), paymentKey(p.Tenant, p.ID), p.CreatedAt, ledgerShards)
}

func refundItem(r Refund, ledgerShards int) item {
	it := item{
		attrKey: str(refundKey(r.Tenant, r.ID)), attrTenant: str(r.Tenant), attrID: str(r.ID), attrPayment: str(r.Payment),
		attrStatus: str(string(r.Status)), attrAmount: num(r.Amount), attrCurrency: str(r.Currency), attrMessage: str(string(r.Message)),
		attrCreatedAt: num(r.CreatedAt.UnixMilli()),
	}
	return entered(referred(it, r.ProviderReference), refundKey(r.Tenant, r.ID), r.CreatedAt, ledgerShards)
}

func payoutItem(p Payout, ledgerShards int) item {
	it := item{
		attrKey: str(payoutKey(p.Tenant, p.ID)), attrTenant: str(p.Tenant), attrID: str(p.ID), attrStatus: str(string(p.Status)),
		attrFrom: str(p.From), attrAmount: num(p.Amount), attrCurrency: str(p.Currency), attrDestination: str(p.Destination),
		attrMessage: str(string(p.Message)), attrCreatedAt: num(p.CreatedAt.UnixMilli()), attrCounted: num(1),
	}
	return entered(referred(it, p.ProviderReference), payoutKey(p.Tenant, p.ID), p.CreatedAt, ledgerShards)
}

// referred gives a row the provider's reference. Only one that is put back has it from the first.
func referred(it item, reference string) item {
	if reference != "" {
		it[attrProvider] = str(reference)
	}
	return it
}

func transferItem(t Transfer) item {
	it := item{
		attrKey: str(transferKey(t.Tenant, t.ID)), attrTenant: str(t.Tenant), attrID: str(t.ID), attrFrom: str(t.From), attrTo: str(t.To),
		attrAmount: num(t.Amount), attrCurrency: str(t.Currency), attrCreatedAt: num(t.CreatedAt.UnixMilli()), attrCounted: num(1),
	}
	if t.Partition > 0 {
		it[table.Hour] = str(incomingPartition(t.Tenant, t.To, t.Partition))
	}
	return it
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

// has says whether there is such an attribute.
func (d *decoder) has(name string) bool {
	_, ok := d.item[name]
	return ok
}

// mark says whether there is a mark, which is 1 where it is there.
func (d *decoder) mark(name string) bool {
	there := d.has(name)
	if there && d.num(name) != 1 {
		d.fail(name)
	}
	return there
}

// status is where the row stands. One that is none, as a person may have typed it, would count as the end that it was meant for in one place
// and as none in another: what a refund of it has taken would be free for a second one.
func (d *decoder) status() Status {
	s := Status(d.str(attrStatus))
	if !s.Stored() {
		d.fail(attrStatus)
	}
	return s
}

// owns fails where the row's tenant and id are not those of its key, as in a copy of another row: it would move another account's money.
func (d *decoder) owns(pk string) {
	if d.str(attrKey) != pk {
		d.fail(attrKey)
	}
}

// numOrZero reads a number that may be absent.
func (d *decoder) numOrZero(name string) int64 {
	if !d.has(name) {
		return 0
	}
	return d.num(name)
}

func (d *decoder) fail(name string) {
	if d.err == nil {
		d.err = fmt.Errorf("payments: malformed attribute %s", name)
	}
}

func decodePayment(it item) (*Payment, error) {
	d := &decoder{item: it}
	p := &Payment{
		Tenant: d.str(attrTenant), ID: d.str(attrID), Status: d.status(), Amount: d.num(attrAmount),
		Currency: d.str(attrCurrency), Source: d.str(attrSource), Reference: d.str(attrReference),
		ProviderReference: d.str(attrProvider), Refunded: d.numOrZero(attrRefunded), Message: idem.MessageID(d.str(attrMessage)),
		CreatedAt: time.UnixMilli(d.num(attrCreatedAt)).UTC(), Comparison: d.str(attrComparison),
	}
	d.owns(paymentKey(p.Tenant, p.ID))
	return p, d.err
}

func decodeRefund(it item) (*Refund, error) {
	d := &decoder{item: it}
	r := &Refund{
		Tenant: d.str(attrTenant), ID: d.str(attrID), Payment: d.str(attrPayment), Status: d.status(), Amount: d.num(attrAmount),
		Currency: d.str(attrCurrency), ProviderReference: d.str(attrProvider), Message: idem.MessageID(d.str(attrMessage)),
		CreatedAt: time.UnixMilli(d.num(attrCreatedAt)).UTC(),
	}
	d.owns(refundKey(r.Tenant, r.ID))
	return r, d.err
}

func decodePayout(it item) (*Payout, error) {
	d := &decoder{item: it}
	p := &Payout{
		Tenant: d.str(attrTenant), ID: d.str(attrID), Status: d.status(), From: d.str(attrFrom), Amount: d.num(attrAmount),
		Currency: d.str(attrCurrency), Destination: d.str(attrDestination), ProviderReference: d.str(attrProvider),
		Message: idem.MessageID(d.str(attrMessage)), CreatedAt: time.UnixMilli(d.num(attrCreatedAt)).UTC(),
		Counted: d.mark(attrCounted), GivenBack: d.mark(attrGivenBack),
	}
	if p.GivenBack && p.Status != StatusFailed && p.Status != StatusDeclined { // as one that was set back to pending: it would be paid out, too
		d.fail(attrGivenBack)
	}
	d.owns(payoutKey(p.Tenant, p.ID))
	return p, d.err
}

func decodeAccount(it item) (*Account, error) {
	d := &decoder{item: it}
	a := &Account{Tenant: d.str(attrTenant), ID: d.str(attrID), Currency: d.str(attrCurrency), Balance: d.num(attrBalance)}
	d.owns(accountKey(a.Tenant, a.ID))
	if a.Partitions = int(d.numOrZero(attrPartitions)); a.Partitions < 0 || a.Partitions > PartitionsMax {
		d.fail(attrPartitions)
	}
	a.Moved = Moved{Movements: d.numOrZero(attrMovedCount), Amount: d.numOrZero(attrMovedSum)}
	a.Folded = Total{Transfers: d.numOrZero(attrFoldedCount), Amount: d.numOrZero(attrFoldedSum)}
	a.Comparison = d.str(attrComparison)
	if ms := d.numOrZero(attrComparedTo); ms != 0 {
		a.ComparedTo = time.UnixMilli(ms).UTC()
	}
	return a, d.err
}

func decodeTransfer(it item) (*Transfer, error) {
	d := &decoder{item: it}
	t := &Transfer{
		Tenant: d.str(attrTenant), ID: d.str(attrID), From: d.str(attrFrom), To: d.str(attrTo), Amount: d.num(attrAmount),
		Currency: d.str(attrCurrency), CreatedAt: time.UnixMilli(d.num(attrCreatedAt)).UTC(),
		Counted: d.mark(attrCounted), Folded: d.has(attrFoldedAt),
	}
	d.owns(transferKey(t.Tenant, t.ID))
	if waits := d.str(table.Hour); waits != "" {
		if t.Partition = partitionIn(waits); waits != incomingPartition(t.Tenant, t.To, t.Partition) {
			d.fail(table.Hour)
		}
	}
	return t, d.err
}
