package stack

import (
	"context"
	"errors"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// console runs the tests of the console that need a browser.
func (c *Check) console(ctx context.Context) error {
	if err := c.chromium(ctx); errors.Is(err, localtool.ErrNoChromium) {
		c.leftOut = append(c.leftOut, "the console in a browser ("+err.Error()+")")
		return nil
	} else if err != nil {
		return err
	}
	return c.Out.Step("the console in a browser", func() error {
		return c.count(goTest(ctx, c.Root, nil, "-tags", "browser", "-run", "^TestBrowser", "./functions/cmd/idemctl"))
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
