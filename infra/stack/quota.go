package stack

import (
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/infra/idemconstruct"
)

// Quota is what each tenant may ask for; 0 is no limit.
type Quota struct {
	// NewKeys and LookUps are per second, ActiveKeys are those of the last retention.
	NewKeys, ActiveKeys, LookUps int
}

// quotaMax is the largest limit that can be written.
const quotaMax = 1_000_000_000

func (r *reader) quota() Quota {
	return Quota{r.count("quotaNewKeys"), r.count("quotaActiveKeys"), r.count("quotaLookUps")}
}

// count is the value of a key that has a number; the default is 0.
func (r *reader) count(key string) int {
	value := r.text(key, "0")
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > quotaMax {
		r.refuse(key, value, "0 to "+strconv.Itoa(quotaMax))
	}
	return n
}

// table is where instances share their counters; nil where nothing is limited. What it holds is gone within hours: it
// goes with its stack.
func (q Quota) table(scope constructs.Construct) awsdynamodb.TableV2 {
	if q == (Quota{}) {
		return nil
	}
	return idemconstruct.NewTable(scope, "Quota", schema.Quota(), idemconstruct.TablesProps{Disposable: true})
}

// environment is what the api function is told of the limits.
func (q Quota) environment(table awsdynamodb.TableV2) map[string]*string {
	return map[string]*string{
		"QUOTA_TABLE":               table.TableName(),
		"QUOTA_NEW_KEYS_PER_SECOND": jsii.String(strconv.Itoa(q.NewKeys)),
		"QUOTA_ACTIVE_KEYS":         jsii.String(strconv.Itoa(q.ActiveKeys)),
		"QUOTA_LOOK_UPS_PER_SECOND": jsii.String(strconv.Itoa(q.LookUps)),
	}
}

// quotaStatement is what an instance needs to count.
func quotaStatement(table awsdynamodb.TableV2) awsiam.PolicyStatement {
	return idemconstruct.Allow([]string{"dynamodb:UpdateItem", "dynamodb:BatchGetItem"}, table.TableArn())
}
