package idem

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/idem-go/idem-aws/idem/internal/flight"
	"github.com/idem-go/idem-aws/idem/storage"
)

// scopeSecretBytesMin is the least size of Config.ScopeSecret: as many bytes as the hash has. markBytes are enough to tell
// secrets apart.
const (
	scopeSecretBytesMin = sha256.Size
	markBytes           = 16
)

// ErrScopeSecret: the store's records are named under another Config.ScopeSecret, or under none. Under this one every key
// would be new and every retry would execute again, so nothing is looked up by a key, and nothing is executed. A secret that
// was added to a service that ran without one has to go again.
var ErrScopeSecret = errors.New("idem: Config.ScopeSecret is not the secret that the store's records were named with")

// agreement is whether the store's records are named under the engine's secret.
type agreement struct {
	reached atomic.Bool
	flight  flight.Flight[struct{}]
}

// markOf names a secret without telling it. No record's key is made of the same bytes: a scope begins with a length.
func markOf(secret []byte) string {
	if len(secret) == 0 {
		return "sha-256"
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("idem: the mark of a scope secret"))
	return "hmac-sha-256:" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:markBytes])
}

// RecordKey returns the key of the scope's record in the engine's store. It returns an [*UnavailableError] where the store
// can't be asked which secret its records are named under, and one with [ErrScopeSecret] where that is another.
func (e *Engine) RecordKey(ctx context.Context, scope Scope) (storage.RecordKey, error) {
	if err := e.agree(ctx, ""); err != nil {
		return "", err
	}
	return scope.recordKey(e.cfg.ScopeSecret), nil
}

// CheckScopeSecret checks that the store's records are named under the engine's secret. If the store has no mark of a
// secret yet, it gets the engine's. The first request does the same check, and the engine remembers a success. Call it at
// start to fail early. Errors are those of [Engine.RecordKey].
func (e *Engine) CheckScopeSecret(ctx context.Context) error {
	if e.agreement.reached.Load() {
		return nil
	}
	_, err := e.agreement.flight.Ask(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, e.agree(ctx, markOf(e.cfg.ScopeSecret))
	})
	if err != nil && !errors.As(err, new(*UnavailableError)) { // gave up while another was asking
		return unavailable(err)
	}
	return err
}

// agree asks the store, which keeps a mark where it has none yet.
func (e *Engine) agree(ctx context.Context, keep string) error {
	if e.agreement.reached.Load() {
		return nil
	}
	ctx, cancel := e.timers.WithTimeout(ctx, e.cfg.CallTimeout)
	defer cancel()
	kept, err := e.store.ScopeMark(ctx, keep)
	switch {
	case err != nil:
		return unavailable(fmt.Errorf("idem: read which secret the records were named with: %w", err))
	case kept == "" && keep == "": // there is no record yet
		return nil
	case kept != markOf(e.cfg.ScopeSecret):
		return unavailable(anotherSecret(kept))
	}
	e.agreement.reached.Store(true)
	return nil
}

// anotherSecret says what to do where the store's mark is not the engine's.
func anotherSecret(kept string) error {
	if kept == markOf(nil) {
		return fmt.Errorf("%w: they were named without one, and it cannot be added later: run without it, or use new tables", ErrScopeSecret)
	}
	return fmt.Errorf("%w: give the engine the one that was made for these tables", ErrScopeSecret)
}

// tellUnkeyed says once, at start, that guesses of keys can be confirmed.
func (e *Engine) tellUnkeyed() {
	if len(e.cfg.ScopeSecret) == 0 && len(e.operations) == 0 {
		e.cfg.Logger.Warn("Config.ScopeSecret is not set: anybody who has an operation id can test guesses of the key that it was made for; set it before the first request, it cannot be added later")
	}
}
