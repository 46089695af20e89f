package seal

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/codec"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Config is what New takes besides the store. The zero value of each field but Keys means its default.
type Config struct {
	// Keys are the tenants' data keys. They must be given.
	Keys Keys
	// OpenOnly opens what is sealed and seals nothing: for the release before the first that seals, and for those after
	// sealing was given up.
	OpenOnly bool
	// SealedOnly takes nothing that lies in the open, be it empty: a response is a [*NotSealedError], and a message with a payload
	// or evidence is as one that nobody can open. Without it, anybody who may write the tables can put an answer or a payload in the
	// place of a sealed one. Switch it on once all that was stored before sealing has expired: the longest retention after
	// the last process without sealing has gone, and after the last message from that time is final. Default: off. It
	// contradicts OpenOnly.
	SealedOnly bool
	// KeyAgeMax is how long a key is used after it was fetched, and so the longest time for which an erasure goes unseen
	// by a process. From half of it on a key is fetched anew when it is next needed, and the old one used only if that
	// fails. Default 5 min; at least 1 min, so that a key that was there at a reserve lasts until the commit.
	KeyAgeMax time.Duration
	// KeysMax bounds how many keys are held in memory. Default 10,000.
	KeysMax int
	// KeyTimeout bounds the fetching of a key. Default 1 s.
	KeyTimeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger gets what an operator should know; lines with alarm=true need an operator. Never secrets or what is sealed.
	// Default slog.Default(), as it is when the store is made; slog.New(slog.DiscardHandler) silences it.
	Logger *slog.Logger
}

const keyAgeLeast = time.Minute

func (c Config) withDefaults() Config {
	c.KeyAgeMax = cmp.Or(c.KeyAgeMax, 5*time.Minute)
	c.KeysMax = cmp.Or(c.KeysMax, 10_000)
	c.KeyTimeout = cmp.Or(c.KeyTimeout, time.Second)
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
	case c.Keys == nil:
		return &idem.ConfigError{Field: "Config.Keys", Value: nil, Rule: "must be given"}
	case c.OpenOnly && c.SealedOnly:
		return &idem.ConfigError{Field: "Config.SealedOnly", Value: true, Rule: "contradicts Config.OpenOnly, which writes what it then would not take"}
	case c.KeyAgeMax < keyAgeLeast:
		return &idem.ConfigError{Field: "Config.KeyAgeMax", Value: c.KeyAgeMax, Rule: "must be at least 1 min, or 0 for its default"}
	case c.KeysMax < 1:
		return &idem.ConfigError{Field: "Config.KeysMax", Value: c.KeysMax, Rule: "must be positive, or 0 for its default"}
	case c.KeyTimeout < 0:
		return &idem.ConfigError{Field: "Config.KeyTimeout", Value: c.KeyTimeout, Rule: "must be positive, or 0 for its default"}
	}
	return nil
}

// Inner is the store that keeps what is sealed.
//
// The engine's bound on a response is [OverheadBytes] below this store's, because a response that can't be compressed is
// stored that much larger.
type Inner interface {
	storage.Store
	outbox.Store
}

// New returns a store that seals what it hands on to the inner one, or an [*idem.ConfigError].
func New(inner Inner, cfg Config) (*Store, error) {
	if inner == nil {
		return nil, &idem.ConfigError{Field: "inner", Value: nil, Rule: "must be given"}
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	compressor, err := codec.New(plainBytesMax)
	if err != nil {
		return nil, err
	}
	keys, err := newRing(cfg)
	if err != nil {
		return nil, err
	}
	return &Store{inner: inner, cfg: cfg, envelope: envelope{compressor}, keys: keys}, nil
}
