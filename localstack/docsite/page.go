package docsite

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/net/html"
)

// page is a file of HTML, as far as links go.
type page struct {
	name    string // its path in the site, with slashes
	anchors map[string]bool
	links   []string // where a reader may go
	loads   []string // what a browser fetches by itself
}

// readPages reads every page of the site but 404.html, whose links are absolute paths of the published site.
func readPages(site string) (map[string]*page, error) {
	pages := map[string]*page{}
	err := filepath.WalkDir(site, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".html" || entry.Name() == "404.html" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(site, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(relative)
		pages[name], err = readPage(name, content)
		return err
	})
	if err == nil && len(pages) == 0 {
		err = fmt.Errorf("%s has no pages", site)
	}
	return pages, err
}

func readPage(name string, content []byte) (*page, error) {
	root, err := html.Parse(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &page{name: name, anchors: map[string]bool{}}
	for node := range root.Descendants() {
		if node.Type == html.ElementNode {
			p.take(node)
		}
	}
	return p, nil
}

func (p *page) take(node *html.Node) {
	attribute := map[string]string{}
	for _, a := range node.Attr {
		attribute[a.Key] = a.Val
	}
	if id := attribute["id"]; id != "" {
		p.anchors[id] = true
	}
	switch node.Data {
	case "a":
		if name := attribute["name"]; name != "" {
			p.anchors[name] = true
		}
		if href, ok := attribute["href"]; ok {
			p.links = append(p.links, href)
		}
	case "link":
		switch attribute["rel"] {
		case "canonical", "prev", "next", "alternate": // addresses, which no browser fetches
		default:
			p.loads = append(p.loads, attribute["href"])
		}
	default:
		for _, name := range []string{"src", "srcset", "poster", "data"} {
			if value := attribute[name]; value != "" {
				p.loads = append(p.loads, value)
			}
		}
	}
	if style := attribute["style"]; style != "" {
		p.loads = append(p.loads, cssLoads(style)...)
	}
	if node.Data == "style" && node.FirstChild != nil {
		p.loads = append(p.loads, cssLoads(node.FirstChild.Data)...)
	}
}

// cssLoads are the addresses that a style sheet has fetched.
func cssLoads(css string) []string {
	var found []string
	for _, match := range cssURL.FindAllStringSubmatch(css, -1) {
		found = append(found, strings.Trim(match[1]+match[2], `"' `))
	}
	return found
}
