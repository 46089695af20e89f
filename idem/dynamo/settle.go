package dynamo

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// What a settlement writes; all other attributes stay as they are.
var (
	settledOfMessage = []string{
		schema.State, schema.Revision, schema.DoneAt, schema.Retention, schema.ProviderReference, schema.LastOutcome, schema.Queue,
		schema.QueueAt, schema.TTL,
	}
	settledOfRecord = append(
		[]string{schema.State, schema.Revision, schema.DoneAt, schema.FreeAt, schema.AnswersUntil, schema.LastError, schema.TTL}, responseAttributes...,
	)
)

// PrepareSettle implements outbox.Store. As with Prepare the bytes are made here. The message's condition decides before
// the record's, the record's before that of the next message, and that before the business writes'.
func (s *Store) PrepareSettle(settlement idem.Settlement) (send func(context.Context) error, err error) {
	doing := fmt.Sprintf("settle %s", settlement.Message.ID)
	t, err := s.settlement(settlement)
	if err != nil {
		return nil, fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	return s.prepare(doing, t, settlement.Token)
}

func (s *Store) settlement(settlement idem.Settlement) (*transaction, error) {
	t := &transaction{}
	if err := t.endMessage(s, settlement.Message, settlement.Fence); err != nil {
		return nil, err
	}
	var chunks []item
	if settlement.Record != nil {
		var err error
		if chunks, err = t.endRecord(s, *settlement.Record); err != nil {
			return nil, err
		}
	}
	if settlement.Next != nil {
		if err := t.putMessage(s, *settlement.Next); err != nil {
			return nil, fmt.Errorf("next message: %w", err)
		}
	}
	t.putChunks(s, chunks)
	var err error
	t.writes, err = s.resolve(settlement.Writes)
	return t, err
}

// endMessage updates a message that is not final, and with a fence only as it was seen.
func (t *transaction) endMessage(s *Store, end idem.MessageEnd, fence *idem.MessageFence) error {
	it, err := s.encodeMessage(idem.Message{
		ID: end.ID, State: end.State, Revision: end.Revision, DoneAt: end.DoneAt, Retention: end.Retention, Reference: end.Reference,
		LastOutcome: end.LastOutcome, Evidence: end.Evidence, SweepAt: end.SweepAt,
	})
	if err != nil {
		return err
	}
	attributes := settledOfMessage
	if len(end.Evidence) > 0 { // none removes none
		attributes = append(slices.Clip(attributes), schema.Evidence)
	}
	e := newExpression()
	conditions := []string{
		e.exists(schema.MessageID),
		"NOT " + e.in(schema.State, string(idem.MessageDelivered), string(idem.MessageDeclined), string(idem.MessageCancelled)),
	}
	if fence != nil {
		conditions = append(conditions, fencedMessage(e, *fence))
	}
	update := e.assign(attributes, it)
	t.update(isMessage, types.Update{
		TableName: &s.cfg.OutboxTable, Key: item{messageKey: it[messageKey]}, UpdateExpression: &update,
		ConditionExpression: all(conditions...), ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return nil
}

// endRecord makes the pending record of the same incarnation final, and returns the chunks of its response.
func (t *transaction) endRecord(s *Store, end idem.RecordEnd) ([]item, error) {
	if !end.State.Final() {
		return nil, fmt.Errorf("a settlement makes its record %s or %s, not %q", idem.StateCompleted, idem.StateFailed, end.State)
	}
	it, chunks, err := s.encodeRecord(idem.Record{
		Key: end.Key, OperationID: end.OperationID, State: end.State, Revision: end.Revision, Response: end.Response, Sealed: end.Sealed, DoneAt: end.DoneAt,
		ExpiresAt: end.ExpiresAt, FreeAt: end.FreeAt, Expiry: end.Expiry, LastError: end.LastError,
	})
	if err != nil {
		return nil, err
	}
	if !end.ExpiresAt.IsZero() { // told outright: the retention that tells it otherwise is the stored record's
		it[schema.AnswersUntil] = numberValue(end.ExpiresAt.UnixMilli())
	}
	e := newExpression()
	w := writer{item: item{}}
	w.name(schema.OperationID, string(end.OperationID))
	w.name(schema.State, string(idem.StatePending))
	condition := all(e.is(schema.OperationID, w.item), e.is(schema.State, w.item))
	update := e.assign(settledOfRecord, it)
	t.update(isRecord, types.Update{
		TableName: &s.cfg.IdempotencyTable, Key: item{recordKey: it[recordKey]}, UpdateExpression: &update,
		ConditionExpression: condition, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return chunks, nil
}
