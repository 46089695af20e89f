package stack_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTerminationProtectionIsOffOnlyLocally(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		if got, want := *template.stack.TerminationProtection(), strings.HasSuffix(variant, "-gateway"); got != want {
			t.Errorf("protected: %v, want %v", got, want)
		}
	})
}

func TestTags(t *testing.T) {
	for variant, want := range map[string]map[string]string{
		"rest-gateway":  {"application": "idem-payments", "stage": "prod", "owner": "payments team"},
		"http-gateway":  {"application": "idem-payments"},
		"http-function": {},
	} {
		got := map[string]string{}
		for name, value := range *synthesize(t, variant).stack.Tags().TagValues() {
			got[name] = *value
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: tags %v, want %v", variant, got, want)
		}
	}
}

// assets are the functions' assets by the functions' names.
func (s *synthesized) assets() map[string]string {
	assets := map[string]string{}
	for name, r := range s.Resources {
		if code, ok := r.Properties["Code"].(map[string]any); ok && r.Type == "AWS::Lambda::Function" {
			assets[bare(name)] = code["S3Key"].(string)
		}
	}
	return assets
}

// A deployment updates the functions whose binaries changed, and no others: an asset's name is of its content alone, not of the
// folder or the time of the build. TestTheSameSourceIsTheSameBinary in localstack/stack is the other half.
func TestUnchangedFunctionsKeepTheirAssets(t *testing.T) {
	before, build := synthesizeFrom(t, "http-gateway", buildFolder(t)).assets(), buildFolder(t)
	after := synthesizeFrom(t, "http-gateway", build).assets()
	if len(before) < 6 || !maps.Equal(before, after) {
		t.Errorf("assets %v, and from another folder %v", before, after)
	}
	if err := os.WriteFile(filepath.Join(build, "arm64", "worker", "bootstrap"), []byte("changed"), 0o755); err != nil {
		t.Fatal(err)
	}
	changed := synthesizeFrom(t, "http-gateway", build).assets()
	for name, asset := range changed {
		if (asset == before[name]) == (name == "WorkerFunction") {
			t.Errorf("%s was %s and is %s; only the worker changed", name, before[name], asset)
		}
	}
}
