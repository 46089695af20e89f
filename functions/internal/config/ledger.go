package config

import "time"

// Ledger is the configuration of ledger reconciliation, function and command.
type Ledger struct {
	Log
	Function
	Tables
	Provider
	// Window is how long the window is that a run compares, unless it is told another.
	Window time.Duration `env:"LEDGER_WINDOW" envDefault:"2h"`
	// Grace is how long before now a window ends at the latest.
	Grace time.Duration `env:"LEDGER_GRACE" envDefault:"15m"`
}
