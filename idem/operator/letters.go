package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// RedriveLetters goes through the dead-letter queue as one change, with an entry of its own in the audit log: most letters are of no message
// that is redriven, and are deleted all the same. through deals with the letters, each copy of a dead message by [Desk.RedriveLetter], and says
// in a word or two what came of it. It is not called in a dry run, nor before the entry stands.
func (d *Desk) RedriveLetters(ctx context.Context, ch Change, through func(context.Context) (outcome string, err error)) (Result, error) {
	return d.carry(ctx, ch, action{name: "redrive letters", subject: "dead letters", would: "deal with the dead letters, and delete those that are dealt with", act: through})
}

// RedriveLetter is what a copy in the dead-letter queue asks for: the message is redriven as it stands, and one that is not dead any more
// needs nothing. again says that another letter of the message was dealt with in the same run: the message is not redriven then, and one that
// is dead is [ErrRefused]. One that is not there is [outbox.ErrMessageGone]. Where data may have been lost it is refused: the message may
// be, and its letter names it. A message of another release is an [*outbox.UnreadableError]: its letter stays.
func (d *Desk) RedriveLetter(ctx context.Context, letter outbox.DeadLetter, again bool, ch Change) error {
	known, err := d.known(ctx)
	if err != nil {
		return err
	}
	m, err := d.cfg.Store.Message(ctx, letter.Message)
	switch {
	case err != nil:
		return fmt.Errorf("operator: read message: %w", err)
	case m == nil:
		return d.gone(ctx)
	case ofMessage(*m) != nil: // its letter stays for the release that wrote it
		return ofMessage(*m)
	case m.State != storage.MessageDead:
		return nil
	case again:
		return fmt.Errorf("%w: its message was dealt with in this run, and is dead again: look at the message", ErrRefused)
	}
	ch.Seen = SeenMessage(*m, known)
	_, err = d.Redrive(ctx, letter.Message, ch)
	return err
}

// gone is what the letter of a message that is not there comes to.
func (d *Desk) gone(ctx context.Context) error {
	lost, err := d.lostBefore(ctx)
	switch {
	case err != nil:
		return err
	case lost.IsZero():
		return outbox.ErrMessageGone
	}
	return fmt.Errorf("%w: its message is not there, and data from before %s may have been lost: find out what became of it", ErrRefused, lost.Format(time.RFC3339))
}
