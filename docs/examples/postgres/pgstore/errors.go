package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/idem-go/idem-aws/idem/storage"
)

// A write ends in one of three ways, and its error says which.
//
//   - COMMIT was not sent: nothing happened, whatever went wrong. A server that loses its client rolls back.
//   - COMMIT was answered: the answer says what happened.
//   - COMMIT was sent and not answered: the outcome is unknown.

// Codes of errors after which nothing happened and another try may help (PostgreSQL's appendix A).
var (
	conflicts = []string{
		"40001", // serialization_failure
		"40P01", // deadlock_detected
		"55P03", // lock_not_available: lock_timeout
		"25P03", // idle_in_transaction_session_timeout
	}
	throttles = []string{
		"53000", "53100", "53200", "53300", "53400", // insufficient_resources and its kinds
		"57014",                   // query_canceled: statement_timeout
		"57P01", "57P02", "57P03", // the server shuts down, crashed, or starts
	}
)

// uncommitted gives an error before COMMIT its meaning. Lost says that the connection is gone.
func uncommitted(err error, lost bool) error {
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && slices.Contains(conflicts, refused.Code):
		return fmt.Errorf("%w: %w", &storage.ContentionError{}, err)
	case errors.As(err, &refused) && slices.Contains(throttles, refused.Code):
		return fmt.Errorf("%w: %w", &storage.ContentionError{Throttled: true}, err)
	case errors.As(err, &refused):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &storage.NotAskedError{Cause: err}
	case lost:
		return fmt.Errorf("%w: the connection was lost before the commit: %w", &storage.ContentionError{Throttled: true}, err)
	}
	return err
}

// committed gives an error of COMMIT its meaning. Whether it left is not asked of pgconn.SafeToRetry: pgx 5.12 says so of a
// query whose connection was cut while it waited for the answer.
func committed(err error) error {
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return err
	case errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR" && !slices.Contains(undecided, refused.Code):
		return uncommitted(err, false) // it was refused, by a deferred constraint or a conflict
	}
	return &storage.OutcomeUnknownError{Cause: err}
}

// undecided are refusals that say that the server does not know either.
var undecided = []string{
	"08007", // transaction_resolution_unknown
	"40003", // statement_completion_unknown
}

// wrapped says what was being done. A nil error stays nil.
func wrapped(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pgstore: %s: %w", doing, err)
}

// done is the error of a statement whose effect nobody counts.
func done(_ pgconn.CommandTag, err error) error { return err }

// inserted returns errRaced where an insert found that the row is there.
func inserted(tag pgconn.CommandTag, err error) error {
	if err == nil && tag.RowsAffected() == 0 {
		return errRaced
	}
	return err
}

// writesFailed is nil where none failed.
func writesFailed(indexes []int) error {
	if len(indexes) == 0 {
		return nil
	}
	slices.Sort(indexes)
	return &storage.WriteFailedError{Indexes: indexes}
}
