package provider

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/localstack/internal/control"
)

type ruleSet struct {
	Rules []Rule `json:"rules"`
}

// RuleState is a rule and how often it has applied.
type RuleState struct {
	Rule
	Applied int `json:"applied"`
}

func (p *Provider) putFaults(w http.ResponseWriter, r *http.Request) {
	var set ruleSet
	if !control.ReadRules(w, r, &set) {
		return
	}
	rules := make([]activeRule, len(set.Rules))
	for i, rule := range set.Rules {
		if err := rule.check(); err != nil {
			control.Error(w, http.StatusBadRequest, "rule_invalid", fmt.Sprintf("rules[%d]: %v", i, err))
			return
		}
		rules[i].Rule = rule
	}
	s := p.current.Load()
	s.mu.Lock()
	s.rules = rules
	s.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func (p *Provider) getFaults(w http.ResponseWriter, _ *http.Request) {
	s := p.current.Load()
	s.mu.Lock()
	rules := make([]RuleState, len(s.rules))
	for i, rule := range s.rules {
		rules[i] = RuleState{Rule: rule.Rule, Applied: rule.applied}
	}
	s.mu.Unlock()
	control.JSON(w, http.StatusOK, map[string]any{"rules": rules})
}

func (p *Provider) putSettings(w http.ResponseWriter, r *http.Request) {
	var patch SettingsPatch
	if !control.Read(w, r, &patch) {
		return
	}
	s := p.current.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.settings.with(patch)
	if err := changed.check(p.events.secret != ""); err != nil {
		control.Error(w, http.StatusBadRequest, "settings_invalid", err.Error())
		return
	}
	s.settings = changed
	if patch.Seed != nil {
		s.random = seeded(changed.Seed)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (p *Provider) getSettings(w http.ResponseWriter, _ *http.Request) {
	s := p.current.Load()
	s.mu.Lock()
	settings := s.settings
	s.mu.Unlock()
	control.JSON(w, http.StatusOK, settings)
}

func (p *Provider) getDeliveries(w http.ResponseWriter, _ *http.Request) {
	s := p.current.Load()
	s.mu.Lock()
	deliveries := append([]Delivery{}, slices.Clone(s.deliveries)...)
	s.mu.Unlock()
	slices.Reverse(deliveries)
	control.JSON(w, http.StatusOK, deliveries)
}

func (p *Provider) postResume(w http.ResponseWriter, _ *http.Request) {
	p.current.Load().resume()
	w.WriteHeader(http.StatusNoContent)
}

func (p *Provider) postReset(w http.ResponseWriter, _ *http.Request) {
	p.reset()
	w.WriteHeader(http.StatusNoContent)
}

// Control is a client of the control endpoints. Every answer that is not 2xx is an error.
type Control struct {
	// URL of the simulator, without a trailing slash.
	URL string
	// Client that calls it; nil = http.DefaultClient.
	Client *http.Client
}

// Faults replaces all rules; none given removes them.
func (c Control) Faults(ctx context.Context, rules ...Rule) error {
	return c.call(ctx, http.MethodPut, "/control/faults", ruleSet{Rules: rules}, nil)
}

// Rules returns the rules and how often each has applied.
func (c Control) Rules(ctx context.Context) ([]RuleState, error) {
	var out struct {
		Rules []RuleState `json:"rules"`
	}
	err := c.call(ctx, http.MethodGet, "/control/faults", nil, &out)
	return out.Rules, err
}

// Settings changes the settings that the patch names.
func (c Control) Settings(ctx context.Context, patch SettingsPatch) error {
	return c.call(ctx, http.MethodPut, "/control/settings", patch, nil)
}

// Resume answers each request that hangs or is delayed now, as if its delay were over. It changes no rule: a request that arrives later
// waits for as long as its rule says.
func (c Control) Resume(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/control/resume", nil, nil)
}

// Reset forgets everything and restores the defaults.
func (c Control) Reset(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/control/reset", nil, nil)
}

// Charges returns every charge ever made, legacy ones included, newest first.
func (c Control) Charges(ctx context.Context) ([]Object, error) { return c.objects(ctx, "charges") }

// Refunds returns every refund ever made, newest first.
func (c Control) Refunds(ctx context.Context) ([]Object, error) { return c.objects(ctx, "refunds") }

// Screenings returns every screening ever made, newest first.
func (c Control) Screenings(ctx context.Context) ([]Object, error) {
	return c.objects(ctx, "screenings")
}

// Releases returns every release of a screening ever made, newest first.
func (c Control) Releases(ctx context.Context) ([]Object, error) { return c.objects(ctx, "releases") }

// Payouts returns every payout ever made, legacy ones included, newest first.
func (c Control) Payouts(ctx context.Context) ([]Object, error) { return c.objects(ctx, "payouts") }

// Deliveries returns the posts of webhooks that are over, newest first, at most 10,000.
func (c Control) Deliveries(ctx context.Context) ([]Delivery, error) {
	var out []Delivery
	err := c.call(ctx, http.MethodGet, "/control/webhooks", nil, &out)
	return out, err
}

func (c Control) objects(ctx context.Context, what string) ([]Object, error) {
	var out []Object
	err := c.call(ctx, http.MethodGet, "/control/"+what, nil, &out)
	return out, err
}

func (c Control) call(ctx context.Context, method, path string, in, out any) error {
	return control.Call(ctx, c.Client, method, strings.TrimSuffix(c.URL, "/")+path, in, out)
}
