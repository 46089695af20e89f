package dynamo

import "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

// Usage is what one call to DynamoDB consumed.
type Usage struct {
	// Operation is the API's name: "PutItem".
	Operation string
	// Attempts counts the requests that the SDK sent for the call, of a write at most one; 0 when it failed before the first.
	Attempts int
	// Failed says that the call returned an error. DynamoDB reports no capacity then, though it bills a failed condition
	// as a write of the stored item's size.
	Failed bool
	// Tables is what each table consumed, its indexes included.
	Tables []TableUsage
}

// TableUsage is what one call consumed of one table, in capacity units. A transaction that is repeated under its token
// is billed as reads.
type TableUsage struct {
	// Table is the table's name.
	Table string
	// ReadUnits and WriteUnits are the capacity units that were consumed, of the table and its indexes together.
	ReadUnits, WriteUnits float64
}

// Units sums up over the tables.
func (u Usage) Units() (read, write float64) {
	for _, table := range u.Tables {
		read += table.ReadUnits
		write += table.WriteUnits
	}
	return read, write
}

// capacityMode asks for figures only where somebody reads them: they make every reply larger.
func (s *Store) capacityMode() types.ReturnConsumedCapacity {
	if s.cfg.Meter == nil {
		return types.ReturnConsumedCapacityNone
	}
	return types.ReturnConsumedCapacityTotal
}

// meter reports a call that has ended.
func (c *call) meter(err error, reads bool, consumed ...types.ConsumedCapacity) {
	if c.store.cfg.Meter == nil {
		return
	}
	usage := Usage{Operation: c.operation, Attempts: int(c.attempts.Load()), Failed: err != nil}
	for _, capacity := range consumed {
		usage.Tables = append(usage.Tables, tableUsage(capacity, reads))
	}
	c.store.cfg.Meter(usage)
}

// tableUsage reads DynamoDB's figures: only transactions say which units they are.
func tableUsage(capacity types.ConsumedCapacity, reads bool) TableUsage {
	usage := TableUsage{Table: text(capacity.TableName), ReadUnits: units(capacity.ReadCapacityUnits), WriteUnits: units(capacity.WriteCapacityUnits)}
	switch {
	case capacity.ReadCapacityUnits != nil || capacity.WriteCapacityUnits != nil:
	case reads:
		usage.ReadUnits = units(capacity.CapacityUnits)
	default:
		usage.WriteUnits = units(capacity.CapacityUnits)
	}
	return usage
}

func units(n *float64) float64 {
	if n == nil {
		return 0
	}
	return *n
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
