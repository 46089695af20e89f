// Package metric names the metrics of idem. The library writes a log line with such a name as its message, package
// telemetry makes a CloudWatch metric of the line, and alarms watch the metric by the same name. docs/semantics.md
// says under "Metrics" what each one means.
//
// Use these constants to define alarms and dashboards, so that a name that changes fails at compile time. The package
// imports nothing, and it counts nothing by itself.
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
	// StoreRefused counts calls of any function, for any of its tables: DynamoDB refuses them as not allowed or not valid.
	StoreRefused = "idempotency.store.refused"
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
	// ReconcileFailed: an operator must decide it, or what a request met was only observed.
	ReconcileFailed = "idempotency.reconcile.failed"
)

// Alarms that are not about one message.
const (
	// RunMax: a handler has run for longer than its lease is renewed.
	RunMax = "idempotency.run_max"
	// SealNotAuthentic: ciphertext that was changed, or moved to another row.
	SealNotAuthentic = "seal.not_authentic"
	// TimeoutShort: an invocation began with less time than the function was declared to have; nothing was executed.
	TimeoutShort = "function.timeout_short"
	// WebhookContradicts: a signed webhook that contradicts itself, an earlier one, or what was asked for.
	WebhookContradicts = "webhook.contradicts"
	// WebhookFailed: a signed webhook that could not be taken: 503 where it can't be now, 400 where its body can't be read. The provider
	// sends it again.
	WebhookFailed = "webhook.failed"
)

// Who was refused before anything else was looked at. Anybody can cause them, so nothing rings: they are for a dashboard.
const (
	// AuthDenied: an API key that was missing, unknown, revoked or too old.
	AuthDenied = "auth.denied"
	// WebhookRefused: a webhook whose signature was missing, malformed, forged or too old.
	WebhookRefused = "webhook.refused"
)

// What an application's drift job found.
const (
	// DriftFound: something that differs between here and the provider; the line says of what kind.
	DriftFound = "drift.found"
	// DriftFailed: a run that could not compare all of its window.
	DriftFailed = "drift.failed"
	// DriftLate: an hour whose comparison is not done in time.
	DriftLate = "drift.late"
)

// Runs of what is scheduled that ended without an error. Alarms ring where they are missing.
const (
	// SweepRun: a run of the sweep.
	SweepRun = "sweep.run"
	// ReconcileRun: a run of the reconciler.
	ReconcileRun = "reconcile.run"
	// DriftRun: a run of the drift job, whatever it found.
	DriftRun = "drift.run"
)

// What became of a message. Each but Age, Unauthorized, Unsent and InlinePaused counts messages.
const (
	// OutboxDelivered: the effect happened.
	OutboxDelivered = "outbox.delivered"
	// OutboxDeclined: the provider said no.
	OutboxDeclined = "outbox.declined"
	// OutboxRetried: offered again, after a back-off.
	OutboxRetried = "outbox.retried"
	// OutboxUnauthorized counts calls that the provider refused because of the caller, such as one whose credential was revoked.
	OutboxUnauthorized = "outbox.unauthorized"
	// OutboxUnsent counts calls that never left, such as those to a provider that can't be reached.
	OutboxUnsent = "outbox.unsent"
	// OutboxUnknown: parked, because the effect may have happened.
	OutboxUnknown = "outbox.unknown"
	// OutboxDead: given up, or its settlement failed; an operator must decide.
	OutboxDead = "outbox.dead"
	// OutboxAbandoned: nobody claimed an operation's first message in time, and it was cancelled.
	OutboxAbandoned = "outbox.abandoned"
	// OutboxUnknownTopic: looked at by a release that does not know its topic, or can't read it; it is left alone.
	OutboxUnknownTopic = "outbox.unknown_topic"
	// OutboxEvidenced: a definite answer could not be settled, and is kept to be settled later.
	OutboxEvidenced = "outbox.evidenced"
	// OutboxSettleFailed: the effect is known, or known not to have happened, and its settlement failed. The message is dead,
	// or it is tried again, up to once an hour, where the store refuses the write: evidenced, or pending where it was given up.
	OutboxSettleFailed = "outbox.settle_failed"
	// OutboxDeadLetterLost: a message is dead, and its copy could not be queued for operators.
	OutboxDeadLetterLost = "outbox.dead_letter_lost"
	// OutboxMessageGone: there was a definite answer about a message, or an operation waits for one, and its row is not there.
	OutboxMessageGone = "outbox.message_gone"
	// OutboxEvidenceLate: an answer arrived after its operation had ended otherwise; it is kept.
	OutboxEvidenceLate = "outbox.evidence_late"
	// OutboxEvidenceDiffers: an answer contradicts the one that is settled or kept.
	OutboxEvidenceDiffers = "outbox.evidence_differs"
	// OutboxEvidenceWeak: a decline of which nobody knows which attempt it is about; it is kept.
	OutboxEvidenceWeak = "outbox.evidence_weak"
	// OutboxRedriven: an operator started a dead message again.
	OutboxRedriven = "outbox.redriven"
	// OutboxClosed: an operator closed a message of which nothing happened.
	OutboxClosed = "outbox.closed"
	// OutboxInlinePaused: a pause of inline delivery began, for one tenant and topic or for a topic, because a call was slow. It
	// counts pauses of each process, not messages.
	OutboxInlinePaused = "outbox.inline_paused"
	// OutboxAge is the time from a message's creation to its delivered or declined, in milliseconds.
	OutboxAge = "outbox.age"
)

// What waits, as a run of the sweep and the reconciler's probes see it.
const (
	// OutboxBacklog is no metric, but the line that carries OutboxDue, OutboxDueAge, OutboxUnknownNow and OutboxDeadNow, once
	// a run of the sweep.
	OutboxBacklog = "outbox.backlog"
	// OutboxDue are the messages and wrapped records that should have been delivered or parked by now. It stops at 100 of each
	// shard of each queue: with 8 shards at 800 messages. Then the line says `more`, and OutboxDueAge shows whether it grows.
	OutboxDue = "outbox.backlog.due"
	// OutboxUnknownNow are the messages and wrapped records that are unknown. It stops at 100 of each shard of each queue.
	OutboxUnknownNow = "outbox.backlog.unknown"
	// OutboxDeadNow are the messages that are dead. It stops at 100 of each shard.
	OutboxDeadNow = "outbox.backlog.dead"
	// OutboxDueAge is for how long the first of what is due has been due, in milliseconds, less
	// outbox.Config.SweepGrace.
	OutboxDueAge = "outbox.backlog.due_age"
	// OutboxUnknownAge is the time from the creation of what is unknown to each of its probes, in milliseconds: its maximum
	// over an hour, which is the longest pause between two probes, is the age of the oldest. What has no probe is not among
	// them: ReconcileFailed tells of it.
	OutboxUnknownAge = "outbox.backlog.unknown_age"
	// OutboxDeadAge is the time from a message's creation to its death and to each daily reminder, in milliseconds: its maximum
	// over a day is the age of the oldest.
	OutboxDeadAge = "outbox.backlog.dead_age"
)
