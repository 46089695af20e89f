package middleware_test

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/middleware"
	"github.com/idem-go/idem-aws/idem/storage"
	"github.com/idem-go/idem-aws/idem/storetest/faulty"
)

// exchange is one kind of answer and the headers that it has.
type exchange struct {
	// name is the Idempotency-Status or the problem's code.
	name     string
	status   int
	became   string
	replayed bool
	expires  bool
	location bool
	ask      func(*testing.T) *reply
}

// problem says that the name is a code.
func (e exchange) problem() bool { return strings.HasPrefix(e.name, "idempotency_") }

// waits says that the answer has a Retry-After: every 202, 409 and 503, and the 429 of a quota.
func (e exchange) waits() bool { return slices.Contains([]int{202, 409, 503, 429}, e.status) }

// exchanges are the answers that docs/semantics.md "On the wire" knows.
var exchanges = []exchange{
	{name: executed, status: 201, became: executed, expires: true, ask: posts(1, 201)},
	{name: executed, status: 500, became: executed, ask: posts(1, 500)},
	{name: executed, status: 202, became: executed, location: true, ask: accepts(1)},
	{name: replayed, status: 201, became: replayed, replayed: true, expires: true, ask: posts(2, 201)},
	{name: replayed, status: 402, became: replayed, replayed: true, expires: true, ask: posts(2, 402)},
	{name: replayed, status: 202, became: replayed, replayed: true, location: true, ask: accepts(2)},
	{name: inProgress, status: 202, became: inProgress, location: true, ask: whileRunning(idem.InFlightAccepted)},
	{name: ignored, status: 201, became: ignored, ask: asks(func(q *ask) { q.method = http.MethodPut })},
	{name: unprotected, status: 201, became: unprotected, ask: postsMissingAKey},
	{name: header.CodeKeyMissing, status: 400, ask: asks(without)},
	{name: header.CodeKeyInvalid, status: 400, ask: asks(func(q *ask) { q.keys = []string{`"secret", "b"`} })},
	{name: header.CodeKeyReused, status: 422, became: mismatch, ask: twice(idem.IETF())},
	{name: header.CodeError, status: 400, became: mismatch, ask: twice(idem.Stripe())},
	{name: header.CodeInProgress, status: 409, became: inProgress, ask: whileRunning(idem.InFlightConflict)},
	{name: header.CodeInUse, status: 409, became: inProgress, ask: whileRunning(idem.InFlightInUse)},
	{name: header.CodeOutcomeUnknown, status: 409, became: unknown, ask: afterAWrappedFailure},
	{name: header.CodeKeyExpired, status: 410, ask: afterExpiry},
	{name: header.CodeKeyExpired, status: 412, ask: asks(func(q *ask) { sentAt(time.Now().Add(-day))(q) })},
	{name: header.CodeResponseErased, status: 410, ask: afterAnErasure},
	{name: header.CodeQuotaExceeded, status: 429, ask: overTheQuota},
	{name: header.CodeStoreUnavailable, status: 503, ask: withoutAStore},
	{name: header.CodeNoTime, status: 503, ask: withoutTime},
	{name: header.CodeRefusedBefore, status: 503, ask: afterALossOfRecords},
	{name: header.CodeResponseTooLarge, status: 500, ask: asks(sized(4 << 20))},
	{name: header.CodeResponseNotKept, status: 500, became: executed, expires: true, ask: wrappedAnswering(4 << 20)},
}

// headers says which answers have a header.
var headers = map[string]func(exchange) bool{
	"Idempotent-Replayed": func(e exchange) bool { return e.replayed },
	"Idempotency-Status":  func(e exchange) bool { return e.became != "" },
	"Idempotency-Expires": func(e exchange) bool { return e.expires },
	"Retry-After":         exchange.waits,
	"Location":            func(e exchange) bool { return e.location },
	"Link":                func(exchange) bool { return true },
}

func TestOnTheWire(t *testing.T) { // docs/semantics.md "On the wire"
	for _, e := range exchanges {
		proves(t, e.name+" "+strconv.Itoa(e.status), func(t *testing.T) {
			got := e.ask(t)
			if got.StatusCode != e.status || got.Header.Get("Idempotency-Status") != e.became {
				t.Errorf("%d %q %s, want %d %q", got.StatusCode, got.Header.Get("Idempotency-Status"), got.body, e.status, e.became)
			}
			for name, has := range headers {
				if values := got.Header.Values(name); len(values) > 1 || (len(values) == 1) != has(e) {
					t.Errorf("%s: %q, want it there: %v", name, values, has(e))
				}
			}
			if e.problem() && got.code(t) != e.name {
				t.Errorf("code %s", got.code(t))
			}
			if e.problem() && strings.Contains(string(got.body), "secret") {
				t.Errorf("tells of the key or what is stored: %s", got.body)
			}
			if seconds, err := strconv.Atoi(got.Header.Get("Retry-After")); e.waits() && (err != nil || seconds < 1) {
				t.Errorf("Retry-After %q, want seconds", got.Header.Get("Retry-After"))
			}
			if e.location && !strings.HasPrefix(got.Header.Get("Location"), "/v1/operations/op_") {
				t.Errorf("Location %q", got.Header.Get("Location"))
			}
		})
	}
	t.Run("replay = same status, same body bytes", replaysAreByteForByte)
	t.Run("same allow-listed headers", replayedHeaders)
}

var (
	documentedCode   = regexp.MustCompile(`(idempotency_[a-z_]+)\s+(\d{3})(?: / (\d{3}))?`)
	documentedHeader = regexp.MustCompile("`([A-Z][A-Za-z-]+)(?:: ([^`]*))?`")
	declaredCode     = regexp.MustCompile(`"(idempotency_[a-z_]+)"`)
)

// Every code, every response header and every Idempotency-Status of the contract has an exchange, and every declared code.
func TestOnTheWireIsTheContract(t *testing.T) {
	tested := func(name string, status int) bool {
		return slices.ContainsFunc(exchanges, func(e exchange) bool {
			return (e.name == name || e.became == name) && (status == 0 || e.status == status)
		})
	}
	_, errors, _ := strings.Cut(section(t, "On the wire"), "\nErrors are ")
	errors, _, _ = strings.Cut(errors, "The messages never contain")
	codes := documentedCode.FindAllStringSubmatch(errors, -1)
	if len(codes) < 10 {
		t.Errorf("docs/semantics.md has the codes %q", codes)
	}
	for _, code := range codes {
		for _, digits := range code[2:] {
			if status, err := strconv.Atoi(digits); err == nil && !tested(code[1], status) {
				t.Errorf("docs/semantics.md has %s %d, which no test gets", code[1], status)
			}
		}
	}
	source, err := os.ReadFile("../header/code.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range declaredCode.FindAllStringSubmatch(string(source), -1) {
		if !tested(code[1], 0) {
			t.Errorf("no test gets %s", code[1])
		}
	}
	_, responses, _ := strings.Cut(section(t, "On the wire"), "\nResponse: ")
	responses, _, _ = strings.Cut(responses, "\nErrors are ")
	for _, header := range documentedHeader.FindAllStringSubmatch(responses, -1) {
		if headers[header[1]] == nil {
			t.Errorf("docs/semantics.md has the header %s, which no test looks for", header[1])
		}
		if header[1] != "Idempotency-Status" {
			continue
		}
		for _, value := range strings.Split(header[2], "|") {
			if value = strings.TrimSpace(value); !tested(value, 0) {
				t.Errorf("docs/semantics.md has Idempotency-Status: %s, which no test gets", value)
			}
		}
	}
}

// secret is a request with what no message may tell.
func secret(more ...func(*ask)) ask {
	return order("secret", 201, append([]func(*ask){body(`{"secret":1}`)}, more...)...)
}

// asks gets the answer to one request.
func asks(more ...func(*ask)) func(*testing.T) *reply {
	return func(t *testing.T) *reply { return newContract(t, idem.IETF()).do(secret(more...)) }
}

// posts gets the last of so many answers with the status.
func posts(times, status int) func(*testing.T) *reply {
	return func(t *testing.T) *reply {
		c := newContract(t, idem.IETF())
		for range times - 1 {
			c.post("k", status)
		}
		return c.post("k", status)
	}
}

func accepts(times int) func(*testing.T) *reply {
	return func(t *testing.T) *reply {
		a := newLocalAPI(t, nil)
		deferred(a)
		for range times - 1 {
			a.do(key(ask{}))
		}
		return a.do(key(ask{}))
	}
}

func postsMissingAKey(t *testing.T) *reply { return newContract(t, idem.Lenient()).do(secret(without)) }

// twice gets the answer to the key with another payload.
func twice(policy idem.Policy) func(*testing.T) *reply {
	return func(t *testing.T) *reply {
		c := newContract(t, policy)
		c.do(secret())
		return c.do(secret(body(`{"a":1}`)))
	}
}

func whileRunning(answer idem.InFlight) func(*testing.T) *reply {
	return func(t *testing.T) *reply {
		c := newContract(t, idem.IETF(), func(p *idem.Policy) { p.InFlight = answer })
		finish := c.hold("secret", body(`{"secret":1}`))
		defer finish()
		return c.do(secret())
	}
}

func afterAWrappedFailure(t *testing.T) *reply {
	c := newContract(t, idem.IETF()).wrapped()
	c.do(order("secret", 502, body(`{"secret":1}`), at("/wrapped")))
	return c.do(secret(at("/wrapped")))
}

// wrappedAnswering: a wrapped handler whose answer is of that size.
func wrappedAnswering(size int) func(*testing.T) *reply {
	return func(t *testing.T) *reply {
		c := newContract(t, idem.IETF()).wrapped()
		return c.do(secret(at("/wrapped"), sized(size)))
	}
}

func afterExpiry(t *testing.T) *reply {
	c := newContract(t, idem.IETF(), func(p *idem.Policy) { p.GoneAfterExpiry, p.KeepFor = true, day })
	c.do(secret())
	c.later(day)
	return c.do(secret())
}

// afterAnErasure: a replay whose stored response nobody can open any more; nothing is executed in its place.
func afterAnErasure(t *testing.T) *reply {
	c, store := newFaultyContract(t)
	c.do(secret(sized(8 << 10))) // more than is read together with the record
	store.On(faulty.LoadResponse, 1, faulty.Refuse(storage.ErrErased))
	defer c.executed(1)
	return c.do(secret(sized(8 << 10)))
}

// overTheQuota: nothing was reserved, and a replay is never refused.
func overTheQuota(t *testing.T) *reply {
	c := newContract(t, idem.IETF())
	first := c.post("mine", 201)
	limited := newLocalAPI(t, nil)
	limited.mem = c.mem
	var err error
	if limited.engine, err = idem.New(c.mem, idem.Config{Quota: usedUp{}}); err != nil {
		t.Fatal(err)
	}
	over := contractOn(limited, idem.IETF())
	over.replays(first, over.again("mine"))
	refused := over.do(secret())
	over.executed(0)
	over.stored(1)
	if line := lineOf(over.log.String(), `"msg":"quota used up"`); !strings.Contains(line, `"tenant":"`) {
		t.Errorf("the log does not say who it was: %s", line)
	}
	return refused
}

// lineOf is the first line of a log that has a text.
func lineOf(log, text string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

// withoutAStore: 503 before the handler runs.
func withoutAStore(t *testing.T) *reply {
	c, store := newFaultyContract(t)
	for n := range 100 {
		store.On(faulty.Insert, n+1, faulty.LoseRequest())
	}
	defer c.executed(0)
	return c.do(secret())
}

// withoutTime: the caller's deadline leaves no time to execute anything in.
func withoutTime(t *testing.T) *reply {
	c := newContract(t, idem.IETF())
	within := c.mux
	c.mux = http.NewServeMux()
	c.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
		defer cancel()
		within.ServeHTTP(w, r.WithContext(ctx))
	})
	defer c.executed(0)
	return c.do(secret())
}

// afterALossOfRecords: what may have been executed before is not executed.
func afterALossOfRecords(t *testing.T) *reply {
	a := newLocalAPI(t, nil)
	var err error
	if a.engine, err = idem.New(a.mem, idem.Config{RefuseBefore: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if a.mw, err = middleware.New(a.engine, middleware.Config{Identify: identify, DocsURL: "https://docs.example/idempotency"}); err != nil {
		t.Fatal(err)
	}
	c := contractOn(a, idem.IETF())
	defer c.executed(0)
	return c.do(secret())
}

// newFaultyContract is a contract whose store can be told to fail.
func newFaultyContract(t *testing.T) (*contract, *faulty.Store) {
	t.Helper()
	var store *faulty.Store
	a := newLocalAPI(t, func(inner storage.Store) storage.Store {
		store = faulty.New(inner.(*memstore.Store))
		return store
	})
	return contractOn(a, idem.IETF()), store
}
