package hourly

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/drift"
)

// Passes are how many hours after the first pass over an hour each pass is due. What is open in the first is compared by the
// second, and the last is behind the two days after which nothing is worked on or asked about any more (ADR 0015).
var Passes = []int{0, 1, 48}

// PartsMax is the most parts of an hour, of 15 s each. Each step of a part lists the provider's objects for 10 s more than it compares.
// So a step of the shortest part lists less than twice what it compares; and where so many parts are needed, a part has more rows
// than a step of 4 minutes compares (15 s of 10,000 payments a second are 150,000, and 286 a second for 4 minutes are 69,000): more parts
// make no shorter steps.
const PartsMax = 240

// Pass is one comparison of an hour.
type Pass struct {
	// Hour is when it begins.
	Hour time.Time `json:"hour"`
	// After is one of [Passes].
	After int `json:"after"`
}

func (p Pass) String() string {
	return fmt.Sprintf("%d/%s", p.After, p.Hour.UTC().Format("2006-01-02T15"))
}

// dueAt is from when on the pass may be made.
func (p Pass) dueAt(grace time.Duration) time.Time {
	return p.Hour.Add(time.Hour*time.Duration(1+p.After) + grace)
}

// again says that earlier passes have compared the hour's objects: those passes look for the rows of the objects that have lost their traces
// meanwhile, however late they are.
func (p Pass) again() bool { return p.After == Passes[len(Passes)-1] }

// Piece is a part of a pass, from 0, of so many.
type Piece struct {
	Pass
	Part int `json:"part"`
	Of   int `json:"of"`
}

func (p Piece) String() string { return fmt.Sprintf("%v/%d", p.Pass, p.Part) }

// Window is the part's share of the hour, in whole milliseconds.
func (p Piece) Window() drift.Window {
	cut := func(n int) time.Time {
		return p.Hour.Add(time.Hour * time.Duration(n) / time.Duration(p.Of)).UTC().Truncate(time.Millisecond)
	}
	return drift.Window{From: cut(p.Part), To: cut(p.Part + 1)}
}

// Read reads the piece that a message of the queue names.
func Read(body string) (Piece, error) {
	var p Piece
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		return Piece{}, fmt.Errorf("hourly: a message that names no piece: %w", err)
	}
	if !p.Hour.Equal(p.Hour.Truncate(time.Hour)) || p.Hour.IsZero() || p.After < 0 || p.Of < 1 || p.Of > PartsMax || p.Part < 0 || p.Part >= p.Of {
		return Piece{}, fmt.Errorf("hourly: %.200q names no piece", body)
	}
	p.Hour = p.Hour.UTC()
	return p, nil
}

// state is how far a piece has come. A step is compared as a whole, or not at all.
type state struct {
	// revision counts the writes of the row; 0 is a piece that has none.
	revision int64
	// cursor is down to where rows are compared.
	cursor time.Time
	// leaseUntil is until when somebody works on it; zero: nobody does.
	leaseUntil time.Time
	// tries are the runs that began since the cursor moved.
	tries  int
	doneAt time.Time
	// report is of what is compared.
	report drift.Report
}

func (s state) done() bool { return !s.doneAt.IsZero() }

// free says that nobody works on it.
func (s state) free(now time.Time) bool { return !now.Before(s.leaseUntil) }

// begun is the state of a piece that nobody has met.
func begun(p Piece) state {
	w := p.Window()
	return state{cursor: w.To, report: drift.Report{
		Window: drift.Window{From: w.To, To: w.To}, Reached: w.To, Drift: map[drift.Kind]int{}, Drifts: []drift.Drift{}, Parked: []drift.Parked{},
	}}
}

// claimed is the state while somebody works on it.
func (s state) claimed(until time.Time) state {
	s.leaseUntil, s.tries = until, s.tries+1
	return s
}

// released is the state when its worker has no time left.
func (s state) released() state {
	s.leaseUntil = time.Time{}
	return s
}

// advanced is the state after a step, whose report begins where it stopped.
func (s state) advanced(p Piece, step drift.Report, now time.Time) state {
	s.cursor, s.tries = step.Window.From, 0
	s.report = s.report.Join(step, listedMax)
	if !s.cursor.After(p.Window().From) {
		s.doneAt, s.leaseUntil = now, time.Time{}
	}
	return s
}

const (
	// stepTime is after how long a step ends.
	stepTime = 4 * time.Minute
	// The least that a step is, where larger ones did not end in time.
	stepRowsMin = 100
	stepSpanMin = time.Second
	// halvings bound how often a step that fails is made half as large.
	halvings = 12
)

// step is what to compare next: the window, and the rows after which it may end. Each run since the last step halves it, so that one
// that does not end in its worker's time gets smaller until it does.
func (s state) step(p Piece, rowsMax int) (drift.Window, int) {
	half := min(max(s.tries-1, 0), halvings)
	w := drift.Window{From: p.Window().From, To: s.cursor}
	span := max(w.To.Sub(w.From)>>half, stepSpanMin).Truncate(time.Millisecond)
	if from := w.To.Add(-span); half > 0 && from.After(w.From) {
		w.From = from
	}
	return w, max(rowsMax>>half, min(rowsMax, stepRowsMin))
}

// listedMax is how many findings, and parked messages, a row lists. All are counted, and in the log.
const listedMax = 200

// known are the findings that need not be reported again.
func (s state) known() []string {
	ids := make([]string, len(s.report.Drifts))
	for i, d := range s.report.Drifts {
		ids[i] = d.ID()
	}
	return ids
}
