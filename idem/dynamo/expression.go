package dynamo

import (
	"maps"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

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
