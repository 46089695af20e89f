package dynamo

import (
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/dynamo/schema"
)

// condition is an expression that a write depends on.
type condition struct {
	*expression
	text *string
}

// absentOrExpired is what a reserve demands: no record, or a final one past its expiry. Native TTL removes items late,
// so the time is compared here; only the known final states expire, whatever else has the attribute.
func absentOrExpired(now time.Time) condition {
	e := newExpression()
	expired := *all(
		e.name(schema.FreeAt)+" <= "+e.value(numberValue(now.UnixMilli())),
		e.in(schema.State, string(idem.StateCompleted), string(idem.StateFailed)),
	)
	text := e.absent(schema.RecordKey) + " OR (" + expired + ")"
	return condition{e, &text}
}

// fenced demands of the stored record what the fence says.
func fenced(f idem.Fence) (condition, error) {
	if f.OperationID == "" || len(f.States) == 0 {
		return condition{}, errors.New("a fence without operation id or states")
	}
	w := &writer{item: item{}}
	w.name(schema.OperationID, string(f.OperationID))
	w.name(schema.Owner, string(f.Owner))
	w.number(schema.Epoch, f.Epoch)
	states := make([]string, len(f.States))
	for i, state := range f.States {
		states[i] = string(state)
	}
	e := newExpression()
	conditions := []string{
		e.is(schema.OperationID, w.item), e.is(schema.Owner, w.item), e.is(schema.Epoch, w.item), e.in(schema.State, states...),
	}
	if f.ExpiresAt != nil {
		conditions = append(conditions, e.expiresAt(*f.ExpiresAt))
	}
	return condition{e, all(conditions...)}, w.err
}

// expiresAt demands when the stored record expires: one that holds its key for longer says so in an attribute of its own.
func (e *expression) expiresAt(at time.Time) string {
	if at.IsZero() {
		return e.absent(schema.FreeAt)
	}
	value := e.value(numberValue(at.UnixMilli()))
	until, free := e.name(schema.AnswersUntil), e.name(schema.FreeAt)
	return fmt.Sprintf("(%s = %s OR (%s AND %s = %s))", until, value, e.absent(schema.AnswersUntil), free, value)
}

// fencedMessage demands of the stored message what the fence says.
func fencedMessage(e *expression, f idem.MessageFence) string {
	w := &writer{item: item{}}
	w.name(schema.State, string(f.State))
	w.name(schema.Owner, string(f.Owner))
	w.number(schema.Epoch, f.Epoch)
	return *all(e.exists(schema.MessageID), e.is(schema.State, w.item), e.is(schema.Owner, w.item), e.is(schema.Epoch, w.item))
}
