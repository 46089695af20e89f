package dynamo

import (
	"errors"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// condition is an expression that a write depends on.
type condition struct {
	*expression
	text *string
}

// fencedMessage demands of the stored message what the fence says: one of its alternatives, and that it is not dead besides.
func fencedMessage(f storage.MessageFence) (condition, error) {
	if f.Empty() {
		return condition{}, errors.New("the message's fence matches nothing: it has no revision and no states, and is not open")
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
		alternatives = append(alternatives, *all(readableMessage(e), in(e, schema.State, openStates...)))
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

// openStates are the states of a message that are not final. One of another release is none of them.
var openStates = []storage.MessageState{
	storage.MessagePending, storage.MessageClaimed, storage.MessageUnknown, storage.MessageEvidenced, storage.MessageDead,
}

// readableMessage demands a message of this release's schema.
func readableMessage(e *expression) string {
	plain, sealed := e.value(numberValue(storage.SchemaVersion)), e.value(numberValue(schemaSealed))
	return e.name(schema.SchemaVersion) + " IN (" + plain + ", " + sealed + ")"
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
