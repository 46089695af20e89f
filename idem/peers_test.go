package idem_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	peerCase  = regexp.MustCompile(`(?m)^- ([PH][0-9]+) `)
	citation  = regexp.MustCompile(`peers\.md ([PH][0-9]+(?:(?:, | and | or |–)[PH][0-9]+)*)`)
	namedCase = regexp.MustCompile(`func Test(H[0-9]+)[A-Z]`)
	caseName  = regexp.MustCompile(`[PH][0-9]+`)
)

// Every case of docs/peers.md is held by a test that cites it: as "peers.md H6", or in its name.
func TestEveryCaseOfThePeersIsCited(t *testing.T) {
	document, err := os.ReadFile("../docs/peers.md")
	if err != nil {
		t.Fatal(err)
	}
	cited := map[string]int{}
	err = filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (entry.Name() == ".local" || entry.Name() == "node_modules" || entry.Name() == ".git") {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range citation.FindAllSubmatch(text, -1) {
			for _, name := range caseName.FindAllString(string(found[1]), -1) {
				cited[name]++
			}
		}
		for _, found := range namedCase.FindAllSubmatch(text, -1) {
			cited[string(found[1])]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	cases := peerCase.FindAllStringSubmatch(string(document), -1)
	if len(cases) < 30 {
		t.Fatalf("docs/peers.md has %d cases", len(cases))
	}
	for _, c := range cases {
		if cited[c[1]] == 0 {
			t.Errorf("no test cites peers.md %s", c[1])
		}
	}
}
