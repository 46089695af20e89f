package dynamo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/storage"
)

// native is a business write in DynamoDB's own words.
type native struct {
	item     types.TransactWriteItem
	failures []storage.Failure
}

// IfConditionFails implements storage.Write.
func (n native) IfConditionFails() storage.Failure {
	if len(n.failures) == 0 {
		return storage.Failure{}
	}
	return n.failures[0]
}

// Put makes a business write of an SDK put. A put with a condition takes one failure, [idem.Reject] or [idem.Retry],
// which says what a failed condition means. A put without a condition takes none. A handler's transaction with a
// condition without a failure, or a failure without a condition, is refused before anything is sent. In a settlement no
// condition may fail, and none needs a failure.
//
// The write keeps the put's maps: they must not be changed afterwards.
func Put(put types.Put, failure ...storage.Failure) storage.Write {
	return native{types.TransactWriteItem{Put: &put}, failure}
}

// Update makes a business write of an SDK update; see [Put].
func Update(update types.Update, failure ...storage.Failure) storage.Write {
	return native{types.TransactWriteItem{Update: &update}, failure}
}

// Delete makes a business write of an SDK delete; see [Put].
func Delete(del types.Delete, failure ...storage.Failure) storage.Write {
	return native{types.TransactWriteItem{Delete: &del}, failure}
}

// ConditionCheck makes a business write of an SDK condition check: it writes nothing, and the transaction depends on it.
// See [Put].
func ConditionCheck(check types.ConditionCheck, failure ...storage.Failure) storage.Write {
	return native{types.TransactWriteItem{ConditionCheck: &check}, failure}
}

// Item returns the SDK item of a write that [Put], [Update], [Delete] or [ConditionCheck] made, for unit tests. It is not
// ok for any other write. The item shares its maps with the write.
func Item(w storage.Write) (_ types.TransactWriteItem, ok bool) {
	n, ok := w.(native)
	return n.item, ok
}

// declared refuses a write of this package whose condition and failure don't go together. An application's own write is
// its translator's business.
func declared(writes []storage.Write) error {
	for i, w := range writes {
		n, ok := w.(native)
		if !ok {
			continue
		}
		failure := n.IfConditionFails()
		_, rejects := failure.Rejects()
		means, has := rejects || failure.Retries(), conditionOf(n.item) != ""
		switch {
		case len(n.failures) > 1:
			return fmt.Errorf("write %d has %d failures: give it one of idem.Reject and idem.Retry", i, len(n.failures))
		case has && !means:
			return fmt.Errorf("write %d has a condition and does not say what its failure means: give it idem.Reject or idem.Retry", i)
		case means && !has:
			return fmt.Errorf("write %d says what the failure of its condition means and has no ConditionExpression", i)
		}
	}
	return nil
}

func conditionOf(i types.TransactWriteItem) string {
	switch {
	case i.Put != nil:
		return text(i.Put.ConditionExpression)
	case i.Update != nil:
		return text(i.Update.ConditionExpression)
	case i.Delete != nil:
		return text(i.Delete.ConditionExpression)
	case i.ConditionCheck != nil:
		return text(i.ConditionCheck.ConditionExpression)
	}
	return ""
}

// resolve adds business writes to the transaction, in order, and refuses what can't be an item of one.
func (s *Store) resolve(t *transaction, writes []storage.Write) error {
	for i, w := range writes {
		resolved, err := s.resolveOne(w)
		if err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
		t.items = append(t.items, resolved)
	}
	return nil
}

func (s *Store) resolveOne(w storage.Write) (types.TransactWriteItem, error) {
	var resolved types.TransactWriteItem
	switch w := w.(type) {
	case nil:
		return resolved, errors.New("is nil")
	case native:
		resolved = w.item
	default:
		if s.cfg.Translate == nil {
			return resolved, fmt.Errorf("a %T is none of dynamo.Put, Update, Delete, ConditionCheck, and there is no Config.Translate", w)
		}
		var err error
		if resolved, err = s.cfg.Translate(w); err != nil {
			return resolved, fmt.Errorf("translate a %T: %w", w, err)
		}
	}
	part, err := partOf(resolved)
	if err != nil {
		return resolved, err
	}
	for _, own := range []string{s.cfg.IdempotencyTable, s.cfg.OutboxTable} {
		if nameOf(part.table) == nameOf(own) {
			return resolved, fmt.Errorf("is on the table %s, which only the store writes", own)
		}
	}
	return resolved, nil
}

// part is what the four kinds of items have in common.
type part struct {
	table string
	// key is the key, nil for a put, whose key can't be told from its other attributes.
	key item
	// put is what a put stores.
	put item
	// values are the expression's.
	values item
}

// partOf returns an error for an item that is not exactly one kind of write on a named table.
func partOf(i types.TransactWriteItem) (part, error) {
	var p part
	var table *string
	kinds := 0
	if put := i.Put; put != nil {
		kinds++
		table, p.put, p.values = put.TableName, put.Item, put.ExpressionAttributeValues
	}
	if u := i.Update; u != nil {
		kinds++
		table, p.key, p.values = u.TableName, u.Key, u.ExpressionAttributeValues
	}
	if d := i.Delete; d != nil {
		kinds++
		table, p.key, p.values = d.TableName, d.Key, d.ExpressionAttributeValues
	}
	if c := i.ConditionCheck; c != nil {
		kinds++
		table, p.key, p.values = c.TableName, c.Key, c.ExpressionAttributeValues
	}
	p.table = text(table)
	switch {
	case kinds != 1:
		return p, fmt.Errorf("is %d kinds of write, must be one", kinds)
	case p.table == "":
		return p, errors.New("names no table")
	case len(p.key)+len(p.put) == 0:
		return p, errors.New("has no item or key")
	}
	return p, nil
}

// nameOf is the table's name, of a name or of an ARN.
func nameOf(table string) string {
	_, name, ok := strings.Cut(table, ":table/")
	if !ok {
		return table
	}
	return name
}

// twins finds two writes on one item, as far as that can be seen from here: a put's key is known only where its table's
// key attributes are, from another write. DynamoDB refuses the rest; either way nothing happens.
func twins(parts []part) (first, second int, found bool) {
	keys := map[string]item{}
	for _, p := range parts {
		if p.key != nil {
			keys[nameOf(p.table)] = p.key
		}
	}
	seen := map[string]int{}
	for i, p := range parts {
		key := p.key
		if key == nil {
			key = only(p.put, keys[nameOf(p.table)])
		}
		id := nameOf(p.table) + " " + fingerprintOf(key)
		if first, twice := seen[id]; twice {
			return first, i, true
		}
		seen[id] = i
	}
	return 0, 0, false
}

// only returns the attributes of the item that the key has; all of them where there is no key to go by.
func only(it, key item) item {
	if key == nil {
		return it
	}
	part := item{}
	for name := range key {
		part[name] = it[name]
	}
	return part
}
