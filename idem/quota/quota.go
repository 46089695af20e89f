package quota

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/idem-go/idem-aws/idem"
)

// Quota is one instance's part of the tenants' limits. It implements [idem.Quota] and is safe for concurrent use.
type Quota struct {
	counters Counters
	cfg      Config
	// mu guards tenants; a tenant's own mutex is held while its counters are asked, so that simultaneous requests share a
	// block.
	mu      sync.Mutex
	tenants *simplelru.LRU[string, *tenant]
}

type tenant struct {
	mu            sync.Mutex
	keys, lookUps rate
	active        active

	// backMu guards what was given back and waits for the next request: giving back waits for nobody's call.
	backMu sync.Mutex
	back   []right
}

// right is one that was taken: the window and the hour that it belongs to.
type right struct{ window, hour int64 }

func (t *tenant) giveBack(r right) {
	t.backMu.Lock()
	defer t.backMu.Unlock()
	t.back = append(t.back, r)
}

// collect puts what was given back into hand.
func (t *tenant) collect() {
	t.backMu.Lock()
	defer t.backMu.Unlock()
	for _, r := range t.back {
		t.keys.giveBack(r.window)
		t.active.giveBack(r.hour)
	}
	t.back = t.back[:0]
}

// New returns a quota that counts in the counters, or an [*idem.ConfigError].
func New(counters Counters, cfg Config) (*Quota, error) {
	if counters == nil {
		return nil, &idem.ConfigError{Field: "counters", Value: nil, Rule: "must be given"}
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	tenants, err := simplelru.NewLRU[string, *tenant](cfg.TenantsMax, nil)
	if err != nil {
		return nil, err
	}
	return &Quota{counters: counters, cfg: cfg, tenants: tenants}, nil
}

func (q *Quota) tenant(name string) *tenant {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t, ok := q.tenants.Get(name); ok {
		return t
	}
	t := &tenant{}
	q.tenants.Add(name, t)
	return t
}

// NewKey implements [idem.Quota].
func (q *Quota) NewKey(ctx context.Context, name string) (giveBack func(), err error) {
	limits, now, t := q.cfg.Limits(name), q.cfg.Now(), q.tenant(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.collect()
	if limits.NewKeysPerSecond > 0 {
		wait, err := t.keys.take(ctx, now, limits.NewKeysPerSecond, q.pick, q.rateOf(countsKeys, name))
		if err = refusal(countsKeys, wait, err); err != nil {
			return nil, err
		}
	}
	taken := right{window: t.keys.window}
	if limits.ActiveKeys > 0 {
		wait, err := t.active.take(ctx, now, limits.ActiveKeys, int64(q.cfg.ActiveFor/time.Hour), q.hoursOf(name))
		if err = refusal(countsActive, wait, err); err != nil {
			t.keys.giveBack(taken.window)
			return nil, err
		}
	}
	taken.hour = t.active.hour
	return func() { t.giveBack(taken) }, nil
}

// LookUp implements [idem.Quota].
func (q *Quota) LookUp(ctx context.Context, name string) error {
	limit := q.cfg.Limits(name).LookUpsPerSecond
	if limit <= 0 {
		return nil
	}
	t := q.tenant(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	wait, err := t.lookUps.take(ctx, q.cfg.Now(), limit, q.pick, q.rateOf(countsLookUps, name))
	return refusal(countsLookUps, wait, err)
}

func refusal(limit string, wait time.Duration, err error) error {
	if err == nil && wait > 0 {
		return &idem.QuotaError{Limit: limit, RetryAfter: wait}
	}
	return err
}

// rateOf reaches the counters of a tenant's rate.
func (q *Quota) rateOf(limit, tenant string) add {
	return func(ctx context.Context, window int64, shard int, n int64) (int64, error) {
		return q.add(ctx, counterName(limit, tenant, window, shard), count, n, time.Unix(window, 0).Add(rateKeptFor))
	}
}

// hoursOf reaches the counters of a tenant's active keys.
func (q *Quota) hoursOf(tenant string) counters {
	name := func(day int64) string { return counterName(countsActive, tenant, day, 0) }
	return counters{
		add: func(ctx context.Context, hour, n int64) (int64, error) {
			day := dayOf(hour)
			end := time.Unix((day+1)*hoursPerDay*3600, 0)
			return q.add(ctx, name(day), fieldOf(hour), n, end.Add(q.cfg.ActiveFor))
		},
		read: func(ctx context.Context, from, to int64) (int64, error) {
			var names []string
			for day := dayOf(from); day <= dayOf(to-1); day++ {
				names = append(names, name(day))
			}
			days, err := q.read(ctx, names)
			if err != nil {
				return 0, err
			}
			var sum int64
			for hour := from; hour < to; hour++ {
				sum += days[dayOf(hour)-dayOf(from)][fieldOf(hour)]
			}
			return sum, nil
		},
	}
}

func (q *Quota) add(ctx context.Context, counter, field string, n int64, removeAfter time.Time) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, q.cfg.CallTimeout)
	defer cancel()
	sum, err := q.counters.Add(ctx, counter, field, n, removeAfter)
	if err != nil {
		return 0, fmt.Errorf("quota: add: %w", err)
	}
	return sum, nil
}

func (q *Quota) read(ctx context.Context, names []string) ([]map[string]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, q.cfg.CallTimeout)
	defer cancel()
	fields, err := q.counters.Read(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("quota: read: %w", err)
	}
	return fields, nil
}

// pick draws the shard that a window begins with. A source that fails is no reason to refuse anybody.
func (q *Quota) pick(shards int) int {
	var raw [8]byte
	if shards < 2 {
		return 0
	}
	if _, err := io.ReadFull(q.cfg.Random, raw[:]); err != nil {
		return 0
	}
	return int(binary.BigEndian.Uint64(raw[:]) % uint64(shards))
}
