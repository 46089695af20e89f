package awsctl

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/auditlog"
)

// NewClerk returns what makes changes of the application's own with an entry in the audit table, for a person who may do nothing else
// with idem's tables: PutItem, UpdateItem and GetItem on the audit table are enough. It compares this machine's clock with DynamoDB's.
func NewClerk(client *dynamodb.Client, auditTable string) (*operator.Clerk, error) {
	log, err := auditlog.New(client, auditTable)
	if err != nil {
		return nil, err
	}
	return operator.NewClerk(operator.ClerkConfig{Audit: log, ClockOff: clockOff(client, auditTable)})
}
