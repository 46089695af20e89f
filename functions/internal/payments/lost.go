package payments

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/idem-go/idem-aws/idem"
	"github.com/idem-go/idem-aws/idem/canonical"
	"github.com/idem-go/idem-aws/idem/outbox"
	"github.com/idem-go/idem-aws/idem/storage"
)

// Shown is an object as the provider shows it: the evidence that a lost operation is made again from.
type Shown struct {
	ID          string         `json:"id"`
	Kind        string         `json:"object"`
	Status      Status         `json:"status"`
	Key         idem.MessageID `json:"key"`
	Amount      int64          `json:"amount"`
	Currency    string         `json:"currency"`
	Source      string         `json:"source"`
	Destination string         `json:"destination"`
	Reference   string         `json:"reference"`
	Charge      string         `json:"charge"`
	// Hold is what became of the hold that a screening placed; empty of anything else.
	Hold      string    `json:"hold"`
	CreatedAt time.Time `json:"created_at"`
}

// holdReleased is the Hold of a screening whose hold does not stand any more, by the application or by hand.
const holdReleased = "released"

// Told is what the provider does not know of an operation, and a person has to say.
type Told struct {
	// Tenant is whose operation it is. Account is what a payout was taken from; others have none.
	Tenant, Account string
	// Finish says that a payout of which only the screening was made is to be paid out now.
	Finish bool
	// EndReleased says that a payout that was not made, and whose hold was released, is to end so.
	EndReleased bool
}

// ByHandError is a lost operation that can't be made again from what is known: what a person has to do, and why. The codes are stable.
type ByHandError struct{ Code, Rule string }

// Error implements error.
func (e *ByHandError) Error() string { return e.Code + ": " + e.Rule }

// The codes of a [ByHandError].
const (
	CodeNotOurs         = "key_not_ours"
	CodeTenantUnknown   = "tenant_unknown"
	CodeAccountUnknown  = "account_unknown"
	CodeNoScreening     = "screening_missing"
	CodeOnlyScreened    = "only_screened"
	CodeHoldReleased    = "hold_released"
	CodeMadeTwice       = "made_twice"
	CodePaymentMissing  = "payment_missing"
	CodeNotLost         = "not_before_refuse_before"
	CodeFundsShort      = "funds_missing"
	CodeKeyUsedAgain    = "key_used_again"
	CodePartlyThere     = "partly_there"
	CodeDiffersFromSelf = "objects_differ"
	CodeNothingMade     = "nothing_made"
	CodeTenantDiffers   = "tenant_differs"
	CodeAccountDiffers  = "account_differs"
)

// byPosition are a lost operation's objects of one position in its chain.
func byPosition(objects []Shown, n int) []Shown {
	return slices.DeleteFunc(slices.Clone(objects), func(o Shown) bool {
		_, position, err := o.Key.Operation()
		return err != nil || position != n
	})
}

// Lost is an operation that the provider has objects of, and the tables have nothing of.
type Lost struct {
	Operation idem.OperationID
	// Kind is of the row that it made, and ID the row's.
	Kind EntryKind
	ID   string
	// First is the object of its first message, which says what the client asked for.
	First Shown
	// Released says that a payout was not made, and that the provider was asked to release its hold, or has released it. It is asked only
	// after the payout is known not to be made; a person who has the hold released by hand leaves no object under the payout's keys.
	Released bool
	// Screened says that a payout's destination has passed, and that nothing came of it yet: its hold stands.
	Screened bool
}

// Made tells which operation the provider's objects are of: all that it shows under the keys of one operation. It is pure, and returns a
// [*ByHandError] for what can't be made again whatever a person says.
func Made(objects []Shown) (Lost, error) {
	if len(objects) == 0 {
		return Lost{}, &ByHandError{CodeNotOurs, "there is no object"}
	}
	operation, _, err := objects[0].Key.Operation()
	if err != nil {
		return Lost{}, &ByHandError{CodeNotOurs, "it was not made under a key of this application: find out at the provider who asked for it"}
	}
	lost := Lost{Operation: operation}
	for n := 1; n <= 3; n++ {
		if len(byPosition(objects, n)) > 1 {
			return lost, &ByHandError{CodeMadeTwice, "the provider has several objects under one key: give back at the provider what was made too often, and write the rest down by hand"}
		}
	}
	first := byPosition(objects, 1)
	if len(first) == 0 {
		return lost, &ByHandError{CodeNoScreening, "what the first message made is not there, which says what the client asked for: look it up at the provider"}
	}
	lost.First = first[0]
	var prefix string
	switch strings.TrimPrefix(lost.First.Kind, legacyPrefix) {
	case "charge":
		lost.Kind, prefix = EntryPayment, paymentPrefix
	case "refund":
		lost.Kind, prefix = EntryRefund, refundPrefix
	case "screening":
		lost.Kind, prefix = EntryPayout, payoutPrefix
	default:
		return lost, &ByHandError{CodeNotOurs, fmt.Sprintf("an object %q is none that this application begins with", lost.First.Kind)}
	}
	lost.ID = entityID(prefix, operation)
	for _, o := range objects {
		if o.Amount != lost.First.Amount || o.Currency != lost.First.Currency || o.Destination != "" && o.Destination != lost.First.Destination {
			return lost, &ByHandError{CodeDiffersFromSelf, "its objects differ in amount, currency or destination: ask the provider which is true"}
		}
	}
	if lost.Kind != EntryPayment && lost.First.Reference != lost.ID {
		return lost, &ByHandError{CodeNotOurs, fmt.Sprintf("its reference is %q, and this application gives it %q", lost.First.Reference, lost.ID)}
	}
	unpaid := lost.Kind == EntryPayout && len(byPosition(objects, 2)) == 0
	lost.Released = unpaid && (len(byPosition(objects, 3)) > 0 || lost.First.Hold == holdReleased)
	lost.Screened = unpaid && !lost.Released && lost.First.Status == StatusSucceeded
	return lost, nil
}

// asked is the request of the client that began the operation, as far as it counts for its fingerprint. The path's wildcards are named.
type asked struct {
	operation, path string
	wildcards       []string
	body            map[string]any
}

// fingerprint is what the client's retry is compared with. Members that the provider was not sent are missing: an empty reference, which
// a client may have sent or not, counts as not sent.
func (a asked) fingerprint() (canonical.Fingerprint, error) {
	body, err := json.Marshal(a.body, json.Deterministic(true))
	if err != nil {
		return canonical.Fingerprint{}, err
	}
	f, err := canonical.New(canonical.Config{})
	if err != nil {
		return canonical.Fingerprint{}, err
	}
	return f.Sum(canonical.Input{
		Operation: a.operation, Method: http.MethodPost, Path: a.path, Wildcards: a.wildcards, MediaType: "application/json", Body: body,
		Selection: canonical.Selection{Path: canonical.PathWildcards},
	})
}

// Restorer makes lost operations again.
type Restorer struct {
	Store    storage.Store
	Messages outbox.Messages
	Ledger   Ledger
	// Charge is the provider's charge of an id, for refunds.
	Charge func(ctx context.Context, id string) (Shown, error)
	// Mint names owners and revisions.
	Mint storage.IDGenerator
	// Retention is how long the final record answers.
	Retention time.Duration
	// LostBefore is up to when data was lost, where the store does not say it any more, because the refusal that followed has ended. What
	// the store says counts. Default: nothing was lost.
	LostBefore time.Time
	Now        func() time.Time
	Pause      func(context.Context, time.Duration) error
}

// sweepGrace is for how long the sweep leaves a restored message to its stream record.
const sweepGrace = 15 * time.Second

// Judge says what [Restorer.Restore] would do now: a [*ByHandError] where a person has to do it, or has to say more. It changes nothing. objects
// are everything that the provider shows under the operation's keys.
func (r Restorer) Judge(ctx context.Context, operation idem.OperationID, objects []Shown, told Told) (would string, err error) {
	p, err := r.prepare(ctx, operation, objects, told)
	if err != nil {
		return "", err
	}
	return p.did, nil
}

// prepare is the transaction that makes the operation again: from its own record, or from its messages and its row, where a loss has torn one
// of its transactions, and from the provider's objects, where nothing is left of it.
func (r Restorer) prepare(ctx context.Context, operation idem.OperationID, objects []Shown, told Told) (p planned, err error) {
	p.did = Restored
	key, err := operation.RecordKey()
	if err != nil {
		p.Commit, err = r.fromObjects(ctx, objects, told)
		return p, err
	}
	stored, err := r.Store.Get(ctx, key)
	if err != nil {
		return p, fmt.Errorf("payments: read record: %w", err)
	}
	if stored == nil || stored.OperationID != operation && stored.KeyFree(r.Now()) {
		p.Commit, err = r.withoutRecord(ctx, operation, objects, told)
		return p, err
	}
	if stored.OperationID == operation {
		torn, last, err := r.torn(ctx, *stored)
		switch {
		case err != nil:
			return p, err
		case torn && last != nil:
			if p.Commit, err = r.fromEnded(ctx, *stored, *last, objects, told); p.rowAlone() {
				p.did = RowOfTornPutBack
			}
			return p, err
		case torn:
			p.Commit, err = r.fromRecord(ctx, *stored, objects, told)
			return p, err
		}
	}
	p.did = ThereAlready
	if _, err = r.there(ctx, operation, *stored, told); errors.Is(err, errRowMissing) {
		p.did = RowPutBack
		p.Commit, err = r.fromAnswer(ctx, *stored, objects, told)
	}
	return p, err
}

// lostBefore is up to when data was lost.
func (r Restorer) lostBefore(ctx context.Context) (time.Time, error) {
	before, err := r.Store.RefuseBefore(ctx)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("payments: read RefuseBefore: %w", err)
	case before.IsZero():
		return r.LostBefore, nil
	}
	return before, nil
}

// before refuses what was made after the instant up to which records are lost: it is not lost, and a message of it would not count as called.
func (r Restorer) before(ctx context.Context, at time.Time) error {
	before, err := r.lostBefore(ctx)
	switch {
	case err != nil:
		return err
	case !at.Before(before):
		return &ByHandError{CodeNotLost, fmt.Sprintf("it was made at %s, and records are lost up to %s only: the client may be sending it now, unless its log line idempotency.reserve.created is older than that", instant(at), instant(before))}
	}
	return nil
}

// fromObjects is the transaction that the client's request committed, with the provider's time for its own. The message counts as called:
// the worker asks the provider again only under the same key, and only while the provider recognises that, and looks it up otherwise. So
// what the provider has is what settles it.
func (r Restorer) fromObjects(ctx context.Context, objects []Shown, told Told) (storage.Commit, error) {
	lost, err := Made(objects)
	if err != nil {
		return storage.Commit{}, err
	}
	if told.Tenant == "" {
		return storage.Commit{}, &ByHandError{CodeTenantUnknown, "say whose it is: the log line idempotency.reserve.created with the operation's id names the tenant"}
	}
	at := lost.First.CreatedAt.UTC().Truncate(time.Millisecond)
	if err := r.before(ctx, at); err != nil {
		return storage.Commit{}, err
	}
	b, err := r.begun(ctx, lost, objects, told, at)
	if err != nil {
		return storage.Commit{}, err
	}
	return r.commit(lost.Operation, told.Tenant, at, b)
}

// begun is what the client's request committed.
func (r Restorer) begun(ctx context.Context, lost Lost, objects []Shown, told Told, at time.Time) (begun, error) {
	o, message := lost.First, lost.Operation.Message(1)
	switch lost.Kind {
	case EntryRefund:
		return r.refund(ctx, lost, told, at)
	case EntryPayout:
		if told.Account == "" {
			return begun{}, &ByHandError{CodeAccountUnknown, "say which account it was taken from: the provider does not know"}
		}
		if err := told.admits(lost, objects); err != nil {
			return begun{}, err
		}
		b, err := beginPayout(Payout{
			Tenant: told.Tenant, ID: lost.ID, Status: StatusPending, From: told.Account, Amount: o.Amount, Currency: o.Currency,
			Destination: o.Destination, CreatedAt: at, Message: message,
		})
		if err == nil {
			b.steps, err = lost.steps(b.payload)
		}
		return b, err
	case EntryPayment:
	}
	return beginPayment(Payment{
		Tenant: told.Tenant, ID: lost.ID, Status: StatusPending, Amount: o.Amount, Currency: o.Currency, Source: o.Source, Reference: o.Reference,
		CreatedAt: at, Message: message,
	})
}

// asked is the client's request, by what it made.
func (b begun) asked() asked {
	switch v := b.view; {
	case v.Refund != nil:
		id := v.Refund.Payment
		return asked{operationRefunds, "/v1/payments/" + id + "/refunds", []string{id}, map[string]any{"amount": v.Refund.Amount}}
	case v.Payout != nil:
		p := v.Payout
		return asked{operationPayouts, "/v1/payouts", []string{}, map[string]any{
			"from": p.From, "amount": p.Amount, "currency": p.Currency, "destination": p.Destination,
		}}
	}
	p := b.view.Payment
	body := map[string]any{"amount": p.Amount, "currency": p.Currency, "source": p.Source}
	if p.Reference != "" {
		body["reference"] = p.Reference
	}
	return asked{operationPayments, "/v1/payments", []string{}, body}
}

// admits refuses a payout that was not paid out, unless a person has said what becomes of it: one that was only screened is paid out now,
// and one whose hold was released ends as not made.
func (t Told) admits(lost Lost, objects []Shown) error {
	switch {
	case lost.Released && !t.EndReleased:
		return &ByHandError{CodeHoldReleased, "the payout was not made and its hold was released: no money moved. missing restore --end-released ends it so, and its client is told"}
	case lost.Released, lost.Kind != EntryPayout, lost.First.Status == StatusDeclined, len(byPosition(objects, 2)) > 0, t.Finish:
		return nil
	}
	return &ByHandError{CodeOnlyScreened, "only its screening was made: made again it is paid out now (--finish); otherwise have the provider release the hold, and end it (--end-released)"}
}

// refund finds the payment by its charge: the payment's row must be there, and have succeeded.
func (r Restorer) refund(ctx context.Context, lost Lost, told Told, at time.Time) (begun, error) {
	o := lost.First
	missing := &ByHandError{CodePaymentMissing, fmt.Sprintf("the payment of charge %s is not there, or has not succeeded yet: make that one again first, and come back", o.Charge)}
	charge, err := r.Charge(ctx, o.Charge)
	if err != nil {
		return begun{}, err
	}
	operation, _, err := charge.Key.Operation()
	if err != nil {
		return begun{}, missing
	}
	paid, err := r.Ledger.Payment(ctx, told.Tenant, entityID(paymentPrefix, operation))
	switch {
	case err != nil:
		return begun{}, err
	case paid == nil || paid.Status != StatusSucceeded || paid.ProviderReference != o.Charge:
		return begun{}, missing
	}
	return beginRefund(Refund{
		Tenant: told.Tenant, ID: lost.ID, Payment: paid.ID, Status: StatusPending, Amount: o.Amount, Currency: o.Currency, CreatedAt: at,
		Message: lost.Operation.Message(1),
	}, *paid)
}

// commit is the transaction, whose fence demands that the key is free and the rows are absent.
func (r Restorer) commit(operation idem.OperationID, tenant string, at time.Time, b begun) (storage.Commit, error) {
	request := b.asked()
	fingerprint, err := request.fingerprint()
	if err != nil {
		return storage.Commit{}, err
	}
	response, err := accept(operation, b.view)
	if err != nil {
		return storage.Commit{}, err
	}
	key, err := operation.RecordKey()
	if err != nil {
		return storage.Commit{}, err
	}
	owner, err := r.Mint.Owner()
	if err != nil {
		return storage.Commit{}, err
	}
	revision, err := r.Mint.Revision()
	if err != nil {
		return storage.Commit{}, err
	}
	return r.with(storage.Record{
		Key: key, State: storage.StatePending, OperationID: operation, Epoch: 1, Owner: owner, Revision: revision, Tenant: tenant,
		Operation: request.operation, Kind: storage.KindDeferred, Fingerprint: fingerprint, Response: response, CreatedAt: at,
		Retention: r.Retention, Attempts: 1, SchemaVersion: storage.SchemaVersion,
	}, b, nil), nil
}

// with is the transaction of a pending record, its messages and its rows. All are inserted only where they are absent.
func (r Restorer) with(record storage.Record, b begun, fence *storage.Fence) storage.Commit {
	now := r.Now().UTC().Truncate(time.Millisecond)
	return storage.Commit{Record: record, Fence: fence, Messages: b.chain(record, now), Now: now, Writes: b.writes, Token: string(record.Revision)}
}

// sendMax is how often the transaction is sent, always the same bytes under the same token.
const sendMax = 4
