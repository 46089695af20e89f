package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/idem-go/idem-aws/idem/storage"
)

// recordColumns are those of a record as the contract has it.
var recordColumns = []column[storage.Record]{
	{"key", func(r *storage.Record) any { return wordOf(&r.Key) }},
	{"state", func(r *storage.Record) any { return wordOf(&r.State) }},
	{"operation_id", func(r *storage.Record) any { return wordOf(&r.OperationID) }},
	{"epoch", func(r *storage.Record) any { return &r.Epoch }},
	{"owner", func(r *storage.Record) any { return wordOf(&r.Owner) }},
	{"revision", func(r *storage.Record) any { return wordOf(&r.Revision) }},
	{"lease_until", func(r *storage.Record) any { return instant{&r.LeaseUntil} }},
	{"look_at", func(r *storage.Record) any { return instant{&r.LookAt} }},
	{"tenant", func(r *storage.Record) any { return &r.Tenant }},
	{"operation", func(r *storage.Record) any { return &r.Operation }},
	{"kind", func(r *storage.Record) any { return wordOf(&r.Kind) }},
	{"principal", func(r *storage.Record) any { return &r.Principal }},
	{"safe_to_run_again", func(r *storage.Record) any { return &r.SafeToRunAgain }},
	{"observed", func(r *storage.Record) any { return &r.Observed }},
	{"fingerprint_version", func(r *storage.Record) any { return &r.Fingerprint.Version }},
	{"fingerprint_secret", func(r *storage.Record) any { return &r.Fingerprint.KeyID }},
	{"fingerprint_selection", func(r *storage.Record) any { return &r.Fingerprint.Selection }},
	{"fingerprint", func(r *storage.Record) any { return fixed(r.Fingerprint.Sum[:]) }},
	{"fingerprint_parts", func(r *storage.Record) any { return fixed(r.Fingerprint.Parts[:]) }},
	{"response_status", func(r *storage.Record) any { return &r.Response.Status }},
	{"response_header", func(r *storage.Record) any { return header{&r.Response.Header} }},
	{"response_body", func(r *storage.Record) any { return blob{&r.Response.Body} }},
	{"sealed", func(r *storage.Record) any { return &r.Sealed }},
	{"record_only", func(r *storage.Record) any { return &r.RecordOnly }},
	{"created_at", func(r *storage.Record) any { return instant{&r.CreatedAt} }},
	{"done_at", func(r *storage.Record) any { return instant{&r.DoneAt} }},
	{"expires_at", func(r *storage.Record) any { return instant{&r.ExpiresAt} }},
	{"free_at", func(r *storage.Record) any { return instant{&r.FreeAt} }},
	{"retention_ms", func(r *storage.Record) any { return span{&r.Retention} }},
	{"keep_for_ms", func(r *storage.Record) any { return span{&r.Expiry.KeepFor} }},
	{"gone", func(r *storage.Record) any { return &r.Expiry.Gone }},
	{"resource_backed", func(r *storage.Record) any { return &r.Expiry.ResourceBacked }},
	{"attempts", func(r *storage.Record) any { return &r.Attempts }},
	{"last_error", func(r *storage.Record) any { return note{&r.LastError} }},
	{"trace", func(r *storage.Record) any { return position{&r.Trace} }},
	{"schema_version", func(r *storage.Record) any { return &r.SchemaVersion }},
}

var (
	selectRecord = "select " + names(recordColumns) + " from idem_records where key = $1"
	insertRecord = insertion("idem_records", names(recordColumns), "key")
	updateRecord = replacement("idem_records", names(recordColumns), "key")
)

// derivedColumns follow those of the row: what the indexes are about.
const derivedColumns = ", queue, queue_at, remove_after"

// insertion inserts a row where there is none with its key.
func insertion(table, columns, key string) string {
	columns += derivedColumns
	return fmt.Sprintf("insert into %s (%s) values (%s) on conflict (%s) do nothing", table, columns, parameters(columns), key)
}

// replacement gives the row with the key, which is the first column, these values. Columns of a later release stay.
func replacement(table, columns, key string) string {
	columns += derivedColumns
	return fmt.Sprintf("update %s set (%s) = row(%s) where %s = $1", table, columns, parameters(columns), key)
}

// parameters are as many as there are columns.
func parameters(columns string) string {
	all := make([]string, strings.Count(columns, ",")+1)
	for i := range all {
		all[i] = fmt.Sprintf("$%d", i+1)
	}
	return strings.Join(all, ", ")
}

// recordValues are what the columns of a record hold.
func recordValues(r storage.Record) ([]any, error) {
	if r.Key == "" || r.OperationID == "" {
		return nil, errors.New("pgstore: a record without key or operation id")
	}
	r.Chunks, r.ChunksDigest = 0, "" // a body lies whole in its row
	row, err := values(recordColumns, &r)
	if err != nil {
		return nil, fmt.Errorf("pgstore: record %s: %w", r.Key, err)
	}
	removeAfter, may := r.RemoveAfter()
	queue, at, queued := r.Queue()
	return slices.Concat(row, derived(queue, at, queued, removeAfter, may)), nil
}

// derived are the values of derivedColumns.
func derived(queue string, at time.Time, queued bool, removeAfter time.Time, may bool) []any {
	all := []any{nil, nil, nil}
	if queued {
		all[0], all[1] = queue, atOnce(at).UTC().Truncate(time.Millisecond)
	}
	if may {
		all[2] = removeAfter.UTC()
	}
	return all
}

// atOnce is the place in a queue of what names no time: before everything else.
func atOnce(at time.Time) time.Time {
	if at.IsZero() {
		return time.UnixMilli(0)
	}
	return at
}

// readRecord reads the record, nil where there is none. The lock is "" or " for update".
func readRecord(ctx context.Context, on querier, key storage.RecordKey, lock string) (*storage.Record, error) {
	var r storage.Record
	err := on.QueryRow(ctx, selectRecord+lock, string(key)).Scan(targets(recordColumns, &r)...)
	var malformed pgx.ScanArgError
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case errors.As(err, &malformed):
		return nil, &storage.MalformedRecordError{Key: key, Cause: err}
	case err != nil:
		return nil, err
	}
	if r.LookAt.Equal(r.LeaseUntil) {
		r.LookAt = time.Time{}
	}
	return &r, nil
}
