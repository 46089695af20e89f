// Package policies has the policies that the pages of docs/policies show.
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
	policy.ReplayHeaders = []string{"X-Rate"} // stored and replayed, besides Content-Type, Content-Encoding and Location
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

// PerSession binds a key to the session that sent it: the same key of another session is another key.
func PerSession() idem.Policy {
	policy := idem.IETF()
	policy.Name = "per session"
	policy.BindPrincipal = true // middleware.Identity.Principal counts, too
	return policy
}

// Polled answers a duplicate of a running request 202, with the address of the operation.
func Polled() idem.Policy {
	policy := idem.IETF()
	policy.Name = "polled"
	policy.InFlight = idem.InFlightAccepted
	return policy
}

// Dated takes only keys that say when they were made, and never executes one that is too old. It keeps no tombstones.
func Dated() idem.Policy {
	policy := idem.IETF()
	policy.Name = "dated"
	policy.KeyTime = idem.KeyTimeUUIDv7
	policy.KeyTimeRequired = true
	policy.GoneAfterExpiry = true
	return policy
}

// Owned keeps the answer for as long as the order that it is about exists: until [idem.Engine.End] is called for it.
func Owned() idem.Policy {
	policy := idem.IETF()
	policy.Name = "owned"
	policy.ResourceBacked = true
	return policy
}

// Strict takes keys in quotes only.
func Strict() idem.Policy {
	policy := idem.IETF()
	policy.Name = "strict"
	policy.Syntax = idem.SyntaxStrict
	return policy
}

// Long takes no key that is too short to be random.
func Long() idem.Policy {
	policy := idem.Stripe()
	policy.Name = "long"
	policy.KeyBytesMin = 20
	return policy
}
