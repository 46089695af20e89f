package auditlog_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/operator/auditlog"
)

// What operators have changed in the last week. The log is also the Audit of an operator.Config. The Example is compiled
// only: it needs the table.
func Example() {
	// The application's configuration comes from LoadDefaultConfig of the SDK's package config.
	entries, err := auditlog.New(dynamodb.NewFromConfig(aws.Config{Region: "eu-central-1"}), "audit")
	if err != nil {
		log.Fatal(err)
	}
	now := time.Now()
	found, err := entries.Entries(context.Background(), now.AddDate(0, 0, -7), now, "", 100)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range found {
		fmt.Println(e.At, e.Actor, e.Action, e.Subject, e.Reason, e.State)
	}
}
