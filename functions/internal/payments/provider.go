package payments

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/call"
	"github.com/idem-go/idem-aws/idem/storage"
)

// keyRetention is how long the provider remembers a key (docs/payments-api.md: key_ttl_ms).
const keyRetention = 24 * time.Hour

// Bounds are what the topics are bounded by.
type Bounds struct {
	// AttemptsMax is how often the provider is called before a message is given up, as outbox.Topic.AttemptsMax counts: without calls
	// that never left or whose caller it refused. 0 is the library's default.
	AttemptsMax int
	// ProbesMax is how many look-ups one run of the reconciler makes at once at each endpoint; 0 is the library's default.
	ProbesMax int
	// LongestRequest bounds how long a request can be under way at the provider, its caller being gone or not, and
	// ListingDelay how long what was made is not found yet. Only after both does absence prove that nothing happened.
	LongestRequest, ListingDelay time.Duration
}

// Provider is where money moves: what is made there, and looked up. It is safe for concurrent use.
type Provider struct {
	url string
	// keyed and keyless make calls, each at its endpoints.
	keyed, keyless *call.Client
	lookUp         *http.Client
}

// NewProvider returns the provider at an absolute http or https URL. Authorize puts a credential on each request of a transport;
// nil sends none.
func NewProvider(rawURL string, authorize func(http.RoundTripper) http.RoundTripper) (*Provider, error) {
	parsed, err := url.Parse(rawURL)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, fmt.Errorf("payments: PROVIDER_URL = %q: must be an absolute http or https URL", rawURL)
	}
	// Without keys, a call whose outcome is open is never repeated, so a call must not go out over an idle connection
	// that the provider has just closed.
	pooled := http.DefaultTransport.(*http.Transport).Clone() // its connections are no others' to close
	fresh := pooled.Clone()
	fresh.DisableKeepAlives = true
	if authorize == nil {
		authorize = func(next http.RoundTripper) http.RoundTripper { return next }
	}
	reused := authorize(pooled)
	keyed, err := call.New(call.Config{Transport: reused, Statuses: statuses()})
	if err != nil {
		return nil, err
	}
	keyless, err := call.New(call.Config{Transport: authorize(fresh), Statuses: statuses()})
	if err != nil {
		return nil, err
	}
	return &Provider{url: strings.TrimRight(rawURL, "/"), lookUp: &http.Client{Transport: reused, CheckRedirect: call.NoRedirects}, keyed: keyed, keyless: keyless}, nil
}

// statuses is what the provider's refusals mean, at all of its endpoints. Any other is ambiguous.
func statuses() map[int]call.Class {
	return map[int]call.Class{
		// It checks a request before it makes anything. Its error names the member that is wrong: one that the client chose is
		// for the client to change, and any other is ours.
		http.StatusBadRequest:          call.Refused,
		http.StatusNotFound:            call.Refused,
		http.StatusUnprocessableEntity: call.Refused,
		// Our credential is wrong: an operator mends it, and what waits goes on.
		http.StatusUnauthorized: call.Unauthorized,
		http.StatusForbidden:    call.Unauthorized,
		// It counts requests before it reads them.
		http.StatusTooManyRequests: call.NotExecuted,
		// It declines a charge, and an object says so.
		http.StatusPaymentRequired: call.Declined,
		// The key came with another body before: what became of that request isn't told.
		http.StatusConflict: call.Unproven,
	}
}

// The provider's endpoints. Those under /legacy ignore keys, so that each call makes a new object.
const (
	chargesPath       = "/charges"
	legacyChargesPath = "/legacy/charges"
	refundsPath       = "/refunds"
	screeningsPath    = "/screenings"
	releasesPath      = "/releases"
	payoutsPath       = "/payouts"
	legacyPayoutsPath = "/legacy/payouts"
)

// effect is one kind of object that the provider makes.
type effect struct {
	topic string
	// order reads what a message's payload asks for.
	order func(payload []byte) (order, error)
	// listed is where objects of the kind are looked up by their key.
	listed string
	settle func(storage.Message, outbox.Outcome) (outbox.Settlement, error)
	// keyless says that the provider ignores keys there.
	keyless bool
	// data are the members of the request that are the client's: a refusal because of one is an answer to the client.
	data []string
}

func effects() []effect {
	return []effect{
		{TopicCharges, orderCharge(chargesPath), chargesPath, settleCharge, false, paymentData},
		{TopicLegacyCharges, orderCharge(legacyChargesPath), legacyChargesPath, settleCharge, true, paymentData},
		{TopicRefunds, orderRefund, refundsPath, settleRefund, false, refundData},
		{TopicScreenings, orderScreening, screeningsPath, settleScreening, false, payoutData},
		{TopicPayouts, orderPayout(payoutsPath), payoutsPath, settlePayout, false, payoutData},
		{TopicLegacyPayouts, orderPayout(legacyPayoutsPath), legacyPayoutsPath, settlePayout, true, payoutData},
		{TopicReleases, orderRelease, releasesPath, settleRelease, false, nil},
	}
}

// Topics are the application's topics. An open call is repeated only where the provider honours keys.
func (p *Provider) Topics(b Bounds) []outbox.Topic {
	var topics []outbox.Topic
	for _, e := range effects() {
		calls, keys := p.keyed, outbox.Keys{Honoured: true, Retention: keyRetention}
		if e.keyless {
			calls, keys = p.keyless, outbox.Keys{}
		}
		topics = append(topics, outbox.Topic{
			Name:           e.topic,
			Call:           func(ctx context.Context, m storage.Message) outbox.Outcome { return p.ask(ctx, calls, e, m) },
			Knows:          known(e.order),
			Probe:          func(ctx context.Context, m storage.Message) outbox.Finding { return p.find(ctx, e.listed, m) },
			Settle:         agreed(e.settle),
			Keys:           keys,
			LongestRequest: b.LongestRequest,
			ListingDelay:   b.ListingDelay,
			AttemptsMax:    b.AttemptsMax,
			ProbesMax:      b.ProbesMax,
		})
	}
	return topics
}

// ask posts what the message asks for.
func (p *Provider) ask(ctx context.Context, calls *call.Client, e effect, m storage.Message) outbox.Outcome {
	order, err := e.order(m.Payload)
	if err != nil {
		return outbox.Refused{Cause: err}
	}
	body, err := json.Marshal(order.body)
	if err != nil {
		return outbox.Refused{Cause: err}
	}
	return calls.Post(ctx, call.Request{
		URL: p.url + order.path, Key: m.ID, Body: body, Reference: referenceIn, Check: agrees(m.ID), Rejects: rejects(e.data),
	})
}
