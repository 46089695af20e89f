package stack

import (
	"context"
	"os"
	"os/exec"

	"github.com/idem-go/idem-aws/localstack/emulator"
)

// mayInstall says whether Debian's packages may be installed: on a machine that must run everything, and that is its user's to
// fill.
func (c *Check) mayInstall() bool {
	_, missing := exec.LookPath("apt-get")
	return c.Strict && os.Geteuid() == 0 && missing == nil
}

// install installs Debian's packages, for one lane at a time: apt has one lock.
func (c *Check) install(ctx context.Context, packages ...string) error {
	c.installing.Lock()
	defer c.installing.Unlock()
	return c.Out.Step("install "+packages[0]+", by apt", func() error {
		quiet := []string{"DEBIAN_FRONTEND=noninteractive"}
		if err := emulator.Run(ctx, c.Root, quiet, "apt-get", "update", "-q"); err != nil {
			return err
		}
		arguments := append([]string{"install", "-q", "-y", "--no-install-recommends"}, packages...)
		return emulator.Run(ctx, c.Root, quiet, "apt-get", arguments...)
	})
}
