package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/idem-go/idem-aws/functions/internal/config"
	"github.com/idem-go/idem-aws/functions/internal/payments"
	"github.com/idem-go/idem-aws/idem/operator"
	"github.com/idem-go/idem-aws/idem/operator/idemctl"
)

// accounts are the commands about accounts.
type accounts struct {
	Collect collect         `cmd:"" help:"Make an account a collecting account: transfers to it wait, and are added to its balance in batches. This can't be undone."`
	Compare compareAccounts `cmd:"" help:"Compare the balances of accounts with their transfers and payouts, and payments with their refunds, and correct what a loss of data has torn. Collecting accounts are folded again after that."`
}

type collect struct {
	Account    string `arg:"" help:"Whole id of the account: no index has the accounts that collect nothing yet, so a beginning would need a scan of the table."`
	Tenant     string `required:"" help:"The tenant that owns it."`
	Partitions int    `required:"" help:"Number of partitions for waiting transfers: the most transfers a second, divided by 500. It can be raised later, but never lowered."`
	idemctl.Reasoned
}

// Validate judges the command line.
func (c *collect) Validate() error {
	if c.Partitions < 1 || c.Partitions > payments.PartitionsMax {
		return fmt.Errorf("--partitions must be 1 to %d", payments.PartitionsMax)
	}
	return checkTenant(c.Tenant)
}

func checkTenant(tenant string) error {
	if !tenantForm.MatchString(tenant) {
		return errors.New("--tenant must have 1..64 letters, digits, dots, dashes and underscores")
	}
	return nil
}

// Run implements the command.
func (c *collect) Run(d *idemctl.Desk) error {
	cfg, err := read[config.Payments]()
	if err != nil {
		return err
	}
	aws, err := config.AWS(d.Context())
	if err != nil {
		return err
	}
	table := payments.Table{Client: dynamodb.NewFromConfig(aws), Name: cfg.PaymentsTable}
	if !storable(c.Tenant, c.Account) {
		return operator.ErrNotFound
	}
	found, err := table.Account(d.Context(), c.Tenant, c.Account)
	switch {
	case err != nil:
		return err
	case found == nil:
		return operator.ErrNotFound
	case found.Partitions > c.Partitions:
		return &operator.InvalidError{Field: "--partitions", Rule: fmt.Sprintf("must not be lower: the account collects in %d partitions, and never in fewer", found.Partitions)}
	}
	result, err := d.Do(operator.Task{
		Name: "account collect", Subject: c.Account, Tenant: c.Tenant,
		Would: fmt.Sprintf("have %s collect in %d partitions; it has %d", c.Account, c.Partitions, found.Partitions),
		Act: func(ctx context.Context) (string, error) {
			return "collects", refusedAccount(table.Collect(ctx, c.Tenant, c.Account, c.Partitions, time.Now()))
		},
	}, c.Change())
	return shown(d, c.Write, result, err)
}

// shown shows what came of a task, or would.
func shown(d *idemctl.Desk, write bool, result operator.Result, err error) error {
	if idemctl.Unfinished(err) {
		return err
	}
	line := result.Outcome
	if !write {
		line = "dry run: would " + line
	}
	return errors.Join(d.Show(result, line), err)
}

// refusedAccount says to the audit log that nothing was changed, where a condition on the account was not fulfilled.
func refusedAccount(err error) error {
	if errors.Is(err, payments.ErrNotCollected) || errors.Is(err, payments.ErrNotCompared) {
		return fmt.Errorf("%w: %w", operator.ErrRefused, err)
	}
	return err
}
