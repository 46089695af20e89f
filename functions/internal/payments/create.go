package payments

import (
	"context"
	"fmt"
	"net/http"

	"github.com/idem-go/idem-aws/idem"
)

// begun is what an operation commits beside its record: its first message, its rows, and what its 202 is about.
type begun struct {
	topic   string
	payload []byte
	writes  []idem.Write
	view    acceptedView
	// steps are the messages up to the one that a lost operation goes on with. Default: it goes on with its first message. They come after
	// so many that are there.
	steps []step
	after int
}

// commit puts it into the execution's transaction, with the 202.
func (b begun) commit(tx *idem.Tx) (idem.Response, error) {
	tx.Send(b.topic, b.payload)
	tx.Write(b.writes...)
	return accept(tx.OperationID(), b.view)
}

func beginPayment(p Payment) (begun, error) {
	payload, err := chargeOf(p).encode()
	view := viewPayment(p)
	return begun{topic: chargeTopic(p.Source), payload: payload, writes: []idem.Write{InsertPayment{p}}, view: acceptedView{Payment: &view}}, err
}

// beginRefund reserves the amount on the payment that is refunded.
func beginRefund(r Refund, paid Payment) (begun, error) {
	payload, err := refundOf(r, paid.ProviderReference).encode()
	view := viewRefund(r)
	reserve := ReserveRefund{Tenant: paid.Tenant, Payment: paid.ID, Amount: r.Amount, Paid: paid.Amount}
	return begun{topic: TopicRefunds, payload: payload, writes: []idem.Write{reserve, InsertRefund{r}}, view: acceptedView{Refund: &view}}, err
}

// beginPayout takes the funds off the account. Its message screens the destination.
func beginPayout(p Payout) (begun, error) {
	payload, err := screeningOf(p).encode()
	view := viewPayout(p)
	debit := Debit{Tenant: p.Tenant, Account: p.From, Amount: p.Amount, Currency: p.Currency}
	return begun{topic: TopicScreenings, payload: payload, writes: []idem.Write{debit, InsertPayout{p}}, view: acceptedView{Payout: &view}}, err
}

// createPayment commits the payment, the message that charges it and the 202 together.
func createPayment(tx *idem.Tx, req paymentRequest) (idem.Response, error) {
	p := Payment{
		Tenant: tx.Tenant(), ID: entityID(paymentPrefix, tx.OperationID()), Status: StatusPending, Amount: req.amount,
		Currency: req.currency, Source: req.source, Reference: req.reference, CreatedAt: tx.Now(),
		Message: tx.OperationID().Message(1),
	}
	b, err := beginPayment(p)
	if err != nil {
		return idem.Response{}, err
	}
	return b.commit(tx)
}

// createRefund reserves the amount on its payment and commits it with the refund, its message and the 202. The payment is
// read first for what never changes: whose it is, that it succeeded, its amount and the provider's reference.
func createRefund(ctx context.Context, ledger Ledger, tx *idem.Tx, payment string, req refundRequest) (idem.Response, error) {
	if !idSyntax.MatchString(payment) {
		return idem.Response{}, reject(notFound("payment"))
	}
	p, err := ledger.Payment(ctx, tx.Tenant(), payment)
	switch {
	case err != nil:
		return idem.Response{}, err
	case p == nil:
		return idem.Response{}, reject(notFound("payment"))
	case p.Status != StatusSucceeded:
		return idem.Response{}, reject(paymentNotRefundable())
	case p.ProviderReference == "": // somebody has ended its row by hand, and the provider can't be told of which charge
		return idem.Response{}, fmt.Errorf("payments: %s has succeeded without the provider's reference", p.ID)
	}
	r := Refund{
		Tenant: p.Tenant, ID: entityID(refundPrefix, tx.OperationID()), Payment: p.ID, Status: StatusPending, Amount: req.amount,
		Currency: p.Currency, CreatedAt: tx.Now(), Message: tx.OperationID().Message(1),
	}
	b, err := beginRefund(r, *p)
	if err != nil {
		return idem.Response{}, err
	}
	return b.commit(tx)
}

// createPayout takes the funds off the account and commits that with the payout, the message that screens its
// destination, and the 202.
func createPayout(ctx context.Context, ledger Ledger, tx *idem.Tx, req payoutRequest) (idem.Response, error) {
	if _, err := holds(ctx, ledger, tx.Tenant(), "from", req.from, req.currency); err != nil {
		return idem.Response{}, err
	}
	p := Payout{
		Tenant: tx.Tenant(), ID: entityID(payoutPrefix, tx.OperationID()), Status: StatusPending, From: req.from, Amount: req.amount,
		Currency: req.currency, Destination: req.destination, CreatedAt: tx.Now(), Message: tx.OperationID().Message(1),
	}
	b, err := beginPayout(p)
	if err != nil {
		return idem.Response{}, err
	}
	return b.commit(tx)
}

// accept is the 202 of an operation.
func accept(operation idem.OperationID, view acceptedView) (idem.Response, error) {
	view.Operation, view.State = operation, "pending"
	return idem.JSON(http.StatusAccepted, view)
}

// createTransfer is a double entry: both accounts and the transfer in one transaction, the balance as its condition. A
// collecting account is credited by the transfer alone.
func createTransfer(ctx context.Context, ledger Ledger, tx *idem.Tx, req transferRequest) (idem.Response, error) {
	if _, err := holds(ctx, ledger, tx.Tenant(), "from", req.from, req.currency); err != nil {
		return idem.Response{}, err
	}
	to, err := holds(ctx, ledger, tx.Tenant(), "to", req.to, req.currency)
	if err != nil {
		return idem.Response{}, err
	}
	t := Transfer{
		Tenant: tx.Tenant(), ID: entityID(transferPrefix, tx.OperationID()), From: req.from, To: req.to, Amount: req.amount,
		Currency: req.currency, CreatedAt: tx.Now(),
	}
	tx.Write(Debit{Tenant: t.Tenant, Account: t.From, Amount: t.Amount, Currency: t.Currency})
	if to.Collects() { // the transfer itself is the credit, until it is folded: nothing that others write too is written
		t.Partition = to.partitionOf(t.ID)
	} else {
		tx.Write(Credit{Tenant: t.Tenant, Account: t.To, Amount: t.Amount, Currency: t.Currency})
	}
	tx.Write(InsertTransfer{t})
	return idem.JSON(http.StatusCreated, viewTransfer(t))
}

// holds reads an account for what a condition can't tell: whether it is missing, holds another currency, or collects. None of
// these ends: an account is never removed, and goes on collecting. Its error is the business answer.
func holds(ctx context.Context, ledger Ledger, tenant, member, id, currency string) (*Account, error) {
	account, err := ledger.Account(ctx, tenant, id)
	switch {
	case err != nil:
		return nil, err
	case account == nil:
		return nil, reject(accountNotFound(member))
	case account.Currency != currency:
		return nil, reject(currencyMismatch(member))
	}
	return account, nil
}
