package payments

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// Rows is the Ledger on the reference store; [TranslateRow] is what its transactions write.
type Rows struct{ Store *memstore.Store }

// Payment implements [Ledger].
func (r Rows) Payment(_ context.Context, tenant, id string) (*Payment, error) {
	return decodeRow[Payment](r.Store.Row(paymentKey(tenant, id)))
}

// Refund implements [Ledger].
func (r Rows) Refund(_ context.Context, tenant, id string) (*Refund, error) {
	return decodeRow[Refund](r.Store.Row(refundKey(tenant, id)))
}

// Payout implements [Ledger].
func (r Rows) Payout(_ context.Context, tenant, id string) (*Payout, error) {
	return decodeRow[Payout](r.Store.Row(payoutKey(tenant, id)))
}

// Account implements [Ledger].
func (r Rows) Account(_ context.Context, tenant, id string) (*Account, error) {
	return decodeRow[Account](r.Store.Row(accountKey(tenant, id)))
}

// Incoming implements [Ledger].
func (r Rows) Incoming(_ context.Context, a Account, partition, limit int) ([]Transfer, error) {
	var found []Transfer
	var unfoldable error
	for key, row := range r.Store.Rows() {
		if !strings.HasPrefix(key, transferKey(a.Tenant, "")) {
			continue
		}
		t, err := decodeRow[Transfer](row)
		if err != nil {
			unfoldable = fmt.Errorf("%w: %s: %w", ErrUnfoldable, key, err)
		} else if t.To == a.ID && t.Partition == partition {
			if err := a.admits(*t); err != nil {
				unfoldable = err
			} else {
				found = append(found, *t)
			}
		}
	}
	slices.SortFunc(found, func(a, b Transfer) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID)) })
	return found[:min(len(found), limit)], unfoldable
}

// Collecting implements [Collections].
func (r Rows) Collecting(context.Context) ([]Account, error) {
	var found []Account
	for key, row := range r.Store.Rows() {
		if !strings.HasPrefix(key, accountRows) {
			continue
		}
		a, err := decodeRow[Account](row)
		if err != nil {
			return nil, err
		}
		if a.Collects() {
			found = append(found, *a)
		}
	}
	slices.SortFunc(found, func(a, b Account) int { return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID)) })
	return found, nil
}

// Fold implements [Collections].
func (r Rows) Fold(_ context.Context, a Account, transfers []Transfer, _ time.Time) error {
	writes := make([]memstore.Write, 0, len(transfers)+1)
	var sum int64
	for _, t := range transfers {
		sum += t.Amount
		writes = append(writes, changeRow(transferKey(t.Tenant, t.ID), nothingDeclared{},
			func(row *Transfer) bool { return row.Partition == t.Partition },
			func(row *Transfer) { row.Partition, row.Folded = 0, true }))
	}
	return r.Store.WriteRows(append(writes, changeRow(accountKey(a.Tenant, a.ID), nothingDeclared{},
		func(row *Account) bool { return row.Currency == a.Currency && row.Collects() },
		func(row *Account) {
			row.Balance += sum
			row.Folded.Transfers, row.Folded.Amount = row.Folded.Transfers+int64(len(transfers)), row.Folded.Amount+sum
		}))...)
}

// nothingDeclared is for rows that no handler writes: nobody is answered.
type nothingDeclared struct{}

// IfConditionFails implements [idem.Write].
func (nothingDeclared) IfConditionFails() idem.Failure { return idem.Failure{} }

// Open puts an account there, as a test's seed does.
func (r Rows) Open(a Account) { r.Store.PutRow(accountKey(a.Tenant, a.ID), encodeRow(a)) }

func decodeRow[T any](row []byte) (*T, error) {
	if row == nil {
		return nil, nil
	}
	value := new(T)
	if err := json.Unmarshal(row, value); err != nil {
		return nil, fmt.Errorf("payments: malformed row: %w", err)
	}
	return value, nil
}

func encodeRow(value any) []byte {
	row, err := json.Marshal(value)
	if err != nil { // plain structs always encode
		panic(err)
	}
	return row
}

// TranslateRow turns domain writes into rows of the reference store, with the conditions that [Items] has.
func TranslateRow(w idem.Write) (memstore.Write, error) {
	switch w := w.(type) {
	case InsertPayment:
		return insertRow(paymentKey(w.Payment.Tenant, w.Payment.ID), w.Payment, w), nil
	case InsertTransfer:
		made := w.Transfer
		made.Counted = true
		return insertRow(transferKey(made.Tenant, made.ID), made, w), nil
	case FinishPayment:
		return changeRow(paymentKey(w.Tenant, w.ID), w,
			func(p *Payment) bool { return p.Status == StatusPending },
			func(p *Payment) { p.Status, p.ProviderReference = w.Status, w.ProviderReference }), nil
	case ReserveRefund:
		return changeRow(paymentKey(w.Tenant, w.Payment), w,
			func(p *Payment) bool {
				return p.Status == StatusSucceeded && p.Amount == w.Paid && p.Refunded <= w.Paid-w.Amount
			},
			func(p *Payment) { p.Refunded += w.Amount }), nil
	case ReleaseRefund:
		return changeRow(paymentKey(w.Tenant, w.Payment), w,
			func(p *Payment) bool { return p.Refunded >= w.Amount },
			func(p *Payment) { p.Refunded -= w.Amount }), nil
	case InsertRefund:
		return insertRow(refundKey(w.Refund.Tenant, w.Refund.ID), w.Refund, w), nil
	case FinishRefund:
		return changeRow(refundKey(w.Tenant, w.ID), w,
			func(r *Refund) bool { return r.Status == StatusPending },
			func(r *Refund) { r.Status, r.ProviderReference = w.Status, w.ProviderReference }), nil
	case InsertPayout:
		made := w.Payout
		made.Counted = true
		return insertRow(payoutKey(made.Tenant, made.ID), made, w), nil
	case FinishPayout:
		return changeRow(payoutKey(w.Tenant, w.ID), w,
			func(p *Payout) bool { return p.Status == StatusPending && !p.GivenBack },
			func(p *Payout) {
				p.Status, p.ProviderReference, p.GivenBack = w.Status, w.ProviderReference, w.givesBack()
			}), nil
	case Debit:
		return balanceRow(accountKey(w.Tenant, w.Account), -w.Amount, w.Currency, w), nil
	case Credit:
		return balanceRow(accountKey(w.Tenant, w.Account), w.Amount, w.Currency, w), nil
	}
	return memstore.Write{}, fmt.Errorf("payments: no row for a write of type %T", w)
}

func insertRow(key string, value any, w idem.Write) memstore.Write {
	return memstore.Write{
		Key:       key,
		Condition: func(row []byte) bool { return row == nil },
		Apply:     func([]byte) []byte { return encodeRow(value) },
		Failure:   w.IfConditionFails(),
	}
}

func balanceRow(key string, delta int64, currency string, w idem.Write) memstore.Write {
	return changeRow(key, w,
		func(a *Account) bool { return a.Currency == currency && a.Balance >= max(0, -delta) },
		func(a *Account) {
			a.Balance += delta
			a.Moved.Movements, a.Moved.Amount = a.Moved.Movements+1, a.Moved.Amount+delta
		})
}

// changeRow changes a row that is there and fulfils the condition.
func changeRow[T any](key string, w idem.Write, condition func(*T) bool, change func(*T)) memstore.Write {
	return memstore.Write{
		Key: key,
		Condition: func(row []byte) bool {
			value, err := decodeRow[T](row)
			return err == nil && value != nil && condition(value)
		},
		Apply: func(row []byte) []byte {
			value, err := decodeRow[T](row)
			if err != nil { // its condition has decoded it
				panic(err)
			}
			change(value)
			return encodeRow(value)
		},
		Failure: w.IfConditionFails(),
	}
}
