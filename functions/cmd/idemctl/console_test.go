package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// pages is a person before the console, over the wire.
type pages struct {
	*desk
	base   string
	client http.Client
}

// console serves `idemctl console`, and enters.
func (d *desk) console(args ...string) *pages {
	d.Helper()
	ctx, cancel := context.WithCancel(d.Context())
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- idemctl.Run(ctx, app(), append([]string{"console"}, args...), write, io.Discard) }()
	line, err := bufio.NewReader(read).ReadString('\n')
	d.ok(err)
	address := strings.TrimSpace(strings.TrimPrefix(line, "console: "))
	p := &pages{desk: d}
	p.base, _, _ = strings.Cut(address, "/enter")
	p.client.Jar, err = cookiejar.New(nil)
	d.ok(err)
	p.client.Transport = &http.Transport{}
	d.Cleanup(func() {
		p.client.CloseIdleConnections()
		cancel()
		if code := <-ended; code != idemctl.ExitOK {
			d.Errorf("the console exits with %d", code)
		}
	})
	p.get(strings.TrimPrefix(address, p.base))
	return p
}

// get reads a page, or where it leads.
func (p *pages) get(path string) string {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodGet, p.base+path, nil)
	p.ok(err)
	return p.send(http.StatusOK, r)
}

func (p *pages) post(path string, form url.Values) string {
	p.Helper()
	return p.postFor(http.StatusOK, path, form)
}

// postFor sends a form, and reads the page with that status where it leads.
func (p *pages) postFor(status int, path string, form url.Values) string {
	p.Helper()
	form.Set("csrf", regexp.MustCompile(`name="csrf" value="(\w+)"`).FindStringSubmatch(p.get("/find"))[1])
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.base+path, strings.NewReader(form.Encode()))
	p.ok(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", p.base)
	return p.send(status, r)
}

func (p *pages) send(status int, r *http.Request) string {
	p.Helper()
	res, err := p.client.Do(r)
	p.ok(err)
	page, err := io.ReadAll(res.Body)
	p.ok(errors.Join(err, res.Body.Close()))
	if res.StatusCode != status {
		p.Fatalf("%s %s: %s\n%s", r.Method, r.URL, res.Status, page)
	}
	return string(page)
}

func (p *pages) shows(page string, texts ...string) {
	p.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			p.Errorf("no %q in\n%s", text, page)
		}
	}
}

// lost leaves a charge that the provider has made, and whose answer was lost: its endpoint takes no keys, so that nobody asks
// a second time.
func (d *desk) lost(key string) idem.OperationID {
	d.Helper()
	d.faults(provider.Rule{On: provider.LegacyCharge, Fault: provider.DropAfter, Times: 1})
	id := d.pay(key, "legacy_ok")
	d.deliver(id.Message(1))
	return id
}

// On a real DynamoDB endpoint and a provider: an unknown charge is found by the payment's id and by the client's key, and is
// resolved by what the provider shows. The client's own words are on no page.
func TestConsoleResolvesAnUnknownCharge(t *testing.T) {
	d := newDesk(t)
	d.faults(provider.Rule{On: provider.LegacyCharge, Fault: provider.DropAfter, Times: 1})
	id := d.post("/v1/payments", "order-18", `{"amount":1999,"currency":"EUR","source":"legacy_ok","reference":"words of a client"}`)
	d.deliver(id.Message(1))
	payment := d.inspect(string(id)).Application.Row.ID
	p := d.console("--write")
	p.shows(p.get("/"), `<span class="number">1</span> unknown`, "us-east-1, "+d.Idempotency)
	p.shows(p.get("/find?tenant="+lambdatest.Tenant+"&id="+payment), string(id))
	p.shows(p.get("/find?id="+string(id)[:16]), string(id))
	page := p.post("/key", url.Values{"tenant": {lambdatest.Tenant}, "operation": {"payments.create"}, "key": {"order-18"}})
	charge := d.Charges(t)[0]
	p.shows(page, string(id), "payment "+payment, charge.ID, "proves: delivered", "1999 EUR", "Resolve with this as evidence")
	if strings.Contains(page, "words of a client") || strings.Contains(page, "order-18") || strings.Contains(page, "legacy_ok") {
		t.Errorf("the page has the client's words:\n%s", page)
	}
	plan, page := p.settles(page)
	p.shows(page, "Nothing is changed yet", charge.ID, "The settlement reads what the provider showed")
	d.demands(d.inspect(string(id)), "pending unknown pending", "resolve")
	p.shows(p.post(plan, url.Values{}), "Done: delivered")
	p.shows(p.post(plan, url.Values{}), "Nothing was done a second time")
	d.demands(d.inspect(string(id)), "completed delivered succeeded", "nothing")
	d.logged(id, "done")
	if len(d.Charges(t)) != 1 {
		t.Errorf("%d charges", len(d.Charges(t)))
	}
}

// settles presses the button of the one object that an operation's page offers as evidence, and returns where that is confirmed.
func (p *pages) settles(page string) (plan, confirmation string) {
	p.Helper()
	links := regexp.MustCompile(`/change\?(action=resolve&amp;object=[^"]*)`).FindAllStringSubmatch(page, -1)
	if len(links) != 1 {
		p.Fatalf("%d objects are offered as evidence:\n%s", len(links), page)
	}
	form, err := url.ParseQuery(strings.ReplaceAll(links[0][1], "&amp;", "&"))
	p.ok(err)
	form.Set("reason", "ticket 17")
	confirmation = p.post("/change", form)
	return regexp.MustCompile(`action="(/plan/\w+)"`).FindStringSubmatch(confirmation)[1], confirmation
}

// lists puts before the provider what answers look-ups with a list.
func (d *desk) lists(list func(key string) string) {
	d.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, list(r.URL.Query().Get("key")))
	}))
	d.Cleanup(server.Close)
	d.Setenv("PROVIDER_URL", server.URL)
}

// What the button of an object settles is what the reconciler would settle by it: nothing, where the provider made the charge of another
// amount. The message keeps what the provider said, and stands before a person.
func TestConsoleSettlesNothingByAnObjectOfAnotherAmount(t *testing.T) {
	d := newDesk(t)
	id := d.lost("order-18")
	d.lists(func(key string) string {
		return `[{"id":"ch_1","object":"charge","status":"succeeded","key":"` + key + `","amount":1,"currency":"EUR","reference":"words of a client"}]`
	})
	p := d.console("--write")
	plan, page := p.settles(p.get("/operation/" + string(id)))
	p.shows(page, "Nothing is settled: it was tried, without writing", "such as another amount")
	made := p.postFor(http.StatusBadGateway, plan, url.Values{})
	p.shows(made, "the evidence is stored in the message, but could not be settled")
	s := d.inspect(string(id))
	d.demands(s, "pending dead pending", "redrive: settles the evidence")
	if !slices.Equal(s.Messages[0].Kept, []string{"delivered"}) {
		t.Errorf("it keeps %q", s.Messages[0].Kept)
	}
	if strings.Contains(page+made, "words of a client") {
		t.Errorf("the page has the client's words:\n%s%s", page, made)
	}
}

// A provider that did not filter by the key shows another message's object: that is evidence of nothing, and the page says so.
func TestConsoleOffersNoObjectOfAnotherKey(t *testing.T) {
	d := newDesk(t)
	id := d.lost("order-18")
	d.lists(func(string) string {
		return `[{"id":"ch_1","object":"charge","status":"succeeded","key":"` + string(id.Message(2)) + `","amount":1999,"currency":"EUR"},
			{"id":"ch_2","object":"charge","status":"succeeded","amount":1999,"currency":"EUR"}]`
	})
	page := d.console("--write").get("/operation/" + string(id))
	if strings.Contains(page, "Resolve with this as evidence") || strings.Contains(page, "proves:") {
		t.Errorf("another message's object is offered:\n%s", page)
	}
	for _, why := range []string{"the provider&#39;s object was made under another key", "the object tells no key, and the list has objects that are not the key&#39;s"} {
		if !strings.Contains(page, "It settles nothing: "+why+".") {
			t.Errorf("it does not say %q:\n%s", why, page)
		}
	}
}

// What an object proves on the page is what the reconciler would take it for.
func TestFactsProveWhatAProbeWouldTake(t *testing.T) {
	const mine, others = `"key":"m.1"`, `"key":"m.2"`
	for list, want := range map[string]string{
		`[]`:                                   "",
		`[{"id":"ch_1","status":"succeeded"}]`: "delivered",
		`[{"id":"ch_1","status":"declined"}]`:  "declined",
		`[{"id":"ch_1","status":"declined"},{"id":"ch_2","status":"declined"}]`:                           "declined declined",
		`[{"id":"ch_1","status":"declined"},{"id":"ch_2","status":"new"}]`:                                "- -",
		`[{"id":"ch_1","status":"declined"},{"id":"ch_2","status":"succeeded"}]`:                          "- delivered",
		`[{"id":"ch_1","status":"succeeded",` + mine + `}]`:                                               "delivered",
		`[{"id":"ch_1","status":"succeeded",` + others + `}]`:                                             "-",
		`[{"id":"ch_1","status":"succeeded"},{"id":"ch_2","status":"declined",` + others + `}]`:           "- -",
		`[{"id":"ch_1","status":"declined",` + mine + `},{"id":"ch_2",` + others + `}]`:                   "- -",
		`[{"id":"ch_1","status":"succeeded",` + mine + `},{"id":"ch_2",` + others + `}]`:                  "delivered -",
		`[{"id":"","status":"succeeded"}]`:                                                                "-",
		`[{"id":"ch_1","status":"succeeded","key":7}]`:                                                    "-",
		`[{"id":"ch_1","status":"succeeded","m":"` + strings.Repeat("x", outbox.EvidenceBytesMax) + `"}]`: "-",
	} {
		facts := known{Provider: map[idem.MessageID]json.RawMessage{"m.1": json.RawMessage(list)}}.Facts()
		var proves []string
		for _, o := range facts.Objects {
			proves = append(proves, cmp.Or(o.Outcome, "-"))
			if (o.Doubt == "") != (o.Outcome != "") || len(o.Evidence) == 0 || !strings.Contains(list, string(o.Evidence)) || strings.Contains(o.Doubt, "payments:") {
				t.Errorf("%.100s: %+v", list, o)
			}
		}
		if got := strings.Join(proves, " "); got != want || len(facts.Unasked) != 0 {
			t.Errorf("%.200s proves %q, want %q", list, got, want)
		}
	}
}

// What drifts is listed, on request.
func TestConsoleShowsDrift(t *testing.T) {
	d := newDesk(t)
	t.Setenv("DRIFT_GRACE", "1ms")
	stray(t, d.Stage)
	p := d.console()
	p.shows(p.get("/drift"), "None was asked for yet")
	p.post("/drift", url.Values{})
	for begun := time.Now(); ; {
		page := p.get("/drift")
		if !strings.Contains(page, "Comparing since") {
			p.shows(page, "There is drift", "missing_here", "provider charge", "1 objects of the provider")
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("it never ends")
		}
	}
}

// A provider that cannot be asked, or answers what cannot be read, is said to be; it is not shown as if it had nothing.
func TestFactsOfAProviderThatDoesNotAnswer(t *testing.T) {
	for raw, want := range map[string]string{`"can't be asked: down"`: "down", `{"a":1}`: "its answer can't be read"} {
		facts := known{Provider: map[idem.MessageID]json.RawMessage{"m.1": json.RawMessage(raw)}}.Facts()
		if len(facts.Objects) != 0 || !strings.HasPrefix(facts.Unasked["m.1"], want) {
			t.Errorf("%s: %+v", raw, facts)
		}
	}
	if facts := (known{Provider: map[idem.MessageID]json.RawMessage{"m.1": json.RawMessage(`[]`), "m.2": nil}}).Facts(); len(facts.Objects) != 0 || len(facts.Unasked) != 0 {
		t.Errorf("%+v", facts)
	}
}
