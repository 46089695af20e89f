package payments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Collections are the collecting accounts, and what waits for their balances.
type Collections interface {
	// Collecting lists the collecting accounts of all tenants. With an error it lists those that could be read.
	Collecting(ctx context.Context) ([]Account, error)
	// Incoming is [Ledger]'s, with [ErrUnfoldable] too.
	Incoming(ctx context.Context, a Account, partition, limit int) ([]Transfer, error)
	// Fold adds at most [FoldMax] incoming transfers to the balance and marks them, all at once or not at all. It is an error where
	// one of them does not wait any more.
	Fold(ctx context.Context, a Account, transfers []Transfer, at time.Time) error
}

// Folder folds incoming transfers into the balances of collecting accounts. It keeps nothing: what is folded waits no more, so a run
// goes on where the last one ended, however that ended, and two runs at once fold nothing twice.
type Folder struct {
	Collections Collections
	// RefuseBefore says up to when data may have been lost, as [storage.Loss] does.
	RefuseBefore func(context.Context) (time.Time, error)
	// Now is the clock. Pause waits, or returns the context's error.
	Now   func() time.Time
	Pause func(context.Context, time.Duration) error
}

// Folded is what a run has done.
type Folded struct {
	// Accounts are those that collect, Transfers what was folded into them.
	Accounts  int `json:"accounts"`
	Transfers int `json:"transfers"`
	// Left says that something may wait still: the run's time was over, a fold has failed, or folding is stopped.
	Left bool `json:"left"`
}

const (
	// foldsAtOnce is how many accounts are folded side by side.
	foldsAtOnce = 8
	// foldRounds bounds a run: so many transactions for each partition.
	foldRounds = 1000
	// foldTries is how often a partition is tried in a run that a debit or another run comes in the way of.
	foldTries, foldPause = 5, 100 * time.Millisecond
	// foldGap is between two folds of an account. A fold has the balance in its transaction, as each debit has: without a gap one
	// would be under way all the time.
	foldGap = 20 * time.Millisecond
	// foldReserve is kept of the run's time for what comes after folding: to find out what is late, for most of it, and to answer.
	foldReserve, lateReserve = 2 * time.Second, 500 * time.Millisecond
	// foldLate is for how long a transfer may wait.
	foldLate = 15 * time.Minute
)

// errFoldLate: the runs of a quarter of an hour were not enough, or have failed.
var errFoldLate = errors.New("payments: folding is behind")

// ErrFoldHeld: a restored table may hold a part of a fold, which would create or lose money.
var ErrFoldHeld = errors.New("payments: folding is stopped because data was lost: run idemctl account compare")

// Run folds what waits, and stops while there is time to answer. One account's trouble does not keep the others from being folded,
// nor does a transfer that can't be folded. Both are errors, and so is it that a transfer is left that has waited for a quarter of an
// hour.
func (f Folder) Run(ctx context.Context) (Folded, error) {
	folding, cancel := before(ctx, foldReserve)
	defer cancel()
	accounts, unread := f.Collections.Collecting(folding)
	did := Folded{Accounts: len(accounts)}
	if len(accounts) == 0 {
		return did, unread
	}
	lost, err := f.RefuseBefore(folding)
	if err != nil { // nobody knows whether anything was lost
		did.Left = true
		return did, errors.Join(unread, fmt.Errorf("payments: fold: %w", err))
	}
	// Where time does not suffice for all, each minute begins with another one.
	first := int(f.Now().Unix()/60) % len(accounts)
	accounts = append(slices.Clone(accounts[first:]), accounts[:first]...)
	each, failed := make([]Folded, len(accounts)), make([]error, len(accounts))
	var group errgroup.Group
	group.SetLimit(foldsAtOnce)
	for i, a := range accounts {
		if lost.After(a.ComparedTo) {
			each[i].Left, failed[i] = true, fmt.Errorf("%w: %s of %s", ErrFoldHeld, a.ID, a.Tenant)
			continue
		}
		group.Go(func() error {
			run := accountRun{Folder: f, account: a, size: FoldMax, failed: make([]error, a.Partitions)}
			open := run.fold(folding)
			run.did.Left = run.did.Left || len(open) > 0
			each[i], failed[i] = run.did, errors.Join(append(run.failed, f.late(ctx, a, open))...)
			return nil
		})
	}
	_ = group.Wait() // the errors are in failed
	for _, one := range each {
		did.Transfers, did.Left = did.Transfers+one.Transfers, did.Left || one.Left
	}
	return did, errors.Join(append(failed, unread)...)
}

// before is a context that ends so long before the given one does.
func before(ctx context.Context, reserve time.Duration) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, deadline.Add(-reserve))
	}
	return ctx, func() {}
}

// accountRun is the folding of one account in a run.
type accountRun struct {
	Folder
	account Account
	// size is how many transfers the next transaction folds at most: a shorter one is sooner over, and less often in conflict.
	size int
	did  Folded
	// failed is the last error of each partition.
	failed []error
}

// fold folds a page of each partition in turn, so that none waits for another one to be empty. It returns the partitions that are
// left because the time or the rounds are over, or because a partition's tries have failed.
func (r *accountRun) fold(ctx context.Context) (left []int) {
	open := make([]int, r.account.Partitions)
	for i := range open {
		open[i] = i + 1
	}
	for round := 0; len(open) > 0 && round < foldRounds && !r.over(ctx); round++ {
		open = slices.DeleteFunc(open, func(partition int) bool {
			if r.over(ctx) {
				return false
			}
			more, err := r.page(ctx, partition)
			if err != nil {
				r.failed[partition-1] = err
			}
			if err != nil && !errors.Is(err, ErrUnfoldable) {
				left = append(left, partition)
			}
			return !more
		})
	}
	return append(left, open...)
}

// over says that the time for folding is over.
func (f Folder) over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && f.Now().After(deadline)
}

// page folds a page of a partition, and says whether more may wait there. Whatever became of a try without a reply, the next one
// reads what waits still. Where it folds all but what can't be folded, the error is [ErrUnfoldable].
func (r *accountRun) page(ctx context.Context, partition int) (more bool, err error) {
	for try := range foldTries {
		if try > 0 && (r.over(ctx) || r.Pause(ctx, foldPause<<try) != nil || r.over(ctx)) {
			return true, nil // it is left, and late says whether that is trouble
		}
		var page []Transfer
		var unfoldable error
		page, err = r.Collections.Incoming(ctx, r.account, partition, r.size)
		if errors.Is(err, ErrUnfoldable) {
			unfoldable, err = r.trouble(partition, err), nil
		}
		if errors.Is(err, errBatchUnread) {
			break // this took 6 s, and the other partitions wait
		}
		if err != nil {
			continue
		}
		if len(page) == 0 {
			return false, unfoldable
		}
		if err = r.Collections.Fold(ctx, r.account, page, r.Now()); err != nil {
			r.size = max(1, r.size/2)
			continue
		}
		r.did.Transfers += len(page)
		more = len(page) == r.size
		r.size = min(FoldMax, 2*r.size)
		_ = r.Pause(ctx, foldGap) // the end of the time is seen by who goes on
		return more, unfoldable
	}
	return false, r.trouble(partition, err)
}

func (r *accountRun) trouble(partition int, err error) error {
	return fmt.Errorf("fold partition %d of %s of %s: %w", partition, r.account.ID, r.account.Tenant, err)
}

// late looks at the oldest of what is left.
func (f Folder) late(ctx context.Context, a Account, left []int) error {
	ctx, cancel := before(ctx, lateReserve)
	defer cancel()
	var late error
	for _, partition := range left {
		oldest, err := f.Collections.Incoming(ctx, a, partition, 1)
		if err != nil && !errors.Is(err, ErrUnfoldable) {
			return errors.Join(late, err)
		}
		if len(oldest) == 1 && f.Now().Sub(oldest[0].CreatedAt) > foldLate {
			late = fmt.Errorf("%w: a transfer to %s of %s waits since %v", errFoldLate, a.ID, a.Tenant, oldest[0].CreatedAt)
		}
	}
	return late
}
