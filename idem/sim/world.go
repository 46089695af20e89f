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
	app      App
	memory   *memstore.Store
	provider *provider // the synthetic application's
	keys     []*key
	// contended is the position of the write that others are at where a commit meets them.
	contended int
	// others are keys that no client of the story sends, by their records' keys.
	others sync.Map
	// instances are the processes that serve requests, where they serve several.
	instances []*process
	// topics are what those that were linked declare.
	topics map[string]traits

	// steps are calls that reached the store or the provider.
	steps atomic.Int64
	// over says that the story has been judged, and end is closed then: what stood still ends, unjudged.
	over atomic.Bool
	end  chan struct{}
	// clients are those who have not gone yet.
	clients atomic.Int64
	// background are the goroutines that are left to themselves.
	background sync.WaitGroup

	mu sync.Mutex
	// lines are what happened, if somebody wants to read it.
	lines []string
	tell  bool
	wrong []string
	judge judge

	queue chan wakeUp
	// noted are the calls that reached the wire, where the story is planned.
	noted   []plannedCall
	planned bool
}

func newWorld(t *testing.T, begin Begin, seed uint64, only []string, tell bool) *world {
	c := newChoices(seed, only)
	return newWorldIn(t, begin, newMood(c), c, tell)
}

func newWorldIn(t *testing.T, begin Begin, mood mood, c *choices, tell bool) *world {
	w := &world{T: t, choices: c, mood: mood, end: make(chan struct{}), tell: tell, queue: make(chan wakeUp, 1024), topics: map[string]traits{}}
	w.provider = &provider{made: map[string]int{}, first: map[string]time.Time{}, remembers: w.mood.remembers}
	w.app, w.contended = &synthetic{w}, lockedAt
	if begin.App != nil {
		w.app, w.contended = begin.App(Stage{w}), 0
		w.mood.older, w.mood.observers = false, false
	}
	var err error
	w.memory, err = memstore.New(memstore.Config{Now: time.Now, Shards: 1, Translate: begin.Translate})
	w.must(err)
	w.judge = newJudge()
	for _, request := range w.app.Requests() {
		w.keys = append(w.keys, keyFor(request))
	}
	return w
}

// Begin is an application to play. The zero value is the simulator's own.
type Begin struct {
	// App is called once for each story.
	App func(Stage) App
	// Translate turns the application's writes into rows of the reference store.
	Translate func(idem.Write) (memstore.Write, error)
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

// land lets a call of an act happen, and has what it changed judged.
func (w *world) land(a *act, name string, changes bool, happen func() error) error {
	if w.over.Load() {
		return happen()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	err := happen()
	w.steps.Add(1)
	if !changes {
		return err
	}
	defer w.app.Judge(Landed{})
	for _, change := range w.look(a) {
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
