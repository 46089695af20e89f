package dynamo

import (
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
	e.names["#"+attribute] = attribute
	return "#" + attribute
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
func (e *expression) in(attribute string, values ...string) string {
	placeholders := make([]string, len(values))
	for i, v := range values {
		placeholders[i] = e.value(stringValue(v))
	}
	return e.name(attribute) + " IN (" + strings.Join(placeholders, ", ") + ")"
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
