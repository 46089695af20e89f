package release

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Untagged returns the checkout's last commit. It fails with a [*NotReadyError] where the checkout differs from it, or where the
// version has a tag.
func Untagged(ctx context.Context, root, version string) (commit string, err error) {
	if commit, err = committed(ctx, root); err != nil {
		return "", err
	}
	for _, module := range Modules() {
		existing, err := git(ctx, root, "tag", "--list", module.Tag(version))
		if err != nil {
			return "", err
		}
		if existing != "" {
			return "", &NotReadyError{CodeTagged, fmt.Sprintf("the tag %s exists: a published version never changes. If a release was interrupted before it was pushed, run git tag --delete %[1]s", existing)}
		}
	}
	return commit, nil
}

// Tagged fails with a [*NotReadyError] unless the checkout is the commit of the version's tag, without any change.
func Tagged(ctx context.Context, root, version string) error {
	commit, err := committed(ctx, root)
	if err != nil {
		return err
	}
	tag := Module(".").Tag(version)
	tagged, err := git(ctx, root, "rev-parse", "--quiet", "--verify", "refs/tags/"+tag+"^{commit}")
	if err != nil {
		return &NotReadyError{CodeUntagged, fmt.Sprintf("the tag %s does not exist: make it by `make release VERSION=%s`", tag, version)}
	}
	if tagged != commit {
		return &NotReadyError{CodeUntagged, fmt.Sprintf("the checkout is the commit %s, and the tag %s is on %s: check that one out", commit, tag, tagged)}
	}
	return nil
}

// committed returns the checkout's last commit, and fails with [CodeDirty] where its files differ from it.
func committed(ctx context.Context, root string) (commit string, err error) {
	changed, err := git(ctx, root, "status", "--porcelain", "--untracked-files=all")
	if err != nil {
		return "", err
	}
	if changed != "" {
		return "", &NotReadyError{CodeDirty, "the checkout differs from its last commit:\n" + changed}
	}
	return git(ctx, root, "rev-parse", "HEAD")
}

// Tag commits the go.mod files of the release on top of a commit, the one that was checked, and tags that commit for every
// module. The new commit is on no branch: the checkout, its branch and its index stay as they are. scratch is a folder for
// nothing else; what a release that was killed left there is removed.
func Tag(ctx context.Context, root, commit, version, scratch string) (err error) {
	_, _ = git(ctx, root, "worktree", "remove", "--force", scratch) // an error says that nothing was left
	if _, err := git(ctx, root, "worktree", "add", "--quiet", "--detach", scratch, commit); err != nil {
		return err
	}
	defer func() {
		_, removed := git(context.WithoutCancel(ctx), root, "worktree", "remove", "--force", scratch)
		err = errors.Join(err, removed)
	}()
	if err := Prepare(scratch, version); err != nil {
		return err
	}
	if _, err := git(ctx, scratch, "commit", "--quiet", "--all", "-m", "Release "+version); err != nil {
		return err
	}
	var made []string
	for _, module := range Modules() {
		tag := module.Tag(version)
		if _, err := git(ctx, scratch, "tag", "--annotate", "-m", "Release "+version, tag); err != nil {
			if len(made) > 0 { // half of a release is none
				_, deleted := git(context.WithoutCancel(ctx), root, append([]string{"tag", "--delete"}, made...)...)
				err = errors.Join(err, deleted)
			}
			return err
		}
		made = append(made, tag)
	}
	return nil
}

// Pushes are the commands that publish the tags. The root module's tag is pushed last and alone, because it starts the
// workflow, and GitHub starts none for more than three tags of one push.
func Pushes(version string) []string {
	var others []string
	root := Module(".")
	for _, module := range Modules() {
		if module != root {
			others = append(others, module.Tag(version))
		}
	}
	return []string{"git push --atomic origin " + strings.Join(others, " "), "git push origin " + root.Tag(version)}
}

func git(ctx context.Context, root string, arguments ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, arguments...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(arguments, " "), err, output)
	}
	return strings.TrimSpace(string(output)), nil
}
