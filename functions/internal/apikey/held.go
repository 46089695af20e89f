package apikey

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/idem-go/idem-aws/internal/clock"
)

// The most that a process holds, some megabytes at the most. Keys that are not there have a place of their own, so that
// guesses push out none that is.
const (
	knownMax   = 10_000
	unknownMax = 1_000
)

// held is what a process remembers of the table.
type held struct {
	age            time.Duration
	mu             sync.Mutex
	known, unknown *simplelru.LRU[string, entry]
}

// entry is a key, or nil, and when the table was asked for it.
type entry struct {
	key   *Key
	asked time.Time
}

func newHeld(age time.Duration) (*held, error) {
	known, err := simplelru.NewLRU[string, entry](knownMax, nil)
	if err != nil {
		return nil, err
	}
	unknown, err := simplelru.NewLRU[string, entry](unknownMax, nil)
	return &held{age: age, known: known, unknown: unknown}, err
}

// get returns what is held and young enough.
func (h *held) get(id string, now time.Time) (*Key, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, in := range []struct {
		entries *simplelru.LRU[string, entry]
		age     time.Duration
	}{{h.known, h.age}, {h.unknown, min(h.age, unknownAge)}} {
		if e, ok := in.entries.Get(id); ok && clock.Within(now, e.asked, in.age) {
			return e.key, true
		}
	}
	return nil, false
}

func (h *held) put(id string, key *Key, asked time.Time) {
	if h.age == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	into, other := h.known, h.unknown
	if key == nil {
		into, other = h.unknown, h.known
	}
	other.Remove(id)
	into.Add(id, entry{key, asked})
}
