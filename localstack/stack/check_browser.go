package stack

import (
	"context"
	"errors"

	"github.com/idem-go/idem-aws/internal/localtool"
	"github.com/idem-go/idem-aws/localstack/emulator"
)

// browser runs the tests that need a browser, those of the console and of the documentation site, where the commit has their turn.
func (c *Check) browser(ctx context.Context) error {
	if !c.hasTurn(ctx, "the console and the documentation site in a browser", browserReads...) {
		return nil
	}
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
	return c.test(ctx, "the console and the documentation site in a browser", testRun{
		arguments: append([]string{"-tags", "browser", "-run", "^TestBrowser"}, packages...),
	})
}

// chromium looks for a browser, and has it installed where that may be done: browsers are not among what this project puts into
// its own folder.
func (c *Check) chromium(ctx context.Context) error {
	_, err := localtool.Chromium()
	if err == nil || !c.mayInstall() {
		return err
	}
	if err := c.install(ctx, "chromium", "fonts-dejavu-core"); err != nil {
		return err
	}
	_, err = localtool.Chromium()
	return err
}
