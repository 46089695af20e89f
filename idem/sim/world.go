package sim

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/memstore"
)

// beginning is when every story begins: after what any emulator's TTL would remove.
var beginning = time.Date(2101, 2, 3, 4, 5, 6, 0, time.UTC)

// world is one story: a store, a provider, and everybody who uses them. Its time is that of the synctest bubble it runs in.
type world struct {
	*testing.T
	*choices
	mood     mood
	memory   *memstore.Store
	provider *provider
	keys     []*key

	// steps are calls that reached the store or the provider.
	steps atomic.Int64
	// over says that the story has been judged, and end is closed then: what stood still ends, unjudged.
	over atomic.Bool
	end  chan struct{}
	// background are the goroutines that are left to themselves.
	background sync.WaitGroup

	mu sync.Mutex
	// lines are what happened, if somebody wants to read it.
	lines []string
	tell  bool
	wrong []string
	judge judge

	queue chan wakeUp
}

// mood is how much goes wrong in a story, and how: stories differ in it, because what needs many faults of one kind does not
// happen where all kinds are equally rare.
type mood struct {
	// In so many of a thousand cases.
	store, provider, declines, wakeUps int
	// What goes wrong with calls to the store and to the provider: some ways in each story, so that some stories are about
	// nothing but two of them.
	storeFaults, callFaults []int
	// kinds are those of the story's keys.
	kinds []kind
	// period is how often the sweep and the reconciler run at first, hurry how long clients wait at most before they ask again.
	period, hurry time.Duration
	// skew is how much a clock differs from the story's, handler how long a handler takes at most.
	skew, handler time.Duration
	// kills says that the platform ends a process at a request's deadline.
	kills bool
}

// newMood draws the mood of a story.
func newMood(c *choices) mood {
	level := func(name string, levels ...int) int { return levels[c.oneOf("mood/"+name, len(levels))] }
	return mood{
		store:    level("store", 0, 30, 80, 150),
		provider: level("provider", 0, 60, 200, 400),
		declines: level("declines", 0, 100, 400),
		wakeUps:  level("wake-ups", 0, 100, 500),
		skew:     time.Duration(level("skew", 0, 300, 990)) * time.Millisecond,
		handler:  time.Duration(level("handler", 50, 2_000, 12_000)) * time.Millisecond,
		kills:    level("kills", 0, 1) == 1,
		period:   time.Duration(level("period", 60, 240)) * time.Second,
		hurry:    time.Duration(level("hurry", 1, 10, 60)) * time.Second,

		storeFaults: some(c, "store faults", storeFaults),
		callFaults:  some(c, "call faults", providerFaults),
		kinds:       []kind{kinds[c.oneOf("mood/kind", len(kinds))], kinds[c.oneOf("mood/another kind", len(kinds))]},
	}
}

// some are some of the numbers from 1 to n: at least one.
func some(c *choices, name string, n int) (drawn []int) {
	share := 1 + c.oneOf("mood/share of "+name, 4)
	for i := 1; i <= n; i++ {
		if c.oneOf(fmt.Sprintf("mood/%s %d", name, i), share) == 0 {
			drawn = append(drawn, i)
		}
	}
	return drawn
}

// weather says how many of a thousand calls go wrong now: trouble comes in spells.
func (w *world) weather(usual int) int {
	spell := int64(time.Since(beginning) / (5 * time.Second))
	if w.oneOf(fmt.Sprintf("weather %d", spell), 4) == 0 {
		return min(4*usual, 600)
	}
	return usual / 2
}

// freezeMax is the longest freeze: less than Config.FreezeAllowance by what a call takes.
const freezeMax = 55 * time.Second

// numberOf keys that a story has.
const numberOfKeys = 3

func newWorld(t *testing.T, seed uint64, only []string, tell bool) *world {
	w := &world{
		T: t, choices: newChoices(seed, only), provider: &provider{made: map[string]int{}, first: map[string]time.Time{}},
		end: make(chan struct{}), tell: tell, queue: make(chan wakeUp, 1024),
	}
	w.mood = newMood(w.choices)
	var err error
	w.memory, err = memstore.New(memstore.Config{Now: time.Now, Shards: 1})
	w.must(err)
	for i := range numberOfKeys {
		k := &key{name: fmt.Sprintf("k%d", i+1), kind: w.mood.kinds[i%len(w.mood.kinds)]}
		k.id = idem.Scope{Tenant: tenant, Operation: string(k.kind), Key: k.name}.RecordKey()
		w.keys = append(w.keys, k)
	}
	w.judge = newJudge()
	return w
}

func (w *world) must(err error) {
	if err != nil {
		panic(err)
	}
}

// spawn starts a goroutine that the story waits for in the end.
func (w *world) spawn(f func()) {
	w.background.Add(1)
	go func() {
		defer w.background.Done()
		f()
	}()
}

// say tells what happened.
func (w *world) say(format string, args ...any) {
	if !w.tell || w.over.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf("%11.3f s  ", time.Since(beginning).Seconds())+fmt.Sprintf(format, args...))
}

// land lets a call happen, and has what has changed judged.
func (w *world) land(name string, happen func() error) error {
	if w.over.Load() {
		return happen()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	err := happen()
	w.steps.Add(1)
	for _, change := range w.look() {
		if w.tell {
			w.lines = append(w.lines, fmt.Sprintf("%11.3f s  %s: %s", time.Since(beginning).Seconds(), name, change))
		}
	}
	return err
}

// key returns the story's key of a name.
func (w *world) key(name string) *key {
	for _, k := range w.keys {
		if k.name == name {
			return k
		}
	}
	panic("sim: no key " + name)
}

// broken notes that an invariant is broken. Called with the lock held.
func (w *world) broken(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
	if w.tell {
		w.lines = append(w.lines, fmt.Sprintf("%11.3f s  BROKEN: %s", time.Since(beginning).Seconds(), fmt.Sprintf(format, args...)))
	}
}

// short makes the ids in a story short.
func short(id string) string {
	if at := strings.LastIndex(id, "_"); at >= 0 {
		id = id[at+1:]
	}
	end := ""
	if at := strings.Index(id, "."); at >= 0 {
		id, end = id[:at], id[at:]
	}
	return id[:min(6, len(id))] + end
}
