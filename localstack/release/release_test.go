package release

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"

	"github.com/idem-go/idem-aws/internal/localtool"
)

const version = "v0.0.1-test"

// released is a proxy with this checkout as a release, and an adopter who has nothing else. All tests share it, because each adopter
// would unpack the modules of others anew: a test has a folder of its own in the adopter's.
var released = sync.OnceValues(func() (adopter Adopter, err error) {
	root, err := localtool.Root()
	if err != nil {
		return adopter, err
	}
	ctx, files := context.Background(), filepath.Join(folder, "files")
	adopter = Adopter{Folder: filepath.Join(folder, "adopter"), Proxy: filepath.Join(folder, "proxy")}
	if err := os.MkdirAll(adopter.Folder, 0o755); err != nil {
		return adopter, err
	}
	if err := Snapshot(ctx, root, files); err != nil {
		return adopter, err
	}
	if err := Prepare(files, version); err != nil {
		return adopter, err
	}
	return adopter, Publish(files, version, adopter.Proxy)
})

var folder string // of released

func TestMain(m *testing.M) {
	// Checksums of others' modules were compared with go.sum when they came into the module cache.
	err := os.Setenv("GOSUMDB", "off")
	if err == nil {
		folder, err = os.MkdirTemp("", "release")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

func releasedToAnAdopter(t *testing.T) Adopter {
	t.Helper()
	adopter, err := released()
	if err != nil {
		t.Fatal(err)
	}
	return adopter
}

// The release's commit builds what is attached to the release before anybody can download its version.
func TestTheReleasesCommitNeedsNoDownloadOfItself(t *testing.T) {
	files := filepath.Join(filepath.Dir(releasedToAnAdopter(t).Folder), "files")
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "./localstack/cmd/stack", "./functions/...", "./infra/...")
	command.Dir, command.Env = files, append(os.Environ(), "GOPROXY=off", "GOFLAGS=")
	if said, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// Whoever has only Go installs the operator's command, and gets the library with it at the same version.
func TestGoInstallOfTheOperatorsCommand(t *testing.T) {
	adopter := releasedToAnAdopter(t)
	program, err := adopter.Install(t.Context(), version, Platform{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Main.Version != version || info.Main.Path != Module("functions").Path() {
		t.Errorf("the program is %s %s", info.Main.Path, info.Main.Version)
	}
	for _, dep := range info.Deps {
		if own(dep.Path) && (dep.Version != version || dep.Replace != nil) {
			t.Errorf("it holds %s %s, replaced by %v", dep.Path, dep.Version, dep.Replace)
		}
	}
	sbomHolds(t, program, info)
	help, err := exec.CommandContext(t.Context(), program, "--help").CombinedOutput()
	if err != nil || !strings.Contains(string(help), "resolve") {
		t.Errorf("%v\n%s", err, help)
	}
}

// sbomHolds compares the list of a program's modules with what the linker says, and its bytes with those of a second one.
func sbomHolds(t *testing.T, program string, info *buildinfo.BuildInfo) {
	t.Helper()
	var list, again bytes.Buffer
	if err := errors.Join(WriteSBOM(&list, program), WriteSBOM(&again, program)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(list.Bytes(), again.Bytes()) {
		t.Error("two lists of one program differ")
	}
	bom := new(cyclonedx.BOM)
	if err := cyclonedx.NewBOMDecoder(&list, cyclonedx.BOMFileFormatJSON).Decode(bom); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, one := range *bom.Components {
		got = append(got, one.PackageURL)
	}
	want = append(want, "pkg:golang/std@"+strings.TrimPrefix(info.GoVersion, "go"))
	for _, dep := range info.Deps {
		want = append(want, "pkg:golang/"+dep.Path+"@"+dep.Version)
	}
	if !slices.Equal(got, want) || bom.Metadata.Component.Name != info.Main.Path {
		t.Errorf("%s is made of\n%q, want\n%q", bom.Metadata.Component.Name, got, want)
	}
}

// A team's module gets the library and its telemetry from the release, is tidy, and its requests run once.
func TestGoGetOfTheLibrary(t *testing.T) {
	adopter := releasedToAnAdopter(t)
	if err := copyFile(filepath.Join("testdata", "shop", "main.go"), filepath.Join(adopter.Folder, "shop", "main.go")); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{
		{"mod", "init", "example.com/shop"},
		{"get", Repository + "@" + version, Module("idem/telemetry/otelidem").Path() + "@" + version},
		{"mod", "tidy"},
	} {
		if _, err := adopter.Go(t.Context(), "shop", Platform{}, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := adopter.Go(t.Context(), "shop", Platform{}, "run", "."); err != nil || got != "201 executed\n201 replayed\n" {
		t.Errorf("%v\n%s", err, got)
	}
}

// The example of a stack of a team's own finds every package that it imports in a release, without what its go.mod says while
// nothing is released.
func TestTheExampleStackResolvesFromARelease(t *testing.T) {
	adopter := releasedToAnAdopter(t)
	stack := filepath.Join("docs", "examples", "ownstack")
	if err := os.CopyFS(filepath.Join(adopter.Folder, "stack"), os.DirFS(filepath.Join(filepath.Dir(adopter.Folder), "files", stack))); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(adopter.Folder, "stack", "go.mod")
	development, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	released, err := releasedModFile(development, version)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, released, 0o644); err != nil {
		t.Fatal(err)
	}
	listed, err := adopter.Go(t.Context(), "stack", Platform{}, "list", "-mod=mod", "-deps", "./...")
	if err != nil {
		t.Fatal(err)
	}
	if want := Module("infra").Path() + "/idemconstruct"; !strings.Contains(listed, want+"\n") {
		t.Errorf("the stack does not use %s:\n%s", want, listed)
	}
}
