package faultproxy

import (
	"slices"
	"sync"
	"time"
)

// Entry is one request in the log.
type Entry struct {
	// Seq counts from 1, in the order of arrival.
	Seq       int      `json:"seq"`
	Operation string   `json:"operation"`
	Tables    []string `json:"tables"`
	// Token is the request's ClientRequestToken.
	Token string `json:"token,omitempty"`
	// RequestBytes is the length of the body.
	RequestBytes int `json:"request_bytes"`
	// Fault that was applied, empty for none; "down" while the proxy was down.
	Fault Fault `json:"fault,omitempty"`
	// Status of the answer, DynamoDB's or the proxy's in its name, whether or not the client got to see it; 0 while there
	// is none and where nothing was forwarded.
	Status int `json:"status"`
	// ErrorType is the answer's exception, as "ConditionalCheckFailedException".
	ErrorType string `json:"error_type,omitempty"`
	// ConsumedCapacity is the sum of the capacity units in the answer, where the request asked for them.
	ConsumedCapacity float64 `json:"consumed_capacity,omitempty"`
	// Error says why there is no answer although the request was forwarded.
	Error     string    `json:"error,omitempty"`
	StartedAt time.Time `json:"started_at"`
	// EndedAt is nil while the request is under way.
	EndedAt *time.Time `json:"ended_at,omitempty"`
}

// Waiting counts the requests that the proxy holds back.
type Waiting struct {
	// Paused ones wait for a release, their clients for the answer.
	Paused int `json:"paused"`
	// Delayed ones wait for their delay to pass, their clients for the answer.
	Delayed int `json:"delayed"`
	// Late ones wait for their delay or a release; their clients are gone.
	Late int `json:"late"`
}

// RuleState is a rule and what became of it.
type RuleState struct {
	Rule
	// Matched counts the requests that matched before the rule was used up, Applied those that met its fault.
	Matched int `json:"matched"`
	Applied int `json:"applied"`
}

// state is everything between two resets, which replace it whole: what waits in an old one is thrown away.
type state struct {
	now    func() time.Time
	logMax int
	done   chan struct{} // closed by stop

	mu       sync.Mutex
	stopped  bool
	down     bool
	rules    []RuleState
	log      []*Entry
	seq      int
	released chan struct{} // closed and replaced by release
	waiting  Waiting
}

func newState(now func() time.Time, logMax int) *state {
	return &state{now: now, logMax: logMax, done: make(chan struct{}), released: make(chan struct{})}
}

// stop throws away what waits.
func (s *state) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.stopped = true
		close(s.done)
	}
}

// start runs f in the group, unless the state is stopped: whoever waits for the group after a stop sees all of it.
func (s *state) start(group *sync.WaitGroup, f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	group.Go(f)
	return true
}

// arrive logs a request and decides what happens to it; the rule is zero where nothing does.
func (s *state) arrive(q request) (*Entry, Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rule := s.draw(q)
	s.seq++
	e := &Entry{
		Seq: s.seq, Operation: q.operation, Tables: append([]string{}, q.tables...), Token: q.token,
		RequestBytes: len(q.body), Fault: rule.Fault, StartedAt: s.now().UTC(),
	}
	s.log = append(s.log[max(0, len(s.log)-s.logMax+1):], e)
	return e, rule
}

func (s *state) draw(q request) Rule {
	if s.down {
		return Rule{Fault: down}
	}
	for i := range s.rules {
		r := &s.rules[i]
		if (r.Times > 0 && r.Applied >= r.Times) || !r.matches(q) {
			continue
		}
		r.Matched++
		if r.Matched > r.After {
			r.Applied++
			return r.Rule
		}
	}
	return Rule{}
}

// end completes a log entry. Nil stands for no answer.
func (s *state) end(e *Entry, a *reply, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.EndedAt = new(s.now().UTC())
	if a != nil {
		e.Status, e.ErrorType, e.ConsumedCapacity = a.status, a.errorType(), a.capacity()
	}
	if err != nil {
		e.Error = err.Error()
	}
}

// hold counts a request as waiting from now on. The function it returns waits for the next release and tells whether the
// request may go on.
func (s *state) hold(count *int) (wait func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*count++
	released := s.released
	return func() bool {
		defer s.uncount(count)
		select {
		case <-released:
			return true
		case <-s.done:
			return false
		}
	}
}

// holdFor is hold with an end that comes by itself.
func (s *state) holdFor(count *int, d time.Duration) (wait func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*count++
	timer := time.NewTimer(d)
	return func() bool {
		defer timer.Stop()
		defer s.uncount(count)
		select {
		case <-timer.C:
			return true
		case <-s.done:
			return false
		}
	}
}

func (s *state) uncount(count *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*count--
}

func (s *state) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.released)
	s.released = make(chan struct{})
}

// entries returns copies, oldest first, never nil.
func (s *state) entries() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Entry, len(s.log))
	for i, e := range s.log {
		out[i] = *e
	}
	return out
}

func (s *state) ruleStates() []RuleState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]RuleState{}, slices.Clone(s.rules)...)
}
