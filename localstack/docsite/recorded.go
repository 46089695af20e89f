package docsite

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/idem-go/idem-aws/internal/recording"
)

// recorded is the exchange that a block names, as its file has it.
func recorded(root string, b Block) (string, error) {
	file, name, named := strings.Cut(b.Argument, ", ")
	if b.Directive != "recorded" || !named {
		return "", fmt.Errorf("an exchange needs <!-- recorded: file, name --> before it: the recording that a test makes, and the exchange's name in it")
	}
	exchanges, err := recording.Read(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(exchanges, func(e recording.Exchange) bool { return e.Name == name })
	if i < 0 {
		return "", fmt.Errorf("%s has no exchange %q", file, name)
	}
	return exchanges[i].Text, nil
}

// guides are the pages whose exchanges their own tests compare: docs/examples/internal/check demands a test of each.
const guides = "docs/guides/"

func (b Block) testedByItsGuide() bool {
	return b.Directive == "tested" && strings.HasPrefix(b.Document, guides)
}

// checkHTTP compares a block with the exchange that it names.
func checkHTTP(root string, b Block) string {
	if b.testedByItsGuide() {
		return ""
	}
	text, err := recorded(root, b)
	switch {
	case err != nil:
		return err.Error()
	case text != b.Text:
		return "the exchange is not the recorded one; go test ./localstack/docsite -run TestPagesShowWhatWasRecorded -update writes it"
	}
	return ""
}
