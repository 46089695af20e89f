package dynamo

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// What a settlement writes; all other attributes stay as they are.
var (
	settledOfMessage = []string{
		schema.State, schema.Revision, schema.DoneAt, schema.ProviderReference, schema.SettledBy, schema.LastOutcome, schema.Queue, schema.QueueAt,
	}
	settledOfRecord = append(
		[]string{schema.State, schema.Revision, schema.DoneAt, schema.FreeAt, schema.AnswersUntil, schema.LastError, schema.TTL}, responseAttributes...,
	)
)

// PrepareSettle implements outbox.Store. As with Prepare the bytes are made here. The message's condition decides before
// the record's, the record's before that of the next message, and that before the earlier messages' and the business writes'.
func (s *Store) PrepareSettle(settlement storage.Settlement) (send func(context.Context) error, err error) {
	doing := "settle " + string(settlement.Message.ID)
	t, err := s.settlement(settlement)
	if err != nil {
		return nil, fmt.Errorf("dynamo: %s: %w", doing, err)
	}
	if len(settlement.Earlier) > 0 {
		return s.prepareEnding(doing, t, settlement.Token)
	}
	return s.prepare(doing, t, settlement.Token)
}

func (s *Store) settlement(settlement storage.Settlement) (*transaction, error) {
	t := &transaction{}
	if err := t.settleMessage(s, settlement); err != nil {
		return nil, err
	}
	var chunks []item
	if settlement.Record != nil {
		var err error
		if chunks, err = t.endRecord(s, *settlement.Record); err != nil {
			return nil, err
		}
	}
	if settlement.Check != nil {
		if err := t.checkRecord(s, *settlement.Check); err != nil {
			return nil, err
		}
	}
	if settlement.Next != nil {
		if err := t.putMessage(s, *settlement.Next); err != nil {
			return nil, fmt.Errorf("next message: %w", err)
		}
	}
	for _, id := range settlement.Earlier {
		t.removeMessage(s, id, settlement.Message.RemoveAt)
	}
	t.putChunks(s, chunks)
	return t, s.resolve(t, settlement.Writes)
}

// settleMessage changes the message that the settlement is about, or replaces it.
func (t *transaction) settleMessage(s *Store, settlement storage.Settlement) error {
	c, err := fencedMessage(settlement.Fence)
	if err != nil {
		return err
	}
	if settlement.Replace != nil {
		it, err := s.encodeMessage(*settlement.Replace)
		if err != nil {
			return err
		}
		t.put(isMessage, types.Put{
			TableName: &s.cfg.OutboxTable, Item: it, ConditionExpression: c.text,
			ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		})
		return nil
	}
	it, attributes, err := s.patch(settlement.Message)
	if err != nil {
		return err
	}
	update := c.assign(attributes, it)
	t.update(isMessage, types.Update{
		TableName: &s.cfg.OutboxTable, Key: item{messageKey: it[messageKey]}, UpdateExpression: &update,
		ConditionExpression: c.text, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return nil
}

// patch is what an end changes of a message: the attributes, and the item that has their values. What it has nothing of
// among evidence, ttl and flags it leaves alone.
func (s *Store) patch(end storage.MessageEnd) (it item, attributes []string, err error) {
	it, err = s.encodeMessage(storage.Message{
		ID: end.ID, State: end.State, Revision: end.Revision, DoneAt: end.DoneAt, Reference: end.Reference, LastOutcome: end.LastOutcome, SettledBy: end.SettledBy,
		KeptDelivered: end.KeptDelivered, KeptDeclined: end.KeptDeclined, SweepAt: end.SweepAt, RemoveAt: end.RemoveAt,
		Unfailed: end.Unfailed,
	})
	attributes = slices.Clone(settledOfMessage)
	for _, attribute := range []string{schema.KeptDelivered, schema.KeptDeclined, schema.TTL, schema.Unfailed} {
		if _, ok := it[attribute]; ok {
			attributes = append(attributes, attribute)
		}
	}
	return it, attributes, err
}

// checkRecord makes the transaction depend on a record that stays as it is.
func (t *transaction) checkRecord(s *Store, check storage.RecordCheck) error {
	c, err := checked(check)
	t.add(isRecord, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &s.cfg.IdempotencyTable, Key: item{recordKey: stringValue(string(check.Key))},
		ConditionExpression: c.text, ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}})
	return err
}

// endRecord makes the pending record of the same incarnation final, and returns the chunks of its response.
func (t *transaction) endRecord(s *Store, end storage.RecordEnd) ([]item, error) {
	if !end.State.Final() {
		return nil, fmt.Errorf("a settlement makes its record %s or %s, not %q", storage.StateCompleted, storage.StateFailed, end.State)
	}
	it, chunks, err := s.encodeRecord(storage.Record{
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
	w.operation(schema.OperationID, end.Key, end.OperationID)
	w.name(schema.State, string(storage.StatePending))
	condition := all(e.is(schema.OperationID, w.item), e.is(schema.State, w.item))
	update := e.assign(settledOfRecord, it)
	t.update(isRecord, types.Update{
		TableName: &s.cfg.IdempotencyTable, Key: item{recordKey: it[recordKey]}, UpdateExpression: &update,
		ConditionExpression: condition, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return chunks, nil
}
