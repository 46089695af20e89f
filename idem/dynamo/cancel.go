package dynamo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Codes of cancellation reasons. The code of an item that had nothing against it is the literal "None".
const (
	reasonNone            = "None"
	reasonConditionFailed = "ConditionalCheckFailed"
	reasonConflict        = "TransactionConflict"
	reasonThrottling      = "ThrottlingError"
	reasonThroughput      = "ProvisionedThroughputExceeded"
)

// cancelled reads the reasons of a cancelled transaction position by position (design.md "What a lost reply means").
//
// The store's own items come first. A failed condition of one of them decides, whatever else failed: where the record is
// not mine, the judgement of a business condition says nothing. Then the business writes count, together with what was
// not judged at all: the caller knows what they declare.
func (t *transaction) cancelled(s *Store, err *types.TransactionCanceledException) error {
	reasons := err.CancellationReasons
	if len(reasons) != len(t.items) {
		return fmt.Errorf("a transaction of %d items was cancelled for %d reasons: %w", len(t.items), len(reasons), err)
	}
	own, writes := reasons[:len(t.own)], reasons[len(t.own):]
	for i, reason := range own {
		if text(reason.Code) == reasonConditionFailed {
			return t.beside(s, own, t.own[i].lost(s, reason.Item))
		}
	}
	var failed, unjudged []int
	for i, reason := range writes {
		switch text(reason.Code) {
		case reasonNone:
		case reasonConditionFailed:
			failed = append(failed, i)
		default:
			unjudged = append(unjudged, i)
		}
	}
	if len(failed) > 0 {
		return &storage.WriteFailedError{Indexes: failed, Unjudged: unjudged, OwnUnjudged: slices.ContainsFunc(own, notJudged)}
	}
	if contended := contention(own, writes); contended != nil {
		return fmt.Errorf("%w: %w", contended, err)
	}
	return fmt.Errorf("the transaction was cancelled for %v: %w", explain(reasons), err)
}

// beside completes a record's conflict with the message that was in the way of the same transaction, and one earlier message that is
// gone with the others.
func (t *transaction) beside(s *Store, own []types.CancellationReason, lost error) error {
	if gone, ok := errors.AsType[*earlierGoneError](lost); ok {
		gone.items = t.earlierGone(own)
		return gone
	}
	conflict, ok := errors.AsType[*storage.RecordConflictError](lost)
	if !ok {
		return lost
	}
	for i, reason := range own {
		if t.own[i] != isMessage || text(reason.Code) != reasonConditionFailed || len(reason.Item) == 0 {
			continue
		}
		if message, err := s.decodeMessage(reason.Item); err == nil { // one that can't be read changes nothing about the record
			conflict.Message = message
		}
		break
	}
	return conflict
}

func notJudged(reason types.CancellationReason) bool { return text(reason.Code) != reasonNone }

// contention returns what was in the way of some items where that was another transaction or a throttle, else nil. What was
// in the way of the store's own items says more than what was in the way of the writes.
func contention(own, writes []types.CancellationReason) error {
	found, throttled := inTheWay(own)
	among, writesThrottled := inTheWay(writes)
	if len(found) == 0 {
		throttled = writesThrottled
	}
	if len(found)+len(among) == 0 {
		return nil
	}
	return &storage.ContentionError{Unjudged: among, Throttled: throttled}
}

// inTheWay lists the items that another transaction or a throttle was in the way of, and says whether a throttle was.
func inTheWay(reasons []types.CancellationReason) (positions []int, throttled bool) {
	for i, reason := range reasons {
		switch text(reason.Code) {
		case reasonThrottling, reasonThroughput:
			throttled = true
			positions = append(positions, i)
		case reasonConflict:
			positions = append(positions, i)
		}
	}
	return positions, throttled
}

// explain names the reasons, each with its position. DynamoDB's messages speak of attributes and types, not of values.
func explain(reasons []types.CancellationReason) []string {
	var explained []string
	for i, reason := range reasons {
		if code := text(reason.Code); code != reasonNone {
			explained = append(explained, fmt.Sprintf("item %d: %s: %s", i, code, text(reason.Message)))
		}
	}
	return slices.Clip(explained)
}

// lost makes the error of an own item whose condition failed.
func (k kind) lost(s *Store, stored item) error {
	switch k {
	case isRecord:
		return s.recordConflict(stored)
	case isMessage:
		return s.messageConflict(stored)
	case isEarlier:
		return &earlierGoneError{}
	case isChunk: // below
	}
	return errors.New("a chunk has no condition, and it failed")
}

// recordConflict carries what is stored, nil where there is nothing; what can't be read is an error of its own.
func (s *Store) recordConflict(stored item) error {
	if len(stored) == 0 {
		return &storage.RecordConflictError{}
	}
	existing, err := s.decodeRecord(stored)
	if err != nil {
		return err
	}
	return &storage.RecordConflictError{Existing: existing}
}

func (s *Store) messageConflict(stored item) error {
	if len(stored) == 0 {
		return &storage.MessageConflictError{}
	}
	existing, err := s.decodeMessage(stored)
	if err != nil {
		return err
	}
	return &storage.MessageConflictError{Existing: existing}
}
