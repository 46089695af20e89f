package docsite

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// Document is a file of Markdown.
type Document struct {
	// Name is its path in the checkout, with slashes.
	Name string
	text string
}

// Documents reads all Markdown of the checkout at root that git tracks or would track.
func Documents(ctx context.Context, root string) ([]Document, error) {
	listed, err := exec.CommandContext(ctx, "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.md").Output()
	if err != nil {
		return nil, fmt.Errorf("list the documents of %s: %w", root, err)
	}
	var all []Document
	for _, name := range strings.Fields(string(listed)) {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			return nil, err
		}
		all = append(all, Document{name, string(text)})
	}
	return all, nil
}

var (
	fenced     = regexp.MustCompile("(?ms)^[ ]*```.*?^[ ]*```[ ]*$")
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	// linkTarget finds a link's target: in Markdown with a title or without, in a definition such as "[name]: target", and in HTML.
	linkTarget = regexp.MustCompile(`\]\(\s*((?:[^()\s]|\([^()\s]*\))+)(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)|(?m:^ {0,3}\[[^\]^][^\]]*\]:\s+(\S+))|<(?:a|img)\s[^>]*?(?:href|src)="([^"]*)"`)
	heading    = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	explicitID = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
)

// Links are the document's links, in order; those in code are none.
func (d Document) Links() []string {
	var links []string
	prose := inlineCode.ReplaceAllString(fenced.ReplaceAllString(d.text, ""), "")
	for _, match := range linkTarget.FindAllStringSubmatch(prose, -1) {
		links = append(links, cmp.Or(match[1:]...))
	}
	return links
}

// Anchors are the names that GitHub gives the document's headings.
func (d Document) Anchors() map[string]bool {
	anchors := map[string]bool{}
	count := map[string]int{}
	prose := fenced.ReplaceAllString(d.text, "")
	for _, match := range heading.FindAllStringSubmatch(prose, -1) {
		name := slug(linkText.ReplaceAllString(match[1], "$1"))
		if n := count[name]; n > 0 {
			anchors[fmt.Sprintf("%s-%d", name, n)] = true
		} else {
			anchors[name] = true
		}
		count[name]++
	}
	for _, match := range explicitID.FindAllStringSubmatch(prose, -1) {
		anchors[match[1]] = true
	}
	return anchors
}

// slug is GitHub's name of a heading: letters, digits, - and _ in lower case, and a - for each space.
func slug(text string) string {
	var s strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r == ' ':
			s.WriteByte('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			s.WriteRune(r)
		}
	}
	return s.String()
}

// ownPages is what the addresses of the repository's own files begin with.
var ownPages = regexp.MustCompile(`^` + regexp.QuoteMeta(Repository) + `/(?:blob|tree)/main/`)

// CheckLinks checks the links of documents that lead to files of the repository, relative ones as GitHub follows them. It returns a *LinkError for each that leads to no file
// of the checkout at root, or to no heading of one of the documents.
func CheckLinks(root string, documents []Document) []error {
	anchors := map[string]map[string]bool{}
	for _, d := range documents {
		anchors[d.Name] = d.Anchors()
	}
	var wrong []error
	for _, d := range documents {
		for _, link := range d.Links() {
			here, inside := ownPages.ReplaceAllString(link, ""), path.Dir(d.Name)
			if here != link { // a page of the repository by its address
				inside = ""
			}
			parsed, err := url.Parse(here)
			if err != nil {
				wrong = append(wrong, &LinkError{d.Name, link, err.Error()})
				continue
			}
			if parsed.Scheme != "" || parsed.Host != "" {
				continue
			}
			target := d.Name
			if parsed.Path != "" {
				target = path.Join(inside, parsed.Path)
			}
			named, known := anchors[target]
			switch _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); {
			case err != nil || strings.HasPrefix(target, ".."):
				wrong = append(wrong, &LinkError{d.Name, link, "no such file"})
			case known && parsed.Fragment != "" && !named[parsed.Fragment]:
				wrong = append(wrong, &LinkError{d.Name, link, "the document has no such heading"})
			}
		}
	}
	return wrong
}
