package dynamo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/idem-go/idem-aws/idem"
)

// Codes of cancellation reasons. The code of an item that had nothing against it is the literal "None".
const (
	reasonNone            = "None"
	reasonConditionFailed = "ConditionalCheckFailed"
	reasonConflict        = "TransactionConflict"
	reasonThrottling      = "ThrottlingError"
	reasonThroughput      = "ProvisionedThroughputExceeded"
)

// cancelled reads the reasons of a cancelled transaction position by position (design.md "Commit", table of outcomes).
//
// The store's own items come first. A failed condition of one of them decides, whatever else failed: where the record is
// not mine, a business condition was judged in vain (peers.md H11). If one of them was in contention its condition was
// not judged at all, so the whole is contention. Only then do the business writes count.
func (t *transaction) cancelled(s *Store, err *types.TransactionCanceledException) error {
	reasons := err.CancellationReasons
	if len(reasons) != len(t.items()) {
		return fmt.Errorf("a transaction of %d items was cancelled for %d reasons: %w", len(t.items()), len(reasons), err)
	}
	own, writes := reasons[:len(t.own)], reasons[len(t.own):]
	for i, reason := range own {
		if text(reason.Code) == reasonConditionFailed {
			return t.own[i].lost(s, reason.Item)
		}
	}
	if contended := contention(own); contended != nil {
		return fmt.Errorf("%w: %w", contended, err)
	}
	var failed []int
	for i, reason := range writes {
		if text(reason.Code) == reasonConditionFailed {
			failed = append(failed, i)
		}
	}
	if len(failed) > 0 {
		return &idem.WriteFailedError{Indexes: failed}
	}
	if contended := contention(writes); contended != nil {
		return fmt.Errorf("%w: %w", contended, err)
	}
	return fmt.Errorf("the transaction was cancelled for %v: %w", explain(reasons), err)
}

// contention returns idem.ErrThrottled or idem.ErrContention where one of the reasons is, else nil.
func contention(reasons []types.CancellationReason) error {
	var found error
	for _, reason := range reasons {
		switch text(reason.Code) {
		case reasonThrottling, reasonThroughput:
			return idem.ErrThrottled
		case reasonConflict:
			found = idem.ErrContention
		}
	}
	return found
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
func (o ownItem) lost(s *Store, stored item) error {
	switch o.is {
	case isRecord:
		return s.recordConflict(stored)
	case isMessage:
		return s.messageConflict(stored)
	}
	return errors.New("a chunk has no condition, and it failed")
}

// recordConflict carries what is stored, nil where there is nothing; what can't be read is an error of its own.
func (s *Store) recordConflict(stored item) error {
	if len(stored) == 0 {
		return &idem.RecordConflictError{}
	}
	existing, err := s.decodeRecord(stored)
	if err != nil {
		return err
	}
	return &idem.RecordConflictError{Existing: existing}
}

func (s *Store) messageConflict(stored item) error {
	if len(stored) == 0 {
		return &idem.MessageConflictError{}
	}
	existing, err := s.decodeMessage(stored)
	if err != nil {
		return err
	}
	return &idem.MessageConflictError{Existing: existing}
}
