package release

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// Prepare writes the go.mod files of the published modules in the checkout at root as they are released: each requires the
// others at the version, and none has a replace directive. In development they replace each other by folders, which
// `go install` refuses and `go get` ignores. go.work finds the version in the checkout.
func Prepare(root, version string) error {
	for _, module := range Modules() {
		name := filepath.Join(root, string(module), "go.mod")
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		released, err := releasedModFile(text, version)
		if err != nil {
			return fmt.Errorf("module %s: %w", module, err)
		}
		if err := os.WriteFile(name, released, 0o644); err != nil {
			return err
		}
	}
	return releaseWorkspace(root, version)
}

// releaseWorkspace has go.work find the version in the checkout itself, so that the release's commit can be built before the
// version can be downloaded.
func releaseWorkspace(root, version string) error {
	name := filepath.Join(root, "go.work")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return err
	}
	for _, module := range Modules() {
		if err := work.AddReplace(module.Path(), version, "./"+string(module), ""); err != nil {
			return err
		}
	}
	work.Cleanup()
	return os.WriteFile(name, modfile.Format(work.Syntax), 0o644)
}

// releasedModFile is a go.mod file as it is released. Directives that `go install` refuses are an error.
func releasedModFile(text []byte, version string) ([]byte, error) {
	file, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return nil, err
	}
	for _, require := range file.Require {
		if !own(require.Mod.Path) {
			continue
		}
		if !published(require.Mod.Path) {
			return nil, fmt.Errorf("it requires %s, which is not published", require.Mod.Path)
		}
		if err := file.AddRequire(require.Mod.Path, version); err != nil {
			return nil, err
		}
	}
	for _, replace := range file.Replace {
		if !own(replace.Old.Path) {
			return nil, fmt.Errorf("it replaces %s, which go install refuses", replace.Old.Path)
		}
		if err := file.DropReplace(replace.Old.Path, replace.Old.Version); err != nil {
			return nil, err
		}
	}
	if len(file.Exclude) > 0 {
		return nil, fmt.Errorf("it excludes %s, which go install refuses", file.Exclude[0].Mod.Path)
	}
	file.Cleanup()
	return file.Format()
}
