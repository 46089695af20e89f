package quota

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Limits are what one tenant may ask for; 0 is no limit, less admits nothing.
type Limits struct {
	// NewKeysPerSecond bounds new keys, averaged over Config.Window.
	NewKeysPerSecond int64
	// ActiveKeys bounds the keys of the last Config.ActiveFor.
	ActiveKeys int64
	// LookUpsPerSecond bounds reads of an operation's status, averaged likewise.
	LookUpsPerSecond int64
	// WaitsPerSecond bounds how many waits are begun: for a final answer (Prefer: wait), or for the execution that holds the
	// key. Averaged likewise. A request that is over it is answered at once, never refused. On AWS Lambda each wait holds an
	// execution, so at most this many times the longest wait in seconds are held for one tenant.
	WaitsPerSecond int64
}

// Counters are shared by all instances. [Memory] has them for one process, package dynamoquota in DynamoDB.
type Counters interface {
	// Add adds n, which may be negative, to a field of a counter, and returns what the field is then. An absent one is 0.
	// The counter may be removed after the given time. An addition whose reply is lost may count twice, but one of a negative n
	// counts once at most, else tenants get more than their limit; an error is right where it is not known to count.
	Add(ctx context.Context, counter, field string, n int64, removeAfter time.Time) (int64, error)
	// Read returns the fields of each counter, in the same order; an absent one has none. They may be a moment old. At most
	// [ReadMax] at once.
	Read(ctx context.Context, counters []string) ([]map[string]int64, error)
}

// ReadMax is how many counters are read at once at most: 90 days and the present one.
const ReadMax = 91

// ShardRate is how many rights of a window one counter has. A DynamoDB partition takes 1,000 writes a second, and an
// instance adds at least one right at a time.
const ShardRate = 500

// Config is what New takes besides the counters. The zero value of each field means its default.
type Config struct {
	// Limits are a tenant's: defaults and exceptions. It is asked often and must not block; all instances should say the
	// same. A limit of active keys that changes holds from the next request on, one of a rate from the next window on. Required.
	Limits func(tenant string) Limits
	// Window is what a rate is averaged over: a tenant may use up its rights of a window in one burst. Whole seconds, 1 s
	// to 1 min, the same in all instances. Default 1 s.
	Window time.Duration
	// ActiveFor is how long a key counts as active: the longest retention of the operations, in whole hours. 1 h to
	// 90 d. Default 24 h.
	ActiveFor time.Duration
	// TenantsMax bounds how many tenants an instance remembers; the least recently seen is forgotten, and with it the
	// rights in hand. Default 10,000.
	TenantsMax int
	// CallTimeout bounds one call of the counters. Default 1 s.
	CallTimeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Random spreads instances over the counters of a high rate, and over time. It must be safe for concurrent use. Default
	// crypto/rand.Reader.
	Random io.Reader
}

const (
	windowMin    = time.Second
	windowMax    = time.Minute
	activeForMin = time.Hour
	activeForMax = 90 * 24 * time.Hour
)

func (c Config) withDefaults() Config {
	c.Window = cmp.Or(c.Window, time.Second)
	c.ActiveFor = cmp.Or(c.ActiveFor, 24*time.Hour)
	c.TenantsMax = cmp.Or(c.TenantsMax, 10_000)
	c.CallTimeout = cmp.Or(c.CallTimeout, time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Limits == nil:
		return &idem.ConfigError{Field: "Config.Limits", Value: nil, Rule: "must be given"}
	case c.Window < windowMin || c.Window > windowMax || c.Window%time.Second != 0:
		return &idem.ConfigError{Field: "Config.Window", Value: c.Window, Rule: fmt.Sprintf("must be whole seconds, %v to %v", windowMin, windowMax)}
	case c.ActiveFor < activeForMin || c.ActiveFor > activeForMax || c.ActiveFor%time.Hour != 0:
		return &idem.ConfigError{Field: "Config.ActiveFor", Value: c.ActiveFor, Rule: fmt.Sprintf("must be whole hours, %v to %v", activeForMin, activeForMax)}
	case c.TenantsMax < 1:
		return &idem.ConfigError{Field: "Config.TenantsMax", Value: c.TenantsMax, Rule: "must be positive, or 0 for its default"}
	case c.CallTimeout < 0:
		return &idem.ConfigError{Field: "Config.CallTimeout", Value: c.CallTimeout, Rule: "must be positive, or 0 for its default"}
	}
	return nil
}
