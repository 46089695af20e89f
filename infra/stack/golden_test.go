package stack_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden template from the present code")

var assetHash = regexp.MustCompile(`[0-9a-f]{64}`)

// The whole template of a production stack, so that a change to it, meant or not, stands in the diff of a commit.
// After a change that is meant: go test ./stack -run TestGolden -update
func TestGolden(t *testing.T) {
	const path = "testdata/http-gateway.template.json"
	got, err := json.MarshalIndent(synthesize(t, "http-gateway").document, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(assetHash.ReplaceAll(got, []byte("<asset>")), '\n')
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the template is not %s any more; look at the difference after: go test ./stack -run TestGolden -update", path)
	}
}
