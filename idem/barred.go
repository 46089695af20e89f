package idem

import (
	"fmt"
	"time"
)

// RefusedBeforeError refuses to execute for a key that may be older than a loss of records: 503, inside an
// [*UnavailableError]. Nothing was executed. See Config.RefuseBefore.
type RefusedBeforeError struct {
	// Before is the end of the time that records may have been lost from.
	Before time.Time
}

// Error implements error.
func (e *RefusedBeforeError) Error() string {
	return fmt.Sprintf("idem: nothing is executed for a key that is not proven to be from after %v", e.Before)
}

// bars says whether the request's key may be older than the last loss of records. What proves that it is not is a time in
// the key, or the client's word about when the request was sent first; a client's clock may be ahead by [FirstSentSkew].
func (e *Engine) bars(p Policy, req Request) bool {
	before := e.cfg.RefuseBefore
	if before.IsZero() || req.OneOff {
		return false
	}
	proven := false
	for _, at := range p.times(req) {
		if at.Add(-FirstSentSkew).Before(before) {
			return true
		}
		proven = true
	}
	return !proven
}

// times are when the request says that it was first sent.
func (p Policy) times(req Request) (all []time.Time) {
	if at, has := p.KeyTime.of(req.Key); has {
		all = append(all, at)
	}
	if req.FirstSent != nil {
		all = append(all, *req.FirstSent)
	}
	return all
}
