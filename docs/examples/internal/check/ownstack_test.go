package check_test

import (
	"testing"

	"github.com/idem-go/idem-aws/docs/examples/internal/check"
)

// A stack of one's own: application, table and API.
func TestOwnStackTakesFewLines(t *testing.T) {
	check.Lines(t, "../../ownstack/cdk/main.go", 15)
}
