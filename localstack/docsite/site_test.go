package docsite

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/progress"
)

// checkout is the folder of the checkout, with the tool installed that builds the site.
func checkout(t *testing.T) string {
	t.Helper()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	err = emulator.Install(t.Context(), root, progress.New(io.Discard), emulator.MkDocsTool())
	if missing := new(emulator.MissingError); os.Getenv("CI") != "true" && errors.As(err, &missing) {
		t.Skipf("not run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func documents(t *testing.T, root string) []Document {
	t.Helper()
	all, err := Documents(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The site of this checkout has no link that leads nowhere, no page outside of the menu, and nothing from another host.
func TestSiteOfThisCheckout(t *testing.T) {
	t.Parallel()
	root, site := checkout(t), t.TempDir()
	if err := Build(t.Context(), root, site); err != nil {
		t.Fatal(err)
	}
	countSite(t, root, site)
	for _, name := range []string{"index.html", "assets/mermaid.min.js", "search/search_index.json"} {
		if !isFile(filepath.Join(site, filepath.FromSlash(name))) {
			t.Errorf("the site has no %s", name)
		}
	}
	states, err := os.ReadFile(filepath.Join(site, "states.html"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(states), `src="assets/mermaid.min.js"`) {
		t.Error("a page with a diagram does not load mermaid from the site")
	}
	own, err := os.ReadFile(filepath.Join(site, "own-stack.html"))
	if err != nil {
		t.Fatal(err)
	}
	if want := Repository + "/blob/main/idem/lambdaapp/environment/environment.go"; !strings.Contains(string(own), want) {
		t.Errorf("own-stack.html does not lead to %s", want)
	}
}

// Defects that are planted in a copy of the documents are found: MkDocs stops at its own, and names them all.
func TestSiteDefectsAreFound(t *testing.T) {
	t.Parallel()
	root := checkout(t)
	cases := map[string]struct {
		add  map[string]string
		want []string
	}{
		"by MkDocs": {
			map[string]string{
				"docs/lost.md":  "# Lost\n",
				"docs/style.md": "\n[x](semantics.md#no-such-heading)\n[x](/semantics.html)\n",
			},
			[]string{"lost.md", "#no-such-heading", "/semantics.html"},
		},
		"by this package": {
			map[string]string{
				"docs/assets/site.css": "\n@import url(https://fonts.example.com/x.css);\n",
				"docs/style.md": "\n[x](no-such-page.md) [x](../idem/no_such_file.go) [x](../infra/none)\n" +
					"![x](https://example.com/x.png)\n<script src=\"//example.com/x.js\"></script>\n<img src=\"assets/none.png\">\n",
			},
			[]string{
				"assets/site.css: https://fonts.example.com/x.css: a browser would load this from another host",
				"style.html: no-such-page.md: no such page", "style.html: ../idem/no_such_file.go: no such page", "style.html: ../infra/none: no such page",
				"https://example.com/x.png: a browser would load this from another host",
				"//example.com/x.js: a browser would load this from another host", "assets/none.png: no such file",
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			copied := copyOf(t, root)
			for file, add := range c.add {
				appendTo(t, filepath.Join(copied, filepath.FromSlash(file)), add)
			}
			err := Build(t.Context(), copied, filepath.Join(t.TempDir(), "site"))
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the build says %v, want something with %q", err, want)
				}
			}
		})
	}
}

// What a page of HTML may have, and may not.
func TestPageDefectsAreFound(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ body, want string }{
		"a page":                {`<a href="b.html">x</a>`, ""},
		"an anchor":             {`<a href="b.html#there">x</a>`, ""},
		"elsewhere":             {`<a href="https://example.com/">x</a>`, ""},
		"a picture in the page": {`<img src="data:image/png;base64,AA==">`, ""},
		"no page":               {`<a href="c.html">x</a>`, "a.html: c.html: no such page"},
		"no anchor":             {`<a href="b.html#none">x</a>`, "a.html: b.html#none: the page has no such anchor"},
		"no anchor of its own":  {`<a href="#none">x</a>`, "a.html: #none: the page has no such anchor"},
		"no script":             {`<script src="x.js"></script>`, "a.html: x.js: no such file"},
		"a script elsewhere":    {`<script src="https://example.com/x.js"></script>`, "from another host"},
		"a style elsewhere":     {`<link rel="stylesheet" href="//example.com/x.css">`, "from another host"},
		"a hint elsewhere":      {`<link rel="preconnect" href="https://example.com">`, "from another host"},
		"a frame elsewhere":     {`<iframe src="https://example.com/"></iframe>`, "from another host"},
		"a font elsewhere":      {`<style>@font-face{src:url("https://example.com/x.woff2")}</style>`, "from another host"},
		"a picture elsewhere":   {`<div style="background:url(https://example.com/x.png)"></div>`, "from another host"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			site := t.TempDir()
			write(t, site, "a.html", "<body>"+c.body)
			write(t, site, "b.html", `<h1 id="there">b</h1>`)
			err := Check(site)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if err := Check(t.TempDir()); err == nil {
		t.Error("a site without pages is in order")
	}
}

func appendTo(t *testing.T, name, text string) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// copyOf has of the checkout what the site is built of, and links to what it points at.
func copyOf(t *testing.T, root string) string {
	t.Helper()
	copied := t.TempDir()
	for _, folder := range []string{"docs", filepath.Join("localstack", "docsite")} {
		if err := os.CopyFS(filepath.Join(copied, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyFile(filepath.Join(root, "mkdocs.yml"), filepath.Join(copied, "mkdocs.yml")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if name == "docs" || name == "localstack" || name == "mkdocs.yml" || name == ".git" {
			continue
		}
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(copied, name)); err != nil {
			t.Fatal(err)
		}
	}
	local, err := os.ReadDir(filepath.Join(root, "localstack"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range local {
		if entry.Name() != "docsite" {
			if err := os.Symlink(filepath.Join(root, "localstack", entry.Name()), filepath.Join(copied, "localstack", entry.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return copied
}
