package stack

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// workflow is what the tests read of a file in .github/workflows.
type workflow struct {
	On          any
	Permissions map[string]string
	Concurrency any
	Jobs        map[string]job
}

type job struct {
	TimeoutMinutes  any `yaml:"timeout-minutes"`
	ContinueOnError any `yaml:"continue-on-error"`
	Permissions     any
	Strategy        struct {
		Matrix struct {
			Include []struct{ Target string }
		}
	}
	Steps []step
}

type step struct {
	Run, Uses       string
	With            map[string]any
	Env             map[string]string
	ContinueOnError any `yaml:"continue-on-error"`
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

// commands are what the steps of a job run, a line for each target of its matrix.
func (j job) commands() (lines []string) {
	for _, step := range j.Steps {
		if !strings.Contains(step.Run, matrixTargets) {
			lines = append(lines, step.Run)
			continue
		}
		for _, include := range j.Strategy.Matrix.Include {
			lines = append(lines, strings.ReplaceAll(step.Run, matrixTargets, include.Target))
		}
	}
	return lines
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
			for _, line := range job.commands() {
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

// mayWrite are the jobs that may do more than read the repository, and what.
var mayWrite = map[string]map[string]string{
	"docs.yml publish":    {"pages": "write", "id-token": "write"},
	"release.yml build":   {"contents": "read", "id-token": "write", "attestations": "write"},
	"release.yml github":  {"contents": "write"},
	"release.yml npm":     {"id-token": "write"},
	"release.yml pypi":    {"id-token": "write"},
	"security.yml codeql": {"contents": "read", "security-events": "write"},
}

// What a stranger sends runs with nobody's rights, is never a part of a command, and can't be green by failing.
func TestWorkflowsTrustNobody(t *testing.T) {
	_, all := workflows(t)
	for name, one := range all {
		for _, wrong := range distrust(name, one) {
			t.Error(wrong)
		}
	}
}

// expression is what GitHub puts into a command before a shell reads it. A matrix is this repository's own text.
var expression = regexp.MustCompile(`\$\{\{\s*([a-zA-Z_]+)`)

func distrust(name string, w workflow) (wrong []string) {
	triggers, _ := yaml.Marshal(w.On)
	if strings.Contains(string(triggers), "pull_request_target") || strings.Contains(string(triggers), "workflow_run") {
		wrong = append(wrong, name+": it runs a stranger's pull request with the repository's secrets")
	}
	for id, j := range w.Jobs {
		at := name + " " + id
		granted, _ := yaml.Marshal(j.Permissions)
		allowed, _ := yaml.Marshal(mayWrite[at])
		if j.Permissions != nil && !slices.Equal(granted, allowed) {
			wrong = append(wrong, at+": permissions "+string(granted))
		}
		if j.ContinueOnError != nil {
			wrong = append(wrong, at+": continue-on-error")
		}
		for _, s := range j.Steps {
			if s.ContinueOnError != nil || strings.Contains(s.Run, "|| true") {
				wrong = append(wrong, at+": a step that can't fail: "+s.Run+s.Uses)
			}
			for _, found := range expression.FindAllStringSubmatch(s.Run, -1) {
				if found[1] != "matrix" {
					wrong = append(wrong, at+": an expression in a command: pass it by env: "+s.Run)
				}
			}
		}
	}
	return wrong
}

func TestWorkflowsThatTrustAreFound(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":            {"on: push\njobs: {a: {steps: [{run: 'make ${{ matrix.target }}'}]}}", ""},
		"a stranger's title": {"on: push\njobs: {a: {steps: [{run: 'echo ${{ github.event.pull_request.title }}'}]}}", "an expression in a command"},
		"a branch's name":    {"on: push\njobs: {a: {steps: [{run: 'echo ${{github.head_ref}}'}]}}", "an expression in a command"},
		"with secrets":       {"on: {pull_request_target: {}}\njobs: {}", "with the repository's secrets"},
		"after another":      {"on: [workflow_run]\njobs: {}", "with the repository's secrets"},
		"all rights":         {"on: push\njobs: {a: {permissions: write-all}}", "permissions"},
		"a right":            {"on: push\njobs: {a: {permissions: {contents: write}}}", "permissions"},
		"a job is ignored":   {"on: push\njobs: {a: {continue-on-error: true}}", "continue-on-error"},
		"a step is ignored":  {"on: push\njobs: {a: {steps: [{run: make test, continue-on-error: true}]}}", "can't fail"},
		"a failure is eaten": {"on: push\njobs: {a: {steps: [{run: 'make test || true'}]}}", "can't fail"},
	} {
		t.Run(name, func(t *testing.T) {
			var w workflow
			if err := yaml.Unmarshal([]byte(c.text), &w); err != nil {
				t.Fatal(err)
			}
			wrong := strings.Join(distrust("x.yml", w), "\n")
			if (wrong == "") != (c.want == "") || !strings.Contains(wrong, c.want) {
				t.Errorf("found %q, want %q", wrong, c.want)
			}
		})
	}
}

// installed finds what the checks install by apt: the names in a call, or those of terminalPrograms.
var installed = regexp.MustCompile(`\bc\.install\(ctx, (.+)\)`)

// askedOfApt are Debian's packages that the checks install where they may.
func askedOfApt(t *testing.T, root string) (packages []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "localstack", "stack", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range installed.FindAllStringSubmatch(string(source), -1) {
			switch {
			case strings.HasSuffix(file, "_test.go"):
			case call[1] == "names...":
				for _, p := range terminalPrograms {
					packages = append(packages, p.program)
				}
			default:
				for _, name := range strings.Split(call[1], ", ") {
					unquoted, err := strconv.Unquote(name)
					if err != nil {
						t.Fatalf("%s: %s: no name of a package", file, call[0])
					}
					packages = append(packages, unquoted)
				}
			}
		}
	}
	return packages
}

// A hosted runner is not root's, so the checks install nothing there: a step before them has installed each package that they
// would ask of apt. Their browser is the image's, under a name that they look for.
func TestWorkflowsInstallWhatTheChecksNeed(t *testing.T) {
	root, all := workflows(t)
	packages := askedOfApt(t, root)
	if len(packages) < 6 {
		t.Fatalf("the checks ask for %v", packages)
	}
	for name, id := range map[string]string{"test.yml": "test", "nightly.yml": "make"} {
		var has []string
		checks := 0
		for _, step := range all[name].Jobs[id].Steps {
			if strings.Contains(step.Run, "sudo apt-get install ") {
				has = append(has, strings.Fields(step.Run)...)
			}
			if !strings.HasPrefix(step.Run, ".ci/run") && !strings.HasPrefix(step.Run, "make ") {
				continue
			}
			checks++
			if step.Env["CHROMIUM"] == "google-chrome" { // Ubuntu's chromium is a snap
				has = append(has, "chromium")
			}
			for _, p := range packages {
				if !slices.Contains(has, p) {
					t.Errorf("%s, job %s: nothing has installed %s before %q", name, id, p, step.Run)
				}
			}
		}
		if checks == 0 {
			t.Errorf("%s, job %s runs no checks", name, id)
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

// What no push waits for runs each night; an upgrade from the release before among it.
func TestTheNightRunsWhatNoPushWaitsFor(t *testing.T) {
	_, all := workflows(t)
	var targets []string
	for _, include := range all["nightly.yml"].Jobs["make"].Strategy.Matrix.Include {
		target, _, _ := strings.Cut(include.Target, " ")
		targets = append(targets, target)
	}
	for _, want := range []string{"fuzz", "simulate", "planted", "prove", "alike", "mutants", "chaos", "rehearse", "rehearse-upgrade", "release-check", "test-whole"} {
		if !slices.Contains(targets, want) {
			t.Errorf("no job of nightly.yml runs make %s: %v", want, targets)
		}
	}
	for _, step := range all["nightly.yml"].Jobs["make"].Steps { // rehearse-upgrade needs the commit before, and the tags
		if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["fetch-depth"] != 0 {
			t.Errorf("fetch-depth is %v", step.With["fetch-depth"])
		}
	}
}
