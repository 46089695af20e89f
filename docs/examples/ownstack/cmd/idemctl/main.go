// Command idemctl is the service's operator's: it shows what is stuck, unknown or dead, and changes it with --write. It reads the
// names of tables and queues from the environment, or from what `cdk deploy --outputs-file` writes: idemctl --env-file outputs.json.
package main

import (
	"os"

	"github.com/idem-go/idem-aws/idem/operator/awsctl"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"

	"example.com/shop/service"
)

func main() {
	os.Exit(idemctl.Main(awsctl.NewLambda(awsctl.Lambda{
		Application: service.Configure,
		Tables:      []awsctl.OwnTable{{Role: "orders", Variable: service.OrdersTable, Shape: service.Orders()}},
		Known:       service.Known,
	})))
}
