package payments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/outbox/call"
)

// keyRetention is how long the provider remembers a key (docs/payments-api.md: key_ttl_ms).
const keyRetention = 24 * time.Hour

// longestRequest bounds how long a charge can be under way at the provider, its caller being gone or not.
const longestRequest = time.Minute

// lookUpBytesMax bounds the provider's answer to a look-up.
const lookUpBytesMax = 1 << 20

// Provider is where charges are made and looked up. It is safe for concurrent use.
type Provider struct {
	url string
	// keyed and keyless make calls, each at its endpoints.
	keyed, keyless *call.Client
	lookUp         *http.Client
}

// NewProvider returns the provider at an absolute http or https URL.
func NewProvider(rawURL string) (*Provider, error) {
	parsed, err := url.Parse(rawURL)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, fmt.Errorf("payments: PROVIDER_URL = %q: must be an absolute http or https URL", rawURL)
	}
	// Without keys, a call whose outcome is open is never repeated, so a call must not go out over an idle connection
	// that the provider has just closed.
	fresh := http.DefaultTransport.(*http.Transport).Clone()
	fresh.DisableKeepAlives = true
	return &Provider{
		url: strings.TrimRight(rawURL, "/"), lookUp: &http.Client{},
		keyed: call.New(call.Config{}), keyless: call.New(call.Config{Transport: fresh}),
	}, nil
}

// The provider's endpoints for charges: the second ignores keys, so that each call makes a new charge.
const (
	chargesPath       = "/charges"
	legacyChargesPath = "/legacy/charges"
)

// Topics are the application's topics: charges at a provider that honours keys, and at its keyless endpoints. An open
// call is repeated only at the former.
func (p *Provider) Topics(attemptsMax int) []outbox.Topic {
	topic := func(name, path string, calls *call.Client, keys outbox.Keys) outbox.Topic {
		return outbox.Topic{
			Name:           name,
			Call:           func(ctx context.Context, m idem.Message) outbox.Outcome { return p.charge(ctx, calls, path, m) },
			Probe:          func(ctx context.Context, m idem.Message) outbox.Finding { return p.find(ctx, path, m) },
			Settle:         settleCharge,
			Keys:           keys,
			LongestRequest: longestRequest,
			AttemptsMax:    attemptsMax,
		}
	}
	return []outbox.Topic{
		topic(TopicCharges, chargesPath, p.keyed, outbox.Keys{Honoured: true, Retention: keyRetention}),
		topic(TopicLegacyCharges, legacyChargesPath, p.keyless, outbox.Keys{}),
	}
}

// chargeRequest is the body of the provider's POST /charges.
type chargeRequest struct {
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Source    string `json:"source"`
	Reference string `json:"reference"`
}

func (p *Provider) charge(ctx context.Context, calls *call.Client, path string, m idem.Message) outbox.Outcome {
	c, err := decodeCharge(m.Payload)
	if err != nil {
		// Perhaps a newer release's, which one of its workers will take: nothing was sent, so there is time to wait.
		return outbox.NotExecuted{Cause: err}
	}
	body, err := json.Marshal(chargeRequest{Amount: c.Amount, Currency: c.Currency, Source: c.Source, Reference: c.Reference})
	if err != nil {
		return outbox.Refused{Cause: err}
	}
	return calls.Post(ctx, call.Request{
		URL: p.url + path, Key: m.ID, Body: body, Reference: referenceIn, Declined: []int{http.StatusPaymentRequired},
	})
}

// chargeObject is what idem reads of a charge at the provider.
type chargeObject struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

var errNoID = errors.New("payments: the provider's answer has no id")

func chargeIn(body []byte) (chargeObject, error) {
	var object chargeObject
	if err := json.Unmarshal(body, &object); err != nil {
		return object, err
	}
	if object.ID == "" {
		return object, errNoID
	}
	return object, nil
}

func referenceIn(body []byte) (string, error) {
	object, err := chargeIn(body)
	return object.ID, err
}

// find looks the charge up by its downstream key. Nothing found is no proof yet: its caller knows when it is.
func (p *Provider) find(ctx context.Context, path string, m idem.Message) outbox.Finding {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path+"?key="+url.QueryEscape(string(m.ID)), nil)
	if err != nil {
		return outbox.Unclear{Cause: err}
	}
	res, err := p.lookUp.Do(req)
	if err != nil {
		return outbox.Unclear{Cause: err}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return outbox.Unclear{Cause: fmt.Errorf("payments: look-up answered with status %d", res.StatusCode)}
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, lookUpBytesMax))
	if err != nil {
		return outbox.Unclear{Cause: fmt.Errorf("payments: look-up: %w", err)}
	}
	return findingOf(body)
}

// findingOf reads the charges that the provider lists under one key. There is at most one where all went well; if there
// are more, money that moved has moved, and a decline is an end only where nothing else is open.
func findingOf(body []byte) outbox.Finding {
	var charges []json.RawMessage
	if err := json.Unmarshal(body, &charges); err != nil {
		return outbox.Unclear{Cause: fmt.Errorf("payments: malformed look-up: %w", err)}
	}
	if charges == nil {
		return outbox.Unclear{Cause: errors.New("payments: look-up answered null")}
	}
	var finding outbox.Finding = outbox.Absent{}
	var unclear error
	for _, raw := range charges {
		object, err := chargeIn(raw)
		switch {
		case err != nil:
			unclear = err
		case object.Status == "succeeded":
			return outbox.Found{Outcome: outbox.Delivered{Reference: object.ID, Evidence: raw}}
		case object.Status == "declined":
			finding = outbox.Found{Outcome: outbox.Declined{Reference: object.ID, Evidence: raw}}
		default:
			unclear = fmt.Errorf("payments: a charge with status %q", object.Status)
		}
	}
	if unclear != nil {
		return outbox.Unclear{Cause: unclear}
	}
	return finding
}
