package config

import (
	"errors"
	"time"
)

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

func (d Drift) check() error { return errors.Join(d.Tables.check(), d.Provider.check()) }

// DriftJob is the configuration of the drift function, which compares hours in pieces besides.
type DriftJob struct {
	Drift
	// DriftTable keeps what is compared, and DriftQueueURL is the queue of pieces.
	DriftTable    string `env:"DRIFT_TABLE,notEmpty"`
	DriftQueueURL string `env:"DRIFT_QUEUE_URL,notEmpty"`
	// DriftParts is how many pieces each hour is cut into, 1 to 240. It may be changed at any time.
	DriftParts int `env:"DRIFT_PARTS" envDefault:"4"`
}
