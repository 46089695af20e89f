package config

// Sweep is the configuration of the sweep function.
type Sweep struct {
	Worker
	// AuditTable is where operators' changes are, of which the sweep writes the log lines that have an alarm. Default: none, and no
	// line tells of a change by hand.
	AuditTable string `env:"AUDIT_TABLE"`
}

func (s Sweep) check() error { return s.Worker.check() }
