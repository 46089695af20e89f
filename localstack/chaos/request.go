package chaos

import (
	"github.com/idem-go/idem-aws/localstack/faultproxy"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// Shares of requests, in per cent.
const (
	shareTenantA       = 65
	shareOfSharedKeys  = 12
	shareKeyless       = 30
	shareOfRefunds     = 60 // of keyed payments whose clients follow them
	shareRefused       = 1
	shareOfStoreFaults = 22
)

var kinds = []weighed[Kind]{{52, Payment}, {32, Transfer}, {16, Payout}}

var tempers = []weighed[Temper]{{18, Follows}, {15, Trusts}, {17, Retries}, {18, Leaves}, {10, Returns}, {12, Crowds}, {10, Muddles}}

func (d dice) request(i int, earlier []Request) Request {
	r := Request{Kind: draw(d, kinds), Tenant: TenantB, Key: i, Amount: int64(1 + d.IntN(500)), Client: d.client()}
	if d.share(shareTenantA) {
		r.Tenant = TenantA
	}
	if i > 0 && d.share(shareOfSharedKeys) {
		r.shareKey(earlier)
	}
	r.From = d.IntN(AccountCount)
	r.To = (r.From + 1 + d.IntN(AccountCount-2)) % AccountCount
	if r.To == AccountCount-1 { // it stays empty
		r.To = (r.From + 1) % (AccountCount - 1)
	}
	if r.Kind != Transfer {
		r.Keyless = d.share(shareKeyless)
		r.Refused = r.Kind == Payment && d.share(shareRefused)
		r.Provider = d.providerFaults(r)
	}
	if r.Kind == Payment && !r.Keyless && r.Client.Temper == Follows && d.share(shareOfRefunds) {
		r.Refund = 1 + d.Int64N(r.Amount)
		r.Provider = append(r.Provider, d.refundFaults()...)
	}
	if d.share(shareOfStoreFaults) {
		r.DynamoDB = d.storeFaults()
	}
	return r
}

// shareKey gives the request the key of the other tenant's last request of its kind, unless that is a shared one.
func (r *Request) shareKey(earlier []Request) {
	for i := len(earlier) - 1; i >= 0; i-- {
		if other := earlier[i]; other.Kind == r.Kind {
			if other.Tenant != r.Tenant && other.Key == i {
				r.Key = i
			}
			return
		}
	}
}

func (d dice) client() Client {
	c := Client{Temper: draw(d, tempers)}
	switch c.Temper {
	case Leaves, Returns:
		c.Patience = d.between(5, 900)
	case Crowds:
		c.Copies = 2 + d.IntN(3)
	case Follows, Trusts, Retries, Muddles:
	}
	return c
}

// trouble is what a provider does to one call, and to the next.
type trouble []provider.Rule

// A hang or delay in milliseconds: within the time that a call is given (5 s), or beyond it. The latter are few, because a
// worker is good for nothing else meanwhile.
const (
	shortly = 800
	beyond  = 5400
)

// troubles of a call that makes something. More than half of the calls have none.
var troubles = []weighed[trouble]{
	{110, nil},
	{12, trouble{{Fault: provider.ErrorBefore, Times: 1}}},
	{5, trouble{{Fault: provider.ErrorBefore, Times: 2}}},
	{12, trouble{{Fault: provider.ErrorAfter, Times: 1}}},
	{9, trouble{{Fault: provider.DropBefore, Times: 1}}},
	{14, trouble{{Fault: provider.DropAfter, Times: 1}}},
	{5, trouble{{Fault: provider.HangBefore, Times: 1, DelayMillis: shortly}}},
	{5, trouble{{Fault: provider.HangAfter, Times: 1, DelayMillis: shortly}}},
	{1, trouble{{Fault: provider.HangBefore, Times: 1}}},
	{1, trouble{{Fault: provider.HangAfter, Times: 1}}},
	{1, trouble{{Fault: provider.Delay, Times: 1, DelayMillis: beyond}}}, // made after its caller left
	{5, trouble{{Fault: provider.RateLimit, Times: 1}}},
	{3, trouble{{Fault: provider.DropAfter, Times: 1}, {Fault: provider.RateLimit, Times: 2}}},
	{3, trouble{{Fault: provider.ErrorAfter, Times: 1}, {Fault: provider.DropBefore, Times: 1}}},
	{10, trouble{{Fault: provider.Decline, Times: 1}}},
	{4, trouble{{Fault: provider.DropAfter, Times: 1}, {Fault: provider.Decline, Times: 1}}}, // what was made stays made
}

// shareOfDeafLookUps is how many keyless calls can't be looked up at first, in per cent.
const shareOfDeafLookUps = 10

// providerFaults are those of the calls that the request leads to.
func (d dice) providerFaults(r Request) []provider.Rule {
	calls := map[Kind][]provider.Kind{Payment: {provider.Charge}, Payout: {provider.Screening, provider.Payout}}[r.Kind]
	var rules []provider.Rule
	for _, call := range calls {
		t := draw(d, troubles)
		if r.Keyless && len(t) == 0 { // what nobody may repeat meets trouble more often
			t = draw(d, troubles)
		}
		if r.Keyless {
			call = keyless(call)
		}
		rules = append(rules, on(call, t)...)
	}
	if r.Keyless && d.share(shareOfDeafLookUps) {
		rules = append(rules, provider.Rule{On: provider.List, Fault: provider.ErrorBefore, Times: 1})
	}
	return rules
}

func (d dice) refundFaults() []provider.Rule { return on(provider.Refund, draw(d, troubles)) }

// keyless is the kind at the endpoint that ignores keys; screenings have none.
func keyless(call provider.Kind) provider.Kind {
	switch call {
	case provider.Charge:
		return provider.LegacyCharge
	case provider.Payout:
		return provider.LegacyPayout
	default:
		return call
	}
}

func on(call provider.Kind, t trouble) []provider.Rule {
	rules := make([]provider.Rule, len(t))
	for i, rule := range t {
		rule.On = call
		rules[i] = rule
	}
	return rules
}

// storeTroubles are what DynamoDB, or the way there, does to requests about one scope. The SDK tries three times by itself,
// so that four lost replies in a row are for the engine to find out about.
var storeTroubles = []weighed[faultproxy.Rule]{
	{4, faultproxy.Rule{Operation: "TransactWriteItems", Fault: faultproxy.DropReply, Times: 1}},
	{3, faultproxy.Rule{Operation: "TransactWriteItems", Fault: faultproxy.DropReply, Times: 4}},
	{3, faultproxy.Rule{Operation: "TransactWriteItems", Fault: faultproxy.Late, Times: 1}},
	{2, faultproxy.Rule{Operation: "TransactWriteItems", Fault: faultproxy.Late, Times: 4}},
	{2, faultproxy.Rule{Operation: "TransactWriteItems", Fault: faultproxy.Conflict, Times: 2}},
	{2, faultproxy.Rule{Operation: "TransactWriteItems", Fault: faultproxy.Throttle, Code: faultproxy.TransactionCanceled, Times: 2}},
	{2, faultproxy.Rule{Operation: "TransactWriteItems", Fault: faultproxy.Refuse, Times: 2}},
	{1, faultproxy.Rule{Operation: "TransactWriteItems", Fault: faultproxy.DelayRequest, Times: 1}},
	{3, faultproxy.Rule{Operation: "PutItem", Fault: faultproxy.DropReply, Times: 1}},
	{2, faultproxy.Rule{Operation: "PutItem", Fault: faultproxy.DropReply, Times: 4}},
	{2, faultproxy.Rule{Operation: "PutItem", Fault: faultproxy.Late, Times: 2}},
	{2, faultproxy.Rule{Operation: "PutItem", Fault: faultproxy.Conflict, Times: 2}},
	{2, faultproxy.Rule{Operation: "PutItem", Fault: faultproxy.Throttle, Times: 2}},
	{1, faultproxy.Rule{Operation: "GetItem", Fault: faultproxy.Refuse503, Times: 4}},
	{1, faultproxy.Rule{Operation: "GetItem", Fault: faultproxy.DropReply, Times: 2}},
	{1, faultproxy.Rule{Operation: "GetItem", Fault: faultproxy.DelayRequest, Times: 1}},
}

// storeFaults meet the first request of their kind about a scope, or a later one: the settlement is the second transaction
// of a payment.
func (d dice) storeFaults() []faultproxy.Rule {
	rule := draw(d, storeTroubles)
	rule.After = d.IntN(3)
	switch rule.Fault {
	case faultproxy.Late:
		rule.DelayMillis = d.between(300, 9000).Milliseconds()
	case faultproxy.DelayRequest:
		rule.DelayMillis = d.between(300, 2500).Milliseconds()
	default:
	}
	return []faultproxy.Rule{rule}
}
