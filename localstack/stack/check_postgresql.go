package stack

import (
	"context"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// onPostgreSQL names the tests that need a PostgreSQL server.
const onPostgreSQL = "^TestOnPostgreSQL"

// postgresql looks for a server, and has Debian's installed where that may be done.
func (c *Check) postgresql(ctx context.Context) error {
	_, err := localtool.PostgreSQLPrograms()
	if err == nil || !c.mayInstall() {
		return err
	}
	if err := c.install(ctx, "postgresql"); err != nil {
		return err
	}
	_, err = localtool.PostgreSQLPrograms()
	return err
}
