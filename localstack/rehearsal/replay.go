package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// replayed is what comes of sending an answered request again.
type replayed int

const (
	// replaySame is the first answer, status and body.
	replaySame replayed = iota
	// replayUnreadable is 503 from a release that can't read the row.
	replayUnreadable
	// replayLater is no answer yet: the request is sent again.
	replayLater
	// replayWrong is another answer.
	replayWrong
)

// judge compares an answer to a request that was sent again with its first final one. Readable says that the release can read its row: one
// that can't may answer 503, and nothing else that differs.
func judge(s *story, a answer, readable bool) replayed {
	switch {
	case s.differs(a) == "":
		return replaySame
	case a.refused():
		return replayWrong
	case !readable && a.status == http.StatusServiceUnavailable:
		return replayUnreadable
	case a.passing():
		return replayLater
	}
	return replayWrong
}

// replay sends each request that was ever answered again, as resend says, and keeps the rows that are there, so that one that is lost
// later is missed.
func (r *run) replay(ctx context.Context, readable bool) error {
	return errors.Join(r.resend(ctx, readable), r.keepRows(ctx))
}

// answered are the requests that have had a final answer.
func answered(stories []*story) (all []*story) {
	for _, s := range stories {
		if s.first != nil {
			all = append(all, s)
		}
	}
	return all
}

// resend sends each request that was ever answered again, demands the first answer, status and body, and counts those that have it.
func (r *run) resend(ctx context.Context, readable bool) error {
	open := answered(r.stories)
	if len(open) == 0 {
		return errors.New("no request has an answer that could be replayed")
	}
	all, same, unreadable := len(open), 0, 0
	var wrong []string
	for deadline := time.Now().Add(r.patience()); ; {
		answers := r.ask(ctx, open)
		var later []*story
		for n, s := range open {
			s.wasRefused = s.wasRefused || answers[n].refused()
			switch judge(s, answers[n], readable) {
			case replaySame:
				same++
			case replayUnreadable:
				unreadable++
			case replayLater:
				later = append(later, s)
			case replayWrong:
				wrong = append(wrong, s.differs(answers[n]))
			}
		}
		if open = later; len(open) == 0 {
			break
		}
		if time.Now().After(deadline) {
			wrong = append(wrong, fmt.Sprintf("%d answered requests are not answered again within %s, %s is one", len(open), r.patience(), open[0].intent))
			break
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
	r.money.Same += same
	r.Out.Line("           %d answered requests are sent again: %d are told the same, %d are of rows that can't be read", all, same, unreadable)
	if wrong != nil {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// ask sends requests again, and returns what each is told.
func (r *run) ask(ctx context.Context, stories []*story) []answer {
	answers := make([]answer, len(stories))
	var clients errgroup.Group
	clients.SetLimit(retriesMax)
	for n, s := range stories {
		clients.Go(func() error {
			answers[n] = r.send(ctx, s)
			return nil
		})
	}
	_ = clients.Wait() // a request without an answer is no error
	return answers
}

// keepRows adds the rows that are there to those that must be there at the end.
func (r *run) keepRows(ctx context.Context) error {
	rows, err := r.payments(ctx)
	if err != nil {
		return err
	}
	r.rows = union(r.rows, rows)
	return nil
}

// union adds the rows of intents that are not among the first ones.
func union(first, more []row) []row {
	all := slices.Clone(first)
	for _, w := range more {
		if !contains(all, w.Intent) {
			all = append(all, w)
		}
	}
	return all
}

// lost is how many intents had a row, and have none.
func lost(before, now []row) (n int) {
	for _, was := range before {
		if !contains(now, was.Intent) {
			n++
		}
	}
	return n
}

// answeredTheSame demands that requests which were sent again are told what they were told first, and counts them.
func (r *run) answeredTheSame(stories []*story) error {
	var wrong []string
	for _, s := range stories {
		if d := s.differs(s.answer); d != "" {
			wrong = append(wrong, d)
			continue
		}
		r.money.Same++
	}
	if wrong != nil {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// tally counts the requests that have their final answers, and those that were refused: at the end where records are lost, and at any time
// where none are.
func (r *run) tally() {
	r.money.Refused, r.money.Final = 0, 0
	for _, s := range r.stories {
		if s.refused() || !r.loses && s.wasRefused {
			r.money.Refused++
		}
		if s.final() {
			r.money.Final++
		}
	}
}

// allFinal demands that each request has its final answer.
func (m Money) allFinal() error {
	if m.Final != m.Requests {
		return fmt.Errorf("%d of %d requests have their final answers", m.Final, m.Requests)
	}
	return nil
}
