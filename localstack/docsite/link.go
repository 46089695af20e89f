package docsite

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Repository is where files that are not in the site are shown.
const Repository = "https://github.com/idem-go/idem-aws"

// LinkError is a link that leads nowhere, or something that a page would load from elsewhere.
type LinkError struct {
	// Page has it, by its path in the site.
	Page string
	// Link as the page has it.
	Link string
	// Why it is wrong.
	Why string
}

// Error names page, link and reason.
func (e *LinkError) Error() string { return fmt.Sprintf("%s: %s: %s", e.Page, e.Link, e.Why) }

var cssURL = regexp.MustCompile(`url\(([^)]+)\)|@import\s+["']([^"']+)`)

// Check reads the pages and style sheets of a built site. Its error joins a *LinkError for each link to a page or an anchor that
// is not there, and for everything that a browser would fetch from another host.
func Check(site string) error {
	pages, err := readPages(site)
	if err != nil {
		return err
	}
	var wrong []error
	for _, p := range sorted(pages) {
		for _, link := range p.links {
			if why := judge(site, pages, p, link); why != "" {
				wrong = append(wrong, &LinkError{p.name, link, why})
			}
		}
		for _, link := range p.loads {
			if why := judgeLoad(site, p.name, link); why != "" {
				wrong = append(wrong, &LinkError{p.name, link, why})
			}
		}
	}
	return errors.Join(append(wrong, checkCSS(site))...)
}

func sorted(pages map[string]*page) []*page {
	var all []*page
	for _, p := range pages {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *page) int { return strings.Compare(a.name, b.name) })
	return all
}

// judge says why a link for readers is wrong; "" where it is right. What is elsewhere is not looked at.
func judge(site string, pages map[string]*page, from *page, link string) string {
	parsed, err := url.Parse(link)
	switch {
	case err != nil:
		return err.Error()
	case parsed.Scheme != "" || parsed.Host != "":
		return ""
	case path.IsAbs(parsed.Path):
		return "an absolute path: the site may be published below another path"
	}
	target := from.name
	if parsed.Path != "" {
		target = path.Join(path.Dir(from.name), parsed.Path)
		if strings.HasSuffix(parsed.Path, "/") || target == "." {
			target = path.Join(target, "index.html")
		}
	}
	to, ok := pages[target]
	switch {
	case !ok && !isFile(filepath.Join(site, filepath.FromSlash(target))):
		return "no such page"
	case ok && parsed.Fragment != "" && !to.anchors[parsed.Fragment]:
		return "the page has no such anchor"
	}
	return ""
}

// judgeLoad says why something that a browser fetches by itself is wrong.
func judgeLoad(site, from, link string) string {
	parsed, err := url.Parse(strings.TrimSpace(link))
	switch {
	case err != nil:
		return err.Error()
	case parsed.Scheme == "data":
		return ""
	case parsed.Scheme != "" || parsed.Host != "":
		return "a browser would load this from another host"
	case parsed.Path == "":
		return ""
	case !isFile(filepath.Join(site, filepath.FromSlash(path.Join(path.Dir(from), parsed.Path)))):
		return "no such file"
	}
	return ""
}

func checkCSS(site string) error {
	var wrong []error
	err := filepath.WalkDir(site, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".css" {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(site, file)
		for _, link := range cssLoads(string(content)) {
			if strings.HasPrefix(link, "//") || strings.HasPrefix(link, "http") {
				wrong = append(wrong, &LinkError{filepath.ToSlash(name), link, "a browser would load this from another host"})
			}
		}
		return err
	})
	return errors.Join(append(wrong, err)...)
}

func isFile(name string) bool {
	found, err := os.Stat(name)
	return err == nil && found.Mode().IsRegular()
}

// toGitHub rewrites the links of pages that lead to a file or a folder of the checkout at root which is not in the site. A page
// has the same place in the site as its file has in docs/. A link that leads nowhere is left to [Check].
func toGitHub(root, site string) error {
	pages, err := readPages(site)
	if err != nil {
		return err
	}
	for _, p := range sorted(pages) {
		file := filepath.Join(site, filepath.FromSlash(p.name))
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rewritten := string(content)
		for _, link := range p.links {
			if address := onGitHub(root, site, p.name, link); address != "" {
				rewritten = strings.ReplaceAll(rewritten, `href="`+link+`"`, `href="`+address+`"`)
			}
		}
		if err := os.WriteFile(file, []byte(rewritten), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// onGitHub is the address of what the link leads to; "" where that is in the site, or nowhere.
func onGitHub(root, site, from, link string) string {
	parsed, err := url.Parse(link)
	if err != nil || parsed.Scheme != "" || parsed.Host != "" || parsed.Path == "" || path.IsAbs(parsed.Path) {
		return ""
	}
	if isFile(filepath.Join(site, filepath.FromSlash(path.Join(path.Dir(from), parsed.Path)))) {
		return ""
	}
	target := path.Join("docs", path.Dir(from), parsed.Path)
	found, err := os.Stat(filepath.Join(root, filepath.FromSlash(target)))
	if err != nil || strings.HasPrefix(target, "..") {
		return ""
	}
	kind := "blob"
	if found.IsDir() {
		kind = "tree"
	}
	address := Repository + "/" + kind + "/main/" + target
	if parsed.Fragment != "" {
		address += "#" + parsed.Fragment
	}
	return address
}
