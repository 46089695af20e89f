package provider

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/localstack/internal/control"
)

// Fault is what goes wrong with a request.
type Fault string

// The faults. After a hang that is waited out, HangBefore answers 504 and HangAfter the true answer.
const (
	ErrorBefore Fault = "error_before" // 500, nothing made
	ErrorAfter  Fault = "error_after"  // made, then 500
	HangBefore  Fault = "hang_before"  // nothing made, no answer for the delay
	HangAfter   Fault = "hang_after"   // made, then no answer for the delay
	DropBefore  Fault = "drop_before"  // nothing made, connection closed
	DropAfter   Fault = "drop_after"   // made, then connection closed
	Decline     Fault = "decline"      // made with status declined, 402
	RateLimit   Fault = "rate_limit"   // 429 with Retry-After, nothing made
	Refuse      Fault = "refuse"       // 400, nothing made
	RefuseData  Fault = "refuse_data"  // 400 because of the source or destination, nothing made
	Delay       Fault = "delay"        // waits, then serves the request, even when the client has gone meanwhile
)

// Delays of rules that name none.
const (
	hangDefault       = 30 * time.Second
	delayDefault      = time.Second
	retryAfterDefault = time.Second
)

// millisMax bounds every number of milliseconds, so that it fits a time.Duration: about 30 years.
const millisMax = 1_000_000_000_000

// Rule says which requests go wrong, and how. The first matching rule that is not used up wins.
type Rule struct {
	// On is the kind of request.
	On Kind `json:"on"`
	// Source and Destination match exactly; empty matches all. A refund has its charge's source, and a release has those
	// of its screening; a look-up matches when an object that it concerns does.
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
	Fault       Fault  `json:"fault"`
	// Times is how often the rule applies; 0 = for ever.
	Times int `json:"times,omitempty"`
	// Probability, 0 to 1, is drawn for each match from the seeded source; nil = always.
	Probability *float64 `json:"probability,omitempty"`
	// DelayMillis is the length of a hang (0 = 30,000) or delay (0 = 1,000), and the Retry-After of rate_limit, rounded
	// up to seconds (0 = 1 s). Other faults ignore it.
	DelayMillis int64 `json:"delay_ms,omitempty"`
}

func (r Rule) check() error {
	making := []Kind{Charge, LegacyCharge, Refund, Screening, Release, Payout, LegacyPayout}
	faults := []Fault{ErrorBefore, ErrorAfter, HangBefore, HangAfter, DropBefore, DropAfter, Decline, RateLimit, Refuse, RefuseData, Delay}
	switch {
	case !slices.Contains(making, r.On) && r.On != List && r.On != Get:
		return fmt.Errorf("on is %q, want one of %q, list or get", r.On, making)
	case !slices.Contains(faults, r.Fault):
		return fmt.Errorf("fault is %q, want one of %q", r.Fault, faults)
	case r.Fault == Decline && !slices.Contains(making, r.On):
		return fmt.Errorf("fault decline on %q: a look-up can't be declined", r.On)
	case r.Times < 0:
		return fmt.Errorf("times is %d, want 0 or more", r.Times)
	case r.Probability != nil && (*r.Probability < 0 || *r.Probability > 1):
		return fmt.Errorf("probability is %v, want 0 to 1", *r.Probability)
	case r.DelayMillis < 0 || r.DelayMillis > millisMax:
		return fmt.Errorf("delay_ms is %d, want 0 to %d", r.DelayMillis, int64(millisMax))
	}
	return nil
}

func (r Rule) delay(otherwise time.Duration) time.Duration {
	if r.DelayMillis == 0 {
		return otherwise
	}
	return time.Duration(r.DelayMillis) * time.Millisecond
}

// party is who takes part in a request, as rules see it.
type party struct{ source, destination string }

func (r Rule) matches(k Kind, parties []party) bool {
	if r.On != k {
		return false
	}
	if r.Source == "" && r.Destination == "" {
		return true
	}
	return slices.ContainsFunc(parties, func(p party) bool {
		return (r.Source == "" || r.Source == p.source) && (r.Destination == "" || r.Destination == p.destination)
	})
}

// answer is what a request is told, frozen: a repeat gets the same bytes.
type answer struct {
	status   int
	body     []byte
	replayed bool
}

func (a answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if a.replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(a.status)
	// The client may be gone; there is nobody left to tell.
	_, _ = w.Write(a.body)
}

// serve runs work, with the rule's fault around it.
func (s *state) serve(w http.ResponseWriter, r *http.Request, rule metRule, work func() answer) {
	switch rule.Fault {
	case ErrorBefore:
		control.Error(w, http.StatusInternalServerError, "internal", "something went wrong")
	case DropBefore:
		hangUp()
	case HangBefore:
		if !s.wait(r.Context().Done(), rule.resumed, rule.delay(hangDefault)) {
			hangUp()
		}
		control.Error(w, http.StatusGatewayTimeout, "timeout", "it took too long")
	case RateLimit:
		seconds := (rule.delay(retryAfterDefault) + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", fmt.Sprint(int64(seconds)))
		control.Error(w, http.StatusTooManyRequests, "rate_limited", "too many requests")
	case Refuse:
		control.Error(w, http.StatusBadRequest, "refused", "the request can't be served")
	case RefuseData:
		refuseFor("source", "refused", "the source or destination can't be served").write(w)
	case Delay:
		// A network that is slow delivers a request although its sender has given up: a zombie, which lands after its absence was told.
		if !s.wait(nil, rule.resumed, rule.delay(delayDefault)) {
			hangUp()
		}
		work().write(w)
	case ErrorAfter:
		work()
		control.Error(w, http.StatusInternalServerError, "internal", "something went wrong")
	case DropAfter:
		work()
		hangUp()
	case HangAfter:
		a := work()
		if !s.wait(r.Context().Done(), rule.resumed, rule.delay(hangDefault)) {
			hangUp()
		}
		a.write(w)
	case Decline: // work has been told
		fallthrough
	default:
		work().write(w)
	}
}

// hangUp ends the handler and closes the client's connection without a byte of an answer.
func hangUp() {
	panic(http.ErrAbortHandler)
}

// wait lets d pass, or less where resumed is closed. False: gone was closed or the simulator was reset first.
func (s *state) wait(gone, resumed <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-resumed:
		return true
	case <-gone:
		return false
	case <-s.done:
		return false
	}
}
