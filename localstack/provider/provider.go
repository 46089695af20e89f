package provider

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem-aws/localstack/internal/control"
)

// Config is how a Provider starts. The zero value is ready: real time, seed 0, no webhooks.
type Config struct {
	// Now is the clock; nil = time.Now.
	Now func() time.Time
	// NewID names an object, by what its id begins with; nil = at random.
	NewID func(prefix string) string
	// Seed of the probabilities of rules, until a setting changes it.
	Seed int64
	// WebhookSecret signs webhooks; without it they can't be switched on.
	WebhookSecret string
	// WebhookURL is where webhooks go, until a setting changes it. They start off all the same.
	WebhookURL string
	// Client posts webhooks; nil = one of its own. Each post is given 10 s.
	Client *http.Client
}

// Provider is the simulator. It is an http.Handler, safe for concurrent use.
type Provider struct {
	now      func() time.Time
	newID    func(prefix string) string
	defaults Settings
	events   *poster
	mux      *http.ServeMux
	resets   sync.Mutex
	current  atomic.Pointer[state]
}

// New returns a simulator with no objects and no rules. Close it when done.
func New(c Config) *Provider {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = newID
	}
	if c.Client == nil {
		c.Client = &http.Client{}
	}
	p := &Provider{
		now: c.Now, newID: c.NewID,
		events: &poster{secret: c.WebhookSecret, client: c.Client},
		defaults: Settings{
			Seed:         c.Seed,
			KeyTTLMillis: (24 * time.Hour).Milliseconds(),
			Webhooks:     Webhooks{URL: c.WebhookURL, Mode: Off},
		},
	}
	p.current.Store(newState(p.now, p.newID, p.events, p.defaults))
	p.mux = p.routes()
	return p
}

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mux.ServeHTTP(w, r)
}

// Close ends every hanging request and waiting webhook, and returns when no webhook is under way.
func (p *Provider) Close() {
	p.current.Load().stop()
	p.events.running.Wait()
}

// reset forgets everything and restores the defaults.
func (p *Provider) reset() {
	p.resets.Lock()
	defer p.resets.Unlock()
	p.current.Swap(newState(p.now, p.newID, p.events, p.defaults)).stop()
}

func (p *Provider) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for path, kind := range map[string]Kind{
		"/charges": Charge, "/legacy/charges": LegacyCharge, "/screenings": Screening, "/payouts": Payout, "/legacy/payouts": LegacyPayout,
	} {
		mux.Handle(path, control.Methods{http.MethodPost: p.make(kind), http.MethodGet: p.list(kind)})
		mux.Handle(path+"/{id}", control.Methods{http.MethodGet: p.get(kind)})
	}
	mux.Handle("/charges/{id}/refunds", control.Methods{http.MethodPost: p.make(Refund)})
	mux.Handle("/screenings/{id}/releases", control.Methods{http.MethodPost: p.make(Release)})
	for path, kind := range map[string]Kind{"/refunds": Refund, "/releases": Release} {
		mux.Handle(path, control.Methods{http.MethodGet: p.list(kind)})
		mux.Handle(path+"/{id}", control.Methods{http.MethodGet: p.get(kind)})
	}
	for path, kinds := range map[string][]Kind{
		"/control/charges": {Charge, LegacyCharge}, "/control/refunds": {Refund},
		"/control/screenings": {Screening}, "/control/releases": {Release}, "/control/payouts": {Payout, LegacyPayout},
	} {
		mux.Handle(path, control.Methods{http.MethodGet: p.all(kinds...)})
	}
	mux.Handle("/control/faults", control.Methods{http.MethodPut: p.putFaults, http.MethodGet: p.getFaults})
	mux.Handle("/control/settings", control.Methods{http.MethodPut: p.putSettings, http.MethodGet: p.getSettings})
	mux.Handle("/control/webhooks", control.Methods{http.MethodGet: p.getDeliveries})
	mux.Handle("/control/resume", control.Methods{http.MethodPost: p.postResume})
	mux.Handle("/control/reset", control.Methods{http.MethodPost: p.postReset})
	mux.HandleFunc("/", control.NotFound)
	return mux
}

// make serves POST: one new object, or the answer that the key has.
func (p *Provider) make(k Kind) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := p.current.Load()
		m := making{kind: k, of: r.PathValue("id")}
		// The whole body is read before any fault: a client that hangs up is noticed only after that.
		if !control.Read(w, r, &m.order) {
			return
		}
		if param, wrong := m.order.check(k); wrong != "" {
			refuseFor(param, "request_invalid", wrong).write(w)
			return
		}
		keys := r.Header.Values("Idempotency-Key")
		if len(keys) > 1 || (len(keys) == 1 && len(keys[0]) > keyBytesMax) {
			control.Error(w, http.StatusBadRequest, "key_invalid", "one Idempotency-Key of at most 255 bytes")
			return
		}
		key := r.Header.Get("Idempotency-Key")
		rule, use, refusal := s.arrive(key, m)
		if refusal != nil {
			refusal.write(w)
			return
		}
		defer s.leave(use)
		s.serve(w, r, rule, func() answer { return s.make(key, r.Header.Get("Traceparent"), m, rule.Fault == Decline) })
	}
}

// list serves GET of many: by key, by time, in pages. A rule with a source or destination meets only a look-up by key: a
// listing concerns nobody in particular.
func (p *Provider) list(k Kind) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := p.current.Load()
		asked, wrong := readListing(r.URL.Query())
		if wrong == "" && asked.after != "" && !s.knows(asked.after) {
			wrong = "starting_after is no object's id"
		}
		if wrong != "" {
			control.Error(w, http.StatusBadRequest, "request_invalid", wrong)
			return
		}
		var concerned []Object
		if asked.key != nil {
			concerned = s.listed(asked, 0, k)
		}
		rule, delay := s.lookUp(List, concerned...)
		s.serve(w, r, rule, func() answer {
			return answer{status: http.StatusOK, body: encode(s.listed(asked, delay, k))}
		})
	}
}

// get serves GET by id.
func (p *Provider) get(k Kind) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, id := p.current.Load(), r.PathValue("id")
		var concerned []Object
		if o, ok := s.found(id, 0, k); ok {
			concerned = append(concerned, o)
		}
		rule, delay := s.lookUp(Get, concerned...)
		s.serve(w, r, rule, func() answer {
			o, ok := s.found(id, delay, k)
			if !ok {
				return refuse(http.StatusNotFound, "not_found", "there is no such object")
			}
			return answer{status: http.StatusOK, body: encode(o)}
		})
	}
}

// all serves the control listing: no faults, no listing delay.
func (p *Provider) all(kinds ...Kind) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		control.JSON(w, http.StatusOK, p.current.Load().listed(listing{}, 0, kinds...))
	}
}
