package header

// The stable codes of the problems that the layer itself answers with.
const (
	CodeKeyMissing       = "idempotency_key_missing"                       // 400
	CodeKeyInvalid       = "idempotency_key_invalid"                       // 400
	CodeKeyReused        = "idempotency_key_reused_with_different_payload" // 422
	CodeError            = "idempotency_error"                             // 400: Stripe's mismatch
	CodeInProgress       = "idempotency_key_in_progress"                   // 409
	CodeInUse            = "idempotency_key_in_use"                        // 409: Stripe's in flight
	CodeOutcomeUnknown   = "idempotency_outcome_unknown"                   // 409
	CodeKeyExpired       = "idempotency_key_expired"                       // 410, 412
	CodeQuotaExceeded    = "idempotency_quota_exceeded"                    // 429
	CodeResponseErased   = "idempotency_response_erased"                   // 410: the tenant's encryption key was erased
	CodeRefusedBefore    = "idempotency_refused_before"                    // 503: the key may be older than a loss of records
	CodeNoTime           = "idempotency_no_time"                           // 503: the caller's deadline leaves no time
	CodeStoreUnavailable = "idempotency_store_unavailable"                 // 503
	CodeResponseTooLarge = "idempotency_response_too_large"                // 500: nothing was committed
	CodeResponseNotKept  = "idempotency_response_not_kept"                 // 500: a wrapped operation was executed
)
