package dynamo

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// condition is an expression that a write depends on.
type condition struct {
	*expression
	text *string
}

// What a fence may demand of a record's row.
var (
	seenRow = newClause("#op = :operation AND #rv = :revision", schema.OperationID, schema.Revision)
	heldRow = newClause("#op = :operation AND ", schema.OperationID)
	owned   = newClause("#ow = :owner AND ", schema.Owner)
	unowned = newClause("attribute_not_exists(#ow) AND ", schema.Owner)
	ofEpoch = newClause(" AND #ep = :epoch", schema.Epoch)
	noEpoch = newClause(" AND attribute_not_exists(#ep)", schema.Epoch)
	noRow   = newClause("attribute_not_exists(#pk)", schema.RecordKey)
	// Native TTL removes items late, so the time is compared here; only these states free their key, whatever else has the
	// attribute. In a row that this release cannot judge the time and the state may mean anything.
	freeRow = newClause(
		"#ea <= :now AND #st IN (:completed, :failed, :retryable) AND #sv = :version AND #kd IN (:atomic, :optimistic, :deferred, :wrapped)",
		schema.FreeAt, schema.State, schema.SchemaVersion, schema.Kind,
	)
	leaseOver = newClause("(attribute_not_exists(#lu) OR #lu < :lease)", schema.LeaseUntil)
)

// fenced demands of the record under the key what the fence says: one of its alternatives, and the lease's end besides.
func fenced(key storage.RecordKey, f storage.Fence) (condition, error) {
	e := newExpression()
	w := writer{item: e.values}
	alternatives := make([]string, 0, 4)
	if f.OperationID != "" && f.Revision != "" {
		alternatives = append(alternatives, e.seen(&w, key, f))
	}
	if f.OperationID != "" && len(f.States) > 0 {
		alternatives = append(alternatives, e.held(&w, key, f))
	}
	if !f.FreeAt.IsZero() {
		alternatives = append(alternatives, e.say(noRow), e.free(&w, f.FreeAt))
	}
	if len(alternatives) == 0 {
		return condition{}, errors.New("a fence that admits nothing: it has no revision, no states and no FreeAt, or no operation id")
	}
	text := either(alternatives...)
	if !f.LeaseBefore.IsZero() {
		w.instant(":lease", f.LeaseBefore)
		if len(alternatives) > 1 {
			text = "(" + text + ")"
		}
		text += " AND " + e.say(leaseOver)
	}
	return condition{e, &text}, w.err
}

// either joins conditions. DynamoDB refuses parentheses that say nothing, so one alone gets none.
func either(conditions ...string) string {
	if len(conditions) == 1 {
		return conditions[0]
	}
	wrapped := make([]string, len(conditions))
	for i, c := range conditions {
		wrapped[i] = c
		if strings.Contains(c, " AND ") {
			wrapped[i] = "(" + c + ")"
		}
	}
	return strings.Join(wrapped, " OR ")
}

// fencedStored is fenced for a change of a part of what is stored. It refuses a fence that admits absence: an update would
// make a row of that part alone.
func fencedStored(key storage.RecordKey, f storage.Fence) (condition, error) {
	if f.AdmitsAbsence() {
		return condition{}, errors.New("a fence that admits absence, for a change of what is there")
	}
	return fenced(key, f)
}

// seen admits exactly the row that was read.
func (e *expression) seen(w *writer, key storage.RecordKey, f storage.Fence) string {
	w.operation(":operation", key, f.OperationID)
	w.revision(":revision", f.Revision)
	return e.say(seenRow)
}

// held admits the holder's own row.
func (e *expression) held(w *writer, key storage.RecordKey, f storage.Fence) string {
	w.operation(":operation", key, f.OperationID)
	w.name(":owner", string(f.Owner))
	owner := owned
	if f.Owner == "" {
		owner = unowned
	}
	text := e.say(heldRow) + e.say(owner) + in(e, schema.State, f.States...)
	if f.AnyEpoch {
		return text
	}
	w.number(":epoch", f.Epoch)
	if f.Epoch == 0 {
		return text + e.say(noEpoch)
	}
	return text + e.say(ofEpoch)
}

// free admits a row whose key is free.
func (e *expression) free(w *writer, now time.Time) string {
	w.instant(":now", now)
	maps.Copy(e.values, freeValues)
	return e.say(freeRow)
}

// freeValues are the states that free a key, and what this release can judge.
var freeValues = item{
	":completed": stringValue(string(storage.StateCompleted)), ":failed": stringValue(string(storage.StateFailed)),
	":retryable": stringValue(string(storage.StateFailedRetryable)), ":version": numberValue(storage.SchemaVersion),
	":atomic": stringValue(string(storage.KindAtomic)), ":optimistic": stringValue(string(storage.KindOptimistic)),
	":deferred": stringValue(string(storage.KindDeferred)), ":wrapped": stringValue(string(storage.KindWrapped)),
}

// fencedMessage demands of the stored message what the fence says: one of its alternatives, and that it is not dead besides.
func fencedMessage(f storage.MessageFence) (condition, error) {
	if f.Empty() {
		return condition{}, errors.New("a message's fence that admits nothing: it has no revision and no states, and is not open")
	}
	e := newExpression()
	w := &writer{item: item{}}
	var alternatives []string
	if f.Revision != "" {
		w.revision(schema.Revision, f.Revision)
		alternatives = append(alternatives, e.is(schema.Revision, w.item))
	}
	if len(f.States) > 0 {
		w.name(schema.Owner, string(f.Owner))
		w.number(schema.Epoch, f.Epoch)
		alternatives = append(alternatives, *all(e.is(schema.Owner, w.item), e.is(schema.Epoch, w.item), in(e, schema.State, f.States...)))
	}
	if f.Open {
		final := in(e, schema.State, storage.MessageDelivered, storage.MessageDeclined, storage.MessageCancelled)
		alternatives = append(alternatives, "NOT "+final)
	}
	conditions := []string{e.exists(schema.MessageID), alternatives[0]}
	if len(alternatives) > 1 { // redundant parentheses are refused
		conditions[1] = "((" + strings.Join(alternatives, ") OR (") + "))"
	}
	if f.NotDead {
		conditions = append(conditions, e.name(schema.State)+" <> "+e.value(stringValue(string(storage.MessageDead))))
	}
	return condition{e, all(conditions...)}, w.err
}

// checked demands of a record that stays as it is what the check says.
func checked(c storage.RecordCheck) (condition, error) {
	if c.OperationID == "" {
		return condition{}, errors.New("a check of a record without an operation id")
	}
	e := newExpression()
	w := &writer{item: item{}}
	w.operation(schema.OperationID, c.Key, c.OperationID)
	operation := e.name(schema.OperationID)
	value := e.value(w.item[schema.OperationID])
	if c.Ended {
		text := e.absent(schema.RecordKey) + " OR " + operation + " <> " + value + " OR " +
			in(e, schema.State, storage.StateCompleted, storage.StateFailed)
		return condition{e, &text}, w.err
	}
	return condition{e, all(operation+" = "+value, in(e, schema.State, storage.StatePending))}, w.err
}

// expression collects the names and values that a condition or update mentions. Every attribute goes by a placeholder:
// among short names, DynamoDB reserves some ("ttl").
type expression struct {
	names  map[string]string
	values item
}

func newExpression() *expression {
	return &expression{names: map[string]string{}, values: item{}}
}

func (e *expression) name(attribute string) string {
	placeholder := "#" + attribute
	e.names[placeholder] = attribute
	return placeholder
}

func (e *expression) value(v types.AttributeValue) string {
	placeholder := ":" + strconv.Itoa(len(e.values))
	e.values[placeholder] = v
	return placeholder
}

func (e *expression) exists(attribute string) string {
	return "attribute_exists(" + e.name(attribute) + ")"
}

func (e *expression) absent(attribute string) string {
	return "attribute_not_exists(" + e.name(attribute) + ")"
}

// is demands of the attribute what it is in the item, absence included.
func (e *expression) is(attribute string, it item) string {
	v, ok := it[attribute]
	if !ok {
		return e.absent(attribute)
	}
	return e.name(attribute) + " = " + e.value(v)
}

// in demands one of the values, of which there must be at least one.
func in[T ~string](e *expression, attribute string, values ...T) string {
	placeholders := e.value(stringValue(string(values[0])))
	for _, v := range values[1:] {
		placeholders += ", " + e.value(stringValue(string(v)))
	}
	return e.name(attribute) + " IN (" + placeholders + ")"
}

// clause is a part of a condition that is always the same: its text, and the placeholders of the attributes in it.
type clause struct {
	text  string
	names map[string]string
}

func newClause(text string, attributes ...string) clause {
	c := clause{text, make(map[string]string, len(attributes))}
	for _, attribute := range attributes {
		c.names["#"+attribute] = attribute
	}
	return c
}

// say returns the clause's text. The values in it, which have placeholders with names, are the caller's to give.
func (e *expression) say(c clause) string {
	maps.Copy(e.names, c.names)
	return c.text
}

// assign gives the attributes the values that they have in the item, and removes those that it lacks.
func (e *expression) assign(attributes []string, it item) string {
	var set, remove []string
	for _, attribute := range attributes {
		if v, ok := it[attribute]; ok {
			set = append(set, e.name(attribute)+" = "+e.value(v))
		} else {
			remove = append(remove, e.name(attribute))
		}
	}
	var clauses []string
	if len(set) > 0 {
		clauses = append(clauses, "SET "+strings.Join(set, ", "))
	}
	if len(remove) > 0 {
		clauses = append(clauses, "REMOVE "+strings.Join(remove, ", "))
	}
	return strings.Join(clauses, " ")
}

func all(conditions ...string) *string {
	joined := strings.Join(conditions, " AND ")
	return &joined
}
