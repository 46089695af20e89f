package payments

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// reader answers what the present state is; nothing it answers is stored.
type reader struct {
	ledger   Ledger
	messages outbox.Messages
}

// payment is a payment as it stands; that its charge's outcome is unknown is read off its message.
func (r reader) payment(ctx context.Context, tenant, id string) (*Payment, error) {
	if !idSyntax.MatchString(id) {
		return nil, nil
	}
	p, err := r.ledger.Payment(ctx, tenant, id)
	if err != nil || p == nil || p.Status != StatusPending {
		return p, err
	}
	p.Status, err = r.pending(ctx, p.Message)
	return p, err
}

// payout is a payout as it stands; that an effect of its chain is unknown is read off the open message.
func (r reader) payout(ctx context.Context, tenant, id string) (*Payout, error) {
	if !idSyntax.MatchString(id) {
		return nil, nil
	}
	p, err := r.ledger.Payout(ctx, tenant, id)
	if err != nil || p == nil || p.Status != StatusPending {
		return p, err
	}
	p.Status, err = r.pending(ctx, p.Message)
	return p, err
}

// pending is the status of what waits for the chain that the message is of.
func (r reader) pending(ctx context.Context, id idem.MessageID) (Status, error) {
	operation, _, err := id.Operation()
	if err != nil {
		return "", fmt.Errorf("payments: message of a row: %w", err)
	}
	open, err := r.open(ctx, operation)
	if err != nil {
		return "", err
	}
	if open.State == storage.MessageUnknown || open.State == storage.MessageDead {
		return StatusUnknown, nil
	}
	return StatusPending, nil
}

func (r reader) account(ctx context.Context, tenant, id string) (*Account, error) {
	if !idSyntax.MatchString(id) {
		return nil, nil
	}
	return r.ledger.Account(ctx, tenant, id)
}

// incomingMax is how many incoming transfers are read to tell of them: each is a read unit.
const incomingMax = 100

// incoming is what waits for an account's balance; nil where it does not collect. What can't be folded is left out: the sweep tells
// an operator of it. The account was read before, so a transfer that is folded meanwhile is counted in neither. DynamoDB may show
// the items of a fold one after the other while it commits: one that is just being folded may then be counted in both.
func (r reader) incoming(ctx context.Context, a Account) (*incomingView, error) {
	if !a.Collects() {
		return nil, nil
	}
	view := &incomingView{}
	for partition := 1; partition <= a.Partitions && !view.More; partition++ {
		left := incomingMax - view.Transfers
		found, err := r.ledger.Incoming(ctx, a, partition, left+1)
		if err != nil && !errors.Is(err, ErrUnfoldable) {
			return nil, err
		}
		view.More = len(found) > left
		for _, t := range found[:min(len(found), left)] {
			view.Amount, view.Transfers = view.Amount+t.Amount, view.Transfers+1
		}
	}
	return view, nil
}

// errChain: a record waits for a message that is not there.
var errChain = errors.New("payments: the operation's chain of messages is broken")

// open is the message that the operation waits for: its recovery point. Trouble with the store is an
// [*idem.UnavailableError].
func (r reader) open(ctx context.Context, id idem.OperationID) (*storage.Message, error) {
	m, err := outbox.Open(ctx, r.messages, id)
	if err != nil {
		return nil, unreadable(fmt.Errorf("message: %w", err))
	}
	if m == nil {
		return nil, errChain
	}
	return m, nil
}
