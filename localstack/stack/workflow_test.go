package stack

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// workflow is what the tests read of a file in .github/workflows.
type workflow struct {
	Permissions map[string]string
	Concurrency any
	Jobs        map[string]struct {
		TimeoutMinutes any `yaml:"timeout-minutes"`
		Strategy       struct {
			Matrix struct {
				Include []struct{ Target string }
			}
		}
		Steps []struct{ Run, Uses string }
	}
}

func workflows(t *testing.T) (root string, all map[string]workflow) {
	t.Helper()
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("workflows: %v, %v", files, err)
	}
	all = map[string]workflow{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var one workflow
		if err := yaml.Unmarshal(text, &one); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = one
	}
	return root, all
}

var (
	targetOfMake  = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	calledTarget  = regexp.MustCompile(`\bmake ([a-z0-9-]+)`)
	matrixTargets = "${{ matrix.target }}"
)

// A workflow calls targets that exist, and programs of the checkout that can be run.
func TestWorkflowsCallTargetsOfMake(t *testing.T) {
	root, all := workflows(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, match := range targetOfMake.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, match[1])
	}
	calls := 0
	for name, one := range all {
		for id, job := range one.Jobs {
			var lines []string
			for _, step := range job.Steps {
				if !strings.Contains(step.Run, matrixTargets) {
					lines = append(lines, step.Run)
					continue
				}
				for _, include := range job.Strategy.Matrix.Include {
					lines = append(lines, strings.ReplaceAll(step.Run, matrixTargets, include.Target))
				}
			}
			for _, line := range lines {
				for _, call := range calledTarget.FindAllStringSubmatch(line, -1) {
					if calls++; !slices.Contains(targets, call[1]) {
						t.Errorf("%s, job %s: make has no target %s", name, id, call[1])
					}
				}
				if program, ok := strings.CutPrefix(line, ".ci/"); ok {
					if info, err := os.Stat(filepath.Join(root, ".ci", program)); err != nil || info.Mode()&0o111 == 0 {
						t.Errorf("%s, job %s: .ci/%s can't be run: %v", name, id, program, err)
					}
				}
			}
		}
	}
	if calls < 10 {
		t.Errorf("only %d calls of make were found", calls)
	}
}

// Whoever takes over an action's repository, or a tag of it, changes nothing that runs here.
func TestWorkflowsPinActionsByCommit(t *testing.T) {
	_, all := workflows(t)
	pinned := regexp.MustCompile(`^[\w-]+/[\w./-]+@[0-9a-f]{40}$`)
	versions := map[string]string{}
	for name, one := range all {
		for id, job := range one.Jobs {
			for _, step := range job.Steps {
				if step.Uses == "" {
					continue
				}
				if !pinned.MatchString(step.Uses) {
					t.Errorf("%s, job %s: %s is not pinned by a commit", name, id, step.Uses)
					continue
				}
				action, commit, _ := strings.Cut(step.Uses, "@")
				if other, ok := versions[action]; ok && other != commit {
					t.Errorf("%s, job %s: %s at %s, elsewhere at %s", name, id, action, commit, other)
				}
				versions[action] = commit
			}
		}
	}
	if len(versions) == 0 {
		t.Error("no action was found")
	}
}

// A workflow may read the repository and nothing else, unless a job says otherwise. No job runs for the six hours that a
// hosted runner allows by default, and each workflow says what becomes of an earlier run.
func TestWorkflowsMayDoLittle(t *testing.T) {
	_, all := workflows(t)
	for name, one := range all {
		if len(one.Permissions) != 1 || one.Permissions["contents"] != "read" {
			t.Errorf("%s: permissions %v, want contents: read", name, one.Permissions)
		}
		if one.Concurrency == nil {
			t.Errorf("%s has no concurrency", name)
		}
		for id, job := range one.Jobs {
			if job.TimeoutMinutes == nil {
				t.Errorf("%s, job %s has no timeout-minutes", name, id)
			}
		}
	}
}

// Every folder with a list of dependencies is updated, and no other is named.
func TestDependabotKnowsEveryManifest(t *testing.T) {
	root, err := localtool.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, ".github", "dependabot.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var settings struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
		}
	}
	if err := yaml.Unmarshal(text, &settings); err != nil {
		t.Fatal(err)
	}
	updated := map[string][]string{}
	for _, update := range settings.Updates {
		updated[update.Ecosystem] = update.Directories
	}
	for ecosystem, names := range map[string][]string{
		"gomod": {"go.mod"}, "npm": {"package.json"}, "pip": {"pyproject.toml", "*requirements.txt"},
	} {
		listed, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "--"}, withFolders(names)...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for name := range strings.FieldsSeq(string(listed)) {
			want = append(want, path.Clean("/"+path.Dir(name)))
		}
		slices.Sort(want)
		if want = slices.Compact(want); !slices.Equal(updated[ecosystem], want) {
			t.Errorf("dependabot.yml updates %s in %v, want %v", ecosystem, updated[ecosystem], want)
		}
	}
}

// withFolders are pathspecs of files by their name, in the checkout and in every folder of it.
func withFolders(names []string) []string {
	var specs []string
	for _, name := range names {
		specs = append(specs, ":(glob)**/"+name)
	}
	return specs
}
