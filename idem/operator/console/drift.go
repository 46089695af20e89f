package console

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
)

// comparison is the last comparison that this console was asked for, or the one under way.
type comparison struct {
	running sync.WaitGroup
	mu      sync.Mutex
	last    driftPage
}

// driftPage is a comparison as its page shows it.
type driftPage struct {
	Running      bool
	Tenant       string
	Began, Ended time.Time
	Drift        Drift
	// More is how many findings are not shown.
	More   int
	Failed string
}

func (c *Console) lastDrift(w http.ResponseWriter, r *http.Request) error {
	c.drift.mu.Lock()
	last := c.drift.last
	c.drift.mu.Unlock()
	c.render(w, r, http.StatusOK, "drift", "Drift", last)
	return nil
}

// compare begins a comparison, unless one is under way, and shows its page. It changes nothing, and goes on without the
// browser.
func (c *Console) compare(w http.ResponseWriter, r *http.Request) error {
	c.drift.mu.Lock()
	defer c.drift.mu.Unlock()
	if !c.drift.last.Running && c.ctx.Err() == nil {
		tenant := strings.TrimSpace(r.PostForm.Get("tenant"))
		c.drift.last = driftPage{Running: true, Tenant: tenant, Began: c.now()}
		c.drift.running.Go(func() { c.runDrift(tenant) })
	}
	http.Redirect(w, r, "/drift", http.StatusSeeOther)
	return nil
}

func (c *Console) runDrift(tenant string) {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.DriftWithin)
	defer cancel()
	drift, err := c.cfg.Drift(ctx, tenant)
	more := max(len(drift.Findings)-findingsMax, 0)
	drift.Findings = drift.Findings[:len(drift.Findings)-more]
	c.drift.mu.Lock()
	defer c.drift.mu.Unlock()
	c.drift.last.Running, c.drift.last.Ended, c.drift.last.Drift = false, c.now(), drift
	c.drift.last.More = more
	if err != nil {
		c.drift.last.Failed = sentence(err.Error())
		c.cfg.Logger.ErrorContext(ctx, "console.failed", "path", "/drift", "error", err.Error())
	}
}
