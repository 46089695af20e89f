// Package recording keeps exchanges of HTTP as text, for the documents that show them. A test sends the requests to a real
// service and compares the answers with a file of the checkout; package localstack/docsite compares the pages with that file.
//
// What differs from run to run, such as an id, is replaced by a name that stays.
package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Exchange is a request and its answer, as text.
type Exchange struct {
	// Name is what a page names it by: page and case, as in "in-flight duplicate".
	Name string
	// Text has the request and, after an empty line, the answer.
	Text string
}

// Recording is a list of exchanges. It is not safe for concurrent use.
type Recording struct {
	exchanges []Exchange
	// Stable replaces what differs from run to run and is no id. It may be nil.
	Stable *strings.Replacer
	// Live says that the service's clock goes on. Then the instants of answers are replaced, that of Idempotency-Expires by the
	// second of two fixed ones and every other one by the first; and so is each Retry-After, by one second.
	Live    bool
	page    string // the first word of the last name
	ids     map[string]string
	numbers map[string]int
}

// The instants of a [Recording] that is live.
const (
	instant = "2026-11-23T12:00:00.000Z"
	expires = "2026-11-24T12:00:00.000Z"
)

// shown are the headers that belong to the contract of idem or of an application; a gateway adds others.
var shown = []string{
	"Idempotency-Key", "Idempotency-First-Sent", "Prefer",
	"Content-Type", "Idempotency-Status", "Idempotent-Replayed", "Idempotency-Expires", "Retry-After", "Location", "Link", "X-Rate",
}

var (
	volatileID = regexp.MustCompile(`\b(op|pay|re|po|tr|ch|order)_[A-Za-z0-9_-]{16,}`)
	volatileAt = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	heading    = regexp.MustCompile(`(?m)^=== (.+) ===\n`)
)

// Add records an exchange under a name that is used once. The bodies are what was sent and received.
func (r *Recording) Add(name string, request *http.Request, sent []byte, response *http.Response, received []byte) {
	if page, _, _ := strings.Cut(name, " "); page != r.page || r.ids == nil {
		r.page, r.ids, r.numbers = page, map[string]string{}, map[string]int{}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\n", request.Method, request.URL.RequestURI())
	writeMessage(&b, request.Header, sent)
	fmt.Fprintf(&b, "\nHTTP/1.1 %d %s\n", response.StatusCode, http.StatusText(response.StatusCode))
	writeMessage(&b, response.Header, received)
	r.exchanges = append(r.exchanges, Exchange{name, r.stable(b.String())})
}

// writeMessage writes the headers that are shown, and the body: JSON with indentation, so that it can be read.
func writeMessage(b *strings.Builder, header http.Header, body []byte) {
	for _, name := range shown {
		for _, value := range header.Values(name) {
			fmt.Fprintln(b, strings.TrimSpace(name+": "+value)) // an empty value leaves no space
		}
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, body, "", "  "); err == nil {
		body = indented.Bytes()
	}
	if text := strings.TrimRight(string(body), "\n"); text != "" {
		fmt.Fprintf(b, "\n%s\n", text)
	}
}

// stable replaces what differs from run to run. An id has the same name wherever it stands in the exchanges of a page.
func (r *Recording) stable(text string) string {
	if r.Stable != nil {
		text = r.Stable.Replace(text)
	}
	text = volatileID.ReplaceAllStringFunc(text, func(id string) string {
		if _, known := r.ids[id]; !known {
			kind, _, _ := strings.Cut(id, "_")
			r.numbers[kind]++
			r.ids[id] = fmt.Sprintf("%s_%d", kind, r.numbers[kind])
		}
		return r.ids[id]
	})
	if !r.Live {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "Idempotency-First-Sent: "): // what the test chose to send
		case strings.HasPrefix(line, "Retry-After: "):
			lines[i] = "Retry-After: 1\n"
		case strings.HasPrefix(line, "Idempotency-Expires: "):
			lines[i] = volatileAt.ReplaceAllString(line, expires)
		default:
			lines[i] = volatileAt.ReplaceAllString(line, instant)
		}
	}
	return strings.Join(lines, "")
}

// String is the file of the recording.
func (r *Recording) String() string {
	var b strings.Builder
	for _, e := range r.exchanges {
		fmt.Fprintf(&b, "=== %s ===\n%s\n", e.Name, e.Text)
	}
	return b.String()
}

// Compare compares the recording with its file, or writes the file if update is set. The error names the exchanges that differ.
func (r *Recording) Compare(file string, update bool) error {
	if err := once(r.exchanges); err != nil {
		return err
	}
	if update {
		return os.WriteFile(file, []byte(r.String()), 0o644)
	}
	kept, err := Read(file)
	if err != nil {
		return err
	}
	var wrong []error
	for _, e := range r.exchanges {
		i := slices.IndexFunc(kept, func(k Exchange) bool { return k.Name == e.Name })
		switch {
		case i < 0:
			wrong = append(wrong, fmt.Errorf("%s has no exchange %q; -update writes it", file, e.Name))
		case kept[i].Text != e.Text:
			wrong = append(wrong, fmt.Errorf("%s: %q is otherwise; -update writes it. Recorded now:\n%s\nin the file:\n%s", file, e.Name, e.Text, kept[i].Text))
		}
	}
	for _, k := range kept {
		if !slices.ContainsFunc(r.exchanges, func(e Exchange) bool { return e.Name == k.Name }) {
			wrong = append(wrong, fmt.Errorf("%s has the exchange %q, which nobody records any more; -update removes it", file, k.Name))
		}
	}
	return errors.Join(wrong...)
}

// Read reads the exchanges of a file that [Recording.Compare] wrote.
func Read(file string) ([]Exchange, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	text := string(content)
	at := heading.FindAllStringSubmatchIndex(text, -1)
	if len(at) == 0 || at[0][0] != 0 {
		return nil, fmt.Errorf("%s is no recording: it begins with no name", file)
	}
	var exchanges []Exchange
	for i, match := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		exchanges = append(exchanges, Exchange{text[match[2]:match[3]], strings.TrimSuffix(text[match[1]:end], "\n")})
	}
	return exchanges, once(exchanges)
}

// once refuses a name that two exchanges have.
func once(exchanges []Exchange) error {
	seen := map[string]bool{}
	for _, e := range exchanges {
		if seen[e.Name] {
			return fmt.Errorf("two exchanges have the name %q", e.Name)
		}
		seen[e.Name] = true
	}
	return nil
}
