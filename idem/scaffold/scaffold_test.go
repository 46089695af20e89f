package scaffold_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/scaffold"
)

// checkout is a folder that looks like idem's.
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module github.com/idem-go/idem-aws\n", "infra/go.mod": "module github.com/idem-go/idem-aws/infra\n",
	} {
		write(t, filepath.Join(root, name), text)
	}
	return root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// What is written bears the service's own names, and nothing of the example's.
func TestServiceHasItsOwnNames(t *testing.T) {
	for _, module := range []string{"zebra", "example.org/shop/zebra-2"} {
		folder := filepath.Join(t.TempDir(), "not", "there")
		service := scaffold.Service{Module: module, Release: "v1.2.3"}
		files, err := service.Write(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{".github/workflows/test.yaml", ".gitignore", "Makefile", "README.md", "cdk/main.go", "cmd/idemctl/main.go", "function/main.go", "service/service_test.go", "go.mod", "go.sum"} {
			if !slices.Contains(files, want) {
				t.Errorf("%s: %s is not written", module, want)
			}
		}
		for _, name := range files {
			text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			rest := strings.ReplaceAll(string(text), module, "")
			if found := regexp.MustCompile(`(?m)^.*(example\.com/|\bshop\b|idem: begin|<!--|\.\./).*$`).FindString(rest); found != "" {
				t.Errorf("%s: %s has %q", module, name, found)
			}
		}
		if text, err := os.ReadFile(filepath.Join(folder, "cdk", "main.go")); err != nil || !strings.Contains(string(text), `jsii.String("`+service.Name()+`")`) {
			t.Errorf("%s: the stack has another name (%v)", module, err)
		}
	}
}

// required are the versions and the replacements that go.mod has of idem's modules, as the go command reads them.
func required(t *testing.T, folder string) (module string, versions, replaced map[string]string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	command.Dir = folder
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Module  struct{ Path string }
		Require []struct{ Path, Version string }
		Replace []struct{ Old, New struct{ Path string } }
	}
	if err := json.Unmarshal(out, &file); err != nil {
		t.Fatal(err)
	}
	versions, replaced = map[string]string{}, map[string]string{}
	for _, r := range file.Require {
		if strings.HasPrefix(r.Path, "github.com/idem-go/") {
			versions[r.Path] = r.Version
		}
	}
	for _, r := range file.Replace {
		replaced[r.Old.Path] = r.New.Path
	}
	return file.Module.Path, versions, replaced
}

// A release is required as it is, and nothing is replaced.
func TestReleaseIsRequired(t *testing.T) {
	folder := t.TempDir()
	if _, err := (scaffold.Service{Module: "github.com/acme/orders", Release: "v1.2.3-rc.1"}).Write(folder); err != nil {
		t.Fatal(err)
	}
	module, versions, replaced := required(t, folder)
	want := map[string]string{"github.com/idem-go/idem-aws": "v1.2.3-rc.1", "github.com/idem-go/idem-aws/infra": "v1.2.3-rc.1"}
	if module != "github.com/acme/orders" || len(replaced) != 0 || len(versions) != 2 || versions["github.com/idem-go/idem-aws"] != want["github.com/idem-go/idem-aws"] || versions["github.com/idem-go/idem-aws/infra"] != want["github.com/idem-go/idem-aws/infra"] {
		t.Errorf("module %s requires %v and replaces %v", module, versions, replaced)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "Makefile")); err != nil || !strings.Contains(string(text), "\nIDEM ?=\n") {
		t.Errorf("the Makefile knows a checkout: %v", err)
	}
}

// Without a release every module of idem is that of the checkout, and the Makefile starts its emulator.
func TestLibraryIsReplaced(t *testing.T) {
	folder, library := t.TempDir(), checkout(t)
	if err := os.Mkdir(filepath.Join(folder, ".git"), 0o755); err != nil { // git init comes first
		t.Fatal(err)
	}
	if _, err := (scaffold.Service{Module: "orders", Library: library}).Write(folder); err != nil {
		t.Fatal(err)
	}
	_, versions, replaced := required(t, folder)
	if replaced["github.com/idem-go/idem-aws"] != library || replaced["github.com/idem-go/idem-aws/infra"] != library+"/infra" {
		t.Errorf("replaced: %v", replaced)
	}
	for module := range versions {
		if replaced[module] == "" {
			t.Errorf("%s is required, and not replaced", module)
		}
	}
	if text, err := os.ReadFile(filepath.Join(folder, "Makefile")); err != nil || !strings.Contains(string(text), "\nIDEM ?= "+library+"\n") {
		t.Errorf("the Makefile does not know the checkout: %v", err)
	}
}

// What can't be used is refused with what is wrong and what to do, and nothing is written.
func TestRefusals(t *testing.T) {
	library := checkout(t)
	other := t.TempDir()
	write(t, filepath.Join(other, "go.mod"), "module example.com/other\n")
	full := t.TempDir()
	write(t, filepath.Join(full, "notes"), "mine")
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "mine")
	release := "v1.2.3"
	cases := map[string]struct {
		service      scaffold.Service
		folder       string
		field, wrong string
	}{
		"no name":                {scaffold.Service{Release: release}, "", "module", "it is empty"},
		"upper case":             {scaffold.Service{Module: "Shop", Release: release}, "", "module", "lower-case"},
		"an underscore":          {scaffold.Service{Module: "my_shop", Release: release}, "", "module", "lower-case"},
		"a name too long":        {scaffold.Service{Module: strings.Repeat("a", 41), Release: release}, "", "module", "at most 40"},
		"a path too long":        {scaffold.Service{Module: strings.Repeat("a/", 100) + "a", Release: release}, "", "module", "200"},
		"a path out of here":     {scaffold.Service{Module: "../shop", Release: release}, "", "module", "between slashes"},
		"an absolute path":       {scaffold.Service{Module: "/shop", Release: release}, "", "module", "between slashes"},
		"a slash at the end":     {scaffold.Service{Module: "shop/", Release: release}, "", "module", "lower-case"},
		"a space":                {scaffold.Service{Module: "my shop", Release: release}, "", "module", "lower-case"},
		"a major version":        {scaffold.Service{Module: "github.com/acme/shop/v2", Release: release}, "", "module", "major version"},
		"a package of Go":        {scaffold.Service{Module: "log", Release: release}, "", "module", "Go's own"},
		"a folder of Go":         {scaffold.Service{Module: "net/shop", Release: release}, "", "module", "Go's own"},
		"a device of Windows":    {scaffold.Service{Module: "aux", Release: release}, "", "module", "Windows"},
		"a device with an end":   {scaffold.Service{Module: "github.com/NUL.x/shop", Release: release}, "", "module", "Windows"},
		"a short name":           {scaffold.Service{Module: "acme~1/shop", Release: release}, "", "module", "Windows"},
		"a hyphen in front":      {scaffold.Service{Module: "-acme/shop", Release: release}, "", "module", "hyphen"},
		"a module of Go":         {scaffold.Service{Module: "toolchain", Release: release}, "", "module", "a module of that name"},
		"an internal folder":     {scaffold.Service{Module: "acme.com/internal/shop", Release: release}, "", "module", "internal"},
		"idem itself":            {scaffold.Service{Module: "github.com/idem-go/idem-aws/shop", Release: release}, "", "module", "idem's own"},
		"no release":             {scaffold.Service{Module: "orders"}, "", "release", "knows no release"},
		"no version":             {scaffold.Service{Module: "orders", Release: "latest"}, "", "release", "no version"},
		"the placeholder":        {scaffold.Service{Module: "orders", Release: "v0.0.0"}, "", "release", "no version"},
		"two libraries":          {scaffold.Service{Module: "orders", Release: release, Library: library}, "", "library", "are given"},
		"a relative library":     {scaffold.Service{Module: "orders", Library: "."}, "", "library", "not absolute"},
		"no checkout":            {scaffold.Service{Module: "orders", Library: t.TempDir()}, "", "library", "no such file"},
		"a checkout of another":  {scaffold.Service{Module: "orders", Library: other}, "", "library", "not of the module"},
		"a library with a space": {scaffold.Service{Module: "orders", Library: library + "/a b"}, "", "library", "spaces"},
		"a folder that is full":  {scaffold.Service{Module: "orders", Release: release}, full, "folder", "not empty: it has notes"},
		"a file":                 {scaffold.Service{Module: "orders", Release: release}, file, "folder", "can't be read as a folder"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			folder := c.folder
			if folder == "" {
				folder = filepath.Join(t.TempDir(), "new")
			}
			_, err := c.service.Write(folder)
			var input *scaffold.InputError
			if !errors.As(err, &input) || input.Field != c.field || !strings.Contains(input.Wrong, c.wrong) || !strings.HasSuffix(input.Do, ".") {
				t.Errorf("got %+v, want field %s, %q", err, c.field, c.wrong)
			}
			if _, err := os.Stat(folder); c.folder == "" && !os.IsNotExist(err) {
				t.Errorf("something was written: %v", err)
			}
		})
	}
	if text, err := os.ReadFile(filepath.Join(full, "notes")); err != nil || string(text) != "mine" {
		t.Errorf("what was there is %q (%v)", text, err)
	}
}

// A file that can't be written leaves nothing of the service behind.
func TestFailureLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	// .git is let be, and a folder above the one that is written can be a file.
	write(t, filepath.Join(folder, "file"), "mine")
	if _, err := (scaffold.Service{Module: "orders", Release: "v1.2.3"}).Write(filepath.Join(folder, "file", "service")); err == nil {
		t.Error("a service was written into a file")
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v (%v)", entries, err)
	}
}

// Targets that lack something say what, and what to run instead, before they build anything.
func TestMakefileSaysWhatItLacks(t *testing.T) {
	folder := t.TempDir()
	if _, err := (scaffold.Service{Module: "orders", Release: "v1.2.3"}).Write(folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"IDEM", "ALARM_TOPIC", "WAREHOUSE_URL", "SCOPE_SECRET_ID"} {
		t.Setenv(name, "")
	}
	for want, args := range map[string][]string{
		"IDEM must be":            {"up"},
		"ALARM_TOPIC must be":     {"deploy", "WAREHOUSE_URL=https://warehouse.example", "SCOPE_SECRET_ID=none"},
		"WAREHOUSE_URL must be":   {"deploy", "ALARM_TOPIC=none", "SCOPE_SECRET_ID=none"},
		"SCOPE_SECRET_ID must be": {"deploy", "ALARM_TOPIC=none", "WAREHOUSE_URL=https://warehouse.example"}, // it can't be added later
	} {
		command := exec.CommandContext(t.Context(), "make", append([]string{"-C", folder, "CDK=false"}, args...)...)
		said, err := command.CombinedOutput()
		if err == nil || !strings.Contains(string(said), want) || !strings.Contains(string(said), "Run: ") {
			t.Errorf("make %v: %v\n%s", args, err, said)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "build")); !os.IsNotExist(err) {
		t.Errorf("something was built: %v", err)
	}
}

// A shell that has read the variables of `make up`, as the pages have it, finds the emulator too: one of them is EMULATOR, the
// emulator's name.
func TestMakefileFindsTheEmulatorInAShellThatHasItsVariables(t *testing.T) {
	folder, checkout := t.TempDir(), t.TempDir()
	if _, err := (scaffold.Service{Module: "orders", Release: "v1.2.3"}).Write(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(checkout, ".local"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(checkout, ".local", "run.env"), "EMULATOR=ministack\nAWS_ENDPOINT_URL=http://emulator.example\n")
	command := exec.CommandContext(t.Context(), "make", "-C", folder, "down", "IDEM="+checkout, "CDK=printenv AWS_ENDPOINT_URL_S3 #")
	command.Env = append(os.Environ(), "EMULATOR=ministack")
	if said, err := command.CombinedOutput(); err != nil || !strings.Contains(string(said), "http://emulator.example\n") {
		t.Errorf("make down: %v\n%s", err, said)
	}
}
