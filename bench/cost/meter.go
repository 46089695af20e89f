package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// call is one call to DynamoDB.
type call struct {
	// name is the API's, with the number of a transaction's items and "lost" where a condition failed.
	name string
	// ruled is what the call consumes by DynamoDB's documented rules.
	ruled units
	// reported is what the endpoint said that it consumed; it says nothing of a call that failed.
	lost                          bool
	reportedReads, reportedWrites float64
}

// meter prices each call of a client by the items that it meets and leaves, which it reads besides through another
// client. It is for one goroutine.
type meter struct {
	raw    *dynamodb.Client
	shapes map[string]schema.Table
	calls  []call
	// recordBytes is the size of the record that was seen last.
	recordBytes int
	err         error
}

// take returns the calls since the last take.
func (m *meter) take() []call {
	calls := m.calls
	m.calls = nil
	return calls
}

// option makes a client be metered.
func (m *meter) option(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Meter", m.watch), middleware.After)
	})
}

// reported is the store's Meter: what the endpoint says.
func (m *meter) reported(u dynamo.Usage) {
	last := &m.calls[len(m.calls)-1]
	last.reportedReads, last.reportedWrites = u.Units()
	if u.Attempts != 1 || u.Failed != last.lost {
		m.err = errors.Join(m.err, fmt.Errorf("%s: %d attempts, failed: %v", last.name, u.Attempts, u.Failed))
	}
}

func (m *meter) watch(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	name, touched, err := m.touched(in.Parameters)
	if err == nil {
		err = m.look(ctx, touched, func(t *touch, it item) { t.before = it })
	}
	if err != nil {
		return middleware.InitializeOutput{}, middleware.Metadata{}, fmt.Errorf("meter: %w", err)
	}
	out, metadata, callErr := next.HandleInitialize(ctx, in)
	c := call{name: name, lost: conditionFailed(callErr)}
	switch {
	case c.lost:
		c.name += " lost"
	case callErr != nil:
		m.err = errors.Join(m.err, callErr)
	default:
		m.err = errors.Join(m.err, m.look(ctx, touched, func(t *touch, it item) { t.after = it }))
	}
	for _, t := range touched {
		c.ruled = c.ruled.plus(m.price(t, c.lost))
	}
	m.calls = append(m.calls, c)
	return out, metadata, callErr
}

func conditionFailed(err error) bool {
	var condition *types.ConditionalCheckFailedException
	var cancelled *types.TransactionCanceledException
	return errors.As(err, &condition) || errors.As(err, &cancelled)
}

// touch is one item that a call reads or writes.
type touch struct {
	table      string
	key        item
	read       bool
	consistent bool
	factor     float64
	// before is the item as the call met it; after as it left it, or where it lost, as it would have left it.
	before, after item
}

// touched names the call and lists the items that it is about.
func (m *meter) touched(input any) (string, []touch, error) {
	switch in := input.(type) {
	case *dynamodb.GetItemInput:
		return "GetItem", []touch{{table: *in.TableName, key: in.Key, read: true, consistent: aws.ToBool(in.ConsistentRead)}}, nil
	case *dynamodb.BatchGetItemInput:
		var touched []touch
		for table, keys := range in.RequestItems {
			for _, key := range keys.Keys {
				touched = append(touched, touch{table: table, key: key, read: true, consistent: aws.ToBool(keys.ConsistentRead)})
			}
		}
		return fmt.Sprintf("BatchGetItem(%d)", len(touched)), touched, nil
	case *dynamodb.PutItemInput:
		return "PutItem", []touch{m.put(*in.TableName, in.Item, 1)}, nil
	case *dynamodb.TransactWriteItemsInput:
		var touched []touch
		for _, w := range in.TransactItems {
			switch {
			case w.Put != nil:
				touched = append(touched, m.put(*w.Put.TableName, w.Put.Item, transactionFactor))
			case w.Update != nil:
				touched = append(touched, touch{table: *w.Update.TableName, key: w.Update.Key, factor: transactionFactor})
			default:
				return "", nil, errors.New("a transaction with an item that is no put or update")
			}
		}
		return fmt.Sprintf("TransactWriteItems(%d)", len(touched)), touched, nil
	}
	return "", nil, fmt.Errorf("no rule for %T", input)
}

func (m *meter) put(table string, it item, factor float64) touch {
	key := m.shapes[table].Key
	return touch{table: table, key: item{key: it[key]}, factor: factor, after: it}
}

// look reads the items as they are now.
func (m *meter) look(ctx context.Context, touched []touch, keep func(*touch, item)) error {
	for i := range touched {
		out, err := m.raw.GetItem(ctx, &dynamodb.GetItemInput{TableName: &touched[i].table, Key: touched[i].key, ConsistentRead: aws.Bool(true)})
		if err != nil {
			return err
		}
		keep(&touched[i], out.Item)
	}
	return nil
}

// price is what a call consumes on one item. DynamoDB documents no figure for a cancelled transaction; it counts in full
// here, as a failed condition does.
func (m *meter) price(t touch, lost bool) units {
	shape := m.shapes[t.table]
	isRecord := shape.Key == schema.RecordKey && shape.Index.Name != ""
	if isRecord && !strings.Contains(t.key[schema.RecordKey].(*types.AttributeValueMemberS).Value, "#") {
		m.recordBytes = itemBytes(t.before)
		if !lost && !t.read {
			m.recordBytes = itemBytes(t.after)
		}
	}
	if t.read {
		return units{reads: readUnits(t.before, t.consistent)}
	}
	written := t.factor * writeUnits(t.before, t.after)
	var u units
	switch {
	case isRecord:
		u.records = written
	case shape.Index.Name != "":
		u.messages = written
	default:
		u.business = written
	}
	if shape.Index.Name != "" && !lost {
		u.indexes = indexUnits(shape, t.before, t.after)
	}
	return u
}
