package check

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Update is the flag -update: what tests record is written, to the pages of docs/guides or to files, and not compared.
var Update = flag.Bool("update", false, "write what the tests record, instead of comparing it")

// Page is a page of documentation whose blocks after <!-- tested: name --> show what a test recorded under the name. A
// page has one such test.
type Page struct {
	t        *testing.T
	file     string
	recorded map[string]string
}

// NewPage returns the page of docs/guides. At the end of the test it fails for a block that shows something else than was
// recorded, for one that nobody recorded, and for a recording that no block shows. The flag -update writes the blocks.
func NewPage(t *testing.T, name string) *Page {
	t.Helper()
	root, err := filepath.Abs(".")
	for err == nil && filepath.Base(root) != "examples" && root != filepath.Dir(root) {
		root = filepath.Dir(root)
	}
	page := &Page{t: t, file: filepath.Join(filepath.Dir(root), "guides", name), recorded: map[string]string{}}
	t.Cleanup(page.compare)
	return page
}

// Text records what was printed.
func (p *Page) Text(name, text string) {
	p.t.Helper()
	if _, twice := p.recorded[name]; twice {
		p.t.Errorf("%q is recorded twice", name)
	}
	p.recorded[name] = steady(text)
}

// Send sends a request as the function Send does, and records it with its answer. A customer's password is not shown.
func (p *Page) Send(name string, service http.Handler, method, path, key, body string, more ...string) Answer {
	p.t.Helper()
	r := newRequest(p.t, method, path, key, body, more)
	asked := fmt.Sprintf("%s %s\n%s", method, path, message(r.Header, body))
	answer := serve(service, r)
	p.Text(name, fmt.Sprintf("%s\nHTTP/1.1 %d %s\n%s", asked, answer.Status, http.StatusText(answer.Status), message(answer.Header, answer.Body)))
	return answer
}

// widest is how long a line of a page may be.
const widest = 98

// obvious are headers that no page shows: they say nothing about keys.
var obvious = []string{"Content-Length", "X-Content-Type-Options"}

// message is headers, sorted and without the obvious ones, and a body, which is indented where it is JSON that is too long
// for a line.
func message(header http.Header, body string) string {
	var shown strings.Builder
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if slices.Contains(obvious, name) {
			continue
		}
		for _, value := range header[name] {
			fmt.Fprintf(&shown, "%s: %s\n", name, value)
		}
	}
	if body = strings.TrimSpace(steady(body)); body == "" {
		return shown.String()
	}
	var indented bytes.Buffer
	if len(body) > widest && json.Indent(&indented, []byte(body), "", "  ") == nil {
		body = indented.String()
	}
	return shown.String() + "\n" + body + "\n"
}

// random are ids of operations and messages, which differ from run to run.
var random = regexp.MustCompile(`\b(op|msg)_[A-Za-z0-9_-]{20,}`)

func steady(text string) string { return random.ReplaceAllString(text, "${1}_…") }

var recordedBlock = regexp.MustCompile("(?ms)^<!-- tested: (.+?) -->\n```([a-z]+)\n(.*?)^```$")

func (p *Page) compare() {
	p.t.Helper()
	page, err := os.ReadFile(p.file)
	if err != nil {
		p.t.Error(err)
		return
	}
	written, wrong := compared(string(page), p.recorded, *Update)
	for _, why := range wrong {
		p.t.Errorf("%s %s", p.file, why)
	}
	if written != string(page) {
		if err := os.WriteFile(p.file, []byte(written), 0o644); err != nil {
			p.t.Error(err)
		}
	}
}

// compared says what is wrong with a page. With write it returns the page with what was recorded.
func compared(page string, recorded map[string]string, write bool) (written string, wrong []string) {
	shown := map[string]bool{}
	written = recordedBlock.ReplaceAllStringFunc(page, func(block string) string {
		part := recordedBlock.FindStringSubmatch(block)
		text, known := recorded[part[1]]
		shown[part[1]] = true
		switch text = strings.TrimSpace(text) + "\n"; {
		case !known:
			wrong = append(wrong, fmt.Sprintf("shows %q, which nobody recorded", part[1]))
		case write:
			return "<!-- tested: " + part[1] + " -->\n```" + part[2] + "\n" + text + "```"
		case text != part[3]:
			wrong = append(wrong, fmt.Sprintf("shows under %q\n%s\nbut this was recorded:\n%s", part[1], part[3], text))
		}
		return block
	})
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		if !shown[name] {
			wrong = append(wrong, fmt.Sprintf("does not show %q:\n%s", name, recorded[name]))
		}
	}
	return written, wrong
}
