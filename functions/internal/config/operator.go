package config

// Operator is the configuration of the operator's command, which ends messages as a worker does.
type Operator struct {
	Worker
	// AuditTable keeps what operators change.
	AuditTable string `env:"AUDIT_TABLE,notEmpty"`
}
