package dynamo

import (
	"fmt"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// What this release knows of a row. Anything else was written by a later one, which runs beside this one for as long as a
// deployment takes: a release that puts a whole row carries it through.
var (
	knownOfRecord = known(
		schema.RecordKey, schema.State, schema.OperationID, schema.Epoch, schema.Owner, schema.Revision, schema.LeaseUntil,
		schema.Tenant, schema.OperationName, schema.Kind, schema.Principal, schema.SafeToRunAgain, schema.Observed, schema.FingerprintVersion,
		schema.FingerprintKeyID, schema.Fingerprint, schema.Selection, schema.FingerprintParts, schema.CreatedAt, schema.DoneAt, schema.FreeAt, schema.AnswersUntil,
		schema.Retention, schema.KeepFor, schema.Gone, schema.ResourceBacked, schema.RecordOnly, schema.Sealed, schema.Attempts,
		schema.LastError, schema.SchemaVersion, schema.Queue, schema.QueueAt, schema.TTL, schema.ResponseStatus,
		schema.ResponseHeaders, schema.ResponseBody, schema.ResponseEncoding, schema.ResponseChunks, schema.ChunkDigest, schema.Trace,
	)
	knownOfMessage = known(
		schema.MessageID, schema.MessageIndex, schema.OperationID, schema.MessageRecord, schema.Tenant, schema.Topic,
		schema.Payload, schema.Sealed, schema.State, schema.Epoch, schema.Owner, schema.Revision, schema.LeaseUntil,
		schema.CreatedAt, schema.FirstClaimedAt, schema.NextAttemptAt, schema.OpenSince, schema.DoneAt, schema.RedrivenAt,
		schema.Attempts, schema.Retention, schema.KeepFor, schema.Gone, schema.ResourceBacked, schema.Detached,
		schema.ProviderReference, schema.LastOutcome, schema.SettledBy, schema.KeptDelivered, schema.KeptDeclined, schema.Undoes, schema.Refused,
		schema.Unfailed, schema.Died, schema.ClearedAt, schema.SchemaVersion, schema.Queue, schema.QueueAt,
		schema.TTL, schema.Trace,
	)
)

func known(attributes ...string) map[string]bool {
	set := make(map[string]bool, len(attributes))
	for _, attribute := range attributes {
		set[attribute] = true
	}
	return set
}

// unknownAttributes is the form that Unknown has. Nobody changes one that was made.
type unknownAttributes item

// unknown returns the attributes that are not known, nil where there are none.
func (r *reader) unknown(known map[string]bool) any {
	var unknown unknownAttributes
	for attribute, value := range r.item {
		if known[attribute] {
			continue
		}
		if unknown == nil {
			unknown = unknownAttributes{}
		}
		unknown[attribute] = value
	}
	if unknown == nil {
		return nil
	}
	return unknown
}

// carry writes what was read and is not known.
func (w *writer) carry(unknown any) {
	attributes, ok := unknown.(unknownAttributes)
	if !ok && unknown != nil && w.err == nil {
		w.err = fmt.Errorf("unknown attributes in a %T, which this store did not read", unknown)
	}
	for attribute, value := range attributes {
		w.item[attribute] = value
	}
}
