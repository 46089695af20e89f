package console

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// settles says that a message can be settled by the object. Without its bytes nobody would compare it with what the message asked for, and
// of bytes that a message can't keep whole a settlement could not be tried again.
func (o Object) settles() bool {
	ended := o.Outcome == string(storage.MessageDelivered) && o.Reference != "" || o.Outcome == string(storage.MessageDeclined)
	return ended && o.Doubt == "" && len(o.Evidence) > 0 && len(o.Evidence) <= outbox.EvidenceBytesMax
}

// objects are those of the provider that pages have shown as evidence, the latest of them. A page has only their names: what was shown is
// what settles, whatever the provider shows later.
type objects struct {
	mu     sync.Mutex
	byName map[string]Object
	// order has the name that was shown longest ago first.
	order []string
}

// add keeps an object, and returns its name, which is the same for the same object.
func (o *objects) add(one Object) string {
	raw, err := json.Marshal([]any{one.Message, one.Outcome, one.Reference, one.Evidence})
	if err != nil {
		panic(err) // texts and bytes
	}
	sum := sha256.Sum256(raw)
	name := hex.EncodeToString(sum[:])
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byName == nil {
		o.byName = map[string]Object{}
	}
	o.order = append(slices.DeleteFunc(o.order, func(kept string) bool { return kept == name }), name)
	if len(o.order) > objectsMax {
		delete(o.byName, o.order[0])
		o.order = o.order[1:]
	}
	o.byName[name] = one
	return name
}

func (o *objects) of(name string) (Object, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	one, kept := o.byName[name]
	return one, kept
}

var errNoObject = &pageError{http.StatusConflict, "What the provider had is not known here any more: it was shown too long ago, or before the console started again. Nothing was changed: look at the operation again."}

// byObject completes a change that is by one of the provider's objects. The object alone says what became of the message.
func (c *Console) byObject(a asked) (asked, error) {
	if a.Object == "" {
		return a, nil
	}
	one, kept := c.objects.of(a.Object)
	switch {
	case !kept:
		return asked{}, errNoObject
	case a.Action != "resolve" || a.message() != one.Message:
		return asked{}, &operator.InvalidError{Field: "object", Rule: "must be of the message that is resolved"}
	}
	a.Outcome, a.Reference, a.Evidence = one.Outcome, one.Reference, one.Evidence
	return a, nil
}
