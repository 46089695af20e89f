package awskms_test

import (
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
	"github.com/idem-go/idem-aws/idem/seal"
	"github.com/idem-go/idem-aws/idem/seal/awskms"
	"github.com/idem-go/idem-aws/idem/seal/tablekeys"
)

// A store whose tenants' keys are wrapped by a KMS key. The Example is compiled only: it needs the KMS key and a table.
func Example() {
	cfg := aws.Config{Region: "eu-central-1"}                                                  // from LoadDefaultConfig of the SDK's package config
	wrapper, err := awskms.New(kms.NewFromConfig(cfg), "1234abcd-12ab-34cd-56ef-1234567890ab") // the id or ARN, and no alias
	if err != nil {
		log.Fatal(err)
	}
	keys, err := tablekeys.New(dynamodb.NewFromConfig(cfg), tablekeys.Config{Table: "keys", Wrapper: wrapper})
	if err != nil {
		log.Fatal(err)
	}
	rows, err := memstore.New(memstore.Config{}) // an application uses package dynamo
	if err != nil {
		log.Fatal(err)
	}
	store, err := seal.New(rows, seal.Config{Keys: keys})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := idem.New(store, idem.Config{}); err != nil {
		log.Fatal(err)
	}
}
