package main

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/dynamo"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// compareAccount lets a collecting account be folded again after a loss of data. A restored table may hold a part of a fold.
type compareAccount struct {
	Account string `arg:"" help:"Id of the account, or the first six characters of it, or more, where no other collecting account of the tenant begins so."`
	Tenant  string `required:"" help:"The tenant that owns it."`
	Correct bool   `help:"Where the two differ, correct the balance by the difference."`
	idemctl.Reasoned
}

// Validate judges the command line.
func (c *compareAccount) Validate() error { return checkTenant(c.Tenant) }

// comparison is the command's answer.
type comparison struct {
	Account string `json:"account"`
	Tenant  string `json:"tenant"`
	// Held says that nothing is folded before the account was compared. Otherwise nothing was compared.
	Held bool `json:"held"`
	// Folded is what the account says was folded into its balance, Transfers what its transfers say.
	Folded    payments.Total `json:"folded"`
	Transfers payments.Total `json:"transfers"`
	// Result is what was done, or would be.
	Result *operator.Result `json:"result,omitempty"`
}

// Run implements the command.
func (c *compareAccount) Run(d *idemctl.Desk) error {
	table, lost, err := folded(d.Context())
	if err != nil {
		return err
	}
	found, err := c.account(d, table)
	switch {
	case err != nil:
		return err
	case found == nil || !found.Collects():
		return operator.ErrNotFound
	case lost.IsZero():
		return fmt.Errorf("%w: no loss of data was declared: declare it with idemctl refuse-before set", operator.ErrRefused)
	case !lost.After(found.ComparedTo):
		return d.Show(comparison{Account: c.Account, Tenant: c.Tenant, Folded: found.Folded},
			"folding is not held: the account was compared after the last loss of data, or collects since then")
	}
	rows, err := table.FoldedRows(d.Context(), *found)
	if err != nil {
		return err
	}
	result, err := d.Do(operator.Task{
		Name: "account compare", Subject: c.Account, Tenant: c.Tenant, Would: c.would(*found, rows),
		Judge: func(context.Context) error { return c.judge(*found, rows) },
		Act: func(ctx context.Context) (string, error) {
			return c.would(*found, rows), refusedAccount(table.Compared(ctx, *found, rows, lost))
		},
	}, c.Change())
	if idemctl.Unfinished(err) {
		return err
	}
	return d.Show(comparison{Account: c.Account, Tenant: c.Tenant, Held: true, Folded: found.Folded, Transfers: rows, Result: &result}, result.Outcome)
}

// accountBeginning is a text by which accounts are searched: no key of another tenant's account begins with it.
var accountBeginning = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9._-]{%d,128}$`, operator.BeginningMin))

// accountsMax is how many accounts are listed that begin alike.
const accountsMax = 20

// account is the account that the command line names. An account of exactly that id comes first. Otherwise it is the beginning of an id,
// which is searched for among the collecting accounts: they alone are compared, and they alone are listed by an index.
func (c *compareAccount) account(d *idemctl.Desk, table payments.Table) (*payments.Account, error) {
	if !storable(c.Tenant, c.Account) {
		return nil, nil
	}
	found, err := table.Account(d.Context(), c.Tenant, c.Account)
	if err != nil || found != nil || !accountBeginning.MatchString(c.Account) {
		return found, err
	}
	ids, err := table.CollectingIDs(d.Context(), c.Tenant, c.Account, accountsMax+1)
	switch {
	case err != nil || len(ids) == 0:
		return nil, err
	case len(ids) > 1:
		most := min(len(ids), accountsMax)
		return nil, &operator.AmbiguousError{What: "collecting accounts", Begins: c.Account, IDs: ids[:most], More: most < len(ids)}
	}
	d.Note(c.Account + " is " + ids[0])
	c.Account = ids[0]
	return table.Account(d.Context(), c.Tenant, c.Account)
}

// folded is the table of accounts, and up to when data may have been lost.
func folded(ctx context.Context) (payments.Table, time.Time, error) {
	cfg, err := read[config.Operator]()
	if err != nil {
		return payments.Table{}, time.Time{}, err
	}
	aws, err := config.AWS(ctx)
	if err != nil {
		return payments.Table{}, time.Time{}, err
	}
	client := dynamodb.NewFromConfig(aws)
	store, err := dynamo.New(client, dynamo.Config{IdempotencyTable: cfg.IdempotencyTable, OutboxTable: cfg.OutboxTable})
	if err != nil {
		return payments.Table{}, time.Time{}, err
	}
	lost, err := store.RefuseBefore(ctx)
	return payments.Table{Client: client, Name: cfg.PaymentsTable}, lost, err
}

// would says what is done, for the dry run and for the audit log.
func (c *compareAccount) would(a payments.Account, rows payments.Total) string {
	if a.Folded == rows {
		return fmt.Sprintf("fold again: the account and its transfers agree on %d folded transfers, %d in all", rows.Transfers, rows.Amount)
	}
	return fmt.Sprintf("fold again, and change the balance by %+d: the account has folded %d transfers, %d in all; of its transfers %d are marked so, %d in all",
		rows.Amount-a.Folded.Amount, a.Folded.Transfers, a.Folded.Amount, rows.Transfers, rows.Amount)
}

// judge refuses what only a person can decide.
func (c *compareAccount) judge(a payments.Account, rows payments.Total) error {
	switch tooMuch := a.Folded.Amount - rows.Amount; {
	case a.ComparedTo.IsZero():
		return fmt.Errorf("%w: the account does not say since when it adds up what is folded", operator.ErrRefused)
	case a.Balance < tooMuch:
		return fmt.Errorf("%w: to %s. The balance is %d: the rest is spent already. Raise it first", operator.ErrRefused, c.would(a, rows), a.Balance)
	case a.Folded != rows && !c.Correct:
		return fmt.Errorf("%w: --correct is needed to %s", operator.ErrRefused, c.would(a, rows))
	}
	return nil
}
