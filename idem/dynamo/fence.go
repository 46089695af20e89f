package dynamo

import (
	"errors"
	"strings"
	"time"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// condition is an expression that a write depends on.
type condition struct {
	*expression
	text *string
}

// fenced demands of the record under the key what the fence says: one of its alternatives, and the lease's end besides.
func fenced(key storage.RecordKey, f storage.Fence) (condition, error) {
	e := newExpression()
	w := &writer{item: item{}}
	var alternatives []string
	if f.OperationID != "" && f.Revision != "" {
		alternatives = append(alternatives, e.seen(key, f, w))
	}
	if f.OperationID != "" && len(f.States) > 0 {
		alternatives = append(alternatives, e.held(key, f, w))
	}
	if !f.FreeAt.IsZero() {
		alternatives = append(alternatives, e.absent(schema.RecordKey), e.free(f.FreeAt))
	}
	if len(alternatives) == 0 {
		return condition{}, errors.New("a fence that admits nothing: it has no revision, no states and no FreeAt, or no operation id")
	}
	text := either(alternatives...)
	if !f.LeaseBefore.IsZero() {
		before := e.name(schema.LeaseUntil) + " < " + e.value(numberValue(f.LeaseBefore.UnixMilli()))
		lease := "(" + either(e.absent(schema.LeaseUntil), before) + ")"
		if len(alternatives) > 1 {
			text = "(" + text + ")"
		}
		text = *all(text, lease)
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
func (e *expression) seen(key storage.RecordKey, f storage.Fence, w *writer) string {
	w.operation(key, f.OperationID)
	w.revision(f.Revision)
	return *all(e.is(schema.OperationID, w.item), e.is(schema.Revision, w.item))
}

// held admits the holder's own row.
func (e *expression) held(key storage.RecordKey, f storage.Fence, w *writer) string {
	w.operation(key, f.OperationID)
	w.name(schema.Owner, string(f.Owner))
	states := make([]string, len(f.States))
	for i, state := range f.States {
		states[i] = string(state)
	}
	conditions := []string{e.is(schema.OperationID, w.item), e.is(schema.Owner, w.item), e.in(schema.State, states...)}
	if !f.AnyEpoch {
		w.number(schema.Epoch, f.Epoch)
		conditions = append(conditions, e.is(schema.Epoch, w.item))
	}
	return *all(conditions...)
}

// free admits a row whose key is free. Native TTL removes items late, so the time is compared here; only these states free
// their key, whatever else has the attribute. Of a row that this release can't judge the time and the state may mean anything.
func (e *expression) free(now time.Time) string {
	return *all(
		e.name(schema.FreeAt)+" <= "+e.value(numberValue(now.UnixMilli())),
		e.in(schema.State, string(storage.StateCompleted), string(storage.StateFailed), string(storage.StateFailedRetryable)),
		e.name(schema.SchemaVersion)+" = "+e.value(numberValue(storage.SchemaVersion)),
		e.in(schema.Kind, string(storage.KindAtomic), string(storage.KindOptimistic), string(storage.KindDeferred), string(storage.KindWrapped)),
	)
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
		w.revision(f.Revision)
		alternatives = append(alternatives, e.is(schema.Revision, w.item))
	}
	if len(f.States) > 0 {
		w.name(schema.Owner, string(f.Owner))
		w.number(schema.Epoch, f.Epoch)
		states := make([]string, len(f.States))
		for i, state := range f.States {
			states[i] = string(state)
		}
		alternatives = append(alternatives, *all(e.is(schema.Owner, w.item), e.is(schema.Epoch, w.item), e.in(schema.State, states...)))
	}
	if f.Open {
		final := e.in(schema.State, string(storage.MessageDelivered), string(storage.MessageDeclined), string(storage.MessageCancelled))
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
	w.operation(c.Key, c.OperationID)
	operation := e.name(schema.OperationID)
	value := e.value(w.item[schema.OperationID])
	if c.Ended {
		text := e.absent(schema.RecordKey) + " OR " + operation + " <> " + value + " OR " +
			e.in(schema.State, string(storage.StateCompleted), string(storage.StateFailed))
		return condition{e, &text}, w.err
	}
	return condition{e, all(operation+" = "+value, e.in(schema.State, string(storage.StatePending)))}, w.err
}
