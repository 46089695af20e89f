package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Rehearsed is what a rehearsed change would make.
type Rehearsed struct {
	// State is what the message becomes.
	State storage.MessageState
	// Next is the message that is written behind it: a worker calls the provider for that one. Empty where there is none. Undoes says that
	// it undoes earlier steps.
	Next   idem.MessageID
	Undoes bool
	// Ends says that the operation gets its final answer.
	Ends bool
	// Unsettled is why evidence would be kept on the message, and not be settled; nil where it is settled, or where there is none.
	Unsettled error
}

// rehearsal is what an operator who writes nothing reads the record with, and tells what would be written.
type rehearsal struct {
	record func(context.Context, idem.OperationID) (*storage.Record, error)
	made   func(Rehearsed)
}

// Rehearsal returns an operator who writes nothing, and tells nobody. The same machine judges the same rows as of a change, and asks the topic
// what it means; its first write that the rows would admit counts as made. So what is refused is refused, and what is returned is what the
// change would return, unless somebody writes a row before it. Only the store knows whether it would take what the application writes.
//
// record returns the record of an operation; nil where there is none of this incarnation. made is told what a change would make: once for
// each that is not refused.
func (o *Operator) Rehearsal(record func(ctx context.Context, id idem.OperationID) (*storage.Record, error), made func(Rehearsed)) *Operator {
	return &Operator{desk: o.desk, rehearsal: &rehearsal{record, made}}
}

var errInTheWay = errors.New("outbox: its record, or a message behind it, does not admit it")

// rehearse judges a write as the store would, and takes one that is admitted for made. It returns what the machine is told of one that is not.
func (x *delivery) rehearse(ctx context.Context, w protocol.Write) (in protocol.Input, made bool, err error) {
	conds, err := x.inTheWay(ctx, w)
	if err != nil {
		return in, false, fmt.Errorf("outbox: rehearse: %w", err)
	}
	if conds != 0 {
		x.cause = errInTheWay
		return protocol.Input{What: protocol.Replied, Reply: refused(conds)}, false, nil
	}
	x.take(w, nil)
	x.rehearsing.made(x.rehearsed(w))
	return in, true, nil
}

// rehearsed is what a write that was taken for made makes.
func (x *delivery) rehearsed(w protocol.Write) Rehearsed {
	did := Rehearsed{State: x.row.State, Undoes: w.Next.Undoes, Ends: w.RecAs == protocol.End}
	if w.Next.State != protocol.NoMessage {
		did.Next = x.row.OperationID.Message(int(w.Next.Index))
	}
	if x.machine.Step == protocol.Keeping {
		did.Unsettled = x.unsettled()
	}
	return did
}

var (
	errDiffers   = errors.New("outbox: it contradicts what the message keeps")
	errNotUndone = errors.New("outbox: the message undoes an earlier step, and a decline leaves that step standing")
	errGivenUp   = errors.New("outbox: the message was given up, and what that means was written")
)

// unsettled is why evidence is kept, and not settled.
func (x *delivery) unsettled() error {
	switch {
	case x.cause != nil:
		return x.cause
	case x.machine.Alarms&protocol.AlarmContradicts != 0:
		return errDiffers
	case x.row.Undoes && x.machine.Evidence == protocol.OutDeclined:
		return errNotUndone
	}
	return errGivenUp
}

// inTheWay are the conditions of a write that would fail. That of the message holds: it was read just now.
func (x *delivery) inTheWay(ctx context.Context, w protocol.Write) (conds protocol.Conds, err error) {
	if x.unopened(w) {
		return protocol.CondRecord, nil
	}
	if w.RecAs != protocol.Leave {
		r, err := x.rehearsing.record(ctx, x.row.OperationID)
		if err != nil {
			return 0, err
		}
		if !w.RecIf.AdmitsRecord(x.recordHeader(r)) {
			conds |= protocol.CondRecord
		}
	}
	if w.Next.State != protocol.NoMessage {
		next, err := x.message(ctx, x.row.OperationID.Message(int(w.Next.Index)))
		if err != nil {
			return 0, err
		}
		if next != nil {
			conds |= protocol.CondNextMessage
		}
	}
	return conds, nil
}

// recordHeader is what the fence of a message's write needs of its record.
func (x *delivery) recordHeader(r *storage.Record) protocol.Record {
	if r == nil {
		return protocol.Record{}
	}
	header := protocol.Record{Op: translation.HeaderOf(&x.row).Op, State: protocol.InProgress}
	switch {
	case r.State == storage.StatePending:
		header.State = protocol.Pending
	case r.State.Final():
		header.State = protocol.Completed
	}
	return header
}
