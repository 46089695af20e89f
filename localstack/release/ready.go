package release

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

// The codes of a [NotReadyError].
const (
	CodeVersion   = "release_version"   // the version can't be one of this repository
	CodeClients   = "release_clients"   // a client package has another version
	CodeChangelog = "release_changelog" // CHANGELOG.md has no section for the version
	CodeDirty     = "release_dirty"     // the checkout differs from its last commit
	CodeTagged    = "release_tagged"    // a tag of the version exists
	CodeUntagged  = "release_untagged"  // the checkout is not the commit of the version's tag
	CodeUnmade    = "release_unmade"    // the go.mod files are not those of a release
)

// NotReadyError says why a checkout can't be released. Nothing was changed.
type NotReadyError struct {
	Code string
	// Rule is what a release needs, and what was found instead.
	Rule string
}

// Error implements error.
func (e *NotReadyError) Error() string { return e.Code + ": " + e.Rule }

// CheckVersion fails with [CodeVersion] unless the version is one that the modules' paths can have, such as v0.1.0 or
// v1.2.3-rc.1.
func CheckVersion(version string) error {
	if semver.Canonical(version) != version || version == "" {
		return &NotReadyError{CodeVersion, fmt.Sprintf("VERSION = %q: it must be a semantic version in full, such as v0.1.0", version)}
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return &NotReadyError{CodeVersion, fmt.Sprintf("VERSION = %q: from v2 on, the modules' paths must end in /%s", version, major)}
	}
	return nil
}

// Ready fails with a [*NotReadyError] unless the files of the checkout are those of this version.
func Ready(root, version string) error {
	if err := CheckVersion(version); err != nil {
		return err
	}
	for name, read := range clients {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if got, want := read(text), strings.TrimPrefix(version, "v"); got != want {
			return &NotReadyError{CodeClients, fmt.Sprintf("%s says version %q: it must be %q, as the release", name, got, want)}
		}
	}
	changes, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if !regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(version) + `(,|\s|$)`).Match(changes) {
		return &NotReadyError{CodeChangelog, fmt.Sprintf("CHANGELOG.md must have a section %q: rename Unreleased", "## "+version)}
	}
	return nil
}

// clients are the packages that are published beside the modules, and how their files say their version.
var clients = map[string]func([]byte) string{
	"idem/client/typescript/package.json": func(text []byte) string {
		var manifest struct{ Version string }
		_ = json.Unmarshal(text, &manifest) // without a version it is refused
		return manifest.Version
	},
	"idem/client/python/pyproject.toml": func(text []byte) string {
		match := regexp.MustCompile(`(?m)^version = "([^"]*)"$`).FindSubmatch(text)
		if match == nil {
			return ""
		}
		return string(match[1])
	},
}

// Made fails with [CodeUnmade] unless the go.mod files of the checkout are those of this version already, as [Tag] commits
// them: a tag that was made by hand.
func Made(root, version string) error {
	for _, module := range Modules() {
		text, err := os.ReadFile(filepath.Join(root, string(module), "go.mod"))
		if err != nil {
			return err
		}
		released, err := releasedModFile(text, version)
		if err != nil {
			return fmt.Errorf("module %s: %w", module, err)
		}
		if !bytes.Equal(released, text) {
			return &NotReadyError{CodeUnmade, fmt.Sprintf("the go.mod of module %s is not the one of %s: make its tags by `make release VERSION=%s`", module, version, version)}
		}
	}
	return nil
}
