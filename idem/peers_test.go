package idem_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	peerCase   = regexp.MustCompile(`(?m)^- ([PH][0-9]+) `)
	peerBullet = regexp.MustCompile(`(?m)^- `)
	// citation is "peers.md H6" in a comment or a name, also of several at once: "peers.md P1, P2", "peers.md P11 and H21".
	citation  = regexp.MustCompile(`peers\.md ([PH][0-9]+(?:(?:, | and )[PH][0-9]+)*)`)
	namedCase = regexp.MustCompile(`func Test(H[0-9]+)[A-Z]`)
	caseName  = regexp.MustCompile(`[PH][0-9]+`)
	elsewhere = regexp.MustCompile(`seen elsewhere: ("[^"]+"(?:, "[^"]+")*)`)
	quotation = regexp.MustCompile(`"([^"]+)"`)
	newLine   = regexp.MustCompile(`\n\s*(// )?`)
)

// namedCases are those that a test bears in its name.
var namedCases = []string{"H2", "H3", "H4", "H5", "H6", "H8", "H9", "H10", "H12", "H13", "H14", "H15", "H16", "H17", "H20"}

// Every case of docs/peers.md is held by a test that cites it and runs in "go test ./...": as "peers.md H6", or in its name.
func TestEveryCaseOfThePeersIsCited(t *testing.T) {
	cases := peerCase.FindAllStringSubmatch(peers(t), -1)
	if len(cases) < 30 {
		t.Fatalf("docs/peers.md has %d cases", len(cases))
	}
	cited, named := map[string]bool{}, map[string]bool{}
	tests(t, func(_, text string) {
		for _, found := range citation.FindAllStringSubmatch(text, -1) {
			for _, name := range caseName.FindAllString(found[1], -1) {
				cited[name] = true
			}
		}
		for _, found := range namedCase.FindAllStringSubmatch(text, -1) {
			named[found[1]] = true
		}
	})
	for _, c := range cases {
		if !cited[c[1]] && !named[c[1]] {
			t.Errorf("no test cites peers.md %s", c[1])
		}
		delete(cited, c[1])
	}
	for _, name := range namedCases {
		if !named[name] {
			t.Errorf("no test has %s in its name", name)
		}
	}
	if len(cited) > 0 {
		t.Errorf("tests cite %v, which docs/peers.md has not", slices.Sorted(maps.Keys(cited)))
	}
}

// Every bullet of "Seen elsewhere" is quoted, in part, by a test, and every quotation is of one.
func TestEverythingSeenElsewhereIsCited(t *testing.T) {
	_, section, _ := strings.Cut(peers(t), "\n## Seen elsewhere\n")
	section, _, _ = strings.Cut(section, "\n## ")
	uncited := map[string]bool{}
	for _, bullet := range peerBullet.Split(section, -1)[1:] {
		uncited[newLine.ReplaceAllString(strings.TrimSpace(bullet), " ")] = true
	}
	bullets := slices.Collect(maps.Keys(uncited))
	if len(bullets) < 10 {
		t.Fatalf("docs/peers.md has %d bullets", len(bullets))
	}
	tests(t, func(path, text string) {
		for _, found := range elsewhere.FindAllStringSubmatch(text, -1) {
			for _, quoted := range quotation.FindAllStringSubmatch(found[1], -1) {
				i := slices.IndexFunc(bullets, func(bullet string) bool { return strings.Contains(bullet, quoted[1]) })
				if i < 0 {
					t.Errorf("%s quotes %q, which docs/peers.md does not say", path, quoted[1])
					continue
				}
				delete(uncited, bullets[i])
			}
		}
	})
	for bullet := range uncited {
		t.Errorf("no test quotes: %s", bullet)
	}
}

func peers(t *testing.T) string {
	t.Helper()
	document, err := os.ReadFile("../docs/peers.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// tests visits every file of tests that "go test ./..." runs, and the contract that those of the stores run, with each
// comment on one line.
func tests(t *testing.T, visit func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("looking for tests: %w", err)
		}
		if entry.IsDir() {
			if name := entry.Name(); name != ".." && strings.HasPrefix(name, ".") || slices.Contains([]string{"node_modules", "testdata"}, name) {
				return filepath.SkipDir
			}
			return nil
		}
		contract := filepath.Ext(path) == ".go" && filepath.Dir(path) == filepath.Join("..", "idem", "storetest")
		if !strings.HasSuffix(path, "_test.go") && !contract || filepath.Base(path) == "peers_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && !strings.HasPrefix(string(text), "//go:build") {
			visit(path, newLine.ReplaceAllString(string(text), " "))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
