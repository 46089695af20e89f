//go:build browser

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/idem-go/idem-aws/functions/internal/lambdatest"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/internal/screenshot"
	"github.com/idem-go/idem-aws/localstack/provider"
)

// screen is a browser before a console over the desk.
type screen struct {
	*desk
	ctx     context.Context
	address string
	// complaints are what the browser wrote into its console: what the page's policy forbids, and scripts that fail.
	complaints chan string
	// acts are the clicks and typings of a person.
	acts int
}

// newScreen starts `idemctl console`, and a browser that has opened the address it prints.
func (d *desk) newScreen(args ...string) *screen {
	d.Helper()
	path, err := localtool.Chromium()
	d.ok(err)
	ctx, cancel := context.WithCancel(d.Context())
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- idemctl.Run(ctx, app(), append([]string{"console"}, args...), write, io.Discard)
		_ = write.Close() // a pipe
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	d.ok(err)
	d.Cleanup(func() {
		cancel()
		if code := <-ended; code != idemctl.ExitOK {
			d.Errorf("the console exits with %d", code)
		}
	})

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1100, 900),
		chromedp.WSURLReadTimeout(patience))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses root with it
	}
	browser, stop := chromedp.NewContext(ctx, chromedp.WithAllocatorOptions(options...))
	d.Cleanup(stop)
	s := &screen{desk: d, ctx: browser, address: strings.TrimSpace(strings.TrimPrefix(line, "console: ")), complaints: make(chan string, 100)}
	d.ok(chromedp.Do(browser)) // the browser lives as long as what starts it
	messages := chromedp.Console(browser)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			s.complaints <- fmt.Sprint(m)
		}
	}()
	s.do(chromedp.Navigate(s.address), chromedp.WaitVisible(chromedp.CSS("#counts")))
	return s
}

const patience = 2 * time.Minute

func (s *screen) do(steps ...chromedp.Action[chromedp.Void]) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		at, _ := chromedp.Run(s.ctx, chromedp.Location())
		s.Fatalf("%v at %s", err, at)
	}
}

// press follows the first link, or presses the first button, with the text.
func (s *screen) press(text string) {
	s.Helper()
	s.acts++
	xpath := fmt.Sprintf(`//main//*[self::a or self::button][contains(normalize-space(.), %q)]`, text)
	s.do(chromedp.Click(xpath))
}

func (s *screen) types(selector, text string) {
	s.Helper()
	s.acts++
	s.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

func (s *screen) waits(selector string) {
	s.Helper()
	s.do(chromedp.WaitVisible(chromedp.CSS(selector)))
}

// text is what a person reads of the part of the page.
func (s *screen) text(selector string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS(selector)))
	s.ok(err)
	return text
}

// open goes to a page of the console.
func (s *screen) open(path string) {
	s.Helper()
	base, _, _ := strings.Cut(s.address, "/enter")
	s.do(chromedp.Navigate(base+path), chromedp.WaitVisible(chromedp.CSS("main h1")))
}

// quiet demands that the browser had nothing to complain about.
func (s *screen) quiet() {
	s.Helper()
	for {
		select {
		case complaint := <-s.complaints:
			s.Errorf("the browser complains: %s", complaint)
		default:
			return
		}
	}
}

// picture keeps what the browser shows, where IDEM_SCREENSHOTS names a folder for it.
func (s *screen) picture(name string) {
	s.Helper()
	if folder := os.Getenv("IDEM_SCREENSHOTS"); folder != "" {
		s.ok(os.WriteFile(filepath.Join(folder, name+".png"), s.screenshot(), 0o644))
	}
}

// screenshot is the whole page as a PNG.
func (s *screen) screenshot() []byte {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	full, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	s.ok(err)
	png, err := screenshot.Small(full)
	s.ok(err)
	return png
}

// looks chooses light or dark, and a screen.
func (s *screen) looks(scheme string, width, height int64) {
	s.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(s.ctx, emulation.SetEmulatedMedia, media); err != nil {
		s.Fatal(err)
	}
	_, err := chromedp.Run(s.ctx, chromedp.EmulateViewport(width, height))
	s.ok(err)
}

// A payment that nobody knows the outcome of is found, understood, and resolved, by what the provider shows, with five clicks and one
// reason, with the audit log written and nothing charged again.
func TestBrowserResolvesAnUnknownPayment(t *testing.T) {
	d := newDesk(t)
	id := d.lost("order-18")
	s := d.newScreen("--write")
	begun := time.Now()

	s.press(string(id.Message(1)))
	s.waits("#timeline svg")
	if text := s.text("#summary"); !strings.Contains(text, ": the call may have happened.") {
		t.Errorf("the summary is %q", text)
	}
	if text := s.text("#provider"); !strings.Contains(text, "succeeded") || !strings.Contains(text, "1999 EUR") {
		t.Errorf("of the provider it shows %q", text)
	}
	s.documented("console-operation")
	s.press("Resolve with this as evidence")
	s.types("#reason", "ticket 17: the provider has the charge")
	s.press("Show what would be done")
	s.waits("#will")
	s.documented("console-confirm")
	d.demands(d.inspect(string(id)), "pending unknown pending", "resolve")
	s.press("Resolve with evidence")
	s.waits(".notice.good")
	s.press("Look at the operation as it is now")
	s.waits("#timeline svg")
	if text := s.text("#summary"); !strings.Contains(text, "It is completed. Every retry gets the stored answer, status 201.") {
		t.Errorf("the summary is %q", text)
	}
	t.Logf("%d clicks and typings in %s", s.acts, time.Since(begun))
	s.picture("operation-resolved")
	d.demands(d.inspect(string(id)), "completed delivered succeeded", "nothing")
	if n := len(d.Charges(t)); n != 1 {
		t.Errorf("%d charges", n)
	}
	if told := d.inspect(string(id)); len(told.Audit) != 1 || told.Audit[0].Actor != "ada" || told.Audit[0].Reason != "ticket 17: the provider has the charge" {
		t.Errorf("the log has %+v", told.Audit)
	}
	s.quiet()
}

// A page follows what happens, but what may be done stays what was seen, and says that it is out of date.
func TestBrowserFollowsWhatHappensAndKeepsTheFence(t *testing.T) {
	d := newDesk(t)
	id := d.lost("order-19")
	s := d.newScreen("--write")
	s.press(string(id.Message(1)))
	s.waits("#timeline svg")
	seen := d.inspect(string(id)).Messages[0].Seen
	s.do(chromedp.Click(`//summary[contains(., "In the log")]`))
	asOf := s.text("#as-of")
	d.exits(idemctl.ExitOK, change("resolve", string(id.Message(1)), seen, "--declined", "none")...)
	s.waits("#changed")
	if now, note := s.text("#as-of"), s.text("#live-note"); now != asOf || !strings.HasPrefix(note, "Live, but for the part that has the focus") {
		t.Errorf("with the focus in the timeline the page is as of %s, before as of %s: %q", now, asOf, note)
	}
	if text := s.text("#timeline"); strings.Contains(text, "Message declined") {
		t.Errorf("the part with the focus was replaced: %q", text)
	}
	s.do(chromedp.Focus(chromedp.CSS("#search-id")), chromedp.WaitVisible(`//*[@id="live-note"][.="Live."]`))
	if now, text := s.text("#as-of"), s.text("#timeline"); now == asOf || !strings.Contains(text, "Message declined") {
		t.Errorf("without the focus the page is as of %s: %q", now, text)
	}
	if text := s.text("#timeline details[open]"); !strings.HasPrefix(text, "In the log") || !strings.Contains(text, `filter operation_id = "`+string(id)+`"`) {
		t.Errorf("what was unfolded is %q now", text)
	}
	if text := s.text("#summary"); !strings.Contains(text, "status 402") {
		t.Errorf("the summary is %q", text)
	}
	s.press("Resolve with this as evidence")
	s.types("#reason", "too late")
	s.press("Show what would be done")
	s.do(chromedp.WaitVisible(`//h1[contains(., "out of date")]`))
	if text := s.text("main"); !strings.Contains(text, string(seen)) || !strings.Contains(text, "declined.1.") {
		t.Errorf("the refusal says %q", text)
	}
	d.demands(d.inspect(string(id)), "completed declined declined", "nothing")
}

// principal are the pages that have every part and colour.
var principal = []string{"overview", "queue", "operation", "payout", "change"}

// Nothing on any page keeps anybody from using it, light or dark, on a desk or a phone: axe finds no violation.
func TestBrowserPagesAreAccessible(t *testing.T) {
	d := newDesk(t)
	id := d.lost("order-20")
	fine := d.pay("order-21", "card_ok")
	d.deliver(fine.Message(1))
	d.Account(t, lambdatest.Tenant, "acct_1", 1000)
	d.faults(provider.Rule{On: provider.Payout, Fault: provider.RateLimit, Times: 1})
	payout := d.post("/v1/payouts", "payout-1", `{"from":"acct_1","amount":500,"currency":"EUR","destination":"iban_ok"}`)
	d.Unknown(t, time.Hour)
	d.exits(idemctl.ExitRefused, change("close", string(id.Message(1)), d.inspect(string(id)).Messages[0].Seen)...)
	root, err := localtool.Root()
	d.ok(err)
	axe, err := os.ReadFile(filepath.Join(localtool.AxeTool.Directory(root), "node_modules", "axe-core", "axe.min.js"))
	d.ok(err)
	s := d.newScreen("--write")
	seen := d.inspect(string(id)).Messages[0].Seen
	pages := map[string]string{
		"overview": "/", "queue": "/queue/unknown", "operation": "/operation/" + string(id), "completed": "/operation/" + string(fine),
		"payout": "/operation/" + string(payout), "find": "/find", "not-found": "/find?id=pay_none", "audit": "/audit", "drift": "/drift",
		"change": "/change?action=resolve&outcome=delivered&subject=" + string(id.Message(1)) + "&seen=" + string(seen), "no-page": "/nowhere",
	}
	for looks, with := range map[string]struct {
		scheme        string
		width, height int64
	}{"light": {"light", 1100, 900}, "dark": {"dark", 1100, 900}, "phone": {"light", 390, 844}} {
		s.looks(with.scheme, with.width, with.height)
		for name, path := range pages {
			if looks != "light" && !slices.Contains(principal, name) {
				continue // the same parts in the same colours
			}
			s.open(path)
			unfolded, err := chromedp.Run(s.ctx, chromedp.Evaluate[int](`[...document.querySelectorAll("details")].map(d => d.open = true).length`))
			d.ok(err)
			if strings.HasPrefix(path, "/operation/") && unfolded < 2 {
				t.Errorf("%s: %d parts can be unfolded", name, unfolded)
			}
			s.picture(name + "-" + looks)
			s.axe(string(axe), name+", "+looks)
			wide, err := chromedp.Run(s.ctx, chromedp.Evaluate[bool]("document.documentElement.scrollWidth > document.documentElement.clientWidth"))
			d.ok(err)
			if wide {
				t.Errorf("%s, %s: the page is wider than the screen", name, looks)
			}
		}
	}
}

// axe demands that nothing is found. Scripts that a debugger runs are not held by the page's policy.
func (s *screen) axe(source, where string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[string](source+`;
axe.run(document, {resultTypes: ["violations"]}).then(r => r.passes.length + " rules passed\n" +
  r.violations.map(v => v.id + ": " + v.help + "\n" + v.nodes.map(n => "  " + n.html + "\n  " + n.failureSummary).join("\n")).join("\n"))`, chromedp.EvalAwaitPromise))
	s.ok(err)
	passed, violations, _ := strings.Cut(found, "\n")
	if passed == "0 rules passed" || violations != "" {
		s.Errorf("%s: %s\n%s", where, passed, violations)
	}
}
