package payments

import (
	"cmp"
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
	// Incoming is [Ledger]'s.
	Incoming(ctx context.Context, a Account, partition, limit int) ([]Transfer, error)
	// Fold adds at most [FoldMax] incoming transfers to the balance and marks them, all at once or not at all. It is an error where
	// one of them does not wait any more.
	Fold(ctx context.Context, a Account, transfers []Transfer, at time.Time) error
}

// Folder folds incoming transfers into the balances of collecting accounts. It keeps nothing: what is folded waits no more, so a run
// goes on where the last one ended, however that ended, and two runs at once fold nothing twice.
type Folder struct {
	Collections Collections
	// Now is the clock. Pause waits, or returns the context's error.
	Now   func() time.Time
	Pause func(context.Context, time.Duration) error
}

// Folded is what a run has done.
type Folded struct {
	// Accounts are those that collect, Transfers what was folded into them.
	Accounts  int `json:"accounts"`
	Transfers int `json:"transfers"`
	// Left says that something waits still: the run's time was over.
	Left bool `json:"left"`
}

const (
	// foldsAtOnce is how many accounts are folded side by side.
	foldsAtOnce = 8
	// foldRounds bounds a run: so many transactions for each partition.
	foldRounds = 1000
	// foldTries is how often a partition is tried in a run that a debit or another run comes in the way of.
	foldTries, foldPause = 5, 100 * time.Millisecond
	// foldReserve is kept of the run's time.
	foldReserve = 2 * time.Second
	// foldLate is for how long a transfer may wait.
	foldLate = 15 * time.Minute
)

// errFoldLate: the runs of a quarter of an hour were not enough, or have failed.
var errFoldLate = errors.New("payments: folding is behind")

// errOtherCurrency: somebody has changed a row by hand.
var errOtherCurrency = errors.New("payments: a transfer in another currency than the account's")

// Run folds what waits, and stops while there is time to answer. One account's trouble does not keep the others from being folded.
// It is an error that a transfer is left that has waited for a quarter of an hour.
func (f Folder) Run(ctx context.Context) (Folded, error) {
	accounts, unread := f.Collections.Collecting(ctx)
	did := Folded{Accounts: len(accounts)}
	if len(accounts) == 0 {
		return did, unread
	}
	// Where time does not suffice for all, each minute begins with another one.
	first := int(f.Now().Unix()/60) % len(accounts)
	accounts = append(slices.Clone(accounts[first:]), accounts[:first]...)
	each, failed := make([]Folded, len(accounts)), make([]error, len(accounts))
	var group errgroup.Group
	group.SetLimit(foldsAtOnce)
	for i, a := range accounts {
		group.Go(func() error {
			each[i], failed[i] = f.account(ctx, a)
			return nil
		})
	}
	_ = group.Wait() // the errors are in failed
	for _, one := range each {
		did.Transfers, did.Left = did.Transfers+one.Transfers, did.Left || one.Left
	}
	return did, errors.Join(append(failed, unread)...)
}

// account folds a page of each partition in turn, so that none waits for another one to be empty.
func (f Folder) account(ctx context.Context, a Account) (did Folded, err error) {
	open := make([]int, a.Partitions)
	for i := range open {
		open[i] = i + 1
	}
	var failed error
	for round := 0; len(open) > 0; round++ {
		if round == foldRounds || f.over(ctx) {
			did.Left = true
			return did, errors.Join(failed, f.late(ctx, a, open))
		}
		open = slices.DeleteFunc(open, func(partition int) bool {
			n, err := f.page(ctx, a, partition)
			did.Transfers += n
			failed, did.Left = errors.Join(failed, err), did.Left || err != nil
			return n < FoldMax
		})
	}
	return did, failed
}

// over says that the time left is kept for the end.
func (f Folder) over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && f.Now().Add(foldReserve).After(deadline)
}

// page folds a page of a partition, and returns how many transfers that were; fewer than FoldMax, and nothing waits there any more.
// Whatever became of a try without a reply, the next one reads what waits still.
func (f Folder) page(ctx context.Context, a Account, partition int) (n int, err error) {
	for try := range foldTries {
		if try > 0 && f.Pause(ctx, foldPause<<try) != nil {
			break
		}
		var page []Transfer
		if page, err = f.Collections.Incoming(ctx, a, partition, FoldMax); err != nil {
			continue
		}
		if len(page) == 0 {
			return 0, nil
		}
		if i := slices.IndexFunc(page, func(t Transfer) bool { return t.Currency != a.Currency }); i >= 0 {
			err = fmt.Errorf("%w: %s is in %s", errOtherCurrency, page[i].ID, page[i].Currency)
			break
		}
		if err = f.Collections.Fold(ctx, a, page, f.Now()); err == nil {
			return len(page), nil
		}
	}
	return 0, fmt.Errorf("fold partition %d of %s of %s: %w", partition, a.ID, a.Tenant, cmp.Or(err, ctx.Err()))
}

// late looks at the oldest of what is left.
func (f Folder) late(ctx context.Context, a Account, open []int) error {
	var late error
	for _, partition := range open {
		oldest, err := f.Collections.Incoming(ctx, a, partition, 1)
		if err != nil {
			return errors.Join(late, err)
		}
		if len(oldest) == 1 && f.Now().Sub(oldest[0].CreatedAt) > foldLate {
			late = fmt.Errorf("%w: a transfer to %s of %s waits since %v", errFoldLate, a.ID, a.Tenant, oldest[0].CreatedAt)
		}
	}
	return late
}
