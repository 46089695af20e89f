package tablekeys_test

import (
	"context"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/idem-go/idem-aws/idem/seal/awskms"
	"github.com/idem-go/idem-aws/idem/seal/tablekeys"
)

// A tenant has asked for erasure: without its keys nothing that was sealed for it can be read. The Example is compiled
// only: it needs the table of keys.
func ExampleKeys_Erase() {
	cfg := aws.Config{Region: "eu-central-1"}                                                  // from LoadDefaultConfig of the SDK's package config
	wrapper, err := awskms.New(kms.NewFromConfig(cfg), "1234abcd-12ab-34cd-56ef-1234567890ab") // the id or ARN, and no alias
	if err != nil {
		log.Fatal(err)
	}
	keys, err := tablekeys.New(dynamodb.NewFromConfig(cfg), tablekeys.Config{Table: "keys", Wrapper: wrapper})
	if err != nil {
		log.Fatal(err)
	}
	if err := keys.Erase(context.Background(), "tenant-a"); err != nil {
		log.Fatal(err)
	}
}
