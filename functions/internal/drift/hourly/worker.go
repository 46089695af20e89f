package hourly

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/functions/internal/drift"
	"github.com/idem-go/idem-aws/idem"
)

// TimeMin is the least time that a step is begun with: a function needs more.
const TimeMin = 20 * time.Second

// releaseTime is kept of it to give a piece back.
const releaseTime = 2 * time.Second

// Worker compares pieces. It is safe for concurrent use.
type Worker struct{ *Config }

// NewWorker checks the configuration, or returns an [*idem.ConfigError].
func NewWorker(cfg Config) (*Worker, error) {
	checked, err := cfg.checked()
	return &Worker{checked}, err
}

// Work compares a piece until it is done, or until its caller's time is nearly over; the rest is then put into the queue again. It
// does nothing where the piece is done, or somebody works on it. An error means that the piece is not done: what was compared
// before is kept, and the next run goes on there.
func (w *Worker) Work(ctx context.Context, p Piece) error {
	now := w.Now()
	if due := p.dueAt(w.Grace); now.Before(due) {
		return fmt.Errorf("hourly: piece %v is not due before %s", p, due.Format(time.RFC3339))
	}
	was, err := w.rows().piece(ctx, p)
	if err != nil {
		return err
	}
	if was.done() || !was.free(now) {
		w.Logger.InfoContext(ctx, "drift piece left alone", "piece", p.String(), "done", was.done())
		return nil
	}
	s, err := w.rows().swapPiece(ctx, p, was, was.claimed(now.Add(w.Lease)))
	if err == nil {
		err = w.steps(ctx, p, s)
	}
	if errors.Is(err, errLost) { // the run that has it now goes on from the last step
		w.Logger.InfoContext(ctx, "drift piece lost to another run", "piece", p.String())
		return nil
	}
	return err
}

// steps go on until the piece is done.
func (w *Worker) steps(ctx context.Context, p Piece, s state) error {
	for !s.done() {
		if deadline, ok := ctx.Deadline(); ok && deadline.Sub(w.Now()) < TimeMin {
			return w.later(ctx, p, s)
		}
		report, err := w.step(ctx, p, s)
		if err == nil {
			s, err = w.rows().swapPiece(ctx, p, s, s.advanced(p, report, w.Now()))
		}
		if err != nil {
			return errors.Join(err, w.release(ctx, p, s, err))
		}
		w.Logger.InfoContext(ctx, "drift piece compared", "piece", p.String(), "down_to", s.cursor, "done", s.done(), "compared", report.Compared, "cost", report.Cost)
	}
	return nil
}

// step compares the next part of the piece.
func (w *Worker) step(ctx context.Context, p Piece, s state) (drift.Report, error) {
	window, rowsMax := s.step(p, w.StepRows)
	until := w.Now().Add(stepTime)
	if deadline, ok := ctx.Deadline(); ok {
		left := deadline.Sub(w.Now())
		if half := w.Now().Add(left / 2); half.Before(until) { // the other half is for what no row claimed
			until = half
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-releaseTime))
		defer cancel()
	}
	report, err := w.Job.CheckLast(ctx, window, s.known(), p.again(), func(rows int) bool { return rows >= rowsMax || !w.Now().Before(until) })
	if err == nil && !report.Window.To.Equal(window.To) {
		err = fmt.Errorf("hourly: the job compares only up to %s, not to %s: its grace period is longer", report.Window.To, window.To)
	}
	return report, err
}

// later gives the piece back and asks for the next run. What is lost of that, the planner does.
func (w *Worker) later(ctx context.Context, p Piece, s state) error {
	if _, err := w.rows().swapPiece(ctx, p, s, s.released()); err != nil {
		return err
	}
	return w.Send(ctx, []Piece{p})
}

// release gives a piece back after an error, so that the planner need not wait for the lease. It may fail: then the lease ends.
func (w *Worker) release(ctx context.Context, p Piece, s state, cause error) error {
	if errors.Is(cause, errLost) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	if _, err := w.rows().swapPiece(ctx, p, s, s.released()); err != nil && !errors.Is(err, errLost) {
		return err
	}
	return nil
}

func broken(field string, value any, rule string) error {
	return &idem.ConfigError{Field: "Config." + field, Value: value, Rule: rule}
}
