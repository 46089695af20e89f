package docsite

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// servesWithoutBounds is how net/http serves with a server that nobody has configured.
var servesWithoutBounds = regexp.MustCompile(`\bhttp\.(Serve|ListenAndServe)(TLS)?\(`)

// What readers copy does not wait for ever for the head of a request: one who sends it byte by byte would hold a connection.
func TestServersOfExamplesBoundTheHeadOfARequest(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	servers := 0
	err = filepath.WalkDir(filepath.Join(root, "docs", "examples"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if found := servesWithoutBounds.Find(text); found != nil {
			t.Errorf("%s: %s has no bound: use a http.Server with a ReadHeaderTimeout", path, found)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "http.Server{") {
				servers++
				if !strings.Contains(line, "ReadHeaderTimeout: ") {
					t.Errorf("%s: the server has no ReadHeaderTimeout: %s", path, strings.TrimSpace(line))
				}
			}
		}
		return nil
	})
	if err != nil || servers == 0 {
		t.Errorf("%d servers, %v", servers, err)
	}
}
