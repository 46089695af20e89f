//go:build prove

package check

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A check explores every n-th job where the table was written for the code as it is now, because nothing else could come of the
// others. Where the code is another one all are explored, whatever the flags say.
var (
	every   = flag.Int("prove.every", 1, "explore every n-th scenario and rule, if testdata/table.txt is of this code")
	skipped = flag.Int("prove.skipped", 0, "how many to leave out before the first")
)

// code names the code of the protocol and of its checker, without its comments and its layout.
func code(t *testing.T) string {
	t.Helper()
	hash := sha256.New()
	for _, folder := range []string{"..", "."} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no code in %s: %v", folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(hash, filepath.Base(file))
			writeTokens(hash, source)
		}
	}
	return "# Explored with the code " + hex.EncodeToString(hash.Sum(nil)) + "\n"
}

// writeTokens writes what the compiler reads of a file, and its build constraint, which is a comment.
func writeTokens(to io.Writer, source []byte) {
	files := token.NewFileSet()
	var s scanner.Scanner
	s.Init(files.AddFile("", files.Base(), len(source)), source, nil, scanner.ScanComments)
	for {
		_, kind, literal := s.Scan()
		switch {
		case kind == token.EOF:
			return
		case kind == token.COMMENT && !strings.HasPrefix(literal, "//go:"):
		case kind == token.SEMICOLON:
			fmt.Fprintln(to, ";") // whether it is written or not
		default:
			fmt.Fprintln(to, kind, literal)
		}
	}
}

// chosen are the jobs that a check explores.
func chosen(t *testing.T, all []*job) []*job {
	t.Helper()
	table, err := os.ReadFile(tableFile)
	if *update || err != nil || !strings.HasPrefix(string(table), code(t)) {
		return all
	}
	var some []*job
	for n, j := range all {
		if n%*every == *skipped%*every {
			some = append(some, j)
		}
	}
	return some
}

func TestTheCodeIsNamedWithoutItsComments(t *testing.T) {
	written := func(source string) string {
		var b strings.Builder
		writeTokens(&b, []byte(source))
		return b.String()
	}
	base := written("package p\n\nfunc f() int { return 1 }\n")
	for name, c := range map[string]struct {
		source string
		same   bool
	}{
		"a comment":          {"package p\n\n// f is one.\nfunc f() int { return 1 } // one\n", true},
		"another layout":     {"package p\nfunc  f () int {return 1}", true},
		"another number":     {"package p\n\nfunc f() int { return 2 }\n", false},
		"another constraint": {"//go:build prove\n\npackage p\n\nfunc f() int { return 1 }\n", false},
	} {
		if got := written(c.source); (got == base) != c.same {
			t.Errorf("%s: got\n%s\nfor\n%s", name, got, base)
		}
	}
}
