package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/localstack/provider"
)

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 21, 10, 0, 0, 123e6, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// simulator is a provider behind a real HTTP server.
type simulator struct {
	provider.Control
	t     *testing.T
	clock *clock
}

func start(t *testing.T) simulator {
	t.Helper()
	c := newClock()
	p := provider.New(provider.Config{Now: c.Now, WebhookSecret: "secret"})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	t.Cleanup(p.Close)
	return simulator{Control: provider.Control{URL: server.URL}, t: t, clock: c}
}

type response struct {
	status int
	header http.Header
	body   []byte
}

func (r response) object(t *testing.T) provider.Object {
	t.Helper()
	var o provider.Object
	if err := json.Unmarshal(r.body, &o); err != nil {
		t.Fatalf("%s: %v", r.body, err)
	}
	return o
}

func (r response) list(t *testing.T) []provider.Object {
	t.Helper()
	var out []provider.Object
	if err := json.Unmarshal(r.body, &out); err != nil || out == nil {
		t.Fatalf("%d %s is no array: %v", r.status, r.body, err)
	}
	return out
}

// code is the error code of an answer.
func (r response) code(t *testing.T) string {
	t.Helper()
	var e struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(r.body, &e); err != nil || e.Error.Message == "" {
		t.Fatalf("%d %s is no error: %v", r.status, r.body, err)
	}
	return e.Error.Code
}

func (s simulator) do(method, path, key, body string) (response, error) {
	return s.doWithin(s.t.Context(), method, path, key, body)
}

func (s simulator) doWithin(ctx context.Context, method, path, key, body string) (response, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return response{}, err
	}
	req.GetBody = nil
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = res.Body.Close() }()
	content, err := io.ReadAll(res.Body)
	return response{res.StatusCode, res.Header, content}, err
}

// want does a request that has to be answered with the status.
func (s simulator) want(status int, method, path, key, body string) response {
	s.t.Helper()
	r, err := s.do(method, path, key, body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	if r.status != status {
		s.t.Fatalf("%s %s: %d %s, want %d", method, path, r.status, r.body, status)
	}
	if ct := r.header.Get("Content-Type"); status != http.StatusNoContent && ct != "application/json" {
		s.t.Errorf("%s %s: content type %q", method, path, ct)
	}
	return r
}

func (s simulator) faults(rules ...provider.Rule) {
	s.t.Helper()
	if err := s.Faults(s.t.Context(), rules...); err != nil {
		s.t.Fatal(err)
	}
}

func (s simulator) settings(p provider.SettingsPatch) {
	s.t.Helper()
	if err := s.Settings(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
}

func (s simulator) charges() []provider.Object {
	s.t.Helper()
	all, err := s.Charges(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

const order = `{"amount":1999,"currency":"EUR","source":"card_ok","reference":"order-17"}`

// endpoint is one that makes objects.
type endpoint struct {
	kind        provider.Kind
	path, look  string
	body        string
	prefix      string
	all         func(provider.Control, context.Context) ([]provider.Object, error)
	honoursKeys bool
}

// endpoints needs a charge to refund, and a screening to release.
func endpoints(s simulator) []endpoint {
	s.t.Helper()
	charge := s.want(201, "POST", "/charges", "", order).object(s.t)
	payout := `{"amount":500,"currency":"EUR","destination":"iban_ok"}`
	return []endpoint{
		{provider.Charge, "/charges", "/charges", order, "ch_", provider.Control.Charges, true},
		{provider.LegacyCharge, "/legacy/charges", "/legacy/charges", order, "ch_", provider.Control.Charges, false},
		{provider.Refund, "/charges/" + charge.ID + "/refunds", "/refunds", `{"amount":5}`, "re_", provider.Control.Refunds, true},
		{provider.Screening, "/screenings", "/screenings", payout, "scr_", provider.Control.Screenings, true},
		endpoint{provider.Release, "", "/releases", `{"amount":500}`, "rel_", provider.Control.Releases, true}.fresh(s),
		{provider.Payout, "/payouts", "/payouts", payout, "po_", provider.Control.Payouts, true},
		{provider.LegacyPayout, "/legacy/payouts", "/legacy/payouts", payout, "po_", provider.Control.Payouts, false},
	}
}

// fresh is the endpoint where it makes one more object: a screening has one release.
func (e endpoint) fresh(s simulator) endpoint {
	s.t.Helper()
	if e.kind == provider.Release {
		e.path = "/screenings/" + s.screened() + "/releases"
	}
	return e
}

// screened is the id of a new screening of 500.
func (s simulator) screened() string {
	s.t.Helper()
	return s.want(201, "POST", "/screenings", "", `{"amount":500,"currency":"EUR","destination":"iban_held"}`).object(s.t).ID
}

// hold is what became of a screening's hold.
func (s simulator) hold(screening string) provider.Hold {
	s.t.Helper()
	return s.want(200, "GET", "/screenings/"+screening, "", "").object(s.t).Hold
}

func TestEachEndpointMakesAndShowsItsObjects(t *testing.T) {
	s := start(t)
	for _, e := range endpoints(s) {
		t.Run(string(e.kind), func(t *testing.T) {
			made := s.want(201, "POST", e.path, "key-"+string(e.kind), e.body)
			o := made.object(t)
			if o.Kind != e.kind || o.Status != provider.Succeeded || !strings.HasPrefix(o.ID, e.prefix) ||
				o.Key != "key-"+string(e.kind) || o.Currency != "EUR" || o.Attempts != 0 {
				t.Errorf("made %+v", o)
			}
			if !bytes.Contains(made.body, []byte(`"created_at":"2026-11-21T10:00:00.123Z"`)) {
				t.Errorf("created_at in %s", made.body)
			}
			o.Attempts = 1
			if got := s.want(200, "GET", e.look+"/"+o.ID, "", "").object(t); got != o {
				t.Errorf("by id %+v, want %+v", got, o)
			}
			if got := s.want(200, "GET", e.look+"?key="+o.Key, "", "").list(t); !slices.Equal(got, []provider.Object{o}) {
				t.Errorf("by key %+v, want %+v", got, o)
			}
			if got := s.want(200, "GET", e.look+"?key=other", "", "").list(t); len(got) != 0 {
				t.Errorf("by another key %+v", got)
			}
			all, err := e.all(s.Control, t.Context())
			if err != nil || len(all) == 0 || all[0] != o {
				t.Errorf("all are %+v, %v", all, err)
			}
			if again := s.want(200, "GET", e.look, "", "").list(t); !slices.Contains(again, o) {
				t.Errorf("without a key %+v", again)
			}
		})
	}
	if got := s.charges(); len(got) != 3 {
		t.Errorf("%d charges, want keyless, keyed and legacy", len(got))
	}
}

func TestAKeyHasOneAnswer(t *testing.T) {
	s := start(t)
	for _, e := range endpoints(s) {
		if !e.honoursKeys {
			continue
		}
		t.Run(string(e.kind), func(t *testing.T) {
			first := s.want(201, "POST", e.path, "k-"+string(e.kind), e.body)
			reordered := strings.Replace(e.body, "{", "{ ", 1)
			again := s.want(201, "POST", e.path, "k-"+string(e.kind), reordered)
			if !bytes.Equal(first.body, again.body) {
				t.Errorf("%s, then %s", first.body, again.body)
			}
			if first.header.Get("Idempotent-Replayed") != "" || again.header.Get("Idempotent-Replayed") != "true" {
				t.Error("only the repeat says that it is one")
			}
			other := strings.Replace(e.body, `"amount":`, `"amount":1`, 1)
			if code := s.want(409, "POST", e.path, "k-"+string(e.kind), other).code(t); code != "key_reused" {
				t.Errorf("code %q", code)
			}
			all, err := e.all(s.Control, t.Context())
			if err != nil || all[0].Attempts != 3 {
				t.Errorf("%+v, %v: want 3 attempts", all[0], err)
			}
		})
	}
	s.want(409, "POST", "/payouts", "k-screening", `{"amount":500,"currency":"EUR","destination":"iban_ok"}`)
}

func TestADeclineIsStoredToo(t *testing.T) {
	s := start(t)
	for _, e := range endpoints(s) {
		t.Run(string(e.kind), func(t *testing.T) {
			s.faults(provider.Rule{On: e.kind, Fault: provider.Decline, Times: 1})
			first := s.want(402, "POST", e.path, "d-"+string(e.kind), e.body)
			if o := first.object(t); o.Status != provider.Declined {
				t.Errorf("made %+v", o)
			}
			if !e.honoursKeys {
				s.want(201, "POST", e.path, "d-"+string(e.kind), e.body)
				return
			}
			if again := s.want(402, "POST", e.path, "d-"+string(e.kind), e.body); !bytes.Equal(first.body, again.body) {
				t.Errorf("%s, then %s", first.body, again.body)
			}
		})
	}
}

func TestADeclineRuleLeavesStoredAnswersAlone(t *testing.T) {
	s := start(t)
	s.want(201, "POST", "/charges", "k", order)
	s.faults(provider.Rule{On: provider.Charge, Fault: provider.Decline, Times: 1})
	s.want(201, "POST", "/charges", "k", order)
	s.want(402, "POST", "/charges", "other", order)
}

func TestLegacyNeverHonoursKeys(t *testing.T) {
	s := start(t)
	first := s.want(201, "POST", "/legacy/charges", "k", order).object(t)
	s.clock.Advance(time.Second)
	second := s.want(201, "POST", "/legacy/charges", "k", strings.Replace(order, "1999", "2000", 1)).object(t)
	if first.ID == second.ID {
		t.Fatal("one object")
	}
	got := s.want(200, "GET", "/legacy/charges?key=k", "", "").list(t)
	if len(got) != 2 || got[0].ID != second.ID || got[1].ID != first.ID {
		t.Errorf("by key %+v, want both, newest first", got)
	}
	if keyed := s.want(200, "GET", "/charges?key=k", "", "").list(t); len(keyed) != 0 {
		t.Errorf("GET /charges shows legacy ones: %+v", keyed)
	}
	s.want(404, "GET", "/charges/"+first.ID, "", "")
	for _, o := range s.charges() {
		if o.Attempts != 1 || o.Kind != provider.LegacyCharge || o.Key != "k" {
			t.Errorf("%+v", o)
		}
	}
	payout := `{"amount":500,"currency":"EUR","destination":"iban_ok"}`
	one, other := s.want(201, "POST", "/legacy/payouts", "k", payout).object(t), s.want(201, "POST", "/legacy/payouts", "k", payout).object(t)
	if all, err := s.Payouts(t.Context()); err != nil || one.ID == other.ID || len(all) != 2 || all[0].Attempts != 1 || all[1].Attempts != 1 {
		t.Errorf("one key, two payouts: %+v, %v", all, err)
	}
	s.want(400, "POST", "/legacy/payouts", "k", `{"amount":500,"currency":"EUR"}`)
}

func TestSimultaneousDuplicatesMakeOneObject(t *testing.T) {
	s := start(t)
	var group sync.WaitGroup
	bodies := make([][]byte, 20)
	for i := range bodies {
		group.Go(func() {
			if r, err := s.do("POST", "/charges", "k", order); err == nil && r.status == 201 {
				bodies[i] = r.body
			}
		})
	}
	group.Wait()
	for _, body := range bodies {
		if body == nil || !bytes.Equal(body, bodies[0]) {
			t.Errorf("%s, and %s", bodies[0], body)
		}
	}
	if all := s.charges(); len(all) != 1 || all[0].Attempts != 20 {
		t.Errorf("%+v, want one with 20 attempts", all)
	}
}

func TestAKeyEnds(t *testing.T) {
	s := start(t)
	s.settings(provider.SettingsPatch{KeyTTLMillis: new(int64(60_000))})
	first := s.want(201, "POST", "/charges", "k", order).object(t)
	s.clock.Advance(time.Minute - 1)
	s.want(409, "POST", "/charges", "k", strings.Replace(order, "1999", "2000", 1))
	s.clock.Advance(1)
	second := s.want(201, "POST", "/charges", "k", strings.Replace(order, "1999", "2000", 1)).object(t)
	if first.ID == second.ID {
		t.Error("one object")
	}
	got := s.want(200, "GET", "/charges?key=k", "", "").list(t)
	if len(got) != 2 || got[0].ID != second.ID || got[0].Attempts != 1 || got[1].Attempts != 2 {
		t.Errorf("by key %+v: both are found, newest first, each with its own attempts", got)
	}
}

func TestYoungObjectsAreNotListed(t *testing.T) {
	s := start(t)
	s.settings(provider.SettingsPatch{ListDelayMillis: new(int64(5000))})
	o := s.want(201, "POST", "/charges", "k", order).object(t)
	s.clock.Advance(5*time.Second - 1)
	if got := s.want(200, "GET", "/charges?key=k", "", "").list(t); len(got) != 0 {
		t.Errorf("listed %+v", got)
	}
	s.want(404, "GET", "/charges/"+o.ID, "", "")
	if len(s.charges()) != 1 {
		t.Error("the control listing shows it at once")
	}
	s.clock.Advance(1)
	if got := s.want(200, "GET", "/charges?key=k", "", "").list(t); len(got) != 1 {
		t.Errorf("listed %+v", got)
	}
	s.want(200, "GET", "/charges/"+o.ID, "", "")
}

func TestRefundsStayWithinTheCharge(t *testing.T) {
	s := start(t)
	for _, path := range []string{"/charges", "/legacy/charges"} {
		charge := s.want(201, "POST", path, "", order).object(t)
		refunds := "/charges/" + charge.ID + "/refunds"
		refund := s.want(201, "POST", refunds, "", `{"amount":1500,"currency":"EUR","reference":"r"}`).object(t)
		if refund.Charge != charge.ID || refund.Source != "card_ok" || refund.Reference != "r" {
			t.Errorf("refund %+v", refund)
		}
		for body, code := range map[string]string{
			`{"amount":500}`:                  "refund_exceeds_charge",
			`{"amount":100,"currency":"USD"}`: "currency_mismatch",
		} {
			if got := s.want(400, "POST", refunds, "", body).code(t); got != code {
				t.Errorf("%s: %q, want %q", body, got, code)
			}
		}
		s.want(201, "POST", refunds, "", `{"amount":499}`)
		s.want(404, "POST", "/charges/"+refund.ID+"/refunds", "", `{"amount":1}`)
	}
	s.faults(provider.Rule{On: provider.Charge, Fault: provider.Decline})
	declined := s.want(402, "POST", "/charges", "", order).object(t)
	if code := s.want(400, "POST", "/charges/"+declined.ID+"/refunds", "k", `{"amount":1}`).code(t); code != "charge_not_refundable" {
		t.Errorf("code %q", code)
	}
	s.want(404, "POST", "/charges/ch_none/refunds", "", `{"amount":1}`)
}

// A screening places a hold. One release ends it, all of it, and no second one under another key.
func TestAScreeningIsReleasedOnce(t *testing.T) {
	s := start(t)
	made := s.want(201, "POST", "/screenings", "k", `{"amount":500,"currency":"EUR","source":"card_ok","destination":"iban_ok"}`)
	screening := made.object(t)
	if screening.Hold != provider.Standing || s.hold(screening.ID) != provider.Standing {
		t.Errorf("a new screening %+v, want its hold standing", screening)
	}
	releases := "/screenings/" + screening.ID + "/releases"
	for body, code := range map[string]string{
		`{"amount":499}`:                  "amount_mismatch",
		`{"amount":501}`:                  "amount_mismatch",
		`{"amount":500,"currency":"USD"}`: "currency_mismatch",
	} {
		if got := s.want(400, "POST", releases, "r", body).code(t); got != code {
			t.Errorf("%s: %q, want %q", body, got, code)
		}
	}
	first := s.want(201, "POST", releases, "r", `{"amount":500,"currency":"EUR","reference":"po_1"}`)
	release := first.object(t)
	if release.Screening != screening.ID || release.Source != "card_ok" || release.Destination != "iban_ok" || release.Reference != "po_1" || release.Hold != "" {
		t.Errorf("release %+v", release)
	}
	if again := s.want(201, "POST", releases, "r", `{"amount":500,"currency":"EUR","reference":"po_1"}`); !bytes.Equal(first.body, again.body) {
		t.Errorf("%s, then %s", first.body, again.body)
	}
	for _, key := range []string{"other", ""} {
		if got := s.want(400, "POST", releases, key, `{"amount":500}`).code(t); got != "screening_released" {
			t.Errorf("key %q: %q", key, got)
		}
	}
	if s.hold(screening.ID) != provider.Released {
		t.Error("the hold stands still")
	}
	if replayed := s.want(201, "POST", "/screenings", "k", `{"amount":500,"currency":"EUR","source":"card_ok","destination":"iban_ok"}`); !bytes.Equal(made.body, replayed.body) {
		t.Errorf("%s, then %s: a key's answer never changes", made.body, replayed.body)
	}
	if all, err := s.Releases(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v, want one release", all, err)
	}
}

// What is declined leaves the hold as it is; what placed none can't be released.
func TestAReleaseThatIsDeclinedLeavesTheHold(t *testing.T) {
	s := start(t)
	id := s.screened()
	s.faults(
		provider.Rule{On: provider.Release, Destination: "iban_held", Fault: provider.Decline, Times: 1},
		provider.Rule{On: provider.Screening, Fault: provider.Decline},
	)
	s.want(402, "POST", "/screenings/"+id+"/releases", "a", `{"amount":500}`)
	if got := s.hold(id); got != provider.Standing {
		t.Errorf("the hold is %q", got)
	}
	s.want(201, "POST", "/screenings/"+id+"/releases", "b", `{"amount":500}`)
	if got := s.hold(id); got != provider.Released {
		t.Errorf("the hold is %q", got)
	}
	declined := s.want(402, "POST", "/screenings", "", `{"amount":500,"currency":"EUR","destination":"iban_bad"}`).object(t)
	if declined.Hold != "" {
		t.Errorf("a declined screening %+v has a hold", declined)
	}
	if code := s.want(400, "POST", "/screenings/"+declined.ID+"/releases", "", `{"amount":500}`).code(t); code != "screening_not_releasable" {
		t.Errorf("code %q", code)
	}
	charge := s.want(201, "POST", "/charges", "", order).object(t)
	for _, other := range []string{"scr_none", charge.ID} {
		if code := s.want(404, "POST", "/screenings/"+other+"/releases", "", `{"amount":1}`).code(t); code != "not_found" {
			t.Errorf("%s: code %q", other, code)
		}
	}
}

func TestBadRequests(t *testing.T) {
	s := start(t)
	long := strings.Repeat("x", 1025)
	for name, c := range map[string]struct {
		status             int
		method, path, body string
		code               string
	}{
		"no JSON":            {400, "POST", "/charges", `{"amount"`, "body_invalid"},
		"unknown member":     {400, "POST", "/charges", `{"amount":1,"currency":"EUR","source":"s","sauce":1}`, "body_invalid"},
		"fraction":           {400, "POST", "/charges", `{"amount":1.5,"currency":"EUR","source":"s"}`, "body_invalid"},
		"no amount":          {400, "POST", "/charges", `{"currency":"EUR","source":"s"}`, "request_invalid"},
		"negative amount":    {400, "POST", "/payouts", `{"amount":-1,"currency":"EUR","destination":"d"}`, "request_invalid"},
		"currency":           {400, "POST", "/legacy/charges", `{"amount":1,"currency":"eur","source":"s"}`, "request_invalid"},
		"refund's currency":  {400, "POST", "/charges/x/refunds", `{"amount":1,"currency":"EURO"}`, "request_invalid"},
		"release's currency": {400, "POST", "/screenings/x/releases", `{"amount":1,"currency":"EURO"}`, "request_invalid"},
		"release's amount":   {400, "POST", "/screenings/x/releases", `{}`, "request_invalid"},
		"no source":          {400, "POST", "/charges", `{"amount":1,"currency":"EUR"}`, "request_invalid"},
		"no destination":     {400, "POST", "/payouts", `{"amount":1,"currency":"EUR","source":"s"}`, "request_invalid"},
		"nobody to screen":   {400, "POST", "/screenings", `{"amount":1,"currency":"EUR"}`, "request_invalid"},
		"long reference":     {400, "POST", "/charges", `{"amount":1,"currency":"EUR","source":"s","reference":"` + long + `"}`, "request_invalid"},
		"large body":         {413, "POST", "/charges", `{"reference":"` + strings.Repeat("x", 64<<10) + `"}`, "body_too_large"},
		"method":             {405, "DELETE", "/charges", "", "method_not_allowed"},
		"control method":     {405, "GET", "/control/reset", "", "method_not_allowed"},
		"path":               {404, "GET", "/nothing", "", "not_found"},
		"control path":       {404, "PUT", "/control/nothing", "{}", "not_found"},
		"id":                 {404, "GET", "/payouts/po_none", "", "not_found"},
		"rule's fault":       {400, "PUT", "/control/faults", `{"rules":[{"on":"charge","fault":"explode"}]}`, "rule_invalid"},
		"rule's kind":        {400, "PUT", "/control/faults", `{"rules":[{"on":"chargeback","fault":"delay"}]}`, "rule_invalid"},
		"rule's times":       {400, "PUT", "/control/faults", `{"rules":[{"on":"get","fault":"delay","times":-1}]}`, "rule_invalid"},
		"rule's probability": {400, "PUT", "/control/faults", `{"rules":[{"on":"get","fault":"delay","probability":2}]}`, "rule_invalid"},
		"rule's delay":       {400, "PUT", "/control/faults", `{"rules":[{"on":"get","fault":"delay","delay_ms":-1}]}`, "rule_invalid"},
		"declined look-up":   {400, "PUT", "/control/faults", `{"rules":[{"on":"list","fault":"decline"}]}`, "rule_invalid"},
		"rule's member":      {400, "PUT", "/control/faults", `{"rules":[{"on":"get","fault":"delay","time":1}]}`, "body_invalid"},
		"setting":            {400, "PUT", "/control/settings", `{"key_ttl_ms":-1}`, "settings_invalid"},
		"setting's name":     {400, "PUT", "/control/settings", `{"key_ttl":1}`, "body_invalid"},
		"mode":               {400, "PUT", "/control/settings", `{"webhooks":{"mode":"often"}}`, "settings_invalid"},
		"webhooks to none":   {400, "PUT", "/control/settings", `{"webhooks":{"mode":"normal"}}`, "settings_invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.want(c.status, c.method, c.path, "", c.body)
			if code := r.code(t); code != c.code {
				t.Errorf("code %q, want %q", code, c.code)
			}
			if allow := r.header.Get("Allow"); (c.status == 405) != (allow != "") {
				t.Errorf("Allow: %q", allow)
			}
		})
	}
	if len(s.charges()) != 0 {
		t.Error("a bad request made something")
	}
}

func TestBadKeys(t *testing.T) {
	s := start(t)
	s.want(400, "POST", "/charges", strings.Repeat("k", 256), order)
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/charges", strings.NewReader(order))
	if err != nil {
		t.Fatal(err)
	}
	req.Header["Idempotency-Key"] = []string{"a", "b"}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _ = res.Body.Close(); res.StatusCode != 400 {
		t.Errorf("two keys: %d", res.StatusCode)
	}
	if len(s.charges()) != 0 {
		t.Error("a bad key made something")
	}
}

func TestResetForgetsEverything(t *testing.T) {
	s := start(t)
	o := s.want(201, "POST", "/charges", "k", order).object(t)
	s.faults(provider.Rule{On: provider.Payout, Fault: provider.RateLimit})
	s.settings(provider.SettingsPatch{Seed: new(int64(7)), ListDelayMillis: new(int64(9)), KeyTTLMillis: new(int64(8))})
	if err := s.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.charges()) != 0 {
		t.Error("charges are left")
	}
	if rules, err := s.Rules(t.Context()); err != nil || len(rules) != 0 {
		t.Errorf("rules %v, %v", rules, err)
	}
	want := `{"seed":0,"key_ttl_ms":86400000,"list_delay_ms":0,"webhooks":{"url":"","mode":"off","delay_ms":0}}`
	if got := s.want(200, "GET", "/control/settings", "", ""); string(got.body) != want {
		t.Errorf("settings %s, want %s", got.body, want)
	}
	if again := s.want(201, "POST", "/charges", "k", order).object(t); again.ID == o.ID {
		t.Error("an id came back")
	}
}

func TestSettingsMerge(t *testing.T) {
	s := start(t)
	s.want(204, "PUT", "/control/settings", "", `{"seed":3,"webhooks":{"url":"http://127.0.0.1:1/x"}}`)
	s.want(204, "PUT", "/control/settings", "", `{"list_delay_ms":5,"webhooks":{"mode":"late","delay_ms":60000}}`)
	want := `{"seed":3,"key_ttl_ms":86400000,"list_delay_ms":5,"webhooks":{"url":"http://127.0.0.1:1/x","mode":"late","delay_ms":60000}}`
	if got := s.want(200, "GET", "/control/settings", "", ""); string(got.body) != want {
		t.Errorf("settings %s, want %s", got.body, want)
	}
}

// The page shows the settings that a simulator begins with.
func TestThePageShowsTheDefaultSettings(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	shown, _, _ := strings.Cut(rest, "```")
	p := provider.New(provider.Config{Seed: 1})
	defer p.Close()
	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/control/settings", nil))
	if got := strings.TrimSpace(answer.Body.String()); got != strings.TrimSpace(shown) {
		t.Errorf("the settings are\n%s\nand the page shows\n%s", got, shown)
	}
}
