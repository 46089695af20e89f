package seal

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/storage"
)

// asking is one request for a key, and what replies to others told of the same tenant since it began. Its own reply may be
// older than those. A request that begins after they were heard can't be: keys are read strongly.
type asking struct {
	name keyName
	at   time.Time
	// newest is the highest id that was told to be current.
	newest uint32
	// erased is the highest id that was told to be erased, and all says that the whole tenant was.
	erased uint32
	all    bool
}

// asksMax bounds how often a key is asked for anew because the reply was overtaken, or is too old.
const asksMax = 3

var errOvertaken = errors.New("what was read of the tenant's keys was out of date each time")

func (r *ring) begin(name keyName) *asking {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &asking{name: name, at: r.cfg.Now()}
	r.asking[name.tenant] = append(r.asking[name.tenant], a)
	return a
}

// settle judges the reply to a request by what was told meanwhile, tells the others, and holds a key that stands. It
// returns the reply's error as it is now; not settled means that the reply was overtaken and says nothing any more.
func (r *ring) settle(a *asking, key Key, err error) (_ error, settled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tenant := a.name.tenant
	others := slices.DeleteFunc(r.asking[tenant], func(other *asking) bool { return other == a })
	if r.asking[tenant] = others; len(others) == 0 {
		delete(r.asking, tenant)
	}
	switch {
	case errors.Is(err, storage.ErrErased):
		r.erase(a.name, others)
		return err, true
	case err != nil:
		return err, true
	case a.all || a.name.id == currentKey && (key.ID <= a.erased || key.ID < a.newest):
		return nil, false
	case key.ID <= a.erased:
		return fmt.Errorf("seal: key %d: %w", key.ID, storage.ErrErased), true
	}
	held := heldKey{key: key, asked: a.at}
	r.held.Add(keyName{tenant, key.ID}, held)
	if key.Current && key.ID >= a.newest {
		r.held.Add(keyName{tenant, currentKey}, held)
		for _, other := range others {
			other.newest = max(other.newest, key.ID)
		}
	}
	return nil, true
}

// erase forgets what is known to be erased: the key of that id, and the current one if it is not newer; or with the
// current one whatever is being read.
func (r *ring) erase(name keyName, others []*asking) {
	current := keyName{name.tenant, currentKey}
	held, ok := r.held.Peek(current)
	for _, other := range others {
		other.erased = max(other.erased, name.id)
		other.all = other.all || name.id == currentKey
	}
	r.held.Remove(name)
	if ok && (name.id == currentKey || held.key.ID <= name.id) {
		r.held.Remove(current)
		r.held.Remove(keyName{name.tenant, held.key.ID})
	}
}
