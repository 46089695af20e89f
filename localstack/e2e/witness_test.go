//go:build e2e

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/localstack/audit"
)

// The suites of a run. A request belongs to that of the faults which it can meet, whichever test sends it.
var (
	calm = audit.Suite{
		Name: "without faults", Stalls: 10,
		Why: "nothing is injected that it could meet, and an emulator on a busy machine stalls for longer than a function waits: that meets all that are under way",
	}

	ofShops = audit.Suite{
		Name: "shops, without faults", Stalls: 3, Breaker: true,
		Why: "nothing is injected that they could meet, but their functions have the library's circuit breaker, which a stall opens for 5 s",
	}

	ofItsKey = audit.Suite{
		Name: "faults of its own key", Most: 40,
		Why: "conflicts, throttles and lost replies are laid out for its key, and in some 20 tests they outlast what an engine tries",
	}
	ofTheStore = audit.Suite{
		Name: "faults of the whole store", Most: 60,
		Why: "nothing reaches a table, or a function dies, in some 30 requests, and a circuit breaker stays open for 5 s after that",
	}
	ofWeather = audit.Suite{
		Name: "weather", OfHundred: 20, Why: "DynamoDB answers two of five transactions, and many reserves, with an error; a slow machine has less time to try again in",
	}
	ofKillLoop = audit.Suite{
		Name: "kill loop", OfHundred: 10, Why: "processes are killed, and DynamoDB is down, loses and refuses",
	}
)

// aftermath is for how long a circuit breaker answers 503 after the last fault of the whole store (idem/breaker, OpenFor), with the
// time of one request.
const aftermath = 7 * time.Second

// phase is a time in which every request can meet the same faults; it goes on while to is zero.
type phase struct {
	suite    audit.Suite
	from, to time.Time
}

// witnessed is what all clients of the run have heard.
var witnessed struct {
	ledger audit.Ledger

	mu    sync.Mutex
	heard []audit.Exchange
	// starved are the requests whose last answer was that there is no store, by tenant, path and key.
	starved map[[3]string]bool
	phases  []*phase
	// touched are parts of the requests that faults are laid out for: of paths, of bodies, and of records' keys.
	touched []string
}

// during says from now on which faults every request can meet, until over.
func during(s audit.Suite) (over func()) {
	witnessed.mu.Lock()
	defer witnessed.mu.Unlock()
	p := &phase{suite: s, from: time.Now()}
	witnessed.phases = append(witnessed.phases, p)
	return func() {
		witnessed.mu.Lock()
		defer witnessed.mu.Unlock()
		p.to = time.Now()
	}
}

// touch says that faults are laid out for requests with this text in their path, their body or their record's key.
func touch(text string) {
	witnessed.mu.Lock()
	defer witnessed.mu.Unlock()
	witnessed.touched = append(witnessed.touched, text)
}

// suiteOf is the suite of a request that was sent then and is answered now.
func suiteOf(tenant, operation, key, path, body string, began time.Time) audit.Suite {
	witnessed.mu.Lock()
	defer witnessed.mu.Unlock()
	for _, p := range witnessed.phases {
		if p.to.IsZero() || p.to.Add(aftermath).After(began) {
			return p.suite
		}
	}
	record := string(idem.Scope{Tenant: tenant, Operation: operation, Key: key}.RecordKey())
	if slices.ContainsFunc(witnessed.touched, func(text string) bool {
		return strings.Contains(path, text) || strings.Contains(body, text) || key != "" && strings.Contains(record, text)
	}) {
		return ofItsKey
	}
	if tenant == "" && !strings.HasPrefix(path, "/v1/") {
		return ofShops
	}
	return calm
}

// suite is that of a request of this client.
func (a api) suite(r request, began time.Time) audit.Suite {
	key := r.key
	if key == "" {
		key = strings.Trim(r.header.Get(header.NameKey), `"`)
	}
	return suiteOf(a.tenant, operationAt(r.path), key, r.path, r.body, began)
}

// operationAt is the operation that a POST to the path asks for.
func operationAt(path string) string {
	path, _, _ = strings.Cut(path, "?")
	switch {
	case path == payments:
		return operationPayments
	case path == payouts:
		return operationPayouts
	case path == transfers:
		return operationTransfers
	case strings.HasPrefix(path, payments+"/") && strings.HasSuffix(path, "/refunds"):
		return operationRefunds
	}
	return ""
}

// witness hears every answer that a client gets: those to what a library sends again, too.
type witness struct {
	base   http.RoundTripper
	tenant string
}

// RoundTrip implements http.RoundTripper.
func (w witness) RoundTrip(req *http.Request) (*http.Response, error) {
	e := audit.Exchange{Tenant: w.tenant, Method: req.Method, Path: routed(req.URL), Began: time.Now()}
	if req.Body != nil {
		sent, err := io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
		e.Sent = sent
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(sent))
		if len(sent) == 0 {
			req.Body = http.NoBody
		}
	}
	if keys := req.Header.Values(header.NameKey); req.Method == http.MethodPost && len(keys) == 1 {
		e.Operation, e.Key = operationAt(e.Path), strings.Trim(keys[0], `"`)
	}
	res, err := w.base.RoundTrip(req)
	if err != nil {
		witnessed.ledger.Asked(suiteOf(e.Tenant, e.Operation, e.Key, e.Path, string(e.Sent), e.Began))
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, replyBytesMax))
	_ = res.Body.Close()
	res.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
	if err != nil { // the client is told so when it reads
		return res, nil
	}
	e.Status, e.Header, e.Body, e.Ended = res.StatusCode, res.Header.Clone(), body, time.Now()
	hear(e)
	return res, nil
}

// routed is the path as the API's routes have it, with its query; an emulator puts the API's own address before it.
func routed(u *url.URL) string {
	path := u.RequestURI()
	if i := strings.Index(path, "/v1/"); i >= 0 {
		return path[i:]
	}
	return path
}

// failing ends a body as it ended.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

func hear(e audit.Exchange) {
	suite := suiteOf(e.Tenant, e.Operation, e.Key, e.Path, string(e.Sent), e.Began)
	witnessed.ledger.Asked(suite)
	starved := reply{e.Status, e.Header, e.Body}.starved()
	if starved {
		witnessed.ledger.Unavailable(suite, e.String(), e.Began, e.Ended.Sub(e.Began))
	}
	witnessed.mu.Lock()
	defer witnessed.mu.Unlock()
	asked := [3]string{e.Tenant, e.Path, e.Key}
	if witnessed.starved[asked] {
		witnessed.ledger.Again(suite)
	}
	if witnessed.starved == nil {
		witnessed.starved = map[[3]string]bool{}
	}
	witnessed.starved[asked] = starved
	witnessed.heard = append(witnessed.heard, e)
}

// explained says that the suite of the request allows answers without a store: it is sent again, and counted.
func (a api) explained(r request, began time.Time) bool {
	return a.suite(r, began).Tolerates()
}
