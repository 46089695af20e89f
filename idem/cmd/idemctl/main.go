// Command idemctl is idemctl without an application: it writes new services, with `idemctl new`. What reads and changes operations
// is linked by an application, with its topics and its tables (package operator/idemctl).
package main

import (
	"os"

	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

func main() { os.Exit(idemctl.Main(idemctl.App{})) }
