//go:build browser

package docsite

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	protocol "github.com/chromedp/cdproto/page" // a page of the site is a page here
	"github.com/chromedp/chromedp"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/internal/screenshot"
)

// browser is a browser before the built site, which is served on this machine.
type browser struct {
	*testing.T
	ctx  context.Context
	site *httptest.Server

	mu         sync.Mutex
	complaints []string // what the browser wrote into its console
	requests   []string // the addresses that it asked for
}

const patience = 2 * time.Minute

// openShadows lets a test look into what the theme draws diagrams in.
const openShadows = `{
	const attach = Element.prototype.attachShadow;
	Element.prototype.attachShadow = function(init) { return attach.call(this, {...init, mode: "open"}); };
}`

// newBrowser serves the site and starts a browser that can reach this machine alone.
func newBrowser(t *testing.T, site string) *browser {
	t.Helper()
	path, err := localtool.Chromium()
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{T: t, site: httptest.NewServer(http.FileServer(http.Dir(site)))}
	t.Cleanup(b.site.Close)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1280, 900),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.WSURLReadTimeout(patience))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses root with it
	}
	ctx, stop := chromedp.NewContext(t.Context(), chromedp.WithAllocatorOptions(options...))
	t.Cleanup(stop)
	b.ctx = ctx
	b.ok(chromedp.Do(ctx)) // the browser lives as long as what starts it
	b.ok(chromedp.Listen(ctx, func(event any) {
		if sent, ok := event.(*network.EventRequestWillBeSent); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.requests = append(b.requests, sent.Request.URL)
		}
	}))
	_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	b.ok(err)
	_, err = chromedp.Call(ctx, protocol.AddScriptToEvaluateOnNewDocument, protocol.AddScriptToEvaluateOnNewDocumentParams{Source: openShadows})
	b.ok(err)
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.complaints = append(b.complaints, fmt.Sprint(m))
			b.mu.Unlock()
		}
	}()
	return b
}

func (b *browser) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		at, _ := chromedp.Run(b.ctx, chromedp.Location())
		b.Fatalf("%v at %s", err, at)
	}
}

// open shows a page of the site.
func (b *browser) open(name string) {
	b.Helper()
	b.do(chromedp.Navigate(b.site.URL+"/"+name), chromedp.WaitVisible(chromedp.CSS(".md-content h1")))
}

// evaluate is the value of an expression in the page; of a promise, what it comes to.
func evaluate[T any](b *browser, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		at, _ := chromedp.Run(b.ctx, chromedp.Location())
		b.Fatalf("%v at %s", err, at)
	}
	return value
}

// eventually waits until the expression is true.
func (b *browser) eventually(what, expression string) {
	b.Helper()
	for until := time.Now().Add(patience); !evaluate[bool](b, expression); {
		if time.Now().After(until) {
			b.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// looks chooses light or dark, and a screen.
func (b *browser) looks(scheme string, width, height int64) {
	b.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media)
	b.ok(err)
	_, err = chromedp.Run(b.ctx, chromedp.EmulateViewport(width, height))
	b.ok(err)
}

// picture keeps what the page looks like, where IDEM_SCREENSHOTS names a folder.
func (b *browser) picture(name string) {
	b.Helper()
	folder := os.Getenv("IDEM_SCREENSHOTS")
	if folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	full, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	b.ok(err)
	png, err := screenshot.Small(full)
	b.ok(err)
	b.ok(os.WriteFile(filepath.Join(folder, strings.NewReplacer("/", "-", ".html", "").Replace(name)+".png"), png, 0o644))
}

// heard is what the browser complained of, and every address of another host that it asked.
func (b *browser) heard() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var wrong []string
	for _, complaint := range b.complaints {
		wrong = append(wrong, "the browser complains: "+complaint)
	}
	for _, request := range b.requests {
		if address, err := url.Parse(request); err != nil || address.Scheme != "data" && address.Scheme != "blob" && "http://"+address.Host != b.site.URL {
			wrong = append(wrong, "the browser asked another host: "+request)
		}
	}
	if len(b.requests) == 0 {
		wrong = append(wrong, "the browser has asked for nothing")
	}
	return wrong
}

// quiet demands that the browser had nothing to complain about, and asked no other host for anything.
func (b *browser) quiet() {
	b.Helper()
	for _, wrong := range b.heard() {
		b.Error(wrong)
	}
}

// settled is what the expression comes to be: the wanted value, or what it still is when the theme has surely ended to move its
// parts to another size of the screen.
func settled[T comparable](b *browser, expression string, want T) T {
	b.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if got := evaluate[T](b, expression); got == want || time.Now().After(until) {
			return got
		}
	}
}

// wide are the parts of a page that reach beyond the screen without a scroller of their own; "" for none.
const wide = `(() => {
	const screen = document.documentElement.clientWidth;
	if (document.documentElement.scrollWidth <= screen) return "";
	const held = e => { for (e = e.parentElement; e; e = e.parentElement) if (getComputedStyle(e).overflowX !== "visible") return true; return false };
	return [...document.querySelectorAll(".md-content *")].filter(e => e.getBoundingClientRect().right > screen + 1 && !held(e))
		.slice(0, 3).map(e => e.outerHTML.slice(0, 200)).join("\n") || "the page";
})()`

// undrawn are the diagrams and pictures of a page that are not to be seen; null while some are still drawn.
const undrawn = `(() => {
	if (document.querySelector("pre.mermaid")) return null;
	const wrong = [];
	for (const diagram of document.querySelectorAll("div.mermaid")) {
		const svg = diagram.shadowRoot && diagram.shadowRoot.querySelector("svg");
		if (!svg) return null;
		if (svg.getBoundingClientRect().height < 60 || svg.getAttribute("aria-roledescription") === "error") wrong.push("a diagram");
	}
	for (const picture of document.querySelectorAll(".md-content img")) {
		if (!picture.complete) return null;
		if (picture.naturalWidth === 0) wrong.push(picture.src);
	}
	return wrong.join(", ");
})()`

// TestBrowserSite reads the whole site as its readers do. Fonts differ from machine to machine, and a page changes with each
// word, so no picture is compared with a kept one: what must be true of every picture is asked of the page instead (ADR 0062).
func TestBrowserSite(t *testing.T) {
	site := t.TempDir()
	if err := Build(t.Context(), checkout(t), site); err != nil {
		t.Fatal(err)
	}
	t.Run("every page is to be seen", func(t *testing.T) { everyPage(newBrowser(t, site), site) })
	t.Run("search finds a word", func(t *testing.T) { searchFinds(newBrowser(t, site)) })
	t.Run("light and dark", func(t *testing.T) { lightAndDark(newBrowser(t, site)) })
	t.Run("nothing keeps anybody from reading", func(t *testing.T) { accessible(newBrowser(t, site)) })
}

// mainPages are of each form that a page has.
var mainPages = []string{
	"index.html", "start/ten-minutes.html", "policies/in-flight.html", "reference/measurements.html", "reference/http.html", "states.html",
	"operator.html",
}

// screens are those of the readers.
var screens = []struct {
	device        string
	width, height int64
}{{"phone", 390, 844}, {"desk", 1280, 900}}

// everyPage: no page is wider than the screen, has an error, or asks another host; every diagram and picture is to be seen.
func everyPage(b *browser, site string) {
	var names []string
	b.ok(fs.WalkDir(os.DirFS(site), ".", func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".html" && name != "404.html" { // 404.html has the addresses of the published site
			names = append(names, name)
		}
		return err
	}))
	diagrams, pictures := 0, 0
	for _, name := range names {
		b.open(name)
		b.drawn(name)
		for _, screen := range screens {
			b.looks("light", screen.width, screen.height)
			if beyond := settled(b, wide, ""); beyond != "" {
				b.Errorf("%s is wider than a %s:\n%s", name, screen.device, beyond)
			}
			if slices.Contains(mainPages, name) {
				b.framed(name, screen.device)
				b.picture(name + "-" + screen.device)
			}
		}
		diagrams += evaluate[int](b, `document.querySelectorAll("div.mermaid").length`)
		pictures += evaluate[int](b, `document.querySelectorAll(".md-content img").length`)
	}
	if len(names) < 80 || diagrams < 5 || pictures < 5 {
		b.Errorf("%d pages with %d diagrams and %d pictures", len(names), diagrams, pictures)
	}
	b.quiet()
}

// drawn waits until every diagram and picture of the page is to be seen.
func (b *browser) drawn(name string) {
	b.Helper()
	b.eventually("the diagrams of "+name+" are drawn", undrawn+" !== null")
	if wrong := evaluate[string](b, undrawn); wrong != "" {
		b.Errorf("%s: not to be seen: %s", name, wrong)
	}
}

// framed: the heading stands on the first screen; the menu stands beside it on a desk, and behind a button on a phone.
func (b *browser) framed(name, device string) {
	b.Helper()
	const seen = `(selector => { const e = document.querySelector(selector); if (!e) return false;
		const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0 && r.right > 0 && r.left < innerWidth && r.top >= 0 && r.bottom <= innerHeight })`
	for selector, want := range map[string]bool{
		".md-content h1": true, ".md-header .md-search__form": device == "desk", ".md-header [for=__search]": device == "phone",
		".md-header [for=__drawer]": device == "phone", ".md-tabs__list": device == "desk",
	} {
		if got := settled(b, fmt.Sprintf("%s(%q)", seen, selector), want); got != want {
			b.Errorf("%s on a %s: that %s is on the first screen is %t", name, device, selector, got)
		}
	}
}

// searchFinds: the search finds a page by a word, without any other host.
func searchFinds(b *browser) {
	b.open("index.html")
	b.do(chromedp.Click(chromedp.CSS(".md-search__input")), chromedp.SendKeys(chromedp.CSS(".md-search__input"), "tombstone"))
	b.eventually("a result", `[...document.querySelectorAll(".md-search-result__link")].some(a => a.href.includes("policies/expired-key.html"))`)
	b.quiet()
}

// lightAndDark: the page follows the system, the switch changes it, and the choice stays on the next page.
func lightAndDark(b *browser) {
	const scheme = `document.body.getAttribute("data-md-color-scheme")`
	for _, c := range []struct{ system, begins, other string }{{"light", "default", "slate"}, {"dark", "slate", "default"}} {
		b.begins(c.system)
		b.open("index.html")
		b.eventually(c.system+" at first", scheme+` === "`+c.begins+`"`)
		b.picture("index-" + c.system)
		before := evaluate[string](b, `getComputedStyle(document.body).backgroundColor`)
		b.do(chromedp.Click(chromedp.CSS(`[data-md-component="palette"] label:not([hidden])`)))
		b.eventually("the other one", scheme+` === "`+c.other+`"`)
		if after := evaluate[string](b, `getComputedStyle(document.body).backgroundColor`); after == before {
			b.Errorf("the switch leaves the background at %s", after)
		}
		b.open("states.html")
		b.eventually("the choice stays", scheme+` === "`+c.other+`"`)
	}
	b.quiet()
}

// begins has the system light or dark, and forgets what the reader chose.
func (b *browser) begins(scheme string) {
	b.Helper()
	b.looks(scheme, 1280, 900)
	b.open("index.html")
	evaluate[bool](b, `(localStorage.clear(), true)`)
}

// accessible: axe finds nothing on the main pages, light or dark, that it calls serious or critical.
func accessible(b *browser) {
	root, err := localtool.Root()
	b.ok(err)
	axe, err := os.ReadFile(filepath.Join(localtool.AxeTool.Directory(root), "node_modules", "axe-core", "axe.min.js"))
	b.ok(err)
	for _, scheme := range []string{"light", "dark"} {
		b.begins(scheme)
		for _, name := range mainPages {
			b.open(name)
			b.drawn(name)
			found := evaluate[string](b, string(axe)+`;
axe.run(document, {resultTypes: ["violations"]}).then(r => r.passes.length + " rules passed\n" +
  r.violations.filter(v => v.impact === "serious" || v.impact === "critical").map(v => v.impact + " " + v.id + ": " + v.help + "\n" +
  v.nodes.slice(0, 4).map(n => "  " + n.html.slice(0, 200) + "\n  " + n.failureSummary).join("\n")).join("\n"))`)
			passed, violations, _ := strings.Cut(found, "\n")
			if passed == "0 rules passed" || violations != "" {
				b.Errorf("%s, %s: %s\n%s", name, scheme, passed, violations)
			}
			b.picture(name + "-" + scheme)
		}
	}
}

// What TestBrowserSite looks for is found where it is.
func TestBrowserDefectsAreFound(t *testing.T) {
	site := t.TempDir()
	const begins = `<body style="margin:0"><main class="md-content"><h1>Page</h1>`
	for name, content := range map[string]string{
		"fine.html":    `<div style="overflow-x:auto"><div style="width:3000px">x</div></div><img src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7">`,
		"wide.html":    `<div id="beam" style="width:3000px">x</div>`,
		"picture.html": `<img src="none.png">`,
		"diagram.html": `<div class="mermaid"></div><script>const s = document.querySelector(".mermaid").attachShadow({mode: "closed"});
			s.innerHTML = '<svg aria-roledescription="error" height="200"></svg>'</script>`,
		"flat.html": `<div class="mermaid"></div><script>const s = document.querySelector(".mermaid").attachShadow({mode: "closed"});
			s.innerHTML = '<svg height="10"></svg>'</script>`,
		"undrawn.html": `<pre class="mermaid">graph</pre>`,
		"throws.html":  `<script>nobody.has.this</script>`,
		"asks.html":    `<script>fetch("https://example.com/count").catch(() => 0)</script>`,
	} {
		write(t, site, name, begins+content)
	}
	b := newBrowser(t, site)
	b.looks("light", 390, 844)
	for name, want := range map[string]struct{ wide, undrawn string }{
		"fine.html": {"", ""}, "wide.html": {`<div id="beam"`, ""}, "picture.html": {"", "none.png"}, "diagram.html": {"", "a diagram"},
		"flat.html": {"", "a diagram"},
	} {
		b.open(name)
		b.eventually("everything is drawn", undrawn+" !== null")
		if got := evaluate[string](b, wide); !strings.Contains(got, want.wide) || want.wide == "" && got != "" {
			t.Errorf("%s: beyond the screen is %q, want %q", name, got, want.wide)
		}
		if got := evaluate[string](b, undrawn); !strings.Contains(got, want.undrawn) || want.undrawn == "" && got != "" {
			t.Errorf("%s: not drawn is %q, want %q", name, got, want.undrawn)
		}
	}
	b.open("undrawn.html")
	if !evaluate[bool](b, undrawn+" === null") {
		t.Error("a diagram that nobody has drawn is to be seen")
	}
	for name, want := range map[string]string{
		"throws.html": "nobody is not defined", "asks.html": "asked another host: https://example.com/count",
	} {
		b := newBrowser(t, site)
		b.open(name)
		found := func() bool {
			return slices.ContainsFunc(b.heard(), func(wrong string) bool { return strings.Contains(wrong, want) })
		}
		for until := time.Now().Add(patience); !found() && time.Now().Before(until); {
			time.Sleep(50 * time.Millisecond)
		}
		if !found() {
			t.Errorf("%s: heard %q, want %q", name, b.heard(), want)
		}
	}
}
