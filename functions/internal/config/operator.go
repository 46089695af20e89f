package config

import "errors"

// Operator is the configuration of the operator's command, which ends messages as a worker does.
type Operator struct {
	Worker
	Scopes
	// AuditTable keeps what operators change. The sweep function starts without it, and then no alarm tells of a change by hand.
	AuditTable string `env:"AUDIT_TABLE,notEmpty"`
}

func (o Operator) check() error { return errors.Join(o.Worker.check(), o.Scopes.check()) }
