package payments

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// fromEnded is the transaction that makes again what follows the last message that is there, which has ended: a settlement that goes on
// writes both, and a loss has kept one of them. A settlement is pure, so what it wrote is known. The row must be pending, and is not written
// again. What the provider shows is judged as that of an operation without a record. A row that is gone is put back first, by itself: what
// follows the message is made beside it by the next try, by the same rules as ever.
func (r Restorer) fromEnded(ctx context.Context, stored storage.Record, last storage.Message, objects []Shown, told Told) (storage.Commit, error) {
	if err := told.ofTenant(stored.Tenant); err != nil {
		return storage.Commit{}, err
	}
	if _, err := nextAfter(last); err != nil { // nothing follows: a row that is put back would be pending for ever
		return storage.Commit{}, err
	}
	switch err := r.rowThere(ctx, stored, told); {
	case errors.Is(err, errRowMissing):
		return r.fromAnswer(ctx, stored, objects, told)
	case err != nil:
		return storage.Commit{}, err
	}
	b, err := r.after(ctx, last, objects, told)
	if err != nil {
		return storage.Commit{}, err
	}
	loaded, err := r.Store.LoadResponse(ctx, stored)
	if err != nil {
		return storage.Commit{}, fmt.Errorf("payments: read the 202: %w", err)
	}
	return r.beside(stored, loaded, b)
}

// after is what follows the last message that is there, which has ended.
func (r Restorer) after(ctx context.Context, last storage.Message, objects []Shown, told Told) (begun, error) {
	next, err := nextAfter(last)
	if err != nil {
		return begun{}, err
	}
	b, err := r.ofRow(ctx, last)
	if err != nil {
		return begun{}, err
	}
	b.writes, b.after, b.steps = nil, last.Index, []step{next}
	if next.undoes {
		err = b.unmade(last.OperationID, objects, told)
	} else {
		err = b.goOn(last.OperationID, last, objects, told)
	}
	return b, err
}

// nextAfter is the message that the settlement of an ended one inserted.
func nextAfter(last storage.Message) (step, error) {
	settled, err := settledBy(last)
	switch {
	case err != nil:
		return step{}, &ByHandError{CodePartlyThere, fmt.Sprintf("what followed its message %s is not there, and can't be made again (%v): inspect it", last.ID, err)}
	case settled.Next == nil:
		return step{}, &ByHandError{CodePartlyThere, fmt.Sprintf("its message %s has ended the operation, and no record has its answer: inspect it", last.ID)}
	}
	return step{topic: settled.Next.Topic, payload: settled.Next.Payload, state: storage.MessagePending, undoes: settled.Next.Undoes}, nil
}

// settledBy is what the settlement of a message that has ended has written.
func settledBy(ended storage.Message) (outbox.Settlement, error) {
	var outcome outbox.Outcome = outbox.NotExecuted{}
	switch ended.State {
	case storage.MessageDelivered:
		outcome = outbox.Delivered{Reference: ended.Reference}
	case storage.MessageDeclined:
		outcome = outbox.Declined{Reference: ended.Reference}
	default: // cancelled
	}
	for _, e := range effects() {
		if e.topic == ended.Topic {
			return e.settle(ended, outcome)
		}
	}
	return outbox.Settlement{}, fmt.Errorf("payments: nothing settles the topic %q", ended.Topic)
}

// statusAfter is what the settlement of a message that has ended has made of its payout's or refund's row; pending where it went on. It is
// empty where nobody can tell.
func statusAfter(ended storage.Message) Status {
	settled, err := settledBy(ended)
	switch {
	case err != nil:
		return ""
	case settled.Next != nil:
		return StatusPending
	}
	for _, w := range settled.Writes {
		switch w := w.(type) {
		case FinishPayout:
			return w.Status
		case FinishRefund:
			return w.Status
		}
	}
	return ""
}

// goOn refuses what must not be executed by what the provider shows: the message says that the destination passed. Where the provider was
// asked to release the hold of a payout, the payout was given up, and the release is what the chain goes on with.
func (b *begun) goOn(operation idem.OperationID, last storage.Message, objects []Shown, told Told) error {
	lost, err := b.judge(operation, objects, told)
	switch {
	case err != nil:
		return err
	case lost.First.Status == StatusDeclined:
		return &ByHandError{CodeDiffersFromSelf, "its message says that the destination passed, and the provider shows its screening as declined: ask the provider which is true"}
	case !lost.Released:
		return nil
	}
	steps, err := stepsToRelease(b.payload, last.Reference)
	if err != nil {
		return err
	}
	b.steps = steps[last.Index:]
	return nil
}

// unmade refuses to undo what came before a payout that was made, for all that the provider shows. An undoing moves no money out.
func (b begun) unmade(operation idem.OperationID, objects []Shown, told Told) error {
	if err := b.fits(operation, objects, told); err != nil {
		return err
	}
	for _, o := range byPosition(objects, 2) {
		if o.Status != StatusDeclined {
			return &ByHandError{CodeDiffersFromSelf, "its message says that the payout was not made, and the provider shows it: ask the provider which is true"}
		}
	}
	return nil
}
