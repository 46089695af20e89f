package operator

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Change is who changes something, and why.
type Change struct {
	// Actor is who it is: 1..128 characters.
	Actor string
	// Reason is why: 1..500 characters, none of them a control character.
	Reason string
	// Seen is what the actor saw, as [Desk.Inspect] tells it. It is not demanded of what only asks or offers again.
	Seen Seen
	// DryRun says what would be done, judges what was seen, and changes nothing.
	DryRun bool
}

const (
	actorMax  = 128
	reasonMax = 500
)

// FieldActor is the InvalidError's field where nobody says who they are.
const FieldActor = "actor"

// InvalidError is a change that can't be tried.
type InvalidError struct {
	// Field names what was given wrongly, and Rule says what is admitted.
	Field, Rule string
}

// Error implements error.
func (e *InvalidError) Error() string { return fmt.Sprintf("operator: %s %s", e.Field, e.Rule) }

func (c Change) validate() error {
	for _, field := range []struct {
		name, value string
		most        int
	}{{FieldActor, c.Actor, actorMax}, {"reason", c.Reason, reasonMax}} {
		n := utf8.RuneCountInString(strings.TrimSpace(field.value))
		if n < 1 || n > field.most || !utf8.ValidString(field.value) || strings.ContainsFunc(field.value, unicode.IsControl) {
			return &InvalidError{field.name, fmt.Sprintf("must have 1..%d characters and no control character", field.most)}
		}
	}
	return nil
}

// Result is what came of a change.
type Result struct {
	// Action is what was to be done, and Subject the operation, message or queue that it was about.
	Action  string `json:"action"`
	Subject string `json:"subject"`
	// State is the audit entry's; EntryIntended for a dry run.
	State EntryState `json:"state"`
	// Outcome is what it was made, or what would have been done.
	Outcome string `json:"outcome"`
	// DryRun says that nothing was changed, because only a look was asked for.
	DryRun bool `json:"dry_run,omitempty"`
	// Unsettled says of a dry run that evidence can't be settled as it is: the change itself keeps it on the message, and is [ErrUnsettled].
	// Outcome says what becomes of the message, and why.
	Unsettled bool `json:"unsettled,omitempty"`
	// Entry is the id of the audit entry; none of a dry run.
	Entry string `json:"entry,omitempty"`
}

// UnloggedError: the change was made, or refused, and the audit log could not be told. Its entry stays intended.
type UnloggedError struct {
	// Entry is the id of the audit entry.
	Entry string
	// Cause is the audit log's error.
	Cause error
}

// Error implements error.
func (e *UnloggedError) Error() string {
	return fmt.Sprintf("operator: entry %s of the audit log stays intended: %v", e.Entry, e.Cause)
}

// Unwrap returns the cause.
func (e *UnloggedError) Unwrap() error { return e.Cause }

// AuditWithin is how long the write may take that tells the audit log of a change that has ended.
const AuditWithin = 10 * time.Second

// action is one change that was asked for.
type action struct {
	name, subject, tenant string
	// would is what a dry run says; rehearse, where it is not nil, says it once judge has refused nothing, and refuses what the change itself
	// would not admit. unsettled is as in [Result].
	would    string
	rehearse func(context.Context) (would string, unsettled bool, err error)
	// judge says whether what the actor saw is there; nil where that is not asked.
	judge func(context.Context) error
	act   func(context.Context) (outcome string, err error)
}

// carry writes the intent, acts, and writes what came of it.
func (c *Clerk) carry(ctx context.Context, ch Change, a action) (Result, error) {
	result := Result{Action: a.name, Subject: a.subject, DryRun: ch.DryRun}
	if err := ch.validate(); err != nil {
		return result, err
	}
	if ch.DryRun {
		result.State, result.Outcome = EntryIntended, a.would
		err := a.judged(ctx)
		if err == nil && a.rehearse != nil {
			result.Outcome, result.Unsettled, err = a.rehearse(ctx)
		}
		return result, err
	}
	if err := c.clockHolds(ctx); err != nil {
		return result, err
	}
	e, err := c.begin(ctx, ch, a)
	if err != nil {
		return result, err
	}
	result.Entry = e.ID
	cause := a.judged(ctx)
	if cause == nil {
		result.Outcome, cause = a.act(ctx)
	}
	if result.State = stateOf(cause); cause != nil {
		result.Outcome = cause.Error()
	}
	e.State, e.Outcome, e.DoneAt = result.State, result.Outcome, c.now()
	// What was done must be told, also if the caller has stopped waiting.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), AuditWithin)
	defer cancel()
	if err := c.cfg.Audit.End(last, e); err != nil {
		return result, errors.Join(cause, &UnloggedError{e.ID, err})
	}
	return result, cause
}

func (a action) judged(ctx context.Context) error {
	if a.judge == nil {
		return nil
	}
	return a.judge(ctx)
}

func (c *Clerk) begin(ctx context.Context, ch Change, a action) (Entry, error) {
	raw := make([]byte, 16)
	if _, err := io.ReadFull(c.cfg.Random, raw); err != nil {
		return Entry{}, fmt.Errorf("operator: read randomness: %w", err)
	}
	e := Entry{
		ID: "au_" + hex.EncodeToString(raw), At: c.now(), Actor: strings.TrimSpace(ch.Actor), Action: a.name, Subject: a.subject,
		Tenant: a.tenant, Reason: strings.TrimSpace(ch.Reason), Seen: string(ch.Seen), State: EntryIntended,
	}
	if err := c.cfg.Audit.Begin(ctx, e); err != nil {
		return e, fmt.Errorf("operator: the audit log can't be written, so nothing was changed: %w", err)
	}
	return e, nil
}

// ErrRefused is for a [Task] that refuses what it is asked for by a rule of the application: nothing was changed.
var ErrRefused = errors.New("operator: refused")

// Refused says whether an error means that the fence, or the contract, did not admit a change: nothing was changed. Errors that were
// joined are of several changes: each of them must mean it. An [UnloggedError] beside them says nothing of what was changed.
func Refused(err error) bool {
	for at := err; at != nil; at = errors.Unwrap(at) {
		if reflect.TypeOf(at) == joined {
			return allRefused(at.(interface{ Unwrap() []error }).Unwrap())
		}
	}
	return oneRefused(err)
}

// joined is the type of what errors.Join returns. What fmt.Errorf returns has several errors inside too, but says one thing.
var joined = reflect.TypeOf(errors.Join(ErrRefused))

func allRefused(all []error) bool {
	refused := false
	for _, err := range all {
		if reflect.TypeOf(err) == reflect.TypeFor[*UnloggedError]() {
			continue
		}
		if refused = Refused(err); !refused {
			return false
		}
	}
	return refused
}

func oneRefused(err error) bool {
	var (
		stale      *StaleError
		invalid    *InvalidError
		message    *storage.MessageConflictError
		record     *storage.RecordConflictError
		refusal    *outbox.RefusalError
		transition *idem.TransitionError
		bust       *idem.CacheBustError
		response   *idem.ResponseError
		several    *AmbiguousError
		clock      *ClockError
	)
	for _, target := range []any{&clock, &stale, &invalid, &message, &record, &refusal, &transition, &bust, &response, &several} {
		if errors.As(err, target) {
			return true
		}
	}
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrRefused) || errors.Is(err, ErrSealed) || errors.Is(err, ErrNotLater) || errors.Is(err, idem.ErrNotLive) || errors.Is(err, idem.ErrResponseTooLarge) || errors.Is(err, storage.ErrOperationID)
}

func stateOf(err error) EntryState {
	switch {
	case err == nil:
		return EntryDone
	case Refused(err):
		return EntryRefused
	}
	return EntryFailed
}
