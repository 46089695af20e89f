package idemconstruct

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// KeysProps are the choices for Keys. The zero value is for production.
type KeysProps struct {
	// Disposable keys go with their stack.
	Disposable bool
	// TableKey is the KMS key that DynamoDB encrypts the table with, as TablesProps.Key has it. Default: a key of DynamoDB's
	// own.
	TableKey awskms.IKey
	// ImportTable is the name of a table of data keys that is there already, and ImportKey the ARN of the KMS key that wraps
	// them. Default: none, and new ones are made. A KMS key may be imported alone, as one of several Regions, for a new table.
	ImportTable, ImportKey string
}

// Keys are what tenants' data is encrypted with: a table of data keys, one item for each tenant, and the KMS key that wraps
// them. If either is lost, what is encrypted is lost.
type Keys struct {
	constructs.Construct
	// Table is the table of wrapped data keys. It has no point-in-time recovery, which would bring erased keys back.
	Table awsdynamodb.ITableV2
	// Key is the symmetric KMS key, rotated every year. Rotation changes nothing for what is wrapped.
	Key awskms.IKey
}

// NewKeys adds the table and the KMS key to scope under id.
func NewKeys(scope constructs.Construct, id string, props KeysProps) *Keys {
	self := constructs.NewConstruct(scope, jsii.String(id))
	keys := &Keys{Construct: self}
	if props.ImportTable != "" {
		keys.Table = ImportTable(self, "Table", props.ImportTable, "")
	} else {
		keys.Table = NewTable(self, "Table", schema.Keys(), TablesProps{Disposable: props.Disposable, Unrecoverable: true, Key: props.TableKey})
	}
	if props.ImportKey != "" {
		keys.Key = awskms.Key_FromKeyArn(self, jsii.String("Key"), jsii.String(props.ImportKey))
	} else {
		keys.Key = newKey(self, props.Disposable)
	}
	return keys
}

func newKey(scope constructs.Construct, disposable bool) awskms.Key {
	policy := awscdk.RemovalPolicy_RETAIN
	if disposable {
		policy = awscdk.RemovalPolicy_DESTROY
	}
	return awskms.NewKey(scope, jsii.String("Key"), &awskms.KeyProps{
		Description:       jsii.String("Wraps the tenants' data keys of idem"),
		EnableKeyRotation: jsii.Bool(true),
		RemovalPolicy:     policy,
	})
}

// SealStatements is what a function needs that encrypts and decrypts: each that executes operations, delivers messages or
// reads either. A tenant's first key is written by the function that meets the tenant first; to rotate, renew or erase one is an operator's.
func (k *Keys) SealStatements() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{
		Allow([]string{"dynamodb:GetItem", "dynamodb:PutItem"}, k.Table.TableArn()),
		Allow([]string{"kms:Encrypt", "kms:Decrypt"}, k.Key.KeyArn()),
	}
}
