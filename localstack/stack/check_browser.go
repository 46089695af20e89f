package stack

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/emulator"
)

// browser runs the tests that need a browser: those of the console and of the documentation site.
func (c *Check) browser(ctx context.Context) error {
	if err := c.chromium(ctx); errors.Is(err, localtool.ErrNoChromium) {
		c.leaveOut("the console and the documentation site in a browser (" + err.Error() + ")")
		return nil
	} else if err != nil {
		return err
	}
	packages := []string{"./functions/cmd/idemctl"}
	if emulator.MkDocsTool().Installed(c.Root) { // where it is not, unit says so
		packages = append(packages, "./localstack/docsite")
	}
	return c.Out.Step("the console and the documentation site in a browser", func() error {
		return c.count(goTest(ctx, c.Root, nil, append([]string{"-tags", "browser", "-run", "^TestBrowser"}, packages...)...))
	})
}

// chromium looks for a browser. A machine that must run everything, and that is its user's to fill, gets Debian's where there
// is none: browsers are not among what this project puts into its own folder.
func (c *Check) chromium(ctx context.Context) error {
	_, err := localtool.Chromium()
	if err == nil || !c.Strict || os.Geteuid() != 0 {
		return err
	}
	if _, missing := exec.LookPath("apt-get"); missing != nil {
		return err
	}
	err = c.Out.Step("install chromium, by apt", func() error {
		quiet := []string{"DEBIAN_FRONTEND=noninteractive"}
		if err := emulator.Run(ctx, c.Root, quiet, "apt-get", "update", "-q"); err != nil {
			return err
		}
		return emulator.Run(ctx, c.Root, quiet, "apt-get", "install", "-q", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core")
	})
	if err != nil {
		return err
	}
	_, err = localtool.Chromium()
	return err
}
