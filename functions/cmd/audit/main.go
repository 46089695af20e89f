// Command audit lists every route of the payments API with its operation, kind, retention and policy. It fails when an unsafe
// route has no policy, and when a released operation's name vanished or its scope changed: the keys of clients would be lost.
package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/middleware/audit"
)

// released are the operations that were ever released, by the names that records are kept under.
//
//go:embed operations.json
var released string

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(w io.Writer) error {
	routes, err := payments.Routes(idem.IETF().Retention)
	if err != nil {
		return err
	}
	operations, err := audit.Read(strings.NewReader(released))
	if err != nil {
		return err
	}
	if err := audit.Table(w, routes); err != nil {
		return err
	}
	return audit.Check(routes, operations)
}
