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
	// Waits are begun, per second. Each holds an execution of the api for up to its longest wait.
	Waits int
}

// quotaDefault is a busy tenant's: 50 payments a second, which is a tenth of what the gateway lets through of all tenants'
// payments, 12 a second for a whole day, and two look-ups for each payment. 20 waits a second hold 100 executions, at 5 s each.
var quotaDefault = Quota{NewKeys: 50, ActiveKeys: 1_000_000, LookUps: 100, Waits: 20}

// quotaMax is the largest limit that can be written.
const quotaMax = 1_000_000_000

// quota reads the limits. A local stack has those that it is asked for: tests and stories are one tenant's.
func (r *reader) quota(local bool) Quota {
	otherwise := quotaDefault
	if local {
		otherwise = Quota{}
	}
	return Quota{
		r.count("quotaNewKeys", otherwise.NewKeys), r.count("quotaActiveKeys", otherwise.ActiveKeys), r.count("quotaLookUps", otherwise.LookUps),
		r.count("quotaWaits", otherwise.Waits),
	}
}

// count is the value of a key that has a number.
func (r *reader) count(key string, otherwise int) int {
	value := r.text(key, strconv.Itoa(otherwise))
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > quotaMax {
		r.refuse(key, value, "0 to "+strconv.Itoa(quotaMax))
	}
	return n
}

// quotaTable is where instances share their counters; nil where nothing is limited. What it holds is gone within hours: it goes with
// its stack. It takes a write for each new key and each look-up, so it serves at once, and at the most, what the tables of money do.
func (c Config) quotaTable(scope constructs.Construct, own customerKeys) awsdynamodb.ITableV2 {
	if c.Quota == (Quota{}) {
		return nil
	}
	return idemconstruct.NewTable(scope, "Quota", schema.Quota(), idemconstruct.TablesProps{
		Disposable: true, Key: own.tables, Warm: c.WarmThroughput, Max: c.MaxThroughput,
	})
}

// environment is what the api function is told of the limits.
func (q Quota) environment(table awsdynamodb.ITableV2) map[string]*string {
	return map[string]*string{
		"QUOTA_TABLE":               table.TableName(),
		"QUOTA_NEW_KEYS_PER_SECOND": jsii.String(strconv.Itoa(q.NewKeys)),
		"QUOTA_ACTIVE_KEYS":         jsii.String(strconv.Itoa(q.ActiveKeys)),
		"QUOTA_LOOK_UPS_PER_SECOND": jsii.String(strconv.Itoa(q.LookUps)),
		"QUOTA_WAITS_PER_SECOND":    jsii.String(strconv.Itoa(q.Waits)),
	}
}

// quotaStatement is what an instance needs to count.
func quotaStatement(table awsdynamodb.ITableV2) awsiam.PolicyStatement {
	return idemconstruct.Allow([]string{"dynamodb:UpdateItem", "dynamodb:BatchGetItem"}, table.TableArn())
}
