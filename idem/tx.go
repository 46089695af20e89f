package idem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/telemetry/trace"
)

// Handler executes an operation. It only reads and computes. It adds its writes to tx, and they are committed together
// with the response that it returns, once, or not at all. It may run again after a [Retry], or in another process after a
// crash; nothing of an earlier run remains.
//
// It answers with a response, with a [*RejectedError] (a stored 4xx), or with any other error: nothing is committed or
// stored and the client's retry executes again.
type Handler func(ctx context.Context, tx *Tx) (Response, error)

// Tx collects what an execution commits. It belongs to one run of one handler and is not safe for concurrent use.
type Tx struct {
	operationID OperationID
	recordKey   storage.RecordKey
	tenant      string
	now         time.Time
	attempt     int
	retention   time.Duration
	expiry      storage.Expiry
	detached    bool
	sweepGrace  time.Duration
	trace       trace.Context
	writes      []Write
	messages    []storage.Message
}

// OperationID is the id of this incarnation; a good source for the ids of what is created.
func (tx *Tx) OperationID() OperationID { return tx.operationID }

// Tenant is the tenant that the request was authenticated as.
func (tx *Tx) Tenant() string { return tx.tenant }

// Now is the time of this run, UTC in milliseconds: the one to use for created_at and the like.
func (tx *Tx) Now() time.Time { return tx.now }

// Attempt counts the runs of the handler within this execution, from 1.
func (tx *Tx) Attempt() int { return tx.attempt }

// Write adds business writes to the transaction.
func (tx *Tx) Write(writes ...Write) { tx.writes = append(tx.writes, writes...) }

// Send adds a message to the transaction. It asks for one effect, which the topic's worker makes. Send returns the
// message's id, which is also the downstream key. A deferred operation sends exactly one message, the first of its chain.
// A payload has at most [storage.PayloadBytesMax] (240 KiB), so that there is room beside it for what the provider answers: with a
// larger one the operation fails, and nothing is committed.
func (tx *Tx) Send(topic string, payload []byte) MessageID {
	n := len(tx.messages) + 1
	id := tx.operationID.Message(n)
	tx.messages = append(tx.messages, storage.Message{
		ID: id, Index: n, OperationID: tx.operationID, RecordKey: tx.recordKey, Tenant: tx.tenant,
		Topic: topic, Payload: payload, State: storage.MessagePending,
		CreatedAt: tx.now, NextAttemptAt: tx.now, SweepAt: tx.now.Add(tx.sweepGrace),
		Retention: tx.retention, Expiry: tx.expiry, Detached: tx.detached, Trace: tx.trace, SchemaVersion: storage.SchemaVersion,
	})
	return id
}

// writesMax leaves room in DynamoDB's 100 items for the record and the chunks of a large response.
const writesMax = 80

func (tx *Tx) validate(kind Kind, resp Response) error {
	if n := len(tx.writes) + len(tx.messages); n > writesMax {
		return fmt.Errorf("idem: the transaction has %d writes and messages, at most %d fit", n, writesMax)
	}
	for i, w := range tx.writes {
		if w == nil {
			return fmt.Errorf("idem: write %d is nil", i)
		}
		if status, ok := w.IfConditionFails().Rejects(); ok && (status < 400 || status > 499) {
			return fmt.Errorf("idem: write %d rejects with status %d, which is not a 4xx", i, status)
		}
	}
	for _, m := range tx.messages {
		if n := len(m.Payload); n > storage.PayloadBytesMax {
			return fmt.Errorf("idem: the payload of message %d has %d bytes, at most %d leave room for the provider's answer", m.Index, n, storage.PayloadBytesMax)
		}
	}
	if kind == KindWrapped && len(tx.writes)+len(tx.messages) > 0 {
		return errors.New("idem: a wrapped operation has no transaction: its handler writes for itself")
	}
	if kind == KindDeferred && len(tx.messages) > 1 {
		return fmt.Errorf("idem: a deferred operation sent %d messages: it may send one, and Settle may send the next", len(tx.messages))
	}
	if resp.Status < 200 || resp.Status > 599 {
		return fmt.Errorf("idem: a handler answered with status %d", resp.Status)
	}
	return nil
}
