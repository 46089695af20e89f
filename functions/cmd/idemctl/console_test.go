package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
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
	return p.send(r)
}

func (p *pages) post(path string, form url.Values) string {
	p.Helper()
	form.Set("csrf", regexp.MustCompile(`name="csrf" value="(\w+)"`).FindStringSubmatch(p.get("/find"))[1])
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.base+path, strings.NewReader(form.Encode()))
	p.ok(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", p.base)
	return p.send(r)
}

func (p *pages) send(r *http.Request) string {
	p.Helper()
	res, err := p.client.Do(r)
	p.ok(err)
	page, err := io.ReadAll(res.Body)
	p.ok(errors.Join(err, res.Body.Close()))
	if res.StatusCode != http.StatusOK {
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
	link := regexp.MustCompile(`/change\?(action=resolve&amp;outcome=delivered[^"]*)`).FindStringSubmatch(page)[1]
	form, err := url.ParseQuery(strings.ReplaceAll(link, "&amp;", "&"))
	d.ok(err)
	form.Set("reason", "ticket 17")
	page = p.post("/change", form)
	p.shows(page, "Nothing is changed yet", charge.ID)
	d.demands(d.inspect(string(id)), "pending unknown pending", "resolve")
	plan := regexp.MustCompile(`action="(/plan/\w+)"`).FindStringSubmatch(page)[1]
	p.shows(p.post(plan, url.Values{}), "Done: delivered")
	p.shows(p.post(plan, url.Values{}), "Nothing was done a second time")
	d.demands(d.inspect(string(id)), "completed delivered succeeded", "nothing")
	d.logged(id, "done")
	if len(d.Charges(t)) != 1 {
		t.Errorf("%d charges", len(d.Charges(t)))
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
	facts := known{Provider: map[idem.MessageID]json.RawMessage{"m.1": json.RawMessage(`[{"id":"ch_1","status":"declined"},{"id":"ch_2","status":"new"}]`), "m.2": nil}}.Facts()
	if len(facts.Objects) != 2 || facts.Objects[0].Outcome != "declined" || facts.Objects[1].Outcome != "" || len(facts.Unasked) != 0 {
		t.Errorf("%+v", facts)
	}
}
