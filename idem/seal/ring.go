package seal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/internal/clock"
	"golang.org/x/sync/singleflight"
)

// ring holds keys in memory, each for a bounded time.
type ring struct {
	cfg     Config
	fetches singleflight.Group

	mu   sync.Mutex
	held *simplelru.LRU[keyName, heldKey]
	// asking has each tenant's requests that are under way.
	asking map[string][]*asking
}

// keyName names a key; id 0 is the tenant's current one.
type keyName struct {
	tenant string
	id     uint32
}

type heldKey struct {
	key Key
	// asked is when it was asked for: an erasure before that is known.
	asked time.Time
	// failed is when it was asked for again without success.
	failed time.Time
}

// retryAfter is for how long a key that is held and could not be fetched again is used without asking: else everybody would
// wait for keys that don't answer.
const retryAfter = 10 * time.Second

const currentKey uint32 = 0

func newRing(cfg Config) (*ring, error) {
	held, err := simplelru.NewLRU[keyName, heldKey](cfg.KeysMax, nil)
	if err != nil {
		return nil, fmt.Errorf("seal: key cache: %w", err)
	}
	return &ring{cfg: cfg, held: held, asking: map[string][]*asking{}}, nil
}

// get returns the tenant's key with that id, or its current one: an [storage.ErrErased], or a [*KeysError] where it is not
// held and can't be fetched.
func (r *ring) get(ctx context.Context, tenant string, id uint32) (Key, error) {
	name := keyName{tenant, id}
	held, ok := r.look(name)
	now := r.cfg.Now()
	usable := ok && clock.Within(now, held.asked, r.cfg.KeyAgeMax)
	if usable && (clock.Within(now, held.asked, r.cfg.KeyAgeMax/2) || now.Sub(held.failed) < retryAfter) {
		return held.key, nil
	}
	key, err := r.fetch(ctx, name)
	switch {
	case err == nil:
		return key, nil
	case errors.Is(err, storage.ErrErased):
		return Key{}, err
	case usable && clock.Within(r.cfg.Now(), held.asked, r.cfg.KeyAgeMax): // still: the process may have been frozen
		r.pause(name)
		return held.key, nil
	}
	return Key{}, &KeysError{err}
}

// fetch asks once for all who wait for the same key. A caller that gives up waiting changes nothing for the others. What was read before
// the process was frozen for longer than a key may be held is asked for again.
func (r *ring) fetch(ctx context.Context, name keyName) (Key, error) {
	fetched := r.fetches.DoChan(fmt.Sprintf("%d %s", name.id, name.tenant), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.KeyTimeout)
		defer cancel()
		for range asksMax {
			asking := r.begin(name)
			key, err := r.ask(ctx, name)
			err, settled := r.settle(asking, key, err)
			if settled && (err != nil || clock.Within(r.cfg.Now(), asking.at, r.cfg.KeyAgeMax)) {
				return key, err
			}
		}
		return Key{}, errOvertaken
	})
	select {
	case <-ctx.Done():
		return Key{}, ctx.Err()
	case result := <-fetched:
		return result.Val.(Key), result.Err
	}
}

func (r *ring) ask(ctx context.Context, name keyName) (Key, error) {
	if name.id == currentKey {
		key, err := r.cfg.Keys.Current(ctx, name.tenant)
		if err == nil && key.ID == currentKey {
			err = errors.New("the current key has no id")
		}
		key.Current = true
		return key, err
	}
	key, err := r.cfg.Keys.Open(ctx, name.tenant, name.id)
	if err == nil && key.ID != name.id {
		err = fmt.Errorf("asked for key %d and got %d", name.id, key.ID)
	}
	return key, err
}

func (r *ring) look(name keyName) (heldKey, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.Get(name)
}

// pause notes that a key could not be fetched again.
func (r *ring) pause(name keyName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if held, ok := r.held.Get(name); ok {
		held.failed = r.cfg.Now()
		r.held.Add(name, held)
	}
}
