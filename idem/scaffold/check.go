package scaffold

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

const libraryModule = "github.com/idem-go/idem-aws"

var (
	// nameForm is what CloudFormation takes for a stack, Go for a folder, and people can type.
	nameForm    = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	elementForm = regexp.MustCompile(`^[A-Za-z0-9_~-]+(\.[A-Za-z0-9_~-]+)*$`)
	// reservedForm is an element that the go command refuses everywhere: a device of Windows, or what looks like its short names.
	reservedForm = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[1-9]|lpt[1-9])(\..*)?$|~[0-9]+(\.|$)`)
	majorForm    = regexp.MustCompile(`^v[0-9]+$`)
	releaseForm  = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$`)
	// pathForm is what neither go.mod nor make reads as something else than a path.
	pathForm = regexp.MustCompile(`^[\p{L}\p{N}/\\:._+~@-]+$`)
)

// Longest names: of the stack, so that the names of its resources have space, and of the module.
const (
	nameMax   = 40
	moduleMax = 200
)

// standard are the first elements of the paths of Go's standard library, and those that the go command keeps for itself.
var standard = strings.Fields(`archive arena bufio builtin bytes cmd cmp compress container context crypto database debug embed encoding
	errors example expvar flag fmt go hash html image index internal io iter log main maps math mime net os path plugin reflect regexp runtime
	slices sort strconv strings structs sync syscall test testing text time unicode unique unsafe uuid vendor weak`)

func (s Service) check() error {
	if err := s.checkModule(); err != nil {
		return err
	}
	switch {
	case s.Library != "" && s.Release != "":
		return &InputError{"library", "A checkout and a release are given.", "Give one of --library and --release."}
	case s.Library != "":
		return s.checkLibrary()
	case s.Release == "":
		return &InputError{
			"release", "This idemctl was built from a checkout, so it knows no release that the service could require.",
			"Add --library PATH, the folder of the checkout, or --release v1.2.3.",
		}
	case !releaseForm.MatchString(s.Release) || s.Release == templateVersion:
		return &InputError{"release", fmt.Sprintf("%q is no version of a release.", s.Release), "Give one as in --release v1.2.3."}
	}
	return nil
}

func (s Service) checkModule() error {
	refuse := func(wrong string) error {
		return &InputError{"module", fmt.Sprintf("%q can't be the name of a service: %s.", s.Module, wrong), "Give a name such as shop, or the path of a Go module such as github.com/acme/shop."}
	}
	elements := strings.Split(s.Module, "/")
	name := s.Name()
	switch {
	case s.Module == "":
		return refuse("it is empty")
	case len(s.Module) > moduleMax:
		return refuse(fmt.Sprintf("it has more than %d characters", moduleMax))
	case majorForm.MatchString(name):
		return refuse("Go reads " + name + " at the end as a major version")
	case !nameForm.MatchString(name) || len(name) > nameMax:
		return refuse(fmt.Sprintf("its last part also names the stack, so it must begin with a lower-case letter, and have lower-case letters, digits and single hyphens, at most %d", nameMax))
	case slices.ContainsFunc(elements, func(e string) bool { return !elementForm.MatchString(e) }):
		return refuse("between slashes there must be letters, digits, single dots, _, ~ and hyphens")
	case strings.HasPrefix(s.Module, "-"):
		return refuse("Go refuses a hyphen at the beginning")
	case slices.ContainsFunc(elements, reservedForm.MatchString):
		return refuse("Go refuses names that Windows keeps for devices and short names, such as con and a~1")
	case s.Module == "toolchain":
		return refuse("Go has a module of that name")
	case slices.Contains(standard, elements[0]):
		return refuse("Go's own packages begin with " + elements[0])
	case slices.Contains(elements, "internal") || slices.Contains(elements, "vendor"):
		return refuse("Go gives folders named internal and vendor a meaning of their own")
	case s.Module == libraryModule || strings.HasPrefix(s.Module, libraryModule+"/"):
		return refuse("it is idem's own")
	}
	return nil
}

func (s Service) checkLibrary() error {
	refuse := func(wrong string) error {
		return &InputError{"library", fmt.Sprintf("%s is no checkout of idem that can be used: %s.", s.Library, wrong), "Run git clone https://" + libraryModule + ".git, and give that folder to --library."}
	}
	switch {
	case !filepath.IsAbs(s.Library):
		return refuse("the path is not absolute")
	case !pathForm.MatchString(s.Library):
		return refuse("its path has spaces or signs that go.mod or make would misread")
	}
	for _, folder := range []string{"", "infra"} {
		file, module := filepath.Join(s.Library, folder, "go.mod"), path.Join(libraryModule, folder)
		text, err := os.ReadFile(file) //nolint:gosec // the command line names the checkout
		if err != nil {
			return refuse(err.Error())
		}
		if first, _, _ := strings.Cut(string(text), "\n"); strings.TrimSpace(first) != "module "+module {
			return refuse(file + " is not of the module " + module)
		}
	}
	return nil
}

// Released is the version of idem that this program was built with; "" where it was built from a checkout, whose version nobody can
// download.
func Released() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return releasedIn(info)
}

func releasedIn(info *debug.BuildInfo) string {
	for _, module := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if module.Path == libraryModule && module.Replace == nil && module.Sum != "" && releaseForm.MatchString(module.Version) {
			return module.Version
		}
	}
	return ""
}
