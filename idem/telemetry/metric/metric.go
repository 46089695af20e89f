// Package metric names the library's metrics; nothing else. Package telemetry makes them, alarms watch them
// (docs/semantics.md "Metrics").
package metric

// Namespace is the metrics' namespace where none is configured.
const Namespace = "idem"

// Service is the only dimension there is, and it is optional. Neither a tenant nor a key ever is one.
const Service = "service"

// What became of a request for an operation. Each counts requests.
const (
	// ReserveCreated: a new key, executed.
	ReserveCreated = "idempotency.reserve.created"
	// ReserveReplay: answered from the record.
	ReserveReplay = "idempotency.reserve.replay"
	// ReserveInProgress: another request held the key.
	ReserveInProgress = "idempotency.reserve.in_progress"
	// ReserveKeyMisuse: the key belongs to another request. A security signal.
	ReserveKeyMisuse = "idempotency.reserve.key_misuse"
	// ReserveFailedRetry: executed again, after an execution that provably did nothing or whose lease was over.
	ReserveFailedRetry = "idempotency.reserve.failed_retry"
	// ReserveUnknown: the key's outcome is not known; nothing was executed.
	ReserveUnknown = "idempotency.reserve.unknown"
	// StoreError: 503. The store could not be asked, or did not say in time what became of a write.
	StoreError = "idempotency.store.error"
	// QuotaRejected: 429, one of the tenant's limits.
	QuotaRejected = "idempotency.quota.rejected"
	// Unprotected: executed without a key, by policy.
	Unprotected = "idempotency.unprotected"
	// Observed: executed although enforcement would have answered otherwise, by a policy in observe mode.
	Observed = "idempotency.observed"
)

// ZombieKey counts holders that found their lease to be another's.
const ZombieKey = "idempotency.zombie_key"

// RecordUnreadable: a wrapped operation's record that a sweep or a reconciliation can't judge, because another release wrote it
// or it is damaged; it is left alone.
const RecordUnreadable = "idempotency.record_unreadable"

// What reconciliation did.
const (
	// ReconcileScheduled: an unknown outcome was taken up.
	ReconcileScheduled = "idempotency.reconcile.scheduled"
	// ReconcileResolved: it was decided.
	ReconcileResolved = "idempotency.reconcile.resolved"
	// ReconcileFailed: it could not be decided; a person must.
	ReconcileFailed = "idempotency.reconcile.failed"
)

// What an application's drift job found.
const (
	// DriftFound: something that differs between here and the provider; the line says of what kind.
	DriftFound = "drift.found"
	// DriftFailed: a run that could not compare all of its window.
	DriftFailed = "drift.failed"
)

// What became of a message. Each but Age counts messages.
const (
	// OutboxDelivered: the effect happened.
	OutboxDelivered = "outbox.delivered"
	// OutboxDeclined: the provider said no.
	OutboxDeclined = "outbox.declined"
	// OutboxRetried: offered again, after a back-off.
	OutboxRetried = "outbox.retried"
	// OutboxUnknown: parked, because the effect may have happened.
	OutboxUnknown = "outbox.unknown"
	// OutboxDead: given up, or its settlement failed; a person must look.
	OutboxDead = "outbox.dead"
	// OutboxAbandoned: nobody claimed an operation's first message in time, and it was cancelled.
	OutboxAbandoned = "outbox.abandoned"
	// OutboxUnknownTopic: looked at by a release that does not know its topic, or can't read it; it is left alone.
	OutboxUnknownTopic = "outbox.unknown_topic"
	// OutboxEvidenced: a definite answer could not be settled, and is kept to be settled later.
	OutboxEvidenced = "outbox.evidenced"
	// OutboxAge is the time from a message's creation to its delivered or declined, in milliseconds.
	OutboxAge = "outbox.age"
)
