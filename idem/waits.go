package idem

import "sync"

// waits bounds how many requests wait at once, of this process and of each tenant: for the execution that holds their key, or
// for a final answer. A request that may not wait is answered as if it had not wanted to.
type waits struct {
	most, ofTenant int

	mu      sync.Mutex
	all     int
	tenants map[string]int
}

func newWaits(cfg Config) *waits {
	return &waits{most: cfg.WaitsMax, ofTenant: cfg.WaitsPerTenantMax, tenants: map[string]int{}}
}

// enter lets a request wait, until it leaves, or says that it may not.
func (w *waits) enter(tenant string) (leave func(), may bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all >= w.most || w.tenants[tenant] >= w.ofTenant {
		return nil, false
	}
	w.all++
	w.tenants[tenant]++
	return func() { w.leave(tenant) }, true
}

func (w *waits) leave(tenant string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all--
	if w.tenants[tenant]--; w.tenants[tenant] == 0 {
		delete(w.tenants, tenant) // or the map would grow with every tenant that there ever was
	}
}
