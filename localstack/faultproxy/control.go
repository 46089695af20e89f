package faultproxy

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/idem-go/idem-aws/localstack/internal/control"
)

type ruleSet struct {
	Rules []Rule `json:"rules"`
}

func (p *Proxy) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/control/faults", control.Methods{http.MethodPut: p.putFaults, http.MethodGet: p.getFaults})
	mux.Handle("/control/log", control.Methods{
		http.MethodGet: func(w http.ResponseWriter, _ *http.Request) {
			control.JSON(w, http.StatusOK, p.current.Load().entries())
		},
		http.MethodDelete: p.change(func(s *state) { s.log = nil }),
	})
	mux.Handle("/control/counts", control.Methods{http.MethodGet: func(w http.ResponseWriter, _ *http.Request) {
		control.JSON(w, http.StatusOK, p.current.Load().counted())
	}})
	mux.Handle("/control/writes", control.Methods{http.MethodGet: func(w http.ResponseWriter, r *http.Request) {
		from, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("from"), "0"))
		if err != nil || from < 0 {
			control.Error(w, http.StatusBadRequest, "from_invalid", "from is a number, 0 or more")
			return
		}
		control.JSON(w, http.StatusOK, p.journal.read(from))
	}})
	mux.Handle("/control/waiting", control.Methods{http.MethodGet: p.getWaiting})
	mux.Handle("/control/down", control.Methods{http.MethodPost: p.change(func(s *state) { s.down = true })})
	mux.Handle("/control/up", control.Methods{http.MethodPost: p.change(func(s *state) { s.down = false })})
	mux.Handle("/control/release", control.Methods{http.MethodPost: func(w http.ResponseWriter, _ *http.Request) {
		p.current.Load().release()
		w.WriteHeader(http.StatusNoContent)
	}})
	mux.Handle("/control/reset", control.Methods{http.MethodPost: func(w http.ResponseWriter, _ *http.Request) {
		p.reset()
		w.WriteHeader(http.StatusNoContent)
	}})
	mux.HandleFunc("/", control.NotFound)
	return mux
}

// change serves an endpoint that changes the state under its lock and answers 204.
func (p *Proxy) change(apply func(*state)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		s := p.current.Load()
		s.mu.Lock()
		apply(s)
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	}
}

func (p *Proxy) putFaults(w http.ResponseWriter, r *http.Request) {
	var set ruleSet
	if !control.ReadRules(w, r, &set) {
		return
	}
	for i, rule := range set.Rules {
		if err := rule.check(); err != nil {
			control.Error(w, http.StatusBadRequest, "rule_invalid", fmt.Sprintf("rules[%d]: %v", i, err))
			return
		}
	}
	p.change(func(s *state) { s.arm(set.Rules) })(w, r)
}

func (p *Proxy) getFaults(w http.ResponseWriter, _ *http.Request) {
	control.JSON(w, http.StatusOK, map[string]any{"rules": p.current.Load().ruleStates()})
}

func (p *Proxy) getWaiting(w http.ResponseWriter, _ *http.Request) {
	s := p.current.Load()
	s.mu.Lock()
	waiting := s.waiting
	s.mu.Unlock()
	control.JSON(w, http.StatusOK, waiting)
}

// Control is a client of the control endpoints. Every answer that is not 2xx is an error.
type Control struct {
	// URL of the proxy, without a trailing slash.
	URL string
	// Client that calls it; nil = http.DefaultClient.
	Client *http.Client
}

// Faults replaces all rules; none given removes them. Sequences that are under way end. What waits already goes on
// waiting.
func (c Control) Faults(ctx context.Context, rules ...Rule) error {
	return c.call(ctx, http.MethodPut, "/control/faults", ruleSet{Rules: rules}, nil)
}

// Rules returns the rules and what became of each.
func (c Control) Rules(ctx context.Context) ([]RuleState, error) {
	var out struct {
		Rules []RuleState `json:"rules"`
	}
	err := c.call(ctx, http.MethodGet, "/control/faults", nil, &out)
	return out.Rules, err
}

// Log returns the requests seen, oldest first.
func (c Control) Log(ctx context.Context) ([]Entry, error) {
	var out []Entry
	err := c.call(ctx, http.MethodGet, "/control/log", nil, &out)
	return out, err
}

// Counts returns how many requests there were since the last reset, and how often each fault was injected.
func (c Control) Counts(ctx context.Context) (Counts, error) {
	var out Counts
	err := c.call(ctx, http.MethodGet, "/control/counts", nil, &out)
	return out, err
}

// Writes returns what was written to rows since the proxy started, in the order in which it was sent on.
func (c Control) Writes(ctx context.Context) (Journal, error) {
	var all Journal
	for {
		var page Journal
		if err := c.call(ctx, http.MethodGet, "/control/writes?from="+strconv.Itoa(all.Next), nil, &page); err != nil {
			return all, err
		}
		all.Writes, all.Next, all.Dropped = append(all.Writes, page.Writes...), page.Next, page.Dropped
		if page.Next == 0 {
			return all, nil
		}
	}
}

// ClearLog forgets the requests seen.
func (c Control) ClearLog(ctx context.Context) error {
	return c.call(ctx, http.MethodDelete, "/control/log", nil, nil)
}

// Waiting counts the requests that are held back.
func (c Control) Waiting(ctx context.Context) (Waiting, error) {
	var out Waiting
	err := c.call(ctx, http.MethodGet, "/control/waiting", nil, &out)
	return out, err
}

// Release lets go of every paused request, and of every late one without a delay. Rules stay: a pause without Times
// holds the next request again.
func (c Control) Release(ctx context.Context) error { return c.post(ctx, "release") }

// Down closes every connection without forwarding, until Up or Reset.
func (c Control) Down(ctx context.Context) error { return c.post(ctx, "down") }

// Up ends Down.
func (c Control) Up(ctx context.Context) error { return c.post(ctx, "up") }

// Reset clears rules, counts and log, ends Down, and throws away what waits.
func (c Control) Reset(ctx context.Context) error { return c.post(ctx, "reset") }

func (c Control) post(ctx context.Context, what string) error {
	return c.call(ctx, http.MethodPost, "/control/"+what, nil, nil)
}

func (c Control) call(ctx context.Context, method, path string, in, out any) error {
	return control.Call(ctx, c.Client, method, strings.TrimSuffix(c.URL, "/")+path, in, out)
}
