package rpc

import (
	"context"

	"github.com/idem-go/idem-aws/idem"
)

// Tx collects the writes of an atomic or optimistic procedure. They are committed together with its reply. A status error
// commits none of them, also where it is stored. Where the condition of a write fails that has idem.Reject, the caller gets a
// status with the problem's code as its reason.
type Tx struct {
	id     idem.OperationID
	writes []idem.Write
}

// OperationID is a good source for the ids of what the call creates.
func (t *Tx) OperationID() idem.OperationID { return t.id }

// Write adds business writes.
func (t *Tx) Write(writes ...idem.Write) { t.writes = append(t.writes, writes...) }

type txKey struct{}

// TxFrom returns the transaction of the call with this context. It is in the context because a handler that protoc generates the
// interface of has no other argument for it. There is none in an unprotected or a wrapped procedure.
func TxFrom(ctx context.Context) (*Tx, bool) {
	tx, ok := ctx.Value(txKey{}).(*Tx)
	return tx, ok
}
