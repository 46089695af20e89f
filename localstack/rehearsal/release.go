package rehearsal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"encoding/json"

	"github.com/idem-go/idem-aws/localstack/emulator"
	"github.com/idem-go/idem-aws/localstack/stack"
)

// release is what can be deployed: a checkout's CDK app, and a folder of functions.
type release struct{ name, checkout, build string }

// schemaFile is where a release says which rows it can read, in schemaForm.
const schemaFile = "idem/storage/record.go"

var schemaForm = regexp.MustCompile(`(?m)^const SchemaVersion = ([0-9]+)$`)

// schemaOf is the schema version that a checkout's rows have.
func schemaOf(checkout string) (int, error) {
	text, err := os.ReadFile(filepath.Join(checkout, schemaFile))
	if err != nil {
		return 0, err
	}
	found := schemaForm.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("%s does not say %s", filepath.Join(checkout, schemaFile), schemaForm)
	}
	return strconv.Atoi(string(found[1]))
}

// raised is the text of schemaFile in a release whose rows this one can't read.
func raised(text string) (string, error) {
	found := schemaForm.FindAllStringSubmatchIndex(text, -1)
	if len(found) != 1 {
		return "", fmt.Errorf("%s is %d times in %s, want once", schemaForm, len(found), schemaFile)
	}
	from, to := found[0][2], found[0][3]
	version, err := strconv.Atoi(text[from:to])
	if err != nil {
		return "", err
	}
	return text[:from] + strconv.Itoa(version+1) + text[to:], nil
}

// git answers what Git says of the checkout.
func git(ctx context.Context, root string, arguments ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, arguments...)...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// aliasFile is where a release says by which alias its functions are called, in aliasForm.
const aliasFile = "infra/stack/release.go"

var aliasForm = regexp.MustCompile(`(?m)^const liveAlias = "live"$`)

// CodeWithoutAlias is the code of an [AliasError]. It is stable.
const CodeWithoutAlias = "release_without_alias"

// AliasError is an earlier release whose functions have no alias: CloudFormation replaces what calls them when this release is deployed
// over it, so that calls fail and wake-ups are lost meanwhile, which is no fault of this release.
type AliasError struct{ Reference, Commit string }

// Error implements error.
func (e *AliasError) Error() string {
	return fmt.Sprintf("%s: FROM = %q (%.12s): its functions must be called by the alias live, as %s says since Lambda aliases were introduced", CodeWithoutAlias, e.Reference, e.Commit, aliasFile)
}

// Earlier is the commit of a reference; without one, of the newest release's tag, or of the commit before this one where there is no tag. One that
// this release can't be deployed over under load is an [*AliasError].
func Earlier(ctx context.Context, root, reference string) (string, error) {
	commit, err := earlier(ctx, root, reference)
	if err != nil {
		return "", err
	}
	listed, err := git(ctx, root, "ls-tree", "--name-only", commit, aliasFile)
	if err != nil {
		return "", err
	}
	text := ""
	if listed != "" {
		if text, err = git(ctx, root, "show", commit+":"+aliasFile); err != nil {
			return "", err
		}
	}
	if !aliasForm.MatchString(text) {
		return "", &AliasError{reference, commit}
	}
	return commit, nil
}

// earlier is [Earlier] for any release.
func earlier(ctx context.Context, root, reference string) (string, error) {
	if reference == "" {
		tags, err := git(ctx, root, "-c", "versionsort.suffix=-", "tag", "--list", "v[0-9]*", "--sort=-version:refname")
		if err != nil {
			return "", err
		}
		last, _, _ := strings.Cut(tags, "\n")
		reference = cmp.Or(last, "HEAD~1")
	}
	return git(ctx, root, "rev-parse", "--verify", reference+"^{commit}")
}

// checkOut writes the files of a commit into an empty folder, without a work tree that Git would remember, and builds its functions
// and its CDK app there.
func checkOut(ctx context.Context, root, folder, commit string) (release, error) {
	made := release{name: "the earlier release, " + commit[:12], checkout: folder, build: filepath.Join(folder, ".local", "build")}
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return made, err
	}
	archive := folder + ".tar"
	if _, err := git(ctx, root, "archive", "--format=tar", "-o", archive, commit); err != nil {
		return made, err
	}
	if err := emulator.Run(ctx, folder, nil, "tar", "-xf", archive); err != nil {
		return made, err
	}
	return made, errors.Join(os.Remove(archive), stack.BuildFunctions(ctx, folder, runtime.GOARCH))
}

// buildLater builds the functions of this checkout as a release whose rows it can't read itself.
func buildLater(ctx context.Context, root, folder string) (release, error) {
	made := release{name: "a release with another schema", checkout: root, build: filepath.Join(folder, "build")}
	text, err := os.ReadFile(filepath.Join(root, schemaFile))
	if err != nil {
		return made, err
	}
	later, err := raised(string(text))
	if err != nil {
		return made, err
	}
	replaced, overlay := filepath.Join(folder, "record.go"), filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, schemaFile): replaced}})
	if err != nil {
		return made, err
	}
	err = errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(replaced, []byte(later), 0o644), os.WriteFile(overlay, replace, 0o644))
	if err != nil {
		return made, err
	}
	return made, stack.BuildFunctionsInto(ctx, root, made.build, runtime.GOARCH, "GOFLAGS=-overlay="+overlay)
}

// accepting are the functions that accept work. The others process it.
var accepting = []string{"api", "authorizer"}

// mixed is a stack of two releases: what accepts work is of one, and what processes it of the other, whose CDK app deploys both.
func mixed(folder string, accepts, processes release) (release, error) {
	made := release{name: fmt.Sprintf("%s, with the API of %s", processes.name, accepts.name), checkout: processes.checkout, build: folder}
	if err := os.RemoveAll(folder); err != nil {
		return made, err
	}
	functions, err := filepath.Glob(filepath.Join(processes.build, runtime.GOARCH, "*", "bootstrap"))
	if err != nil {
		return made, err
	}
	for _, binary := range functions {
		name := filepath.Base(filepath.Dir(binary))
		if slices.Contains(accepting, name) {
			binary = filepath.Join(accepts.build, runtime.GOARCH, name, "bootstrap")
		}
		if err := copyFile(binary, filepath.Join(folder, runtime.GOARCH, name, "bootstrap")); err != nil {
			return made, err
		}
	}
	return made, nil
}

func copyFile(from, to string) (err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
