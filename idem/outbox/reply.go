package outbox

import (
	"errors"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/internal/translation"
	"github.com/idem-go/idem-aws/idem/protocol"
	"github.com/idem-go/idem-aws/idem/storage"
)

// replyOf is what a store's error, or nil, means to a machine. message is the one that the write is about: of another, the
// next of its chain, the row is no part of the reply. The second value is the row where the error tells one.
func replyOf(err error, message idem.MessageID) (protocol.Reply, *storage.Message) {
	var (
		onMessage  *storage.MessageConflictError
		onRecord   *storage.RecordConflictError
		onWrite    *storage.WriteFailedError
		notAsked   *storage.NotAskedError
		unknown    *storage.OutcomeUnknownError
		unprepared *unpreparedError
	)
	switch {
	case err == nil:
		return protocol.Reply{Code: protocol.OK}, nil
	case errors.As(err, &onMessage) && onMessage.Existing != nil && onMessage.Existing.ID != message:
		return refused(protocol.CondNextMessage), nil
	case errors.As(err, &onMessage):
		r := refused(protocol.CondMessage)
		r.Msg = translation.HeaderOf(onMessage.Existing)
		return r, onMessage.Existing
	case errors.As(err, &onRecord):
		return refused(protocol.CondRecord), nil
	case errors.As(err, &onWrite):
		conds := protocol.CondUndeclared // a settlement can't reject, and nothing runs again
		if len(onWrite.Unjudged) > 0 || onWrite.OwnUnjudged {
			conds |= protocol.Unjudged
		}
		return refused(conds), nil
	case errors.Is(err, storage.ErrThrottled):
		return protocol.Reply{Code: protocol.Throttled}, nil
	case errors.Is(err, storage.ErrContention):
		return protocol.Reply{Code: protocol.Contention}, nil
	case errors.As(err, &unprepared): // it can't be built, now or later
		return refused(protocol.CondUndeclared), nil
	case errors.As(err, &notAsked):
		return protocol.Reply{Code: protocol.NotSent}, nil
	case errors.As(err, &unknown):
		return protocol.Reply{Code: protocol.Lost}, nil
	}
	return protocol.Reply{Code: protocol.Broken}, nil
}

func refused(conds protocol.Conds) protocol.Reply {
	return protocol.Reply{Code: protocol.Refused, Conds: conds}
}
