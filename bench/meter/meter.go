package meter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// Call is one call to DynamoDB.
type Call struct {
	// Name is the API's, with the number of a transaction's items and "lost" where a condition failed.
	Name string
	// Tables are those that the call is about, each once.
	Tables []string
	// Unpriced says that there is no rule for the call, which a [Wire] with Others has passed on.
	Unpriced bool
	// Ruled is what the call consumes by DynamoDB's documented rules.
	Ruled Units
	// Lost says that a condition failed.
	Lost bool
	// ReportedReads and ReportedWrites are what the endpoint said that it consumed; it says nothing of a call that failed.
	ReportedReads, ReportedWrites float64
}

// Meter prices each call of a client by the items that it meets and leaves, which it reads besides through another
// client. It is for one goroutine.
type Meter struct {
	// Raw reads the items; it is not metered itself.
	Raw *dynamodb.Client
	// Shapes are the tables that are written, by name.
	Shapes map[string]schema.Table
	// RecordBytes is the size of the record that was seen last.
	RecordBytes int
	// Err joins what went wrong, in the calls and in reading besides.
	Err error

	calls []Call
}

// Take returns the calls since the last take.
func (m *Meter) Take() []Call {
	calls := m.calls
	m.calls = nil
	return calls
}

// Option makes a client be metered.
func (m *Meter) Option(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Meter", m.watch), middleware.After)
	})
}

// Reported is the store's Meter: what the endpoint says.
func (m *Meter) Reported(u dynamo.Usage) {
	last := &m.calls[len(m.calls)-1]
	last.ReportedReads, last.ReportedWrites = u.Units()
	if u.Attempts != 1 || u.Failed != last.Lost {
		m.Err = errors.Join(m.Err, fmt.Errorf("%s: %d attempts, failed: %v", last.Name, u.Attempts, u.Failed))
	}
}

func (m *Meter) watch(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
	var callErr error
	if err := m.call(ctx, in.Parameters, func() (bool, error) {
		out, metadata, callErr = next.HandleInitialize(ctx, in)
		if conditionFailed(callErr) {
			return true, nil
		}
		return false, callErr
	}); err != nil {
		return out, metadata, err
	}
	return out, metadata, callErr
}

// call prices what send does with the input: lost says that a condition failed, an error that the call did otherwise. It
// returns an error where nothing was sent.
func (m *Meter) call(ctx context.Context, input any, send func() (lost bool, err error)) error {
	name, touched, err := m.touched(input)
	if err == nil {
		err = m.look(ctx, touched, func(t *touch, it Item) { t.before = it })
	}
	if err != nil {
		return fmt.Errorf("meter: %w", err)
	}
	lost, failed := send()
	c := Call{Name: name, Lost: lost}
	switch {
	case lost:
		c.Name += " lost"
	case failed != nil:
		m.Err = errors.Join(m.Err, failed)
	default:
		m.Err = errors.Join(m.Err, m.look(ctx, touched, func(t *touch, it Item) { t.after = it }))
	}
	for _, t := range touched {
		c.Ruled = c.Ruled.Plus(m.price(t, lost))
		if !slices.Contains(c.Tables, t.table) {
			c.Tables = append(c.Tables, t.table)
		}
	}
	m.calls = append(m.calls, c)
	return nil
}

func conditionFailed(err error) bool {
	var condition *types.ConditionalCheckFailedException
	var cancelled *types.TransactionCanceledException
	return errors.As(err, &condition) || errors.As(err, &cancelled)
}

// touch is one item that a call reads or writes.
type touch struct {
	table      string
	key        Item
	read       bool
	consistent bool
	factor     float64
	// before is the item as the call met it; after as it left it, or where it lost, as it would have left it.
	before, after Item
}

// touched names the call and lists the items that it is about.
func (m *Meter) touched(input any) (string, []touch, error) {
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
	case *dynamodb.UpdateItemInput:
		return "UpdateItem", []touch{{table: *in.TableName, key: in.Key, factor: 1}}, nil
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

func (m *Meter) put(table string, it Item, factor float64) touch {
	key := m.Shapes[table].Key
	return touch{table: table, key: Item{key: it[key]}, factor: factor, after: it}
}

// look reads the items as they are now.
func (m *Meter) look(ctx context.Context, touched []touch, keep func(*touch, Item)) error {
	for i := range touched {
		out, err := m.Raw.GetItem(ctx, &dynamodb.GetItemInput{TableName: &touched[i].table, Key: touched[i].key, ConsistentRead: aws.Bool(true)})
		if err != nil {
			return err
		}
		keep(&touched[i], out.Item)
	}
	return nil
}

// price is what a call consumes on one item. DynamoDB documents no figure for a cancelled transaction; it counts in full
// here, as a failed condition does.
func (m *Meter) price(t touch, lost bool) Units {
	shape := m.Shapes[t.table]
	isRecord := shape.Key == schema.RecordKey && shape.Index.Name != ""
	if isRecord && !strings.Contains(t.key[schema.RecordKey].(*types.AttributeValueMemberS).Value, "#") {
		m.RecordBytes = itemBytes(t.before)
		if !lost && !t.read {
			m.RecordBytes = itemBytes(t.after)
		}
	}
	if t.read {
		return Units{Reads: readUnits(t.before, t.consistent)}
	}
	written := t.factor * writeUnits(t.before, t.after)
	var u Units
	switch {
	case isRecord:
		u.Records = written
	case shape.Index.Name != "":
		u.Messages = written
	default:
		u.Business = written
	}
	if shape.Index.Name != "" && !lost {
		u.Indexes = indexUnits(shape, t.before, t.after)
	}
	return u
}
