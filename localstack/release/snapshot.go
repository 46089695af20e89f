package release

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Snapshot copies the files of the checkout at root that Git tracks, or would track, into the folder into. Files that differ
// from the last commit are copied as they are now.
func Snapshot(ctx context.Context, root, into string) error {
	command := exec.CommandContext(ctx, "git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	listed, err := command.Output()
	if err != nil {
		return fmt.Errorf("list the files of %s: %w", root, err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(listed), "\x00"), "\x00") {
		name = filepath.FromSlash(name)
		if err := copyFile(filepath.Join(root, name), filepath.Join(into, name)); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a regular file. One that was deleted and is not committed yet is left out.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: a module's zip can't hold it", from)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return err
	}
	return target.Close()
}
