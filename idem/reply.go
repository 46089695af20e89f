package idem

import (
	"context"
	"errors"
	"slices"

	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// replied is the one place that says what a store's error means to package protocol. writes are those that rode along;
// rejection is the answer that the first failed one declared.
func (d *driver) replied(err error, writes []Write) (reply protocol.Reply, rejection protocol.Answer) {
	if err == nil {
		return protocol.Reply{Code: protocol.OK}, 0
	}
	return d.refusal(err, writes)
}

func (d *driver) refusal(err error, writes []Write) (reply protocol.Reply, rejection protocol.Answer) {
	var record *storage.RecordConflictError
	var message *storage.MessageConflictError
	var failed *storage.WriteFailedError
	var contention *storage.ContentionError
	var unknown *storage.OutcomeUnknownError
	var notAsked *storage.NotAskedError
	switch {
	case errors.As(err, &record):
		reply.Code, reply.Conds = protocol.Refused, protocol.CondRecord
		reply.Rec = d.see(record.Existing)
		if d.message = record.Message; d.message != nil {
			reply.Msg = messageHeaderOf(d.message)
		}
	case errors.As(err, &message):
		reply.Code, reply.Conds = protocol.Refused, protocol.CondMessage
	case errors.As(err, &failed):
		return d.failedWrites(failed, writes)
	case errors.As(err, &contention) && declared(writes, contention.Unjudged, Failure.Retries):
		reply.Code, reply.Conds = protocol.Refused, protocol.Unjudged|protocol.UnjudgedRetry
	case errors.Is(err, storage.ErrThrottled):
		reply.Code = protocol.Throttled
	case errors.Is(err, storage.ErrContention):
		reply.Code = protocol.Contention
	case errors.As(err, &notAsked):
		reply.Code = protocol.NotSent
	case errors.As(err, &unknown), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled): // of a store that does not say which
		reply.Code = protocol.Lost
	default:
		reply.Code = protocol.Broken
	}
	return reply, 0
}

// failedWrites says what the failed business conditions declared, and whether any was not judged.
func (d *driver) failedWrites(failed *storage.WriteFailedError, writes []Write) (reply protocol.Reply, rejection protocol.Answer) {
	reply.Code = protocol.Refused
	for _, i := range failed.Indexes {
		switch failure := writes[i].IfConditionFails(); {
		case failure.Retries():
			reply.Conds |= protocol.CondRetry
		default:
			if _, rejects := failure.Rejects(); !rejects {
				reply.Conds |= protocol.CondUndeclared
				continue
			}
			reply.Conds |= protocol.CondReject
			if rejection == 0 {
				rejection = d.answers.add(answer{response: failure.Response()})
			}
		}
	}
	if len(failed.Unjudged) > 0 || failed.OwnUnjudged {
		reply.Conds |= protocol.Unjudged
	}
	if declared(writes, failed.Unjudged, Failure.Retries) {
		reply.Conds |= protocol.UnjudgedRetry
	}
	return reply, rejection
}

// declared says whether a write at one of the positions declared this.
func declared(writes []Write, positions []int, what func(Failure) bool) bool {
	return slices.ContainsFunc(positions, func(i int) bool { return i < len(writes) && what(writes[i].IfConditionFails()) })
}
