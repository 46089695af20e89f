// Package environment names the environment variables of an application's Lambda functions. Package lambdaapp reads
// them, and the CDK construct, the SAM template and the Terraform module of this project write them.
//
// Use it to deploy with another tool, so that a name that changes fails at compile time. Applications that deploy by
// one of those three, and read their configuration by package lambdaapp, do not need it.
package environment

// Variables that every function has.
const (
	// Function says which function of the application the process is: its role, such as "api" or "worker".
	Function = "IDEM_FUNCTION"
	// IdempotencyTable and OutboxTable are names of tables as package schema has them.
	IdempotencyTable = "IDEMPOTENCY_TABLE"
	OutboxTable      = "OUTBOX_TABLE"
	// OutboxShards is the number of partitions that each queue of the tables' indexes is spread over, 1 to 256.
	OutboxShards = "OUTBOX_SHARDS"
	// WakeUpQueueURL and DeadLetterQueueURL are addresses of SQS queues.
	WakeUpQueueURL     = "WAKE_UP_QUEUE_URL"
	DeadLetterQueueURL = "DEAD_LETTER_QUEUE_URL"
	// FunctionTimeout is the function's time-out in Go's notation for durations: "28s".
	FunctionTimeout = "FUNCTION_TIMEOUT"
	// MetricsNamespace and MetricsService are where the metrics of log lines go in CloudWatch: a namespace, and the value of
	// their one dimension.
	MetricsNamespace = "METRICS_NAMESPACE"
	MetricsService   = "METRICS_SERVICE"
)

// Variables that only the API function and an operator's command have.
const (
	// ScopeSecretID is the name or the whole ARN of the secret in AWS Secrets Manager that the names of records are keyed with
	// (idem.Config.ScopeSecret), where the application has one. Package lambdaapp does not read it: the application reads the secret
	// by secret.Scope of package lambdaapp/secret, and gives it to the engine.
	ScopeSecretID = "SCOPE_SECRET_ID"
)

// Variables that an operator's command has beside those of the functions (package awsctl).
const (
	// AuditTable is the name of the log of what operators change.
	AuditTable = "AUDIT_TABLE"
	// KeysTable is the table of data keys, and KMSKeyID what wraps them, where the application encrypts.
	KeysTable = "KEYS_TABLE"
	KMSKeyID  = "KMS_KEY_ID"
)

// Roles are the functions of an application: the values of Function.
const (
	API       = "api"
	Worker    = "worker"
	Sweep     = "sweep"
	Reconcile = "reconcile"
	Relay     = "relay"
)

// Operator is the value of Function in an operator's command, which is no function: it needs neither FunctionTimeout nor metrics.
const Operator = "operator"

// BatchRecordsMax is how many records a mapping brings the worker or the relay at most.
const BatchRecordsMax = 10

// BatchWakeUpsMax is how many wake-ups a mapping brings the worker at most, where it is asked for more than BatchRecordsMax.
const BatchWakeUpsMax = 40
