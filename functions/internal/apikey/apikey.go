// Package apikey authenticates bearer API keys, and keeps them. A key is stored only as its SHA-256, so that nobody who reads
// the table can call as a tenant.
//
// What was read of a key is held in the process: at most Config.CacheAge, counted from when the table was asked. So a revoked
// key is refused that long after it was revoked, at the latest, and what a gateway holds of the answer comes on top. That a
// key expires is judged at each use.
package apikey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/singleflight"

	"github.com/idem-go/idem-aws/internal/clock"
	"github.com/idem-go/idem-aws/internal/token"
)

// Errors of Caller. Any other error means that the table could not be asked, or not understood.
var (
	// ErrMissing: there is no bearer token: 401.
	ErrMissing = errors.New("apikey: no bearer token")
	// ErrUnknown: the token is nobody's: 403.
	ErrUnknown = errors.New("apikey: unknown token")
	// ErrExpired: the token was somebody's: 403.
	ErrExpired = errors.New("apikey: the key has expired")
	// ErrRevoked: the token was taken away: 403.
	ErrRevoked = errors.New("apikey: the key is revoked")
	// ErrTest: the token is a test key, and none is taken here: 403.
	ErrTest = errors.New("apikey: test keys are refused here")
)

// Refused says whether an error is about the caller, and not about the table.
func Refused(err error) bool {
	return errors.Is(err, ErrMissing) || errors.Is(err, ErrUnknown) || errors.Is(err, ErrExpired) || errors.Is(err, ErrRevoked) ||
		errors.Is(err, ErrTest)
}

const (
	// CacheAgeMax bounds Config.CacheAge: a revoked key must not be used for longer.
	CacheAgeMax = 5 * time.Minute
	// unknownAge is for how long a key that is not there is not looked up again. A new key may be refused that long in a
	// process that was asked for it before.
	unknownAge = 5 * time.Second
	// callTimeout bounds one read. There are two, so that one that hangs costs a request no more than a second.
	callTimeout = time.Second
	pauseMax    = 50 * time.Millisecond
	// thawedAfter is the age from which on an answer is from before a freeze, and is not used, unless CacheAge is longer.
	thawedAfter = 30 * time.Second
	// usedEvery is how exact the time of the last use is, and usedTimeout what writing it may take of a request.
	usedEvery   = time.Hour
	usedTimeout = 250 * time.Millisecond
)

// Config is what New takes. Table is required.
type Config struct {
	Table Table
	// CacheAge is for how long what was read is used, 0 to [CacheAgeMax]. Default: not at all.
	CacheAge time.Duration
	// RefuseTest refuses every test key, whoever's it is. Default: they are taken as any other.
	RefuseTest bool
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger is told what went wrong beside the look-up. Default: nobody is.
	Logger *slog.Logger
}

// Keys authenticates callers. It is safe for concurrent use.
type Keys struct {
	cfg   Config
	held  *held
	reads singleflight.Group
}

// New returns an authenticator that holds nothing yet.
func New(cfg Config) (*Keys, error) {
	switch {
	case cfg.Table.Client == nil || cfg.Table.Name == "":
		return nil, errors.New("apikey: Config.Table must be given")
	case cfg.CacheAge < 0 || cfg.CacheAge > CacheAgeMax:
		return nil, fmt.Errorf("apikey: Config.CacheAge = %v: must be 0 to %v", cfg.CacheAge, CacheAgeMax)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	held, err := newHeld(cfg.CacheAge)
	return &Keys{cfg: cfg, held: held}, err
}

// Caller returns the key in the value of an Authorization header, [ErrMissing], [ErrUnknown], [ErrExpired], [ErrRevoked] or
// [ErrTest]. The value is parsed before anything is looked up.
func (k *Keys) Caller(ctx context.Context, authorization string) (Key, error) {
	scheme, bearer, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	bearer = strings.TrimSpace(bearer)
	if !strings.EqualFold(scheme, "Bearer") || bearer == "" {
		return Key{}, ErrMissing
	}
	if !token.WellFormed(bearer) {
		return Key{}, ErrUnknown
	}
	if k.cfg.RefuseTest && strings.HasPrefix(bearer, token.Test) {
		return Key{}, ErrTest
	}
	found, err := k.find(ctx, token.ID(bearer))
	switch {
	case err != nil:
		return Key{}, err
	case found == nil:
		return Key{}, ErrUnknown
	}
	if err := found.judge(k.cfg.Now()); err != nil {
		return Key{}, err
	}
	return *found, nil
}

// find returns the key by its id; nil where there is none. Callers that ask at once share one read, which is none of theirs:
// it goes on where one of them gives up.
func (k *Keys) find(ctx context.Context, id string) (*Key, error) {
	if found, ok := k.held.get(id, k.cfg.Now()); ok {
		return found, nil
	}
	read, err := k.share(ctx, id)
	if err == nil && k.old(read.asked) { // its reading was under way in a process that was frozen
		if read, err = k.share(ctx, id); err == nil && k.old(read.asked) {
			err = errFrozen
		}
	}
	return read.key, err
}

// share waits for a read that is under way, or begins one.
func (k *Keys) share(ctx context.Context, id string) (entry, error) {
	shared := k.reads.DoChan(id, func() (any, error) { return k.fetch(context.WithoutCancel(ctx), id) })
	select {
	case <-ctx.Done():
		return entry{}, ctx.Err()
	case read := <-shared:
		if read.Err != nil {
			return entry{}, read.Err
		}
		return read.Val.(entry), nil
	}
}

// fetch reads the key, holds it, and notes that it is used.
func (k *Keys) fetch(ctx context.Context, id string) (entry, error) {
	asked := k.cfg.Now()
	if found, ok := k.held.get(id, asked); ok { // another read ended in between
		return entry{found, asked}, nil
	}
	found, err := k.read(ctx, id)
	if err != nil {
		return entry{}, err
	}
	k.held.put(id, found, asked)
	if found != nil && found.judge(asked) == nil && asked.Sub(found.LastUsed) >= usedEvery {
		k.note(ctx, id, asked)
	}
	return entry{found, asked}, nil
}

// old says that what was asked then is from before a freeze.
func (k *Keys) old(asked time.Time) bool {
	return !clock.Within(k.cfg.Now(), asked, max(k.cfg.CacheAge, thawedAfter))
}

var errFrozen = errors.New("apikey: the process was frozen while the table was asked")

// read asks the table, and once more where it fails or does not answer in time.
func (k *Keys) read(ctx context.Context, id string) (*Key, error) {
	found, err := k.once(ctx, id)
	if err == nil {
		return found, nil
	}
	<-time.After(rand.N(pauseMax))
	return k.once(ctx, id)
}

func (k *Keys) once(ctx context.Context, id string) (*Key, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return k.cfg.Table.Key(ctx, id, oneAttempt)
}

// note writes the time of the last use. It is worth no refusal: where it fails the next read tries again.
func (k *Keys) note(ctx context.Context, id string, at time.Time) {
	ctx, cancel := context.WithTimeout(ctx, usedTimeout)
	defer cancel()
	if err := k.cfg.Table.used(ctx, id, at); err != nil {
		k.cfg.Logger.WarnContext(ctx, "last use not noted", "key", id, "error", err)
	}
}

func oneAttempt(o *dynamodb.Options) { o.RetryMaxAttempts = 1 }
