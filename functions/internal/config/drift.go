package config

import "time"

// Drift is the configuration of the drift job, function and command.
type Drift struct {
	Log
	Function
	Tables
	Provider
	// Window is how long the window is that a run compares, unless it is told another.
	Window time.Duration `env:"DRIFT_WINDOW" envDefault:"2h"`
	// Grace is how long before now a window ends at the latest.
	Grace time.Duration `env:"DRIFT_GRACE" envDefault:"15m"`
}

func (d Drift) check() error { return d.Provider.check() }
