// Package policies has the policies of docs/policies/choose.md.
package policies

import (
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Payments never executes a key a second time, also long after its record has expired.
func Payments() idem.Policy {
	policy := idem.IETF()
	policy.Name = "payments"
	policy.Retention = 7 * 24 * time.Hour
	policy.GoneAfterExpiry = true             // an expired key is answered 410,
	policy.KeepFor = 90 * 24 * time.Hour      // for as long as its tombstone is kept
	policy.ReplayHeaders = []string{"X-Rate"} // stored and replayed, besides Content-Type and Location
	return policy
}

// Patient has duplicates wait for the first request's answer, instead of a 409.
func Patient() idem.Policy {
	policy := idem.IETF()
	policy.Name = "patient"
	policy.InFlight = idem.InFlightWait
	policy.WaitMax = 5 * time.Second
	return policy
}

// Introduced are the policies of one route, one release after the other, while its clients learn to send keys.
func Introduced() []idem.Policy {
	optional := idem.IETF()
	optional.Name = "optional"
	optional.MissingKey = idem.MissingKeyUnprotected
	return []idem.Policy{
		idem.Observe(idem.IETF()), // reports what it would have answered; every request executes
		optional,                  // protects who sends a key
		idem.IETF(),               // refuses who sends none
	}
}
