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
	// mu guards tenants.
	mu      sync.Mutex
	tenants *simplelru.LRU[string, *tenant]
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
	t := newTenant()
	q.tenants.Add(name, t)
	return t
}

// NewKey implements [idem.Quota].
func (q *Quota) NewKey(ctx context.Context, name string) (giveBack func(), err error) {
	t := q.tenant(name)
	var taken right
	err = t.alone(ctx, func() (err error) {
		taken, err = q.take(ctx, t, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return func() { t.giveBack(taken) }, nil
}

// take takes a right of both limits, or of none.
func (q *Quota) take(ctx context.Context, t *tenant, name string) (right, error) {
	limits, now, taken := q.cfg.Limits(name), q.cfg.Now(), right{none, none}
	t.collect()
	if limits.NewKeysPerSecond != 0 {
		wait, err := t.keys.take(ctx, now, q.windows(countsKeys, name, limits.NewKeysPerSecond))
		if err = refusal(countsKeys, wait, err); err != nil {
			return taken, err
		}
		taken.window = t.keys.window.span
	}
	if limits.ActiveKeys != 0 {
		wait, err := t.active.take(ctx, now, q.hours(name, limits.ActiveKeys))
		if err = refusal(countsActive, wait, err); err != nil {
			t.keys.giveBack(taken.window)
			return taken, err
		}
		taken.hour = t.active.hour
	}
	return taken, nil
}

// LookUp implements [idem.Quota].
func (q *Quota) LookUp(ctx context.Context, name string) error {
	limit := q.cfg.Limits(name).LookUpsPerSecond
	if limit == 0 {
		return nil
	}
	t := q.tenant(name)
	return t.alone(ctx, func() error {
		wait, err := t.lookUps.take(ctx, q.cfg.Now(), q.windows(countsLookUps, name, limit))
		return refusal(countsLookUps, wait, err)
	})
}

// Wait asks for the right to one wait. A [*idem.QuotaError] says that the request is to be answered at once.
func (q *Quota) Wait(ctx context.Context, name string) error {
	limit := q.cfg.Limits(name).WaitsPerSecond
	if limit == 0 {
		return nil
	}
	t := q.tenant(name)
	return t.alone(ctx, func() error {
		wait, err := t.waits.take(ctx, q.cfg.Now(), q.windows(countsWaits, name, limit))
		return refusal(countsWaits, wait, err)
	})
}

func refusal(limit string, wait time.Duration, err error) error {
	if err == nil && wait > 0 {
		return &idem.QuotaError{Limit: limit, RetryAfter: wait}
	}
	return err
}

// limitMax is what limits beyond are taken for, so that no sum overflows.
const limitMax = 1 << 40

// windows reaches the counters of a tenant's rate.
func (q *Quota) windows(counts, tenant string, perSecond int64) windows {
	seconds := int64(q.cfg.Window / time.Second)
	name := func(window int64, shard int) string { return counterName(counts, tenant, window*seconds, shard) }
	return windows{
		limit: min(max(perSecond, 0), limitMax) * seconds, seconds: seconds, draw: q.draw,
		add: func(ctx context.Context, window int64, shard int, n int64) (int64, error) {
			return q.add(ctx, name(window, shard), count, n, time.Unix((window+1)*seconds, 0).Add(rateKeptFor))
		},
		look: func(ctx context.Context, window int64, shards []int) ([]int64, error) {
			names, sums := make([]string, len(shards)), make([]int64, len(shards))
			for i, shard := range shards {
				names[i] = name(window, shard)
			}
			found, err := q.read(ctx, names)
			if err != nil {
				return nil, err
			}
			for i := range sums {
				sums[i] = found[i][count]
			}
			return sums, nil
		},
	}
}

// hours reaches the counters of a tenant's active keys.
func (q *Quota) hours(tenant string, limit int64) hours {
	name := func(day int64) string { return counterName(countsActive, tenant, day, 0) }
	return hours{
		limit: min(limit, limitMax), before: int64(q.cfg.ActiveFor / time.Hour), draw: q.draw,
		add: func(ctx context.Context, hour, n int64) (int64, error) {
			day := dayOf(hour)
			return q.add(ctx, name(day), fieldOf(hour), n, startOf((day+1)*hoursPerDay).Add(q.cfg.ActiveFor))
		},
		read: func(ctx context.Context, from, to int64) (past, present int64, err error) {
			var names []string
			for day := dayOf(from); day <= dayOf(to); day++ {
				names = append(names, name(day))
			}
			days, err := q.read(ctx, names)
			if err != nil {
				return 0, 0, err
			}
			at := func(hour int64) int64 { return days[dayOf(hour)-dayOf(from)][fieldOf(hour)] }
			for hour := from; hour < to; hour++ {
				past += at(hour)
			}
			return past, at(to), nil
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

// draw returns a random number below n. If reading randomness fails, it returns 0, and no request is refused.
func (q *Quota) draw(n int) int {
	var raw [8]byte
	if n < 2 {
		return 0
	}
	if _, err := io.ReadFull(q.cfg.Random, raw[:]); err != nil {
		return 0
	}
	return int(binary.BigEndian.Uint64(raw[:]) % uint64(n))
}
