package faultproxy

import (
	"cmp"
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"strings"
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
	// Continued counts the requests that met a step of Then.
	Continued int `json:"continued,omitempty"`
}

// armed is a rule and its dice.
type armed struct {
	RuleState
	dice *rand.Rand // nil where the rule always applies
}

func arm(r Rule) *armed {
	a := &armed{RuleState: RuleState{Rule: r}}
	if r.Chance > 0 {
		a.dice = rand.New(rand.NewPCG(r.Seed, 0))
	}
	return a
}

// falls says whether the rule applies to a match.
func (a *armed) falls() bool { return a.dice == nil || a.dice.Float64() < a.Chance }

// sequence is what the next requests of one content meet.
type sequence struct {
	of   *armed
	left []Step
}

// Count is how often a fault was injected.
type Count struct {
	Operation string `json:"operation"`
	Fault     Fault  `json:"fault"`
	// Code is the one of Throttle, with its reason where it has one.
	Code  string `json:"code,omitempty"`
	Count int    `json:"count"`
}

// Counts are the requests since the last reset, in all and by operation, and the faults among them by operation, fault and code.
type Counts struct {
	Requests   int              `json:"requests"`
	Operations []OperationCount `json:"operations"`
	Faults     []Count          `json:"faults"`
}

// OperationCount is how many requests of an operation there were.
type OperationCount struct {
	Operation string `json:"operation"`
	Requests  int    `json:"requests"`
	// Again counts those with the content of an earlier one, as far as writesMax reaches: what its client sent again. It is 0 for
	// reads, which anybody may repeat, and for UpdateItem: two additions to a counter look the same.
	Again int `json:"again"`
}

// writesMax is how many different writes are remembered since the last reset.
const writesMax = 1 << 18

// state is everything between two resets, which replace it whole: what waits in an old one is thrown away.
type state struct {
	now    func() time.Time
	logMax int
	done   chan struct{} // closed by stop

	mu         sync.Mutex
	stopped    bool
	down       bool
	rules      []*armed
	sequences  map[[sha256.Size]byte]sequence // by the content of the requests that they are for
	counts     map[Count]int                  // by what is counted, Count.Count 0
	operations map[string]*OperationCount
	writes     map[[sha256.Size]byte]bool // the content of those seen
	log        []*Entry
	seq        int
	released   chan struct{} // closed and replaced by release
	waiting    Waiting
}

func newState(now func() time.Time, logMax int) *state {
	return &state{
		now: now, logMax: logMax, done: make(chan struct{}), released: make(chan struct{}),
		sequences: map[[sha256.Size]byte]sequence{}, counts: map[Count]int{},
		operations: map[string]*OperationCount{}, writes: map[[sha256.Size]byte]bool{},
	}
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

// start runs f in the group, unless the state is stopped: a caller that waits for the group after a stop sees all of it.
func (s *state) start(group *sync.WaitGroup, f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	group.Go(f)
	return true
}

// arm replaces the rules, and forgets the sequences that are under way.
func (s *state) arm(rules []Rule) {
	s.rules = nil
	for _, rule := range rules {
		s.rules = append(s.rules, arm(rule))
	}
	clear(s.sequences)
}

// arrive logs a request and decides what happens to it; the step is zero where nothing does.
func (s *state) arrive(q request) (*Entry, Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	step := s.draw(q)
	if step.Fault != "" {
		s.counts[Count{Operation: q.operation, Fault: step.Fault, Code: strings.TrimSpace(step.Code + " " + step.Reason)}]++
	}
	s.count(q)
	s.seq++
	e := &Entry{
		Seq: s.seq, Operation: q.operation, Tables: append([]string{}, q.tables...), Token: q.token,
		RequestBytes: len(q.body), Fault: step.Fault, StartedAt: s.now().UTC(),
	}
	s.log = append(s.log[max(0, len(s.log)-s.logMax+1):], e)
	return e, step
}

// count adds a request to those of its operation.
func (s *state) count(q request) {
	of := s.operations[q.operation]
	if of == nil {
		of = &OperationCount{Operation: q.operation}
		s.operations[q.operation] = of
	}
	of.Requests++
	if !slices.Contains(writing, q.operation) {
		return
	}
	content := q.content()
	switch {
	case s.writes[content]:
		of.Again++
	case len(s.writes) < writesMax:
		s.writes[content] = true
	}
}

// writing are the operations that write rows. No two writes of a store have the same content: each has a revision of its own.
var writing = []string{"PutItem", "DeleteItem", "TransactWriteItems"}

func (s *state) draw(q request) Step {
	if s.down {
		return Step{Fault: down}
	}
	if step, ok := s.next(q); ok {
		return step
	}
	for _, r := range s.rules {
		if (r.Times > 0 && r.Applied >= r.Times) || !r.matches(q) {
			continue
		}
		r.Matched++
		if r.Matched > r.After && r.falls() {
			r.Applied++
			if len(r.Then) > 0 {
				s.sequences[q.content()] = sequence{r, r.Then}
			}
			return r.first()
		}
	}
	return Step{}
}

// next takes the next step of the sequence that a request of this content has begun.
func (s *state) next(q request) (Step, bool) {
	if len(s.sequences) == 0 {
		return Step{}, false
	}
	content := q.content()
	under, ok := s.sequences[content]
	if !ok {
		return Step{}, false
	}
	under.of.Continued++
	if len(under.left) == 1 {
		delete(s.sequences, content)
	} else {
		s.sequences[content] = sequence{under.of, under.left[1:]}
	}
	return under.left[0], true
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
	out := make([]RuleState, len(s.rules))
	for i, r := range s.rules {
		out[i] = r.RuleState
	}
	return out
}

// counted returns the counts, ordered by operation, fault and code.
func (s *state) counted() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Counts{Requests: s.seq, Operations: []OperationCount{}, Faults: []Count{}}
	for c, n := range s.counts {
		c.Count = n
		out.Faults = append(out.Faults, c)
	}
	for _, of := range s.operations {
		out.Operations = append(out.Operations, *of)
	}
	slices.SortFunc(out.Operations, func(a, b OperationCount) int { return cmp.Compare(a.Operation, b.Operation) })
	slices.SortFunc(out.Faults, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Fault, b.Fault), cmp.Compare(a.Code, b.Code))
	})
	return out
}
