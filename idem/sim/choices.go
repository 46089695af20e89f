package sim

import (
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// choices decides what chance decides in a story. Each decision has a name, and depends on the seed and on that name alone:
// not on what was decided before, so that taking one fault away leaves the others as they are.
type choices struct {
	seed uint64
	// only, where it is not nil, are the names whose faults happen; every other decision is the harmless one.
	only map[string]bool
	// forced are decisions that fall so whatever chance says, by name, each in one of its ways.
	forced map[string]int
	// calm says that nothing goes wrong any more but what is forced.
	calm atomic.Bool

	mu    sync.Mutex
	taken []string
	count map[string]int
}

func newChoices(seed uint64, only []string) *choices {
	c := &choices{seed: seed, count: map[string]int{}}
	if only != nil {
		c.only = map[string]bool{}
		for _, name := range only {
			c.only[name] = true
		}
	}
	return c
}

// numbered makes the names of decisions of one kind differ.
func (c *choices) numbered(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[name]++
	return fmt.Sprintf("%s %d", name, c.count[name])
}

// draw is a number that the seed and the name give.
func (c *choices) draw(name string) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d/%s", c.seed, name)
	x := h.Sum64() // FNV alone leaves the high bits of names that differ in their last letter alike
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fault decides whether something goes wrong, in so many of a thousand cases, and which of n ways: 0 is that it does not.
func (c *choices) fault(name string, permille, n int) int {
	if way, ok := c.forced[name]; ok {
		return way
	}
	x := c.draw("fault/" + name)
	if n == 0 || int(x%1000) >= permille || c.calm.Load() || c.only != nil && !c.only[name] {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.taken, name) {
		c.taken = append(c.taken, name)
	}
	return 1 + int(x/1000%uint64(n))
}

// oneOf is a decision none of whose ways is wrong.
func (c *choices) oneOf(name string, n int) int {
	if way, ok := c.forced[name]; ok {
		return way
	}
	return int(c.draw(name) % uint64(n))
}

// oneOfAll is a decision that a plan takes for all of a kind: it does not know the numbers in their names.
func (c *choices) oneOfAll(kind, name string, n int) int {
	if way, ok := c.forced[kind]; ok {
		return way
	}
	return c.oneOf(name, n)
}

// between is a time. No two names get the same, by nanoseconds: so no two things happen at once, and a story is the same each
// time that it is told.
func (c *choices) between(name string, low, high time.Duration) time.Duration {
	return low + time.Duration(c.draw("time/"+name)%uint64(high-low))
}

// atMost is a time: often about the longest.
func (c *choices) atMost(name string, longest time.Duration) time.Duration {
	if c.oneOf(name+" is long", 2) == 0 {
		return c.between(name, longest-longest/10, longest)
	}
	return c.between(name, time.Second, longest)
}

// happened are the names of the faults that happened, in no order.
func (c *choices) happened() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.taken)
}

// random is a source of ids.
func (c *choices) random(name string) io.Reader { return &random{choices: c, name: name} }

type random struct {
	*choices
	name string
}

// Read implements io.Reader; it never fails.
func (r *random) Read(p []byte) (int, error) {
	x := r.draw(r.numbered("random/" + r.name))
	for i := range p {
		if i%8 == 0 {
			x = x*0xd1342543de82ef95 + 0x2545f4914f6cdd1d
		}
		p[i] = byte(x >> (8 * (i % 8)) >> 3)
	}
	return len(p), nil
}
