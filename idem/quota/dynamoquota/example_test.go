package dynamoquota_test

import (
	"context"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/quota"
	"github.com/idem-go/idem-aws/idem/quota/dynamoquota"
)

// All instances of a service share a tenant's limits by one table. The Example needs that table, so it is compiled only.
func Example() {
	// The application's configuration comes from LoadDefaultConfig of the SDK's package config.
	client := dynamodb.NewFromConfig(aws.Config{Region: "eu-central-1"})
	counters, err := dynamoquota.New(client, "quota")
	if err != nil {
		log.Fatal(err)
	}
	quotas, err := quota.New(counters, quota.Config{
		Limits: func(string) quota.Limits { return quota.Limits{NewKeysPerSecond: 100, ActiveKeys: 1_000_000} },
	})
	if err != nil {
		log.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{}) // an application uses package dynamo
	if err != nil {
		log.Fatal(err)
	}
	if _, err := idem.New(store, idem.Config{Quota: quotas}); err != nil {
		log.Fatal(err)
	}
	if err := quotas.LookUp(context.Background(), "tenant-a"); err != nil {
		log.Fatal(err) // an idem.QuotaError is answered with 429
	}
}
