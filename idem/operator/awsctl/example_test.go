package awsctl_test

import (
	"context"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/lambdaapp"
	"github.com/idem-go/idem-aws/idem/operator/awsctl"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// configure is what the functions of the application give to lambdaapp.New.
func configure(context.Context) (lambdaapp.Config, error) {
	return lambdaapp.Config{AWS: aws.Config{Region: "eu-central-1"}}, nil // with LoadDefaultConfig of the SDK's package config, and topics
}

// The main function of a service's own idemctl. Without variables it names those that it needs.
func ExampleNewLambda() {
	app := awsctl.NewLambda(awsctl.Lambda{
		Application: configure,
		Tables:      []awsctl.OwnTable{{Role: "orders", Variable: "ORDERS_TABLE", Shape: schema.Table{Key: "id"}}},
	})
	idemctl.Run(context.Background(), app, []string{"tables", "check"}, os.Stdout, os.Stdout) // in a program: os.Exit(idemctl.Main(app))
	// Output:
	// idemctl: AUDIT_TABLE is not set: it must be the name of the audit table; IDEMPOTENCY_TABLE is not set: it must be the name of the idempotency table; OUTBOX_TABLE is not set: it must be the name of the outbox table; ORDERS_TABLE is not set: it must be the name of the table of orders
	// next: Set the variables in the environment, or in a file that you give with --env-file. They are listed at https://github.com/idem-go/idem-aws/blob/main/docs/operator.md#variables
}
