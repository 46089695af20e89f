package identity

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/idem-go/idem-aws/functions/internal/apikey"
)

// limitedMax bounds the tenants whose limits a process remembers. One that is forgotten in the middle of a request has the
// deployment's limits for the rest of it.
const limitedMax = 10_000

// Limits remembers what the key of each tenant's last request said of the tenant's limits. A nil *Limits remembers nothing. It is safe
// for concurrent use.
type Limits struct {
	mu      sync.Mutex
	tenants *simplelru.LRU[string, apikey.Limits]
}

// NewLimits returns a memory that is empty.
func NewLimits() (*Limits, error) {
	tenants, err := simplelru.NewLRU[string, apikey.Limits](limitedMax, nil)
	return &Limits{tenants: tenants}, err
}

// Of returns the tenant's own limits; the zero value where there are none.
func (l *Limits) Of(tenant string) apikey.Limits {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, _ := l.tenants.Get(tenant)
	return own
}

func (l *Limits) note(tenant string, own apikey.Limits) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if own == (apikey.Limits{}) {
		l.tenants.Remove(tenant)
		return
	}
	l.tenants.Add(tenant, own)
}
