package config

import "fmt"

// Quota is what one tenant may ask for; 0 is no limit.
type Quota struct {
	// Table keeps the counters that instances share.
	Table            string `env:"QUOTA_TABLE"`
	NewKeysPerSecond int64  `env:"QUOTA_NEW_KEYS_PER_SECOND"`
	ActiveKeys       int64  `env:"QUOTA_ACTIVE_KEYS"`
	LookUpsPerSecond int64  `env:"QUOTA_LOOK_UPS_PER_SECOND"`
	// WaitsPerSecond bounds the waits that are begun: each holds an execution for up to WAIT_MAX.
	WaitsPerSecond int64 `env:"QUOTA_WAITS_PER_SECOND"`
}

// Limited says that there is a limit.
func (q Quota) Limited() bool { return q.Table != "" }

func (q Quota) check() error {
	for _, limit := range []struct {
		name  string
		value int64
	}{
		{"QUOTA_NEW_KEYS_PER_SECOND", q.NewKeysPerSecond}, {"QUOTA_ACTIVE_KEYS", q.ActiveKeys},
		{"QUOTA_LOOK_UPS_PER_SECOND", q.LookUpsPerSecond}, {"QUOTA_WAITS_PER_SECOND", q.WaitsPerSecond},
	} {
		if limit.value < 0 || limit.value > 0 && !q.Limited() {
			return fmt.Errorf("configuration: %s = %d: must not be negative, and needs QUOTA_TABLE unless it is 0", limit.name, limit.value)
		}
	}
	return nil
}
