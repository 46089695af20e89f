package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// What [Restorer.Restore] did, and [Restorer.Judge] says that it would do.
const (
	Restored = "restored"
	// RowPutBack has debited nothing, and what it left undone is for the comparison to find.
	RowPutBack = "row put back, and no money moved: compare the balances"
	// RowOfTornPutBack is RowPutBack where nobody goes on with the operation before Restore is called once more.
	RowOfTornPutBack = "row put back, and no money moved: what follows its last message is not there"
	ThereAlready     = "there already"
)

// planned is a transaction, and what is done once it is committed. Of ThereAlready there is none.
type planned struct {
	storage.Commit
	did string
}

// rowAlone says whether nothing but a row is put back.
func (p planned) rowAlone() bool { return len(p.Messages) == 0 && len(p.Writes) > 0 }

// Restore makes an operation again, and says what was done. Repeating it changes nothing more, but for RowOfTornPutBack, which the next call
// goes on from. Where nobody knows whether the transaction has happened the error is a [*storage.OutcomeUnknownError], and repeating it finds
// out. With a [*ByHandError] it is certain that nothing was changed.
func (r Restorer) Restore(ctx context.Context, operation idem.OperationID, objects []Shown, told Told) (string, error) {
	p, err := r.prepare(ctx, operation, objects, told)
	if err != nil {
		return "", err
	}
	if p.did == ThereAlready {
		return p.did, nil
	}
	send, err := r.Store.Prepare(p.Commit)
	if err != nil {
		return "", err
	}
	err, unknown := r.send(ctx, send)
	switch {
	case err == nil:
		return p.did, nil
	case unknown != nil:
		return r.found(ctx, p, told, unknown)
	}
	return r.refused(ctx, p, told, err)
}

// send sends a transaction until it is answered. err is what the last try said, and unknown that the reply of one was lost: what a later
// try says of itself proves nothing about that one, which may still be applied.
func (r Restorer) send(ctx context.Context, send func(context.Context) error) (err, unknown error) {
	for try := 1; ; try++ {
		err = send(ctx)
		lost := errors.As(err, new(*storage.OutcomeUnknownError))
		if lost {
			unknown = err
		}
		again := lost || errors.Is(err, storage.ErrContention)
		if !again || try == sendMax || r.Pause(ctx, time.Duration(try)*100*time.Millisecond) != nil {
			return err, unknown
		}
	}
}

// refused says why a transaction was not applied of which every try was answered.
func (r Restorer) refused(ctx context.Context, p planned, told Told, err error) (string, error) {
	var (
		record *storage.RecordConflictError
		write  *storage.WriteFailedError
	)
	switch {
	case errors.As(err, &record) && record.Existing != nil:
		return r.outrun(ctx, p, *record.Existing, told)
	case errors.As(err, new(*storage.MessageConflictError)):
		return "", &ByHandError{CodePartlyThere, "one of its messages is there, without its record or since it was looked for: inspect it"}
	case errors.As(err, &write) && len(write.Unjudged) == 0 && !write.OwnUnjudged:
		return "", refusedBy(p.Writes, write.Indexes)
	}
	return r.found(ctx, p, told, err)
}

// errOutrun: somebody else's write came first, so that the record is not as it was read any more, or was not there then.
var errOutrun = errors.New("payments: somebody changed its record at the same time: repeat the command")

// outrun says what a record is that is not as it was read. Of the same operation nothing is to be inspected yet: what is not there
// somebody may be about to make, and a repetition sees it as it is by then.
func (r Restorer) outrun(ctx context.Context, p planned, stored storage.Record, told Told) (string, error) {
	did, err := r.there(ctx, p.Record.OperationID, stored, told)
	if byHand := (*ByHandError)(nil); stored.OperationID == p.Record.OperationID && errors.As(err, &byHand) && byHand.Code == CodePartlyThere {
		err = errOutrun
	}
	return did, err
}

// found looks for the operation after tries that don't say what became of it: somebody may have made it again, or a try whose reply was
// lost. Its own revision on the record proves the latter. A record alone proves nothing, because a torn operation's was there before.
// Where nothing is proven the answer is the trouble, never a refusal: a lost try may still be applied.
func (r Restorer) found(ctx context.Context, p planned, told Told, trouble error) (string, error) {
	stored, err := r.Store.Get(ctx, p.Record.Key)
	if err != nil || stored == nil {
		return "", trouble
	}
	if stored.OperationID == p.Record.OperationID && stored.Revision == p.Record.Revision {
		return p.did, nil
	}
	outcome, err := r.there(ctx, p.Record.OperationID, *stored, told)
	if err != nil {
		return "", trouble
	}
	return outcome, nil
}

// torn says whether the record waits for a message that is not there: its first, or one after last, which has ended. A message is never
// removed before its record is final, and the write that ended last inserted the next one or ended the record, unless a loss took that part.
func (r Restorer) torn(ctx context.Context, stored storage.Record) (torn bool, last *storage.Message, err error) {
	if stored.State != storage.StatePending {
		return false, nil, nil
	}
	for n := 1; n <= outbox.ChainMax; n++ {
		m, err := r.Messages.Message(ctx, stored.OperationID.Message(n))
		switch {
		case err != nil:
			return false, nil, fmt.Errorf("payments: read message: %w", err)
		case m != nil && !m.State.Final():
			return false, nil, nil
		case m == nil && last == nil:
			return true, nil, nil
		case m == nil:
			if err := r.noneFrom(ctx, stored.OperationID, n+1); err != nil {
				return false, nil, err
			}
			return r.lostAfter(ctx, last)
		}
		last = m
	}
	return r.lostAfter(ctx, last)
}

// noneFrom refuses a chain that goes on behind a message which is not there: nothing that is made again would be sure to be what is missing.
func (r Restorer) noneFrom(ctx context.Context, operation idem.OperationID, n int) error {
	for ; n <= outbox.ChainMax; n++ {
		m, err := r.Messages.Message(ctx, operation.Message(n))
		if err != nil {
			return fmt.Errorf("payments: read message: %w", err)
		}
		if m != nil {
			return &ByHandError{CodePartlyThere, fmt.Sprintf("its message %s is there, and one before it is not: inspect both", m.ID)}
		}
	}
	return nil
}

// lostAfter says whether the message ended before the loss. One that ended since may have been read just before its record's own end.
func (r Restorer) lostAfter(ctx context.Context, last *storage.Message) (torn bool, _ *storage.Message, err error) {
	before, err := r.lostBefore(ctx)
	if err != nil {
		return false, nil, err
	}
	return last.DoneAt.Before(before), last, nil
}

// there says what the key's record is where there is one: another operation's, or this one's with its messages and its row. A record
// without them is a transaction that a loss has torn. What a person says of the operation must be what is stored.
func (r Restorer) there(ctx context.Context, operation idem.OperationID, stored storage.Record, told Told) (string, error) {
	if stored.OperationID != operation {
		return "", usedAgain(stored)
	}
	if err := told.ofTenant(stored.Tenant); err != nil {
		return "", err
	}
	torn, _, err := r.torn(ctx, stored)
	switch {
	case err != nil:
		return "", err
	case torn:
		return "", &ByHandError{CodePartlyThere, "its record waits for a message that is not there: inspect it"}
	}
	if err := r.rowThere(ctx, stored, told); err != nil {
		return "", err
	}
	return ThereAlready, nil
}

// errRowMissing: the operation's row is not there, and its record is.
var errRowMissing = &ByHandError{CodePartlyThere, "its record is there without its row, and has no answer that says what the row was: inspect it"}

// rowThere refuses an operation whose row is missing, or is of another account than a person says.
func (r Restorer) rowThere(ctx context.Context, stored storage.Record, told Told) (err error) {
	found := true
	switch tenant, operation := stored.Tenant, stored.OperationID; stored.Operation {
	case operationPayments:
		var row *Payment
		row, err = r.Ledger.Payment(ctx, tenant, entityID(paymentPrefix, operation))
		found = row != nil
	case operationRefunds:
		var row *Refund
		row, err = r.Ledger.Refund(ctx, tenant, entityID(refundPrefix, operation))
		found = row != nil
	case operationPayouts:
		var row *Payout
		row, err = r.Ledger.Payout(ctx, tenant, entityID(payoutPrefix, operation))
		if found = row != nil; found && err == nil {
			return told.ofAccount(row.From)
		}
	}
	if err == nil && !found {
		err = errRowMissing
	}
	return err
}

// ofTenant refuses an operation of another tenant than was said.
func (t Told) ofTenant(tenant string) error {
	if t.Tenant == "" || t.Tenant == tenant {
		return nil
	}
	return &ByHandError{CodeTenantDiffers, fmt.Sprintf("it is of tenant %s", tenant)}
}

// ofAccount refuses a payout from another account than was said.
func (t Told) ofAccount(account string) error {
	if t.Account == "" || t.Account == account {
		return nil
	}
	return &ByHandError{CodeAccountDiffers, fmt.Sprintf("it was taken from account %s", account)}
}

// usedAgain says what became of the operation that holds the key now.
func usedAgain(stored storage.Record) error {
	var rule string
	switch stored.State {
	case storage.StateCompleted:
		rule = "was executed or declined: inspect it, and where the provider made both give back one of the two there"
	case storage.StateFailed:
		rule = "has failed: inspect it" + freeAgain(stored)
	case storage.StateFailedRetryable:
		rule = "did nothing" + freeAgain(stored) + ", unless the client executes it before"
	default:
		rule = fmt.Sprintf("is %s: come back when it has ended", stored.State)
	}
	return &ByHandError{CodeKeyUsedAgain, fmt.Sprintf("its client has sent its key again since, and operation %s %s", stored.OperationID, rule)}
}

// freeAgain is when another operation may have the key.
func freeAgain(stored storage.Record) string {
	if stored.FreeAt.IsZero() {
		return ""
	}
	return fmt.Sprintf(". The key is free at %s: come back then", instant(stored.FreeAt))
}

// refusedBy says what the failed conditions of writes mean. A row that is there comes first: where it is, its account was debited before,
// and holds too little for a second time.
func refusedBy(writes []idem.Write, failed []int) error {
	var short error
	for _, i := range failed {
		switch w := writes[i].(type) {
		case Debit:
			short = &ByHandError{CodeFundsShort, fmt.Sprintf("account %s does not hold %d %s: it must have what it had before the payout", w.Account, w.Amount, w.Currency)}
		case ReserveRefund:
			short = &ByHandError{CodeFundsShort, fmt.Sprintf("payment %s has less left to refund than %d: compare it with its refunds (account compare), because a loss may have left the amount without the refund", w.Payment, w.Amount)}
		default:
			return &ByHandError{CodePartlyThere, "its row is there without its record, or has ended without its message: inspect it"}
		}
	}
	return short
}
