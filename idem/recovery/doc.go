// Package recovery brings wrapped operations to an end whose holders are gone: the sweep parks dead leases as unknown, and
// the reconciler decides what is unknown by asking whoever knows. Nothing here executes an operation.
//
// Only wrapped records need it. Any other dead lease, and that of a wrapped operation that is safe to run again, is taken
// over by the next request with its key, and harms nobody meanwhile (docs/adr/0009); what is in an outbox is package
// outbox's.
//
// What stays undecided stands in the records' queue of unknown outcomes, and is a person's: idem.Engine.Resolve and
// idem.Engine.Free.
package recovery
