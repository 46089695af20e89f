package payments

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// recorded is an operation's record, as a scan shows it, and the key of the row that its transaction made.
type recorded struct {
	key          storage.RecordKey
	operation    idem.OperationID
	tenant, name string
	row          string
}

// rowOf is the key of the row that an operation made.
type rowOf func(tenant string, operation idem.OperationID) string

// lacking looks at the records of some operations, by their names, that are pending or completed and were made since an instant, and calls
// lacks with each whose row is not there. It scans the whole table of records. An hour of it may have hundreds of thousands, and hardly any
// lacks its row: so rows are read in batches.
func (t Table) lacking(ctx context.Context, records string, since time.Time, operations map[string]rowOf, lacks func(recorded) error) error {
	var batch []recorded
	look := func() error {
		looked := batch
		batch = nil
		return t.lackingOf(ctx, looked, lacks)
	}
	err := Table{Client: t.Client, Name: records}.scan(ctx, recordsOf(slices.Sorted(maps.Keys(operations)), since), func(it item) error {
		one, err := decodeRecorded(it, operations)
		if err != nil {
			return named(it, err)
		}
		if batch = append(batch, one); len(batch) < batchGetMax {
			return nil
		}
		return look()
	})
	if err != nil {
		return err
	}
	return look()
}

// lackingOf calls lacks with each whose row is not there. What is missing is read once more before: a transaction that is being committed may
// show in its record before it shows in its row.
func (t Table) lackingOf(ctx context.Context, batch []recorded, lacks func(recorded) error) error {
	missing, err := t.missing(ctx, batch)
	if err == nil && len(missing) > 0 {
		missing, err = t.missing(ctx, missing)
	}
	if err != nil {
		return err
	}
	for _, one := range missing {
		if err := lacks(one); err != nil {
			return err
		}
	}
	return nil
}

// missing are those of a batch whose row is not there.
func (t Table) missing(ctx context.Context, batch []recorded) (missing []recorded, err error) {
	wanted := make([]item, len(batch))
	for i, one := range batch {
		wanted[i] = key(one.row)
	}
	rows, err := t.rows(ctx, wanted)
	if err != nil {
		return nil, err
	}
	for _, one := range batch {
		if rows[one.row] == nil {
			missing = append(missing, one)
		}
	}
	return missing, nil
}

func recordsOf(operations []string, since time.Time) dynamodb.ScanInput {
	names := make([]string, len(operations))
	values := item{
		":pending": str(string(storage.StatePending)), ":completed": str(string(storage.StateCompleted)), ":since": num(since.UnixMilli()),
	}
	for i, operation := range operations {
		names[i] = ":operation" + strconv.Itoa(i)
		values[names[i]] = str(operation)
	}
	return dynamodb.ScanInput{
		FilterExpression:     aws.String("#operation IN (" + strings.Join(names, ", ") + ") AND #state IN (:pending, :completed) AND #created >= :since"),
		ProjectionExpression: aws.String("#key, #id, #tenant, #operation"),
		ExpressionAttributeNames: map[string]string{
			"#operation": schema.OperationName, "#state": schema.State, "#created": schema.CreatedAt,
			"#key": schema.RecordKey, "#id": schema.OperationID, "#tenant": schema.Tenant,
		},
		ExpressionAttributeValues: values,
	}
}

func decodeRecorded(it item, operations map[string]rowOf) (recorded, error) {
	operation, err := dynamo.OperationOf(it)
	if err != nil {
		return recorded{}, err
	}
	d := decoder{item: it}
	one := recorded{
		key: storage.RecordKey(d.str(schema.RecordKey)), operation: operation, tenant: d.str(schema.Tenant), name: d.str(schema.OperationName),
	}
	if d.err == nil {
		one.row = operations[one.name](one.tenant, operation)
	}
	return one, d.err
}
