package breaker

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/idem/internal/timers"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/internal/clock"
)

// What a call says about the store, in gobreaker's form: nil is an answer.
var (
	errDown    = errors.New("breaker: the store did not answer")
	errNothing = errors.New("breaker: the call says nothing about the store")
)

// verdict judges what a call came to. patient says that it had time enough for its time-out to mean something, overslept that the process
// came back to it long after that.
func verdict(ctx context.Context, patient, overslept bool, err error) error {
	var notAsked *storage.NotAskedError
	switch {
	case err == nil:
		return nil
	case timers.Cancelled(ctx), errors.As(err, &notAsked):
		return errNothing
	case !noReply(err):
		return nil
	case ctx.Err() != nil && !patient, overslept:
		return errNothing
	}
	return errDown
}

// noReply says whether an error is one of the way to the store. Stores say so of writes; the errors of reads are the
// transport's own, told apart by what net and the AWS SDK make of them. Anything else is an answer, above all a row that
// can't be read: asking for it again and again must not refuse everybody.
func noReply(err error) bool {
	var unknown *storage.OutcomeUnknownError
	var network net.Error // context.DeadlineExceeded is one
	var connection interface{ ConnectionError() bool }
	var status interface{ HTTPStatusCode() int }
	switch {
	case errors.As(err, &unknown), errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, context.Canceled): // as a context says that was made of one whose time is over
		return true
	case errors.As(err, &connection) && connection.ConnectionError():
		return true
	}
	return errors.As(err, &status) && status.HTTPStatusCode() >= http.StatusInternalServerError
}

// patient says whether the context leaves a call time enough; deadlines are in the platform's time.
func (s *Store) patient(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) >= s.cfg.Patience
}

// overslept says that the call's time was over long ago: what it came to says more of a process that was frozen than of the store.
func (s *Store) overslept(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && clock.Over(deadline.Add(s.cfg.Patience), s.cfg.Now())
}
