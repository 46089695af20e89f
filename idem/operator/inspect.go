package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// ErrNotFound: there is neither a record nor a message of that name, nor what else a [Task] is about. They may have expired, and been
// removed.
var ErrNotFound = errors.New("operator: nothing of that name is stored")

// Story is everything that is known of an operation: no stored body, no payload, no key.
type Story struct {
	// Operation is its id.
	Operation idem.OperationID `json:"operation"`
	// Record is nil where it is not there: native TTL has removed it, or a loss of data.
	Record *RecordView `json:"record"`
	// RecordMayBeLost says that the record is not there, and that the operation may be of a time whose data may have been lost: nobody
	// knows whether it has ended.
	RecordMayBeLost bool `json:"record_may_be_lost,omitempty"`
	// Messages are those of its chain that are there, in order: native TTL removes what has ended, one by one.
	Messages []MessageView `json:"messages"`
	// Application is what the application and its provider know.
	Application any `json:"application,omitempty"`
	// ApplicationError is why Application is not there, or why something is missing in it; empty where nothing is.
	ApplicationError string `json:"application_error,omitempty"`
	// Audit is what operators have changed about it, newest first, of the last year.
	Audit []Entry `json:"audit"`
	// Next says what may be done, or what is being waited for. Its times are in RFC 3339; [Story.Advice] writes them otherwise.
	Next []string `json:"next"`
	// Steps are the same for a program.
	Steps []Step `json:"-"`
}

// RecordView is a record as a person sees it.
type RecordView struct {
	// State, Tenant, Operation and Kind are the record's.
	State     storage.State `json:"state"`
	Tenant    string        `json:"tenant"`
	Operation string        `json:"operation"`
	Kind      idem.Kind     `json:"kind"`
	// Epoch counts take-overs within this incarnation, from 1.
	Epoch int64 `json:"epoch"`
	// Executions counts how often the handler was run for this incarnation.
	Executions int `json:"executions"`
	// ResponseStatus is the HTTP status of the stored response; 0 where none is stored.
	ResponseStatus int `json:"response_status,omitempty"`
	// LastError is why the record was freed or parked; empty where it never was.
	LastError string `json:"last_error,omitempty"`
	// Observed says that a policy in observe mode made it: other requests with its key may have been executed beside it.
	Observed bool `json:"observed,omitempty"`
	// OnlyObserved says that it has not ended, and that a policy in observe mode made it: another request may have been executed
	// beside it, so that an instance that enforces answers that its outcome is unknown.
	OnlyObserved bool `json:"only_observed,omitempty"`
	// Unreadable is why this release can't judge the record, because another one wrote it; empty where it can.
	Unreadable string `json:"unreadable,omitempty"`
	// CreatedAt is when the key was reserved.
	CreatedAt time.Time `json:"created_at"`
	// LeaseUntil is when its latest lease ends, or has ended; zero where it never had one.
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	// DoneAt is when the operation ended; zero until then.
	DoneAt time.Time `json:"done_at,omitzero"`
	// ExpiresAt is until when the record answers; zero while that is not known.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// LookAt is when the sweep or the reconciler looks at it next; zero where neither has to.
	LookAt time.Time `json:"look_at,omitzero"`
	// TraceID is the trace of the request that began it, in hex as log lines carry it; empty where nobody traced it.
	TraceID string `json:"trace_id,omitempty"`
	// KeyHash is the hash of the scope that log lines carry.
	KeyHash string `json:"key_hash"`
	// Seen is what a change of this record takes as [Change].Seen.
	Seen Seen `json:"seen"`
}

func (d *Desk) viewRecord(r storage.Record, lost time.Time) *RecordView {
	_, look, _ := r.Queue()
	return &RecordView{
		Observed: r.Observed, OnlyObserved: d.onlyObserved(r), Unreadable: inShort(ofRecord(r)),
		State: r.State, Tenant: r.Tenant, Operation: r.Operation, Kind: r.Kind, Epoch: r.Epoch, Executions: r.Attempts,
		ResponseStatus: r.Response.Status, LastError: r.LastError, CreatedAt: r.CreatedAt, LeaseUntil: r.LeaseUntil,
		DoneAt: r.DoneAt, ExpiresAt: r.ExpiresAt, LookAt: look, TraceID: fmt.Sprintf("%x", r.Trace.TraceID()), KeyHash: string(r.Key), Seen: SeenRecord(r, lost),
	}
}

func (d *Desk) onlyObserved(r storage.Record) bool {
	return r.OnlyObserved(d.now(), d.cfg.Engine.ClockSkew())
}

// MessageView is a message as a person sees it.
type MessageView struct {
	// ID is the message's id, which is also its key at the provider.
	ID idem.MessageID `json:"id"`
	// State, Tenant and Topic are the message's.
	State  storage.MessageState `json:"state"`
	Tenant string               `json:"tenant"`
	Topic  string               `json:"topic"`
	// Epoch grows with each claim, and when an operator starts the message again.
	Epoch int64 `json:"epoch"`
	// UnansweredCalls counts the calls at the provider that ended without a definite answer, since the message was last redriven. One
	// that was delivered or declined is not counted, nor is a call whose worker died: that is in DiedClaims.
	UnansweredCalls int `json:"unanswered_calls"`
	// CallsMax is how many such calls its topic allows before the message is dead; the same bound holds for DiedClaims by
	// itself. 0 where this release does not know the topic.
	CallsMax int `json:"calls_max,omitempty"`
	// LastOutcome is what the last call or question came to; empty where there was none.
	LastOutcome string `json:"last_outcome,omitempty"`
	// SettledBy is who ended it: a worker, an inline delivery, the sweep, the reconciler, a webhook or an operator. Empty until
	// then, and where an earlier release ended it.
	SettledBy storage.Settler `json:"settled_by,omitempty"`
	// Reference is the provider's name for what it made; empty where none is known.
	Reference string `json:"reference,omitempty"`
	// Kept are the definite answers that it keeps because they could not be settled: "delivered", "declined".
	Kept []string `json:"kept,omitempty"`
	// DiedClaims counts the claims that expired since the message was last redriven: their worker stopped without a result, and may have called.
	DiedClaims int `json:"died_claims,omitempty"`
	// Undoes says that the message undoes an earlier one of its chain.
	Undoes bool `json:"undoes,omitempty"`
	// Sealed says that payload and evidence cannot be decrypted.
	Sealed bool `json:"sealed,omitempty"`
	// Unreadable is why this release can't judge the message, because another one wrote it; empty where it can.
	Unreadable string `json:"unreadable,omitempty"`

	// CreatedAt is when the message was committed.
	CreatedAt time.Time `json:"created_at"`
	// FirstClaimedAt is when a worker first had it.
	FirstClaimedAt time.Time `json:"first_claimed_at,omitzero"`
	// OpenSince is when the first call was allowed whose outcome is not known.
	OpenSince time.Time `json:"open_since,omitzero"`
	// ClearedAt is when the provider was last asked, and it was proof that it had nothing.
	ClearedAt time.Time `json:"cleared_at,omitzero"`
	// LeaseUntil is when its latest claim ends, or has ended; zero where it was never claimed.
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	// NextAttemptAt is when the next call is due; zero where none was ever put off.
	NextAttemptAt time.Time `json:"next_attempt_at,omitzero"`
	// LookAt is when the sweep looks at it next, or of one that is unknown the reconciler; zero where neither has to.
	LookAt time.Time `json:"look_at,omitzero"`
	// RedrivenAt is when an operator last started it again, or the one before it in a chain that was restored; zero where nobody did.
	RedrivenAt time.Time `json:"redriven_at,omitzero"`
	// DoneAt is when it ended; zero until then.
	DoneAt time.Time `json:"done_at,omitzero"`
	// Seen is what a change of this message takes as [Change].Seen.
	Seen Seen `json:"seen"`
}

func (d *Desk) viewMessage(m storage.Message, lost time.Time) MessageView {
	rules, _ := d.cfg.Topics.Protocol(m.Topic) // an unknown topic has none
	look := m.SweepAt
	if m.State.Final() || m.State == storage.MessageDead { // a dead one is looked at to remind an operator
		look = time.Time{}
	}
	return MessageView{
		ID: m.ID, State: m.State, Tenant: m.Tenant, Topic: m.Topic, Epoch: m.Epoch, UnansweredCalls: m.Attempts, CallsMax: int(rules.AttemptsMax),
		LastOutcome: m.LastOutcome, SettledBy: m.SettledBy,
		Reference: m.Reference, Kept: keptBy(m), DiedClaims: m.Died, Undoes: m.Undoes, Sealed: m.Sealed, Unreadable: inShort(ofMessage(m)), CreatedAt: m.CreatedAt,
		FirstClaimedAt: m.FirstClaimedAt, OpenSince: m.OpenSince, ClearedAt: m.ClearedAt,
		LeaseUntil: m.LeaseUntil, NextAttemptAt: m.NextAttemptAt, LookAt: look, RedrivenAt: m.RedrivenAt, DoneAt: m.DoneAt, Seen: SeenMessage(m, lost),
	}
}

func keptBy(m storage.Message) (kept []string) {
	if m.EvidenceRefused {
		return nil
	}
	if m.KeptDelivered != nil {
		kept = append(kept, string(storage.MessageDelivered))
	}
	if m.KeptDeclined != nil {
		kept = append(kept, string(storage.MessageDeclined))
	}
	return kept
}

// Inspect tells the story of an operation, by its id or that of one of its messages; by a scope, see
// [Desk.InspectScope]. [ErrNotFound] where nothing is left of it.
func (d *Desk) Inspect(ctx context.Context, id string) (Story, error) {
	return d.InspectOf(ctx, "", id)
}

// InspectOf is [Desk.Inspect] of an operation of which somebody knows whose it is, such as the application by what the operation has made.
// It tells what the application knows also where record and messages are all removed.
func (d *Desk) InspectOf(ctx context.Context, tenant, id string) (Story, error) {
	operation, asked := idem.OperationID(id), 0
	if of, n, err := idem.MessageID(id).Operation(); err == nil {
		operation, asked = of, n
	}
	loss, err := d.Loss(ctx)
	if err != nil {
		return Story{}, err
	}
	r, err := d.record(ctx, operation)
	if err != nil {
		return Story{}, err
	}
	return d.story(ctx, tenant, operation, asked, r, loss)
}

// InspectScope is [Desk.Inspect] for the present incarnation of a scope. The engine must have the Config.ScopeSecret of
// those that execute; with another one it returns [idem.ErrScopeSecret], inside an [*idem.UnavailableError].
func (d *Desk) InspectScope(ctx context.Context, scope idem.Scope) (Story, error) {
	key, err := d.cfg.Engine.RecordKey(ctx, scope)
	if err != nil {
		return Story{}, err
	}
	loss, err := d.Loss(ctx)
	if err != nil {
		return Story{}, err
	}
	r, err := d.cfg.Store.Get(ctx, key)
	switch {
	case err != nil:
		return Story{}, fmt.Errorf("operator: read record: %w", err)
	case r == nil:
		return Story{}, ErrNotFound
	}
	return d.story(ctx, r.Tenant, r.OperationID, 0, r, loss)
}

// story is told of an operation of which there is a record or a message, or whose tenant is known. The loss was read before the record.
func (d *Desk) story(ctx context.Context, tenant string, id idem.OperationID, asked int, r *storage.Record, loss Loss) (Story, error) {
	s, known := Story{Operation: id, Messages: []MessageView{}}, loss.Instant()
	messages, err := d.chain(ctx, id, asked, r)
	if err == nil && r != nil && torn(*r, messages) { // it may just have ended, or gone on: what was read before it is read again
		if r, err = d.record(ctx, id); err == nil {
			messages, err = d.chain(ctx, id, asked, r)
		}
	}
	if err != nil {
		return s, err
	}
	begun := d.now()
	if r != nil {
		s.Record, tenant, begun = d.viewRecord(*r, known), r.Tenant, r.CreatedAt
	}
	for _, m := range messages {
		s.Messages, tenant = append(s.Messages, d.viewMessage(m, known)), m.Tenant
		if m.CreatedAt.Before(begun) {
			begun = m.CreatedAt
		}
	}
	if tenant == "" {
		return s, ErrNotFound
	}
	if r == nil && len(messages) == 0 { // nothing says when it began
		begun = time.Time{}
	}
	if s.Audit, err = d.about(ctx, id, begun); err != nil {
		return s, err
	}
	lost := d.upTo(loss)
	s.RecordMayBeLost = r == nil && begun.Before(lost)
	s.Steps = d.next(id, r, messages, lost, s.RecordMayBeLost)
	s.Next = s.Advice(rfc3339)
	if d.cfg.Application != nil {
		s.Application, err = d.cfg.Application(ctx, tenant, id, s.Messages)
		switch {
		case err != nil && r == nil && len(messages) == 0: // nothing else is known
			return s, fmt.Errorf("operator: ask the application: %w", err)
		case err != nil: // the rest of the story is worth telling
			s.ApplicationError = err.Error()
		}
	}
	return s, nil
}

// about is what the audit log has of an operation and its messages, since it was begun by a clock that may be behind. Where nobody knows
// when that was, it is what the log has of the last year: a time before the clock's reach would wrap around.
func (d *Desk) about(ctx context.Context, id idem.OperationID, begun time.Time) ([]Entry, error) {
	since := SinceMax
	if !begun.IsZero() {
		since = min(max(d.now().Sub(begun)+time.Minute, time.Minute), SinceMax)
	}
	return d.Entries(ctx, since, string(id), ListMax)
}

// chain reads the messages of an operation that are there, in order. They are numbered without a gap; native TTL makes gaps once the
// operation has ended, and leaves what waits for a person; a loss of data makes gaps in what has not ended. The message with the number that
// was asked for is always looked for.
func (d *Desk) chain(ctx context.Context, id idem.OperationID, asked int, r *storage.Record) ([]storage.Message, error) {
	var all []storage.Message
	for n := 1; ; n++ {
		m, err := d.cfg.Store.Message(ctx, id.Message(n))
		if err != nil {
			return nil, fmt.Errorf("operator: read message: %w", err)
		}
		if m == nil {
			rest, err := d.left(ctx, id, n+1, max(asked, d.lastNumber(r, all)))
			return append(all, rest...), err
		}
		all = append(all, *m)
	}
}

// lastNumber is the highest number that a message beyond the first gap may have; 0 where none is there.
func (d *Desk) lastNumber(r *storage.Record, before []storage.Message) int {
	if r != nil && torn(*r, before) { // a loss makes gaps, too
		return outbox.ChainMax
	}
	// A message goes a retention and a day after its end, however long its record answers: that may have been extended.
	if r != nil && (!r.State.Final() || d.now().Before(r.CreatedAt.Add(r.Retention))) {
		return 0
	}
	if r != nil && r.Kind == idem.KindDeferred || len(before) > 0 && !before[0].Detached {
		return outbox.ChainMax
	}
	return math.MaxInt
}

// readAtOnce is how many messages are looked for at once where most are not there.
const readAtOnce = 20

// left reads those of the messages from one number to another that are there, in order.
func (d *Desk) left(ctx context.Context, id idem.OperationID, from, to int) ([]storage.Message, error) {
	var ids []idem.MessageID
	for n := from; n <= to; n++ {
		next := id.Message(n)
		if _, _, err := next.Operation(); err != nil { // no message has a higher number
			break
		}
		ids = append(ids, next)
	}
	var all []storage.Message
	for some := range slices.Chunk(ids, readAtOnce) {
		found, errs := make([]*storage.Message, len(some)), make([]error, len(some))
		var group sync.WaitGroup
		for i, next := range some {
			group.Go(func() { found[i], errs[i] = d.cfg.Store.Message(ctx, next) })
		}
		group.Wait()
		if err := cmp.Or(errs...); err != nil {
			return nil, fmt.Errorf("operator: read message: %w", err)
		}
		for _, m := range found {
			if m != nil {
				all = append(all, *m)
			}
		}
	}
	return all, nil
}
