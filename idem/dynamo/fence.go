package dynamo

import (
	"errors"
	"maps"
	"strings"
	"sync"

	"github.com/idem-go/idem-aws/idem/dynamo/schema"
	"github.com/idem-go/idem-aws/idem/storage"
)

// This file says in DynamoDB's words what a record's fence demands. Fences differ in their values from call to call, and in
// little else: the text of each shape is made once.

// What a fence may demand of a record's row.
const (
	seenRow = "#op = :operation AND #rv = :revision"
	heldRow = "#op = :operation AND "
	owned   = "#ow = :owner AND "
	unowned = "attribute_not_exists(#ow) AND "
	ofEpoch = " AND #ep = :epoch"
	noEpoch = " AND attribute_not_exists(#ep)"
	noRow   = "attribute_not_exists(#pk)"
	// Native TTL removes items late, so the time is compared here; only these states free their key, whatever else has the
	// attribute. In a row that this release cannot judge the time and the state may mean anything.
	freeRow = "#ea <= :now AND #st IN (:completed, :failed, :retryable) AND #sv = :version" +
		" AND #kd IN (:atomic, :optimistic, :deferred, :wrapped)"
	leaseOver = "(attribute_not_exists(#lu) OR #lu < :lease)"
)

// fenceNames are the placeholders in these texts.
var fenceNames = map[string]string{
	"#op": schema.OperationID, "#rv": schema.Revision, "#ow": schema.Owner, "#ep": schema.Epoch, "#pk": schema.RecordKey,
	"#ea": schema.FreeAt, "#st": schema.State, "#sv": schema.SchemaVersion, "#kd": schema.Kind, "#lu": schema.LeaseUntil,
}

// freeValues are the states that free a key, and what this release can judge.
var freeValues = item{
	":completed": stringValue(string(storage.StateCompleted)), ":failed": stringValue(string(storage.StateFailed)),
	":retryable": stringValue(string(storage.StateFailedRetryable)), ":version": numberValue(storage.SchemaVersion),
	":atomic": stringValue(string(storage.KindAtomic)), ":optimistic": stringValue(string(storage.KindOptimistic)),
	":deferred": stringValue(string(storage.KindDeferred)), ":wrapped": stringValue(string(storage.KindWrapped)),
}

// stateNames are the placeholders of the states that a holder's row may be in: as many as there are states.
var stateNames = [...]string{":state0", ":state1", ":state2", ":state3", ":state4", ":state5"}

// shape is what a fence demands, but for the values.
type shape struct {
	seen, free, lease bool
	// states is how many a holder's row may be in; 0 where no holder is asked for. The row may have no owner, or no epoch.
	states                       int
	unowned, anyEpoch, zeroEpoch bool
}

func shapeOf(f storage.Fence) shape {
	known := f.OperationID != ""
	s := shape{seen: known && f.Revision != "", free: !f.FreeAt.IsZero(), lease: !f.LeaseBefore.IsZero()}
	if known && len(f.States) > 0 {
		s.states, s.unowned, s.anyEpoch, s.zeroEpoch = len(f.States), f.Owner == "", f.AnyEpoch, f.Epoch == 0
	}
	return s
}

// demand is the text of a shape and the placeholders of the attributes in it. Both are shared: they are never changed.
type demand struct {
	text  *string
	names map[string]string
}

// demands are those that were made.
var demands sync.Map

// fenced demands of the record under the key what the fence says: one of its alternatives, and the lease's end besides.
func fenced(key storage.RecordKey, f storage.Fence) (condition, error) {
	s := shapeOf(f)
	if !s.seen && s.states == 0 && !s.free {
		return condition{}, errors.New("the fence matches nothing: it has no revision, no states and no FreeAt, or no operation id")
	}
	if s.states > len(stateNames) {
		return condition{}, errors.New("the fence has more states than there are")
	}
	w := writer{item: make(item, 12)}
	w.fence(s, key, f)
	d := s.demand()
	return condition{&expression{d.names, w.item}, d.text}, w.err
}

// fencedStored is fenced for a change of a part of what is stored, whose names may be added. It refuses a fence that admits
// absence: an update would make a row of that part alone.
func fencedStored(key storage.RecordKey, f storage.Fence) (condition, error) {
	if f.AdmitsAbsence() {
		return condition{}, errors.New("the fence allows a missing row, but the change needs an existing one")
	}
	c, err := fenced(key, f)
	if err == nil {
		c.names = maps.Clone(c.names)
	}
	return c, err
}

// fence writes the values of a fence.
func (w *writer) fence(s shape, key storage.RecordKey, f storage.Fence) {
	if s.seen || s.states > 0 {
		w.operation(":operation", key, f.OperationID)
	}
	if s.seen {
		w.revision(":revision", f.Revision)
	}
	for i := range s.states {
		w.item[stateNames[i]] = w.text(string(f.States[i]))
	}
	if s.states > 0 {
		w.name(":owner", string(f.Owner))
		if !s.anyEpoch {
			w.number(":epoch", f.Epoch)
		}
	}
	if s.free {
		w.instant(":now", f.FreeAt)
		maps.Copy(w.item, freeValues)
	}
	if s.lease {
		w.instant(":lease", f.LeaseBefore)
	}
}

// demand is the shape in DynamoDB's words.
func (s shape) demand() demand {
	if made, ok := demands.Load(s); ok {
		return made.(demand)
	}
	text := s.text()
	d := demand{&text, map[string]string{}}
	for placeholder, attribute := range fenceNames {
		if strings.Contains(text, placeholder) { // DynamoDB refuses names that stand nowhere
			d.names[placeholder] = attribute
		}
	}
	demands.Store(s, d)
	return d
}

func (s shape) text() string {
	var alternatives []string
	if s.seen {
		alternatives = append(alternatives, seenRow)
	}
	if s.states > 0 {
		alternatives = append(alternatives, s.held())
	}
	if s.free {
		alternatives = append(alternatives, noRow, freeRow)
	}
	text := either(alternatives...)
	if !s.lease {
		return text
	}
	if len(alternatives) > 1 {
		text = "(" + text + ")"
	}
	return text + " AND " + leaseOver
}

// held admits the holder's own row.
func (s shape) held() string {
	text := heldRow + owned
	if s.unowned {
		text = heldRow + unowned
	}
	text += "#st IN (" + strings.Join(stateNames[:s.states], ", ") + ")"
	switch {
	case s.anyEpoch:
		return text
	case s.zeroEpoch:
		return text + noEpoch
	}
	return text + ofEpoch
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
