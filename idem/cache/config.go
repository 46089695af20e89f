package cache

import (
	"cmp"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Config is what New takes besides the store. The zero value of each field means its default.
type Config struct {
	// EntriesMax bounds how many records are held. Default 10,000.
	EntriesMax int
	// BytesMax bounds what they take up, responses and about what surrounds them. Default 16 MiB. A record that alone
	// exceeds it is not held.
	BytesMax int
	// MaxAge is how long after it was read a record is answered: the longest time for which an operator's cache-bust or
	// other expiry goes unseen here. Default 1 min.
	MaxAge time.Duration
	// ClockSkew is how long before its expiry a record is no longer answered: the most by which two clocks differ.
	// Default 2 s.
	ClockSkew time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	c.EntriesMax = cmp.Or(c.EntriesMax, 10_000)
	c.BytesMax = cmp.Or(c.BytesMax, 16<<20)
	c.MaxAge = cmp.Or(c.MaxAge, time.Minute)
	c.ClockSkew = cmp.Or(c.ClockSkew, 2*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	for _, n := range []struct {
		field    string
		value    any
		positive bool
	}{
		{"EntriesMax", c.EntriesMax, c.EntriesMax > 0}, {"BytesMax", c.BytesMax, c.BytesMax > 0},
		{"MaxAge", c.MaxAge, c.MaxAge > 0}, {"ClockSkew", c.ClockSkew, c.ClockSkew > 0},
	} {
		if !n.positive {
			return &idem.ConfigError{Field: "Config." + n.field, Value: n.value, Rule: "must be positive, or 0 for its default"}
		}
	}
	return nil
}
