package conform

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// Target is what is held against the contract. URL, Body and Policy are required.
type Target struct {
	// URL is an endpoint that executes something once for each key.
	URL string
	// Method is the endpoint's. Default POST.
	Method string
	// Body is a valid request, and Other a valid one that asks for something else. Where Other is nil, and Body is a JSON object, it is
	// Body with one member more.
	Body, Other []byte
	// ContentType is the bodies'. Default application/json.
	ContentType string
	// Header is sent with each request: the caller's credentials, as a rule. OtherCaller is that of another tenant; without it nothing is
	// said about tenants.
	Header, OtherCaller http.Header
	// Policy is the contract that the service declares.
	Policy idem.Policy
	// Foreign says that the service does not use this library: it may lack this library's own headers and problem codes, and what only
	// they could tell is not told.
	Foreign bool
	// Client sends the requests. Default: one that gives up after 30 s and follows no redirect.
	Client *http.Client
	// Settle bounds how long one request is sent again until it has its final answer. Default one minute.
	Settle time.Duration
	// Now is the clock, Pause waits or returns the context's error, and Random makes keys that were never used. Default: time.Now,
	// [idem.Pause] and crypto/rand.
	Now    func() time.Time
	Pause  func(context.Context, time.Duration) error
	Random io.Reader
	// Duplicates is how many requests with one key are sent at the same moment. Default 8.
	Duplicates int
}

const (
	settleDefault     = time.Minute
	answerWithin      = 30 * time.Second
	duplicatesDefault = 8
)

// filled is the target with its defaults, or an [*idem.ConfigError].
func (t Target) filled() (Target, error) {
	refuse := func(field string, value any, rule string) (Target, error) {
		return Target{}, &idem.ConfigError{Field: "Target." + field, Value: value, Rule: rule}
	}
	if r, err := http.NewRequest(http.MethodPost, t.URL, http.NoBody); err != nil || r.URL.Host == "" || r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return refuse("URL", t.URL, "must be an address with http or https")
	}
	if t.Method == "" {
		t.Method = http.MethodPost
	}
	if t.Method != http.MethodPost && t.Method != http.MethodPatch {
		return refuse("Method", t.Method, "must be POST or PATCH: others need no key")
	}
	if len(t.Body) == 0 {
		return refuse("Body", "", "must be a valid request of the endpoint")
	}
	if t.ContentType == "" {
		t.ContentType = "application/json"
	}
	if t.Other == nil {
		t.Other = withMember(t.Body)
	}
	if err := t.Policy.Validate(); err != nil {
		return Target{}, err
	}
	if t.Policy.ExemptReason != "" || t.Policy.Observe {
		return refuse("Policy", t.Policy.Name, "must protect the endpoint: nothing is promised otherwise")
	}
	if t.Policy.KeyTimeRequired && t.Policy.KeyTime == idem.KeyTimeULID {
		return refuse("Policy.KeyTime", t.Policy.KeyTime, "must admit UUIDv7, which is what the keys are made of")
	}
	if t.Client == nil {
		t.Client = &http.Client{Timeout: answerWithin, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	if t.Settle == 0 {
		t.Settle = settleDefault
	}
	if t.Duplicates == 0 {
		t.Duplicates = duplicatesDefault
	}
	if t.Now == nil {
		t.Now = time.Now
	}
	if t.Pause == nil {
		t.Pause = idem.Pause
	}
	if t.Random == nil {
		t.Random = rand.Reader
	}
	if t.Settle < 0 || t.Duplicates < 2 || t.Duplicates > 100 {
		return refuse("Duplicates", t.Duplicates, "must be 2 to 100, and Settle not below 0")
	}
	return t, nil
}
