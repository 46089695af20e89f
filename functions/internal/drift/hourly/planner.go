package hourly

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/idem-go/idem-aws/idem/telemetry/metric"
)

const (
	// horizon is how far behind its newest hour each pass is planned. An hour that is not done by then has rung for three days.
	horizon = 72 * time.Hour
	// clocks is how far the workers' clocks may be behind the planner's.
	clocks = time.Minute
	// resendAfter is when what was put into the queue, and is not done, is put there again.
	resendAfter = 15 * time.Minute
	// lateAfter is how long a pass may take from when it is due.
	lateAfter = 2 * time.Hour
)

// Planner sees to it that each pass over each hour is made. It is safe for concurrent use.
type Planner struct{ *Config }

// NewPlanner checks the configuration, or returns an [*idem.ConfigError].
func NewPlanner(cfg Config) (*Planner, error) {
	checked, err := cfg.checked()
	return &Planner{checked}, err
}

// Plan is what a run of the planner has seen and done.
type Plan struct {
	// Open are passes that are due and not done, Late those of them that have not been done in time; Done are those that this run
	// found done, and Sent the pieces that it put into the queue.
	Open int `json:"open"`
	Late int `json:"late"`
	Done int `json:"done"`
	Sent int `json:"sent"`
}

// Plan puts into the queue what is due and that nobody works on, and closes the passes that are done. It goes on with other passes
// where one fails, and returns all errors.
func (l *Planner) Plan(ctx context.Context) (Plan, error) {
	var plan Plan
	now := l.Now()
	since, err := l.rows().begin(ctx, now)
	if err != nil {
		return plan, err
	}
	passes := due(now, since, l.Grace+clocks)
	keys := make([]string, len(passes))
	for i, p := range passes {
		keys[i] = passKey(p)
	}
	known, err := l.rows().many(ctx, keys, l.Pause)
	if err != nil {
		return plan, err
	}
	var failed []error
	for i, p := range passes {
		g := progress{Pass: p, parts: l.Parts}
		if it, ok := known[keys[i]]; ok {
			if g, err = decodePass(p, it); err != nil {
				failed = append(failed, err)
				continue
			}
		}
		if !g.doneAt.IsZero() {
			continue
		}
		if err := l.pass(ctx, g, now, &plan); err != nil && !errors.Is(err, errLost) { // another run of the planner has it
			failed = append(failed, err)
		}
	}
	return plan, errors.Join(failed...)
}

// due are the passes that may be made, oldest hour first.
func due(now, since time.Time, grace time.Duration) (passes []Pass) {
	for _, after := range Passes {
		newest := now.Add(-grace).UTC().Truncate(time.Hour).Add(-time.Hour * time.Duration(1+after))
		for hour := newest; !hour.Before(since) && hour.After(newest.Add(-horizon)); hour = hour.Add(-time.Hour) {
			passes = append(passes, Pass{Hour: hour, After: after})
		}
	}
	slices.SortStableFunc(passes, func(a, b Pass) int { return a.Hour.Compare(b.Hour) })
	return passes
}

// pass sends what is left of a pass, or closes it.
func (l *Planner) pass(ctx context.Context, g progress, now time.Time, plan *Plan) error {
	was := g
	if g.revision == 0 { // its number of parts is kept before any piece is made by it
		if err := l.rows().swapPass(ctx, was, g); err != nil {
			return err
		}
		was.revision++
	}
	states, err := l.states(ctx, g)
	if err != nil {
		return err
	}
	var left, free []Piece
	for part, s := range states {
		if s.done() {
			continue
		}
		p := Piece{Pass: g.Pass, Part: part, Of: g.parts}
		if left = append(left, p); s.free(now) {
			free = append(free, p)
		}
	}
	if len(left) == 0 {
		return l.close(ctx, was, states, now, plan)
	}
	plan.Open++
	if at := g.dueAt(l.Grace).Add(lateAfter); now.After(at) {
		plan.Late++
		l.Logger.ErrorContext(ctx, metric.DriftLate, "hour", g.Hour, "after", g.After, "pieces_left", len(left), "pieces", g.parts)
	}
	if len(free) == 0 || now.Sub(g.sentAt) < resendAfter {
		return nil
	}
	if err := l.Send(ctx, free); err != nil {
		return err
	}
	plan.Sent += len(free)
	g.sentAt = now
	return l.rows().swapPass(ctx, was, g)
}

// states are those of a pass's pieces.
func (l *Planner) states(ctx context.Context, g progress) ([]state, error) {
	keys := make([]string, g.parts)
	for part := range g.parts {
		keys[part] = pieceKey(Piece{g.Pass, part, g.parts})
	}
	found, err := l.rows().many(ctx, keys, l.Pause)
	if err != nil {
		return nil, err
	}
	states := make([]state, g.parts)
	for part := range g.parts {
		if states[part], err = decodeState(Piece{g.Pass, part, g.parts}, found[keys[part]]); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// close writes the pass's report, and counts the pass.
func (l *Planner) close(ctx context.Context, was progress, states []state, now time.Time, plan *Plan) error {
	g := was
	g.report = states[0].report
	for _, s := range states[1:] {
		g.report = g.report.Join(s.report, listedMax)
	}
	g.doneAt = now
	if err := l.rows().swapPass(ctx, was, g); err != nil {
		return err
	}
	plan.Done++
	r := g.report
	l.Logger.InfoContext(ctx, metric.DriftRun, "window", r.Window, "after", g.After, "pieces", g.parts, "compared", r.Compared, "open", r.Open,
		"with_operator", r.WithOperator, "unreadable", r.Unreadable, "unanswered", r.Unanswered, "drift", r.Drift, "cost", r.Cost)
	return nil
}
