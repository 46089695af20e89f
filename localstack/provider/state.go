package provider

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// state is everything between two resets. A reset replaces it whole, so a request that began before one can't leave
// anything behind in the new one.
type state struct {
	now    func() time.Time
	newID  func(prefix string) string
	events *poster
	done   chan struct{} // closed by stop

	mu         sync.Mutex
	stopped    bool
	resumed    chan struct{} // closed by resume, for what has arrived until then
	settings   Settings
	random     *rand.Rand
	rules      []activeRule
	objects    []*Object // oldest first
	byID       map[string]*Object
	byKey      map[string][]*Object
	keys       map[string]*keyUse
	refunded   map[string]int64 // by charge, in minor units
	deliveries []Delivery       // oldest first
}

type activeRule struct {
	Rule
	applied int
}

// metRule is the rule that a request has met, none in its zero value, and what ends its wait early.
type metRule struct {
	Rule
	resumed <-chan struct{}
}

// keyUse is what is known of an Idempotency-Key.
type keyUse struct {
	attempts, open int
	// object is nil until one was made; then made is what was asked for and told, the answer kept since madeAt.
	object *Object
	asked  making
	told   answer
	madeAt time.Time
}

// making is a request for a new object; comparable, so that a repeat with other parameters shows.
type making struct {
	kind  Kind
	of    string // the charge of a refund, the screening of a release; else empty
	order order
}

func newState(now func() time.Time, newID func(string) string, events *poster, settings Settings) *state {
	return &state{
		now: now, newID: newID, events: events, done: make(chan struct{}), resumed: make(chan struct{}),
		settings: settings, random: seeded(settings.Seed),
		byID: map[string]*Object{}, byKey: map[string][]*Object{}, keys: map[string]*keyUse{}, refunded: map[string]int64{},
	}
}

func seeded(seed int64) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(seed), 0))
}

// stop releases every request that hangs and every webhook that waits.
func (s *state) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.stopped = true
		close(s.done)
	}
}

// resume ends the wait of every request that has met its rule.
func (s *state) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.resumed)
	s.resumed = make(chan struct{})
}

// arrive counts a request to make an object, in use, and draws its fault. The refusal is not nil where the request is about a
// charge or a screening that does not exist.
func (s *state) arrive(key string, m making) (rule metRule, use *keyUse, refusal *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := party{m.order.Source, m.order.Destination}
	if m.kind == Refund || m.kind == Release {
		of, refusal := s.origin(m)
		if refusal != nil {
			return metRule{}, nil, refusal
		}
		who = party{of.Source, of.Destination}
	}
	var stored bool
	if use = s.use(key, m.kind); use != nil {
		use.attempts++
		use.open++
		stored = use.object != nil
		use.show()
	}
	return s.draw(m.kind, []party{who}, stored), use, nil
}

// leave ends what arrive has counted as open.
func (s *state) leave(use *keyUse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if use != nil {
		use.open--
		use.show()
	}
}

// show has the object tell of the requests.
func (use *keyUse) show() {
	if use.object != nil {
		use.object.Attempts, use.object.Open = use.attempts, use.open
	}
}

// draw uses the first rule that applies up to once, and returns it, or none. An answer that is stored can't become a
// decline any more.
func (s *state) draw(k Kind, parties []party, stored bool) metRule {
	for i := range s.rules {
		rule := &s.rules[i]
		switch {
		case !rule.matches(k, parties):
		case rule.Fault == Decline && stored:
		case rule.Times > 0 && rule.applied >= rule.Times:
		case rule.Probability != nil && s.random.Float64() >= *rule.Probability:
		default:
			rule.applied++
			return metRule{rule.Rule, s.resumed}
		}
	}
	return metRule{}
}

// use returns what is known of the key, a fresh one where nothing is or where it is over; nil where keys don't count.
func (s *state) use(key string, k Kind) *keyUse {
	if key == "" || k.legacy() {
		return nil
	}
	use, ok := s.keys[key]
	ttl := time.Duration(s.settings.KeyTTLMillis) * time.Millisecond
	if !ok || (use.object != nil && s.now().Sub(use.madeAt) >= ttl) {
		use = &keyUse{}
		s.keys[key] = use
	}
	return use
}

// make makes the object, or repeats the answer that the key already has. The lock makes simultaneous duplicates one.
func (s *state) make(key, traceparent string, m making, declined bool) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	use := s.use(key, m.kind)
	if use != nil && use.object != nil {
		if use.asked != m {
			return refuse(http.StatusConflict, "key_reused", "the key was used with other parameters")
		}
		told := use.told
		told.replayed = true
		return told
	}
	o := &Object{
		ID: s.newID(m.kind.prefix()), Kind: m.kind, Status: Succeeded, Key: key, Amount: m.order.Amount, Currency: m.order.Currency,
		Source: m.order.Source, Destination: m.order.Destination, Reference: m.order.Reference, CreatedAt: Time{s.now()},
	}
	if declined {
		o.Status = Declined
	}
	if refusal := s.complete(o, m); refusal != nil {
		return *refusal
	}
	told := answer{status: statusOf(o.Status), body: encode(o)}
	s.announce(*o)
	o.Attempts, o.Traceparent = 1, traceparent
	if use != nil {
		// A key whose answer ran out between arrival and now has begun anew without having counted this request.
		use.attempts = max(use.attempts, 1)
		use.object, use.asked, use.told, use.madeAt = o, m, told, s.now()
		use.show()
	}
	s.objects = append(s.objects, o)
	s.byID[o.ID] = o
	s.byKey[key] = append(s.byKey[key], o)
	return told
}

// complete adds what an object has of another one, and changes that one. It refuses what the other does not allow.
func (s *state) complete(o *Object, m making) *answer {
	switch m.kind {
	case Refund:
		return s.refund(o, m)
	case Release:
		return s.release(o, m)
	case Screening:
		if o.Status == Succeeded {
			o.Hold = Standing
		}
	case Charge, LegacyCharge, Payout, LegacyPayout, List, Get:
	}
	return nil
}

// refund completes a refund from its charge, and refuses what the charge can't give back.
func (s *state) refund(o *Object, m making) *answer {
	charge, refusal := s.origin(m)
	switch {
	case refusal != nil:
		return refusal
	case charge.Status != Succeeded:
		return new(refuse(http.StatusBadRequest, "charge_not_refundable", "the charge did not succeed"))
	case o.Currency != "" && o.Currency != charge.Currency:
		return new(refuse(http.StatusBadRequest, "currency_mismatch", "the charge is in "+charge.Currency))
	case o.Amount > charge.Amount-s.refunded[charge.ID]:
		return new(refuseFor("amount", "refund_exceeds_charge", "the charge has less left to refund"))
	}
	o.Charge, o.Source, o.Currency = charge.ID, charge.Source, charge.Currency
	if o.Status == Succeeded {
		s.refunded[charge.ID] += o.Amount
	}
	return nil
}

// release completes a release from its screening and ends the hold, all of it at once. A release that is declined leaves
// the hold as it stands.
func (s *state) release(o *Object, m making) *answer {
	screening, refusal := s.origin(m)
	switch {
	case refusal != nil:
		return refusal
	case screening.Status != Succeeded:
		return new(refuse(http.StatusBadRequest, "screening_not_releasable", "the screening was declined: it placed no hold"))
	case screening.Hold == Released:
		return new(refuse(http.StatusBadRequest, "screening_released", "the screening's hold was released under another key"))
	case o.Currency != "" && o.Currency != screening.Currency:
		return new(refuse(http.StatusBadRequest, "currency_mismatch", "the screening is in "+screening.Currency))
	case o.Amount != screening.Amount:
		return new(refuse(http.StatusBadRequest, "amount_mismatch", "a release ends the whole hold, with the screening's amount"))
	}
	o.Screening, o.Source, o.Destination, o.Currency = screening.ID, screening.Source, screening.Destination, screening.Currency
	if o.Status == Succeeded {
		screening.Hold = Released
	}
	return nil
}

// origin is the object that a refund or a release is made of.
func (s *state) origin(m making) (*Object, *answer) {
	kinds, what := []Kind{Charge, LegacyCharge}, "charge"
	if m.kind == Release {
		kinds, what = []Kind{Screening}, "screening"
	}
	if o := s.byID[m.of]; o != nil && slices.Contains(kinds, o.Kind) {
		return o, nil
	}
	return nil, new(refuse(http.StatusNotFound, "not_found", "there is no "+what+" "+m.of))
}

// listed returns copies of the objects that the listing asks for, that are of one of the kinds and not younger than the
// age, newest first, never nil.
func (s *state) listed(l listing, age time.Duration, kinds ...Kind) []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.objects
	if l.key != nil {
		from = s.byKey[*l.key]
	}
	now, out, begun := s.now(), []Object{}, l.after == ""
	for _, o := range slices.Backward(from) {
		if l.limit > 0 && len(out) == l.limit {
			break
		}
		if begun && slices.Contains(kinds, o.Kind) && l.holds(o) && now.Sub(o.CreatedAt.Time) >= age {
			out = append(out, *o)
		}
		begun = begun || o.ID == l.after
	}
	return out
}

// knows says whether there is an object of the id.
func (s *state) knows(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id] != nil
}

// found is listed for one id.
func (s *state) found(id string, age time.Duration, k Kind) (Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.byID[id]
	if !ok || o.Kind != k || s.now().Sub(o.CreatedAt.Time) < age {
		return Object{}, false
	}
	return *o, true
}

// lookUp draws the fault of a look-up that concerns the objects, and returns the listing delay beside it.
func (s *state) lookUp(k Kind, objects ...Object) (metRule, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parties := make([]party, len(objects))
	for i, o := range objects {
		parties[i] = party{o.Source, o.Destination}
	}
	return s.draw(k, parties, true), time.Duration(s.settings.ListDelayMillis) * time.Millisecond
}

func statusOf(s Status) int {
	if s == Declined {
		return http.StatusPaymentRequired
	}
	return http.StatusCreated
}

func refuse(status int, code, message string) answer {
	return answer{status: status, body: encode(map[string]any{"error": map[string]string{"code": code, "message": message}})}
}

// refuseFor is refuse because of a member of the request.
func refuseFor(param, code, message string) answer {
	return answer{status: http.StatusBadRequest, body: encode(map[string]any{"error": map[string]string{"code": code, "message": message, "param": param}})}
}

// encode can't fail: what is encoded here are this package's own plain structs.
func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"error":{"code":"internal","message":"no JSON"}}`)
	}
	return body
}
