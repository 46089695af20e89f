package payments

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
)

// Messages reads outbox messages strongly; nil where there is none.
type Messages interface {
	Message(ctx context.Context, id idem.MessageID) (*idem.Message, error)
}

// reader answers what the present state is; nothing it answers is stored.
type reader struct {
	ledger   Ledger
	messages Messages
	engine   *idem.Engine
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
	m, err := r.message(ctx, p.Message)
	if err != nil {
		return nil, err
	}
	if m != nil && (m.State == idem.MessageUnknown || m.State == idem.MessageDead) {
		p.Status = StatusUnknown
	}
	return p, nil
}

// message reads a message; trouble with the store is an [*idem.UnavailableError].
func (r reader) message(ctx context.Context, id idem.MessageID) (*idem.Message, error) {
	m, err := r.messages.Message(ctx, id)
	if err != nil {
		return nil, unreadable(fmt.Errorf("message: %w", err))
	}
	return m, nil
}

func (r reader) account(ctx context.Context, tenant, id string) (*Account, error) {
	if !idSyntax.MatchString(id) {
		return nil, nil
	}
	return r.ledger.Account(ctx, tenant, id)
}

// errChain: a record waits for a message that is not there.
var errChain = errors.New("payments: the operation's chain of messages is broken")

// operation returns a record of the tenant and what clients call its state; nil where there is none.
func (r reader) operation(ctx context.Context, tenant, id string) (*idem.Record, string, error) {
	record, err := r.engine.Status(ctx, tenant, idem.OperationID(id))
	if err != nil || record == nil {
		return nil, "", err
	}
	if record.State != idem.StatePending {
		return record, operationState(*record, nil), nil
	}
	open, err := r.openMessage(ctx, record.OperationID)
	if err != nil {
		return nil, "", err
	}
	return record, operationState(*record, open), nil
}

// openMessage follows the chain to the message that is open: the operation's recovery point.
func (r reader) openMessage(ctx context.Context, id idem.OperationID) (*idem.Message, error) {
	const chainMax = 10
	var last *idem.Message
	for n := 1; n <= chainMax; n++ {
		m, err := r.message(ctx, id.Message(n))
		if err != nil {
			return nil, err
		}
		if m == nil {
			break
		}
		if last = m; !m.State.Final() {
			return m, nil
		}
	}
	if last == nil {
		return nil, errChain
	}
	return last, nil
}
