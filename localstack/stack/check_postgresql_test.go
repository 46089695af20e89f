package stack

import (
	"errors"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/internal/localtool"
)

// A machine without PostgreSQL, and without apt, is told in one line what was left out.
func TestPostgreSQLThatIsMissingIsTold(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(localtool.PostgreSQLVariable, t.TempDir())
	for _, strict := range []bool{false, true} {
		c := Check{Strict: strict}
		if err := c.postgresql(t.Context()); !errors.Is(err, localtool.ErrNoPostgreSQL) || strings.Contains(err.Error(), "\n") {
			t.Errorf("strict %t: %v", strict, err)
		}
	}
}
