package recovery

import (
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
)

// reminderEvery is what lies between two alarms about a record that nobody can decide.
const reminderEvery = 24 * time.Hour

// remindedWithin is how far back a process that has just begun looks for reminders: what was due earlier is left to the
// process before it, so that a day's alarm stays about one however often processes begin.
const remindedWithin = 5 * time.Minute

// When a record is asked about follows from its lease's end alone, so that nothing is written while nothing is decided:
// at once, then when absence can be proven, then at steps that double from ProbeBackoffMin to ProbeBackoffMax.

// lastStep is the last instant up to now at which somebody is to be asked; zero where there was none yet.
func (c Config) lastStep(leaseUntil, now time.Time) time.Time {
	provable := c.provable(leaseUntil)
	switch {
	case now.Before(leaseUntil):
		return time.Time{}
	case now.Before(provable):
		return leaseUntil
	}
	step, pause := provable, c.ProbeBackoffMin
	if next := step.Add(pause); now.Before(next) {
		return step
	}
	for step = step.Add(pause); pause < c.ProbeBackoffMax; {
		next := min(pause, c.ProbeBackoffMax)
		if now.Before(step.Add(next)) {
			return step
		}
		step, pause = step.Add(next), pause+next
	}
	return step.Add(now.Sub(step).Truncate(c.ProbeBackoffMax))
}

// lastReminder is the last instant up to now at which a person is to be told, from the first on; zero before it.
func lastReminder(first, now time.Time) time.Time {
	if now.Before(first) {
		return time.Time{}
	}
	return first.Add(now.Sub(first).Truncate(reminderEvery))
}

// memoryMax bounds how many records are remembered; those beyond are asked about in every run.
const memoryMax = 100_000

// memory is what a process knows of the records that it has met: when they were asked about, and when a person was told.
// A process that has just begun knows nothing and asks about everything, which does no harm. It is safe for concurrent
// use; runs beside each other may ask twice.
type memory struct {
	mu sync.Mutex
	// met is what was met since began, before what was met in the time before: what is met no more is forgotten.
	met, before map[idem.OperationID]recalled
	began       time.Time
	// whole says that everything there was has been met, so that what isn't remembered is new.
	whole bool
}

// recalled is when a record was last asked about, and a person last told of it.
type recalled struct{ asked, reminded time.Time }

// age forgets what was not met for twice the given time.
func (m *memory) age(now time.Time, every time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.began) >= every {
		m.before, m.met, m.began = m.met, nil, now
	}
}

func (m *memory) complete() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.whole = true
}

// recall returns what is known of the record at now, and keeps it.
func (m *memory) recall(id idem.OperationID, now time.Time) recalled {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.met[id]
	if !known {
		r, known = m.before[id]
	}
	if !known && !m.whole {
		r.reminded = now.Add(-remindedWithin)
	}
	m.put(id, r)
	return r
}

func (m *memory) keep(id idem.OperationID, r recalled) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(id, r)
}

func (m *memory) put(id idem.OperationID, r recalled) {
	if m.met == nil {
		m.met = map[idem.OperationID]recalled{}
	}
	if _, known := m.met[id]; known || len(m.met) < memoryMax {
		m.met[id] = r
	}
}
