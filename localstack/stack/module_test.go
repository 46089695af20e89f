package stack

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

func TestEveryModuleOfTheWorkspaceIsChecked(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", "work", "edit", "-json")
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var work struct{ Use []struct{ DiskPath string } }
	if err := json.Unmarshal(output, &work); err != nil {
		t.Fatal(err)
	}
	var joined []string
	for _, use := range work.Use {
		joined = append(joined, filepath.Clean(use.DiskPath))
	}
	slices.Sort(joined)
	if !slices.Equal(joined, modules) {
		t.Errorf("go.work joins %v, checked are %v", joined, modules)
	}
}

func TestPackagesOfEveryModuleAreNamed(t *testing.T) {
	if got, want := packages(unitModules()...), []string{"./...", "./bench/...", "./docs/examples/...", "./functions/...", "./idem/telemetry/otelidem/...", "./localstack/..."}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
