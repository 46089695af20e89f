package console

import (
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/idem/operator"
)

// order is what an application knows, which a nil pointer can't tell.
type order struct{ id string }

func (o *order) Facts() Facts { return Facts{Name: "order " + o.id} }

// An application that could not read its rows may have given its error beside a nil pointer: the rest of the story is told.
func TestFactsThatCannotBeAskedAreNone(t *testing.T) {
	story := operator.Story{Application: (*order)(nil), ApplicationError: "no such table"}
	if facts, factual := factsOf(&story); factual || facts.Name != "" || !strings.HasPrefix(story.ApplicationError, "no such table; its facts: ") {
		t.Errorf("%+v, %t, %q", facts, factual, story.ApplicationError)
	}
	story = operator.Story{Application: &order{"17"}}
	if facts, factual := factsOf(&story); !factual || facts.Name != "order 17" || story.ApplicationError != "" {
		t.Errorf("%+v, %t, %q", facts, factual, story.ApplicationError)
	}
}
