package breaker

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Config is what New takes besides the store. The zero value of each field means its default.
type Config struct {
	// FailuresMax is how many calls in a row may fail before the breaker opens: the last of them opens it. Default 5. A
	// store that answers every few calls is still worth asking: every answer begins the count anew.
	FailuresMax int
	// OpenFor is how long nothing that begins is sent before the next probe, and the longest Retry-After that a 503
	// names. Default 5 s, at least 1 s.
	OpenFor time.Duration
	// Patience is the least time that a call must have had for its time-out to count as a failure, and the longest time after its
	// context's end in which it counts. Default 500 ms.
	Patience time.Duration
	// Now is the clock that Retry-After is read from, and by which a breaker that was open before a freeze of the process is closed after it.
	// The breaker itself opens and closes by the platform's time, which this must agree with. Default time.Now.
	Now func() time.Time
	// Logger gets each change between closed, open and half-open. Default slog.Default(), as it
	// is when the breaker is made; slog.New(slog.DiscardHandler) silences it.
	Logger *slog.Logger
}

const openForMin = time.Second

func (c Config) withDefaults() Config {
	c.FailuresMax = cmp.Or(c.FailuresMax, 5)
	c.OpenFor = cmp.Or(c.OpenFor, 5*time.Second)
	c.Patience = cmp.Or(c.Patience, 500*time.Millisecond)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.FailuresMax < 1 || c.FailuresMax > math.MaxInt32:
		return &idem.ConfigError{Field: "Config.FailuresMax", Value: c.FailuresMax, Rule: fmt.Sprintf("must be 1..%d", math.MaxInt32)}
	case c.OpenFor < openForMin:
		return &idem.ConfigError{Field: "Config.OpenFor", Value: c.OpenFor, Rule: fmt.Sprintf("must be at least %v, the resolution of Retry-After", openForMin)}
	case c.Patience < 0:
		return &idem.ConfigError{Field: "Config.Patience", Value: c.Patience, Rule: "must not be negative"}
	}
	return nil
}
