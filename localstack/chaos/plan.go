package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// Plan is everything that is going to happen, in the order in which requests begin.
type Plan struct {
	Seed     int64
	Requests []Request
	// Events are sorted by After.
	Events []Event
}

// Kind is what a request asks for.
type Kind string

// The kinds of request.
const (
	Payment  Kind = "payment"
	Transfer Kind = "transfer"
	Payout   Kind = "payout"
)

// The tenants of a seeded stack.
const (
	TenantA = "tenant-a"
	TenantB = "tenant-b"
)

// AccountCount is how many accounts each tenant has: transfers and payouts use them, by number. The last one is empty, and
// nobody pays in.
const AccountCount = 6

// Request is one thing that a client wants done once.
type Request struct {
	Kind   Kind
	Tenant string
	// Key numbers the idempotency key. It is the request's own position, or that of another tenant's request of the same
	// kind: then both tenants use one key.
	Key    int
	Amount int64
	// From and To number accounts of the tenant.
	From, To int
	// Keyless says that the provider honours no keys for it.
	Keyless bool
	// Refused says that the provider refuses it, for no reason of the client's.
	Refused bool
	// Refund is given back once the payment has succeeded; 0 for nothing.
	Refund int64
	Client Client
	// Provider and DynamoDB go wrong for this request alone. Whose they are is left to the caller that lays them out: Source or
	// Destination, and Contains.
	Provider []provider.Rule
	DynamoDB []faultproxy.Rule
}

// Temper is how a client behaves.
type Temper string

// The tempers.
const (
	// Follows sends by idem/client, and follows the Location of a 202 to the end.
	Follows Temper = "follows"
	// Trusts sends by idem/client, and leaves with the first answer, be it a 202.
	Trusts Temper = "trusts"
	// Retries sends again by Retry-After, and after anything else that is no answer, until the final answer.
	Retries Temper = "retries"
	// Leaves hangs up after its patience, and never comes back.
	Leaves Temper = "leaves"
	// Returns hangs up after its patience, and begins anew with the same key, as a client does that was restarted.
	Returns Temper = "returns"
	// Crowds sends several copies at once, and each of them again.
	Crowds Temper = "crowds"
	// Muddles sends, once it has an answer, something else under the same key.
	Muddles Temper = "muddles"
)

// Client is who sends a request.
type Client struct {
	Temper Temper
	// Patience is after what time it hangs up. Only where it Leaves or Returns.
	Patience time.Duration
	// Copies are sent at once. Only where it Crowds.
	Copies int
}

// Action is what happens between two requests.
type Action string

// The actions.
const (
	// Kill ends processes of a function.
	Kill Action = "kill"
	// Outage closes every connection to DynamoDB for a while.
	Outage Action = "outage"
	// Webhooks has the provider announce what it makes from now on in another mode.
	Webhooks Action = "webhooks"
)

// Event happens beside the requests.
type Event struct {
	Action Action
	// After is how many requests have begun; Delay is what passes then.
	After int
	Delay time.Duration
	// Victim is the function whose processes are killed: all of them, or the one that Pick, modulo their number, points at.
	Victim Victim
	All    bool
	Pick   int
	// Mode of webhooks.
	Mode provider.Mode
	// For is how long an outage lasts, or how late webhooks are.
	For time.Duration
}

// Victim is a function, as the stack's outputs name it.
type Victim string

// The victims. A stack without a relay has its worker killed instead.
const (
	API       Victim = "API"
	Worker    Victim = "WORKER"
	Sweep     Victim = "SWEEP"
	Reconcile Victim = "RECONCILE"
	Webhook   Victim = "WEBHOOK"
	Relay     Victim = "RELAY"
)

// Victims are all of them.
func Victims() []Victim { return []Victim{API, Worker, Sweep, Reconcile, Webhook, Relay} }

// RequestsMax bounds a plan: what its faults take to lay out, in one request to the provider and one to the fault proxy.
const RequestsMax = 20_000

// New plans that many requests. It returns an error for a number that is not 1 to RequestsMax.
func New(seed int64, requests int) (Plan, error) {
	if requests < 1 || requests > RequestsMax {
		return Plan{}, fmt.Errorf("chaos: %d requests, want 1 to %d", requests, RequestsMax)
	}
	// Two sources: what is asked for does not depend on what happens beside it.
	asks, beside := dice{rand.New(rand.NewPCG(uint64(seed), 1))}, dice{rand.New(rand.NewPCG(uint64(seed), 2))}
	p := Plan{Seed: seed}
	for i := range requests {
		p.Requests = append(p.Requests, asks.request(i, p.Requests))
	}
	p.Events = beside.events(requests)
	return p, nil
}

// dice draw.
type dice struct{ *rand.Rand }

// share is true p times in a hundred.
func (d dice) share(p int) bool { return d.IntN(100) < p }

// between draws a duration, in milliseconds from the least to below the most.
func (d dice) between(least, most int) time.Duration {
	return time.Duration(least+d.IntN(most-least)) * time.Millisecond
}

// weighed is something that is drawn as often as its weight says.
type weighed[T any] struct {
	weight int
	value  T
}

func draw[T any](d dice, from []weighed[T]) T {
	sum := 0
	for _, w := range from {
		sum += w.weight
	}
	at := d.IntN(sum)
	for _, w := range from {
		if at -= w.weight; at < 0 {
			return w.value
		}
	}
	return from[len(from)-1].value
}
