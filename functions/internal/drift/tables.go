package drift

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/functions/table"
	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/header"
	"github.com/idem-go/idem-aws/idem/storage"
)

type item = map[string]types.AttributeValue

// meter sums up what calls cost.
type meter struct {
	mu   sync.Mutex
	cost Cost
}

func (m *meter) read(consumed ...types.ConsumedCapacity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cost.DynamoDBCalls++
	for _, c := range consumed {
		m.cost.ReadUnits += aws.ToFloat64(c.CapacityUnits)
	}
}

func (m *meter) asked() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cost.ProviderCalls++
}

func (m *meter) total() Cost {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cost
}

// tables read the three tables; nothing here writes.
type tables struct {
	cfg Config
	// store decodes messages, and says up to when data may have been lost; of records only what is compared is read.
	store *dynamo.Store
	meter *meter
	// ledgerShards is how many partitions an hour of the ledger index has.
	ledgerShards int
}

// Bounds of one call (DynamoDB's own), and of calls for what was left out of one.
const (
	batchMax = 100
	triesMax = 8
	pauseMin = 50 * time.Millisecond
)

// batch reads items strongly, by key; those that are not there are left out. At most [batchMax] keys, none twice.
func (t tables) batch(ctx context.Context, name, key string, keys []string, attributes ...string) (map[string]item, error) {
	found := make(map[string]item, len(keys))
	if len(keys) == 0 {
		return found, nil
	}
	ask := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
	for _, k := range keys {
		ask.Keys = append(ask.Keys, item{key: &types.AttributeValueMemberS{Value: k}})
	}
	project(&ask, attributes)
	left := map[string]types.KeysAndAttributes{name: ask}
	for try := 0; len(left) > 0; try++ {
		if try == triesMax {
			return nil, fmt.Errorf("drift: read %s: %d of %d items were not served in %d tries", name, len(left[name].Keys), len(keys), triesMax)
		}
		if try > 0 {
			if err := t.cfg.Pause(ctx, pauseMin<<try); err != nil {
				return nil, err
			}
		}
		out, err := t.cfg.Client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: left, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		if err != nil {
			return nil, fmt.Errorf("drift: read %s: %w", name, err)
		}
		t.meter.read(out.ConsumedCapacity...)
		for _, it := range out.Responses[name] {
			found[text(it, key)] = it
		}
		left = out.UnprocessedKeys
	}
	return found, nil
}

// project names the attributes to read; none are all.
func project(ask *types.KeysAndAttributes, attributes []string) {
	if len(attributes) == 0 {
		return
	}
	ask.ExpressionAttributeNames = map[string]string{}
	expression := ""
	for i, attribute := range attributes {
		name := "#" + strconv.Itoa(i)
		if i > 0 {
			expression += ", "
		}
		ask.ExpressionAttributeNames[name], expression = attribute, expression+name
	}
	ask.ProjectionExpression = &expression
}

// recordAttributes are what is read of a record: never its response.
var recordAttributes = []string{
	schema.RecordKey, schema.OperationID, schema.Tenant, schema.State, schema.Kind, schema.DoneAt, schema.SchemaVersion, schema.LastError,
}

// stories reads the entries of rows with their messages and records. A row that can't be read is counted, and left out.
func (t tables) stories(ctx context.Context, rows []string) (all []story, malformed int, err error) {
	items, err := t.batch(ctx, t.cfg.PaymentsTable, table.Key, rows)
	if err != nil {
		return nil, 0, err
	}
	var messages, records []string
	for _, pk := range rows {
		it, ok := items[pk]
		if !ok {
			continue // an index shows what is gone for a moment
		}
		s, err := storyOf(it)
		if err != nil {
			malformed++
			continue
		}
		all = append(all, s)
		for n := range s.messages {
			messages = append(messages, string(s.operation.Message(n+1)))
		}
		records = append(records, recordKey(s.operation))
	}
	var (
		both                  sync.WaitGroup
		chains, ends          map[string]item
		messagesErr, keysErrs error
	)
	both.Go(func() { chains, messagesErr = t.many(ctx, t.cfg.OutboxTable, schema.MessageID, messages) })
	both.Go(func() {
		ends, keysErrs = t.many(ctx, t.cfg.IdempotencyTable, schema.RecordKey, records, recordAttributes...)
	})
	both.Wait()
	if err := errors.Join(messagesErr, keysErrs); err != nil {
		return nil, malformed, err
	}
	whole := all[:0]
	for _, s := range all {
		if err := t.complete(&s, chains, ends); err != nil {
			malformed++
			continue
		}
		whole = append(whole, s)
	}
	return whole, malformed, nil
}

// many is batch for any number of keys, which may repeat.
func (t tables) many(ctx context.Context, name, key string, keys []string, attributes ...string) (map[string]item, error) {
	found, seen := map[string]item{}, map[string]bool{}
	var next []string
	for i, k := range keys {
		if !seen[k] {
			seen[k] = true
			next = append(next, k)
		}
		if len(next) == batchMax || i == len(keys)-1 {
			items, err := t.batch(ctx, name, key, next, attributes...)
			if err != nil {
				return nil, err
			}
			maps.Copy(found, items)
			next = nil
		}
	}
	return found, nil
}

// errMalformed is wrapped by errors about what is stored and can't be read.
var errMalformed = errors.New("drift: malformed")

// storyOf begins the story of a row.
func storyOf(it item) (story, error) {
	entry, err := payments.DecodeEntry(it)
	if err != nil {
		return story{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	operation, _, err := entry.Message.Operation()
	if err != nil {
		return story{}, fmt.Errorf("%w: the message of %s: %w", errMalformed, entry.ID, err)
	}
	return story{entry: entry, operation: operation, messages: make([]*storage.Message, len(effects(entry.Kind)))}, nil
}

// complete adds messages and record.
func (t tables) complete(s *story, messages, records map[string]item) error {
	for n := range s.messages {
		it, ok := messages[string(s.operation.Message(n+1))]
		if !ok {
			continue
		}
		m, err := t.store.DecodeImage(it)
		if err != nil {
			return fmt.Errorf("%w: %w", errMalformed, err)
		}
		s.messages[n] = m
	}
	if it, ok := records[recordKey(s.operation)]; ok {
		if r := recordIn(it); r.operation == s.operation { // else the key is another incarnation's by now
			s.record = &r
		}
	}
	return nil
}

// together reads a row, its chain and its record as they were at one moment. It is nil where there is no row.
func (t tables) together(ctx context.Context, pk string, kind payments.EntryKind, operation idem.OperationID) (*story, error) {
	get := func(name, key, value string) types.TransactGetItem {
		return types.TransactGetItem{Get: &types.Get{TableName: &name, Key: item{key: &types.AttributeValueMemberS{Value: value}}}}
	}
	reads := []types.TransactGetItem{
		get(t.cfg.PaymentsTable, table.Key, pk), get(t.cfg.IdempotencyTable, schema.RecordKey, recordKey(operation)),
	}
	for _, e := range effects(kind) {
		reads = append(reads, get(t.cfg.OutboxTable, schema.MessageID, string(operation.Message(e.position))))
	}
	out, err := t.transact(ctx, reads)
	if err != nil {
		return nil, fmt.Errorf("drift: read %s: %w", pk, err)
	}
	if len(out) != len(reads) {
		return nil, fmt.Errorf("drift: read %s: %d of %d items were answered", pk, len(out), len(reads))
	}
	if len(out[0].Item) == 0 {
		return nil, nil
	}
	s, err := storyOf(out[0].Item)
	if err != nil {
		return nil, err
	}
	messages, records := map[string]item{}, map[string]item{}
	if it := out[1].Item; len(it) > 0 {
		records[text(it, schema.RecordKey)] = it
	}
	for _, answer := range out[2:] {
		if len(answer.Item) > 0 {
			messages[text(answer.Item, schema.MessageID)] = answer.Item
		}
	}
	return &s, t.complete(&s, messages, records)
}

// transact reads in one transaction; one that meets a write is repeated.
func (t tables) transact(ctx context.Context, reads []types.TransactGetItem) ([]types.ItemResponse, error) {
	for try := 0; ; try++ {
		out, err := t.cfg.Client.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{
			TransactItems: reads, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		if err == nil {
			t.meter.read(out.ConsumedCapacity...)
			return out.Responses, nil
		}
		var cancelled *types.TransactionCanceledException
		if !errors.As(err, &cancelled) || try+1 == triesMax {
			return nil, err
		}
		if err := t.cfg.Pause(ctx, pauseMin<<try); err != nil {
			return nil, err
		}
	}
}

// recordKey is the key of an operation's record; "" never is one, and ids were checked.
func recordKey(operation idem.OperationID) string {
	key, err := operation.RecordKey()
	if err != nil {
		return ""
	}
	return string(key)
}

func recordIn(it item) record {
	operation, _ := dynamo.OperationOf(it) // what can't be read is no operation's
	r := record{
		operation: operation, tenant: text(it, schema.Tenant), state: storage.State(text(it, schema.State)),
	}
	if ms := number(it, schema.DoneAt); ms != 0 {
		r.doneAt = time.UnixMilli(ms).UTC()
	}
	r.erased = r.state == storage.StateFailed && text(it, schema.LastError) == header.CodeResponseErased
	r.readable = number(it, schema.SchemaVersion) == storage.SchemaVersion && r.state.Known() && idem.Kind(text(it, schema.Kind)).Known()
	return r
}

func text(it item, name string) string {
	if s, ok := it[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// number is 0 for what is absent, and for what is none.
func number(it item, name string) int64 {
	n, ok := it[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	value, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return 0
	}
	return value
}
