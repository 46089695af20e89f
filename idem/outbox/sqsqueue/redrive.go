package sqsqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
)

const (
	lettersBound    = 10_000
	visibilityBound = 12 * time.Hour // SQS's
	// pollSeconds of waiting make SQS ask all of its servers, so that an empty answer is an empty queue.
	pollSeconds = 1
)

// RedriveOptions are those of one run of [Queue.Redrive]. The zero value of each field means its default.
type RedriveOptions struct {
	// DryRun reports what there is and changes nothing.
	DryRun bool
	// Max bounds how many letters are looked at. Default 100, at most 10,000.
	Max int
	// Visibility is how long others don't see the letters that a run has received; past it they may be dealt with twice,
	// which is harmless. What a run leaves is visible again when it returns. Default 5 min, whole seconds, at most 12 h.
	Visibility time.Duration
}

// RedriveReport says what became of each letter that a run has looked at.
type RedriveReport struct {
	// Letters are those that were received, in that order.
	Letters []Redriven `json:"letters"`
	// More says that Max ended the run, and not the end of the queue.
	More bool `json:"more"`
}

// String counts the letters by what became of them, such as "acknowledged: 1, redriven: 2", for a person and the audit log.
func (r RedriveReport) String() string {
	counts := map[LetterAction]int{}
	for _, l := range r.Letters {
		counts[l.Action]++
	}
	var words []string
	for _, action := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s: %d", action, counts[action]))
	}
	if r.More {
		words = append(words, "and there may be more")
	}
	if len(words) == 0 {
		return "there were no letters"
	}
	return strings.Join(words, ", ")
}

// Redrive empties the dead-letter queue as far as it can. Each letter is deleted only after what it is about is safe
// without it, so a run can die anywhere and be repeated, or run twice at once:
//   - the copy of a dead message is given to redrive, which decides by the message's row and returns nil once the message
//     needs no person any more: it was redriven, or was not dead; or [outbox.ErrMessageGone] where the message has expired.
//     again says that redrive returned nil for another letter of this message in this run. It must not redrive the message
//     then, and return an error if it is dead: a message that dies as soon as it is redriven would be redriven again and again;
//   - a further copy of a message whose redrive failed in this run is deleted, once the run has made sure that the first one
//     stays: a redrive that can't settle what the message keeps puts a copy of it into this very queue, and would be asked
//     for again and again;
//   - a wake-up is sent again: it changes nothing where nothing is due;
//   - records that a stream gave up are acknowledged: the sweep offers what they were about;
//   - a body that nobody knows is left.
//
// A letter's own error is in the report; the error is that of the queue or of ctx, with what was done until then. redrive may be
// nil with DryRun.
func (q *Queue) Redrive(ctx context.Context, opts RedriveOptions, redrive func(ctx context.Context, letter outbox.DeadLetter, again bool) error) (RedriveReport, error) {
	opts.Max, opts.Visibility = cmp.Or(opts.Max, 100), cmp.Or(opts.Visibility, 5*time.Minute)
	if err := opts.validate(redrive != nil); err != nil {
		return RedriveReport{}, err
	}
	r := &redriving{
		Queue: q, opts: opts, redrive: redrive, letters: []Redriven{}, seen: map[string]bool{}, failed: map[idem.MessageID]string{},
		done: map[idem.MessageID]bool{},
	}
	err := r.run(ctx)
	r.release(context.WithoutCancel(ctx))
	return RedriveReport{Letters: r.letters, More: len(r.letters) == opts.Max}, err
}

func (o RedriveOptions) validate(redrives bool) error {
	switch {
	case o.Max < 1 || o.Max > lettersBound:
		return &idem.ConfigError{Field: "RedriveOptions.Max", Value: o.Max, Rule: "must be 1.." + strconv.Itoa(lettersBound)}
	case o.Visibility < time.Second || o.Visibility > visibilityBound || o.Visibility%time.Second != 0:
		return &idem.ConfigError{Field: "RedriveOptions.Visibility", Value: o.Visibility, Rule: fmt.Sprintf("must be whole seconds, 1 s..%v", visibilityBound)}
	case !redrives && !o.DryRun:
		return &idem.ConfigError{Field: "redrive", Value: nil, Rule: "must be given, unless DryRun"}
	}
	return nil
}

// redriving is one run.
type redriving struct {
	*Queue
	opts    RedriveOptions
	redrive func(ctx context.Context, letter outbox.DeadLetter, again bool) error
	letters []Redriven
	seen    map[string]bool
	failed  map[idem.MessageID]string // whose redrive failed: the receipt handle of the letter that stays
	done    map[idem.MessageID]bool   // whose redrive returned nil
	left    []string                  // receipt handles of what stays in the queue
}

func (r *redriving) run(ctx context.Context) error {
	for len(r.letters) < r.opts.Max {
		received, err := r.receive(ctx, min(batchEntriesMax, r.opts.Max-len(r.letters)))
		if err != nil {
			return err
		}
		fresh := 0
		for _, l := range received {
			if r.seen[l.id] { // its visibility is over: the run takes longer than that
				r.left = append(r.left, l.receipt)
				continue
			}
			fresh, r.seen[l.id] = fresh+1, true
			result := r.letter(ctx, l)
			r.letters = append(r.letters, result)
			if result.Action == LetterLeft || result.Action == LetterFailed {
				r.left = append(r.left, l.receipt)
			}
		}
		if fresh == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("sqsqueue: redrive: %w", err)
		}
	}
	return nil
}

func (r *redriving) receive(ctx context.Context, most int) ([]letter, error) {
	out, err := r.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &r.deadURL, MaxNumberOfMessages: int32(most), WaitTimeSeconds: pollSeconds, VisibilityTimeout: int32(r.opts.Visibility / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameSentTimestamp, types.MessageSystemAttributeNameMessageGroupId,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("sqsqueue: receive: %w", err)
	}
	letters := make([]letter, len(out.Messages))
	for i, m := range out.Messages {
		letters[i] = readLetter(m)
	}
	return letters, nil
}

// letter deals with one letter, and deletes it when that succeeded.
func (r *redriving) letter(ctx context.Context, l letter) Redriven {
	if r.opts.DryRun {
		return l.redriven(LetterLeft, nil)
	}
	action, err := LetterRedriven, ctx.Err()
	switch {
	case err != nil:
	case l.kind == LetterUnknown:
		return l.redriven(LetterLeft, nil)
	case l.kind == LetterStreamFailure:
		action = LetterAcknowledged
	case l.kind == LetterWakeUp:
		err = r.send(ctx, r.wakeUpURL, l.group, wakeUp{l.dead.Message}, 0)
	case l.kind == LetterDeadMessage && r.failed[l.dead.Message] != "":
		if !r.holds(ctx, r.failed[l.dead.Message]) {
			return l.redriven(LetterLeft, nil)
		}
		action = LetterRepeated
	case l.kind == LetterDeadMessage:
		if action, err = r.dead(ctx, l); err != nil {
			r.failed[l.dead.Message] = l.receipt
		}
	}
	if err != nil {
		return l.redriven(LetterFailed, err)
	}
	_, err = r.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &r.deadURL, ReceiptHandle: &l.receipt})
	if err != nil {
		err = fmt.Errorf("sqsqueue: the action is done, but the dead letter could not be deleted: %w", err)
	}
	return l.redriven(action, err)
}

// dead deals with the copy of a dead message.
func (r *redriving) dead(ctx context.Context, l letter) (LetterAction, error) {
	id := l.dead.Message
	switch err := r.redrive(ctx, l.dead, r.done[id]); {
	case errors.Is(err, outbox.ErrMessageGone):
		return LetterGone, nil
	case err != nil:
		return LetterFailed, err
	}
	r.done[id] = true
	return LetterRedriven, nil
}

// holds says that the letter is still this run's, and holds it for as long again. Once its visibility is over, another run may have
// received it, taken it for a further copy of a letter of its own, and deleted it.
func (r *redriving) holds(ctx context.Context, receipt string) bool {
	_, err := r.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &r.deadURL, ReceiptHandle: &receipt, VisibilityTimeout: int32(r.opts.Visibility / time.Second),
	})
	return err == nil
}

// release makes visible again what stays in the queue. What it can't is visible when its time is over.
func (r *redriving) release(ctx context.Context) {
	for chunk := range slices.Chunk(r.left, batchEntriesMax) {
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(chunk))
		for i := range chunk {
			id := strconv.Itoa(i)
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: &id, ReceiptHandle: &chunk[i]}
		}
		_, _ = r.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &r.deadURL, Entries: entries})
	}
}
